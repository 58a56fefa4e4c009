// A model from bytes: whatever they are, using it either works or is refused with words.
//
// The hash would hide nearly everything from the fuzzer, so it is made right again before the file is opened.
#include "tests/fuzz/use_model.h"
#include "tests/support/models.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  if (file.size() >= tarn::test::kHeaderBytes && tarn::test::GraphBytes(file) <= file.size() - tarn::test::kHeaderBytes) {
    tarn::test::Rehash(&file);
  }
  tarn::test::UseModel(file);
  return 0;
}
