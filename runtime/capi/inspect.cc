// C API: looking inside a model and at the time of its ops. Translation only.
#include "tarn/inspect.h"

#include <cstdarg>
#include <cstring>

#include "core/format.h"
#include "runtime/capi/handles.h"
#include "runtime/ops/registry.h"
#include "runtime/session/session.h"
#include "runtime/session/snapshot_format.h"

namespace tarn {
namespace {

static_assert(kMaxRank == TARN_MAX_DIMS);

Status CheckIndex(size_t index, uint32_t count, const char* what) {
  if (index < count) return Ok();
  return Error(TARN_NOT_FOUND, "%s %zu of %u", what, index, count);
}

Status CheckArguments(const tarn_model* model, const void* info) {
  if (model == nullptr) return NullArgument("model");
  return info == nullptr ? NullArgument("info") : Ok();
}

// `View` is a TensorView or a StateView, `Info` the public struct of the same fields.
template <typename View, typename Info>
Status WriteView(const View& view, Info info, Info* user) {
  info.struct_size = sizeof(Info);
  info.name = view.name;
  info.dtype = DTypeName(view.dtype);
  info.rank = view.shape.rank;
  std::memcpy(info.shape, view.shape.dims, sizeof(info.shape));
  info.data_bytes = view.data_bytes;
  return WriteStruct(info, user);
}

Status WriteTensor(const tarn_model* model, size_t index, tarn_tensor_info* user) {
  TARN_RETURN_IF_ERROR(CheckArguments(model, user));
  TARN_RETURN_IF_ERROR(CheckIndex(index, ModelOf(model).graph().tensors()->size(), "tensor"));
  return WriteView(ModelOf(model).tensor(static_cast<uint32_t>(index)), tarn_tensor_info{}, user);
}

Status WriteState(const tarn_model* model, size_t index, tarn_state_info* user) {
  TARN_RETURN_IF_ERROR(CheckArguments(model, user));
  TARN_RETURN_IF_ERROR(CheckIndex(index, ModelOf(model).graph().states()->size(), "state"));
  const StateView view = ModelOf(model).state(static_cast<uint32_t>(index));
  tarn_state_info info{};
  info.owner = view.owner == format::Owner::Source ? "source" : "sequence";
  info.source_axis = view.source_axis;
  return WriteView(view, info, user);
}

// Appends printf-style; what does not fit is cut.
struct TextCursor {
  char* text;
  size_t bytes;
  void Append(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    const size_t used = FormatV(text, bytes, format, arguments);
    va_end(arguments);
    text += used;
    bytes -= used;
  }
};

void WriteOperands(const format::Program& program, const format::Op& op, tarn_op_info* info) {
  TextCursor inputs{info->inputs, sizeof(info->inputs)};
  for (uint32_t i = 0; op.inputs() != nullptr && i < op.inputs()->size(); ++i) {
    const format::Slice& slice = *op.inputs()->Get(i);
    const format::Value& value = *program.values()->Get(slice.value());
    inputs.Append("%s%s", i == 0 ? "" : ", ", value.name()->c_str());
    if (slice.width() != value.width()) inputs.Append("[%u:%u]", slice.begin(), slice.begin() + slice.width());
  }
  TextCursor outputs{info->outputs, sizeof(info->outputs)};
  for (uint32_t i = 0; op.outputs() != nullptr && i < op.outputs()->size(); ++i) {
    outputs.Append("%s%s", i == 0 ? "" : ", ", program.values()->Get(op.outputs()->Get(i))->name()->c_str());
  }
}

// The count of a list, and as many of its numbers as there is room for.
uint32_t WriteNumbers(const flatbuffers::Vector<uint32_t>* numbers, uint32_t (&out)[TARN_MAX_OP_ARRAYS]) {
  const uint32_t count = numbers == nullptr ? 0 : numbers->size();
  for (uint32_t i = 0; i < count && i < TARN_MAX_OP_ARRAYS; ++i) out[i] = numbers->Get(i);
  return count;
}

struct PlacedOp {
  Stage stage;
  const format::Op* op;
};

// The ops of all programs, in the order of the file.
Result<PlacedOp> FindOp(const Model& model, size_t index) {
  uint32_t before = 0;
  for (const Stage stage : kStages) {
    const format::Program* program = model.program(stage);
    if (program == nullptr) continue;
    const uint32_t count = program->ops()->size();
    if (index < before + size_t{count}) return PlacedOp{stage, program->ops()->Get(static_cast<uint32_t>(index) - before)};
    before += count;
  }
  return Error(TARN_NOT_FOUND, "op %zu of %u", index, before);
}

Status WriteOp(const tarn_model* model, size_t index, tarn_op_info* user) {
  TARN_RETURN_IF_ERROR(CheckArguments(model, user));
  const Model& read = ModelOf(model);
  TARN_ASSIGN_OR_RETURN(const PlacedOp placed, FindOp(read, index));
  const format::Op& op = *placed.op;
  const OpKind& kind = *FindOpKind(op.attributes_type());
  tarn_op_info info{};
  info.struct_size = sizeof(info);
  info.name = op.name()->c_str();
  info.kind = kind.name;
  if (kind.describe != nullptr) kind.describe(op, info.detail, sizeof(info.detail));
  info.program = StageName(placed.stage);
  WriteOperands(*read.program(placed.stage), op, &info);
  info.tensor_count = WriteNumbers(op.tensors(), info.tensors);
  info.state_count = WriteNumbers(op.states(), info.states);
  for (uint32_t i = 0; op.states() != nullptr && i < op.states()->size(); ++i) {
    info.state_bytes += read.state(op.states()->Get(i)).data_bytes;
  }
  const format::Heads* heads = kind.heads == nullptr ? nullptr : kind.heads(op);
  if (heads != nullptr) {
    const uint64_t element_bytes = DTypeBits(read.state(op.states()->Get(0)).dtype) / 8;
    const uint64_t row_bytes = uint64_t{heads->kv_heads()} * (uint64_t{heads->head_dim()} + heads->value_dim()) * element_bytes;
    info.kv_break_even_tokens = info.state_bytes / row_bytes + 1;
  }
  return WriteStruct(info, user);
}

// What is read of a snapshot says what is checked of it: a check of the map reads all of it, one of the hash all of the snapshot.
enum class Checks { kSize, kSizeMap, kSizeMapHash };

Result<SnapshotHeader> CheckSnapshot(Span<const uint8_t> memory, Checks checks) {
  TARN_ASSIGN_OR_RETURN(const SnapshotHeader header, ReadSnapshotHeader(memory));
  if (checks == Checks::kSizeMapHash) TARN_RETURN_IF_ERROR(CheckSnapshotDigest(header, memory));
  TARN_RETURN_IF_ERROR(checks == Checks::kSize ? CheckSnapshotSize(header) : CheckSnapshotMap(header, memory.data()));
  return header;
}

Result<SnapshotHeader> OpenSnapshot(const void* snapshot, uint64_t size_bytes, Checks checks) {
  if (snapshot == nullptr) return NullArgument("snapshot");
  Result<SnapshotHeader> header = CheckSnapshot({static_cast<const uint8_t*>(snapshot), SizeOf(size_bytes)}, checks);
  if (!header.ok()) return header.status().In("snapshot");
  return header;
}

Status WriteSnapshotInfo(const void* snapshot, uint64_t size_bytes, tarn_snapshot_info* user) {
  if (user == nullptr) return NullArgument("info");
  TARN_ASSIGN_OR_RETURN(const SnapshotHeader header, OpenSnapshot(snapshot, size_bytes, Checks::kSizeMapHash));
  tarn_snapshot_info info{};
  info.struct_size = sizeof(info);
  info.version = header.version;
  info.sequences = header.sequences;
  info.snapshot_bytes = header.snapshot_bytes;
  static_assert(sizeof(info.fingerprint) == sizeof(header.fingerprint));
  std::memcpy(info.fingerprint, header.fingerprint, sizeof(info.fingerprint));
  info.tokens = header.tokens;
  info.sources = header.sources;
  info.max_source = header.source_rows;
  info.state_bytes = header.state_bytes;
  const auto* const bytes = static_cast<const uint8_t*>(snapshot);
  info.stored_bytes = CountSnapshotBlocks(header, bytes, SnapshotLayout(header, {}).blocks).bytes();
  static_assert(sizeof(info.hash) == sizeof(Digest::bytes));
  std::memcpy(info.hash, SnapshotDigest(header, bytes).bytes, sizeof(info.hash));
  if (header.version == kSnapshotDelta) std::memcpy(info.base_hash, SnapshotBase(header, bytes).bytes, sizeof(info.base_hash));
  return WriteStruct(info, user);
}

Status WriteSourceTokens(const void* snapshot, uint64_t size_bytes, uint32_t source, uint32_t* tokens) {
  if (tokens == nullptr) return NullArgument("tokens");
  TARN_ASSIGN_OR_RETURN(const SnapshotHeader header, OpenSnapshot(snapshot, size_bytes, Checks::kSize));
  TARN_RETURN_IF_ERROR(CheckIndex(source, header.sources, "source"));
  *tokens = SnapshotSourceTokens(static_cast<const uint8_t*>(snapshot), source);
  return Ok();
}

Status WriteSequenceTokens(const void* snapshot, uint64_t size_bytes, uint32_t sequence, uint64_t* tokens) {
  if (tokens == nullptr) return NullArgument("tokens");
  TARN_ASSIGN_OR_RETURN(const SnapshotHeader header, OpenSnapshot(snapshot, size_bytes, Checks::kSize));
  TARN_RETURN_IF_ERROR(CheckIndex(sequence, header.sequences, "sequence"));
  *tokens = SnapshotSequenceTokens(header, static_cast<const uint8_t*>(snapshot), sequence);
  return Ok();
}

Status ReadSnapshot(const void* snapshot, uint64_t size_bytes, uint64_t offset, void* states, uint64_t count) {
  if (states == nullptr) return NullArgument("states");
  TARN_ASSIGN_OR_RETURN(const SnapshotHeader header, OpenSnapshot(snapshot, size_bytes, Checks::kSizeMap));
  const Span<uint8_t> bytes(static_cast<uint8_t*>(states), SizeOf(count));
  return ReadSnapshotStates(header, static_cast<const uint8_t*>(snapshot), offset, bytes).In("snapshot");
}

Status Profile(tarn_session* session, bool on) {
  if (session == nullptr) return NullArgument("session");
  reinterpret_cast<Session*>(session)->Profile(on);
  return Ok();
}

Status WriteOpTime(const tarn_session* session, size_t index, tarn_op_time* user) {
  if (session == nullptr) return NullArgument("session");
  if (user == nullptr) return NullArgument("time");
  const Instance& instance = reinterpret_cast<const Session*>(session)->instance();
  TARN_RETURN_IF_ERROR(CheckIndex(index, instance.op_count(), "op"));
  const OpTime time = instance.op_time(static_cast<uint32_t>(index));
  return WriteStruct(tarn_op_time{sizeof(tarn_op_time), time.name, time.kind, time.runs, time.ns}, user);
}

}  // namespace
}  // namespace tarn

