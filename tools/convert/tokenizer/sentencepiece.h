// The .model files of SentencePiece.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_SENTENCEPIECE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_SENTENCEPIECE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

struct SentencePieceModel {
  Json tokenizer;                     // as tokenizer.json says it, without merges and a post-processor
  std::vector<format::Merge> merges;  // by their ranks
  std::vector<AddedToken> symbols;    // user-defined pieces: `tokenizer` has them as pieces alone
  std::string bos, eos;               // empty: there is none
};

// The ids that fairseq's models have, in place of those of the file: "<s>", "<pad>", "</s>", "<unk>", the pieces behind the three
// special ones of the file, and further special tokens.
struct FairseqPieces {
  Json ids;  // an object: the id of each piece, and of "<s>" and the others; null: in the order of the file
  std::function<std::vector<std::string>(size_t first)> last;  // of the id `first` and those behind it
};

// Which parts of a text between special tokens get the space of add_dummy_prefix. `legacy: false` of `transformers` is kFirst.
enum class DummyPrefix : uint8_t { kAlways, kFirst };

// As the package `transformers` converts the models of T5 and Llama: the ids are those of the package `sentencepiece`, apart from
// special tokens in a text (docs/tokenizers.md has the other exceptions), or those of `fairseq`. Errors: a file that is damaged, a
// kind of model or an option that is not supported, by its name.
SentencePieceModel ReadSentencePiece(const std::string& path, DummyPrefix prefix, const FairseqPieces* fairseq = nullptr);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_SENTENCEPIECE_H_
