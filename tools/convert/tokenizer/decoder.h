// The decoder of tokenizer.json: what tokens become in a text.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_DECODER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/json/json.h"

namespace tarn::convert {

enum class DecoderKind : uint8_t { kByteLevel, kByteFallback, kFuse, kStrip, kReplace, kMetaspace, kWordPiece, kBpe };

struct DecoderStep {
  DecoderKind kind = DecoderKind::kFuse;
  std::string text;              // Replace: what is replaced; WordPiece: the prefix; Bpe: the suffix; else the one character
  std::string content;           // Replace
  uint64_t start = 0, stop = 0;  // Strip: characters
  bool flag = false;             // WordPiece: cleanup; Metaspace: the first token has no spaces
};

struct Decoder {
  std::vector<DecoderStep> steps;  // for each token on its own
  bool has_steps = false;          // else tokens are joined by spaces
  bool is_byte_level = false;      // the last step
  bool text_drops_space = false;   // Strip, of all tokens together
};

// What a token becomes, as the first one of a text and as a later one.
struct Piece {
  std::string first, later;
  bool is_byte = false;  // of a run of such tokens
};

// The object, or null. Errors: a decoder that is not supported, or not in its place.
Decoder ReadDecoder(const Json& object, const std::string& where);

// Steps may each make a token longer: none follows one that has made more than `max_bytes`, which is then the piece. Errors: names
// `where` and the token.
Piece Decode(const Decoder& decoder, const std::string& token, const std::string& where, size_t max_bytes);

// The last token drops the space that it ends with.
bool LastTokenDropsSpace(const Decoder& decoder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_DECODER_H_
