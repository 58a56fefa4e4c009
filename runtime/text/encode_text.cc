#include "runtime/text/encode_text.h"

#include <algorithm>
#include <iterator>

#include "runtime/text/encoder.h"
#include "runtime/text/tokenizer.h"

namespace tarn {
namespace {

constexpr size_t kMostWordBytesOfCall = 1u << 20;

// Words are bounded in normalized text, which may be longer: NFKC makes 11 times as much of U+FDFA, other steps add to short texts.
size_t WordBytes(const TokenizerTables& tables, size_t text_bytes) {
  const bool is_as_it_is = !tables.prefix_space && tables.space.empty() && tables.normalizer_words.empty();
  if (text_bytes >= kMostWordBytesOfCall) return kMostWordBytesOfCall;
  return std::clamp<size_t>(is_as_it_is ? text_bytes : 16 * text_bytes + 4096, 1, kMostWordBytesOfCall);
}

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
  *count = 0;
  const auto word_bytes = static_cast<uint32_t>(WordBytes(tables, text.size()));
  TARN_ASSIGN_OR_RETURN(Encoder * encoder, Encoder::Create(tables, {word_bytes, kDefaultCacheWords}, {{}, allocator}));
  encoder->Begin(text, {});
  size_t found = 0;
  const Status read = ReadAll(encoder, tokens, &found);
  Encoder::Destroy(encoder);
  TARN_RETURN_IF_ERROR(read);
  *count = found;
  return CheckCapacity(found, tokens.size());
}

}  // namespace tarn