tarn_status tarn_model_tensor(const tarn_model* model, size_t index, tarn_tensor_info* info, tarn_error* error) {
  return tarn::Report(tarn::WriteTensor(model, index, info), error);
}

tarn_status tarn_model_state(const tarn_model* model, size_t index, tarn_state_info* info, tarn_error* error) {
  return tarn::Report(tarn::WriteState(model, index, info), error);
}

tarn_status tarn_model_op(const tarn_model* model, size_t index, tarn_op_info* info, tarn_error* error) {
  return tarn::Report(tarn::WriteOp(model, index, info), error);
}

tarn_status tarn_snapshot_get_info(const void* snapshot, uint64_t size_bytes, tarn_snapshot_info* info, tarn_error* error) {
  return tarn::Report(tarn::WriteSnapshotInfo(snapshot, size_bytes, info), error);
}

tarn_status tarn_snapshot_source_tokens(const void* snapshot, uint64_t size_bytes, uint32_t source, uint32_t* tokens,
                                        tarn_error* error) {
  return tarn::Report(tarn::WriteSourceTokens(snapshot, size_bytes, source, tokens), error);
}

tarn_status tarn_snapshot_sequence_tokens(const void* snapshot, uint64_t size_bytes, uint32_t sequence, uint64_t* tokens,
                                          tarn_error* error) {
  return tarn::Report(tarn::WriteSequenceTokens(snapshot, size_bytes, sequence, tokens), error);
}

tarn_status tarn_snapshot_read(const void* snapshot, uint64_t size_bytes, uint64_t offset_bytes, void* states, uint64_t count_bytes,
                               tarn_error* error) {
  return tarn::Report(tarn::ReadSnapshot(snapshot, size_bytes, offset_bytes, states, count_bytes), error);
}

tarn_status tarn_session_profile(tarn_session* session, int on, tarn_error* error) {
  return tarn::Report(tarn::Profile(session, on != 0), error);
}

tarn_status tarn_session_op_time(const tarn_session* session, size_t index, tarn_op_time* time, tarn_error* error) {
  return tarn::Report(tarn::WriteOpTime(session, index, time), error);
}
