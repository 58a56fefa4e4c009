// Without an operating system: model files with a vocabulary are not opened there (runtime/model/tokenizer_bare.cc).
#include "runtime/text/encode_text.h"

namespace tarn {

Status EncodeText(const TokenizerTables&, Span<const char>, const Allocator&, Span<int32_t>, size_t*) {
  return Error(TARN_UNSUPPORTED, "this build has no tokenizer but that of bytes");
}

}  // namespace tarn
