// The reader of torch.save()'s files on any bytes: it either refuses them with a ConvertError, or every tensor that it names can be
// read.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/convert/checkpoint/torch_file.h"
#include "tools/convert/json/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const auto& [name, tensor] : tarn::convert::ParseTorchFile(data, size, "fuzz")) {
      if (!IsFloating(tensor.dtype)) continue;
      std::vector<float> values(tensor.elements);
      tarn::convert::ReadAsF32(tensor, 0, tensor.elements, values.data());
    }
  } catch (const tarn::convert::ConvertError&) {
    // The only way to say no.
  }
  return 0;
}
