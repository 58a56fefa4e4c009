#include "tests/fuzz/use_model.h"

#include <cstdio>
#include <cstdlib>

#include "core/allocator.h"
#include "tarn/inspect.h"
#include "tarn/tarn.h"

namespace tarn::test {
namespace {

// So that a hostile shape is refused as it would be on a device.
void* LimitedAllocate(void*, size_t bytes, size_t alignment) {
  constexpr size_t kMost = size_t{64} << 20;
  return bytes > kMost ? nullptr : DefaultAllocator().allocate(nullptr, bytes, alignment);
}

void Inspect(const tarn_model* model) {
  tarn_op_info op{};
  tarn_tensor_info tensor{};
  tarn_state_info state{};
  op.struct_size = sizeof(op);
  tensor.struct_size = sizeof(tensor);
  state.struct_size = sizeof(state);
  for (size_t i = 0; tarn_model_op(model, i, &op, nullptr) == TARN_OK; ++i) {
  }
  for (size_t i = 0; tarn_model_tensor(model, i, &tensor, nullptr) == TARN_OK; ++i) {
  }
  for (size_t i = 0; tarn_model_state(model, i, &state, nullptr) == TARN_OK; ++i) {
  }
}

// A session's own snapshot is never refused.
void SaveAndRestore(tarn_session* session) {
  std::vector<uint8_t> snapshot(static_cast<size_t>(tarn_session_snapshot_bytes(session)));
  tarn_error error{};
  if (tarn_session_save(session, snapshot.data(), snapshot.size(), &error) == TARN_OK &&
      tarn_session_restore(session, snapshot.data(), snapshot.size(), &error) == TARN_OK) {
    return;
  }
  std::fprintf(stderr, "%s\n", error.message);
  std::abort();
}

// Only the calls of the model's task do more than refuse.
void Run(const tarn_model* model, uint32_t batch, uint32_t chunk) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = batch;
  config.max_chunk = chunk;
  config.max_logits_rows = chunk;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model_get_info(model, &info, nullptr);
  if (info.task != TARN_TASK_CAUSAL_LM) config.max_source = 5;
  if (info.task == TARN_TASK_SEQ2SEQ) config.beams = 2;
  tarn_session* session = nullptr;
  if (tarn_session_create(model, &config, &session, nullptr) != TARN_OK) return;
  const int32_t tokens[24] = {0};
  const size_t lengths[2] = {5, 1};
  const uint32_t positions[1] = {4}, parents[4] = {1, 0, 3, 3};
  const float* logits = nullptr;
  tarn_session_classify(session, tokens, 5, lengths, &logits, nullptr);
  tarn_session_fill(session, tokens, 5, positions, 1, &logits, nullptr);
  tarn_session_encode(session, tokens, 5, lengths, nullptr);
  tarn_session_prefill(session, tokens, 6, &logits, nullptr);
  if (info.task == TARN_TASK_SEQ2SEQ) tarn_session_reorder(session, parents, nullptr);
  tarn_session_score(session, tokens, chunk, &logits, nullptr);
  SaveAndRestore(session);
  tarn_session_step(session, tokens, &logits, nullptr);
  tarn_session_destroy(session);
}

}  // namespace

void UseModel(const std::vector<uint8_t>& file) {
  tarn_source source = TARN_SOURCE_INIT;
  source.buffer = file.data();
  source.length_bytes = file.size();
  for (const int portable : {1, 0}) {
    tarn_model_config config = TARN_MODEL_CONFIG_INIT;
    config.portable_dense = portable;
    config.isa = portable ? "reference" : nullptr;
    config.allocator = {LimitedAllocate, DefaultAllocator().release, nullptr};
    config.max_work_per_token = uint64_t{1} << 24;  // so that every mutant ends soon
    tarn_model* model = nullptr;
    if (tarn_model_open(&source, &config, &model, nullptr) != TARN_OK) return;
    Inspect(model);
    Run(model, 1, 4);
    Run(model, 2, 1);
    tarn_model_close(model);
  }
}

}  // namespace tarn::test
