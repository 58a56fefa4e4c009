// A model from bytes: whatever they are, opening, measuring, packing and running it either works or is refused with words.
//
// The hash would hide nearly everything from the fuzzer, so it is made right again before the file is opened.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace {

// So that a hostile shape is refused as it would be on a device.
void* LimitedAllocate(void*, size_t bytes, size_t alignment) {
  constexpr size_t kMost = size_t{64} << 20;
  return bytes > kMost ? nullptr : tarn::DefaultAllocator().allocate(nullptr, bytes, alignment);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  if (file.size() >= tarn::test::kHeaderBytes && tarn::test::GraphBytes(file) <= file.size() - tarn::test::kHeaderBytes) {
    tarn::test::Rehash(&file);
  }
  const tarn::Allocator allocator = {LimitedAllocate, tarn::DefaultAllocator().release, nullptr};
  tarn::Result<tarn::LoadedModel> model =
      tarn::LoadedModel::Open(tarn::FileMap(), {file.data(), file.size()}, {false, nullptr, false, allocator});
  if (!model.ok() || !model.value().Pack().ok()) return 0;
  tarn::Result<tarn::Session*> session = tarn::Session::Create(model.value(), {1, 4, 1, 1}, {});
  if (!session.ok()) return 0;
  const int32_t tokens[6] = {0};
  const tarn::Result<const float*> logits = session.value()->Prefill(tokens, 6);
  volatile float first = logits.ok() ? logits.value()[0] : 0;  // reads the logits
  static_cast<void>(first);
  tarn::Session::Destroy(session.value());
  return 0;
}
