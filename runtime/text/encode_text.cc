#include "runtime/text/encode_text.h"

#include <algorithm>
#include <iterator>

#include "runtime/text/encoder.h"
#include "runtime/text/tokenizer.h"

namespace tarn {
namespace {

constexpr uint32_t kMostWordBytesOfCall = 1u << 20;

// Counts what there is no room for.
Status ReadAll(Encoder* encoder, Span<int32_t> tokens, size_t* count) {
  TARN_RETURN_IF_ERROR(encoder->Read(tokens, {}, count));
  int32_t rest[64];
  size_t more = *count < tokens.size() ? 0 : std::size(rest);
  while (more == std::size(rest)) {
    TARN_RETURN_IF_ERROR(encoder->Read(rest, {}, &more));
    *count += more;
  }
  return Ok();
}

}  // namespace

Status EncodeText(const TokenizerTables& tables, Span<const char> text, const Allocator& allocator, Span<int32_t> tokens,
                  size_t* count) {
  const auto word_bytes = static_cast<uint32_t>(std::clamp<size_t>(text.size(), 1, kMostWordBytesOfCall));
  TARN_ASSIGN_OR_RETURN(Encoder * encoder, Encoder::Create(tables, {word_bytes, kDefaultCacheWords}, {}, allocator));
  encoder->Begin(text, {});
  size_t found = 0;
  const Status read = ReadAll(encoder, tokens, &found);
  Encoder::Destroy(encoder);
  TARN_RETURN_IF_ERROR(read);
  *count = found;
  return CheckCapacity(found, tokens.size());
}

}  // namespace tarn
