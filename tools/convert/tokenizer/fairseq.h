// Tokenizers of fairseq's models, as `transformers` publishes them: sentencepiece.bpe.model has the pieces, which have other ids.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_FAIRSEQ_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_FAIRSEQ_H_

#include <string>

#include "tools/convert/tokenizer/folder.h"
#include "tools/convert/tokenizer/sentencepiece.h"

namespace tarn::convert {

// As ReadSentencePiece(), with a post-processor. The ids are those of `transformers`: "<s>", "<pad>", "</s>", "<unk>", the pieces
// (in the order of vocab.json for M2M100), languages and "<mask>". tokenizer_config.json names the class and the language of texts;
// without a class, model_type of config.json says which it is. Errors: a class that is not known, a language that has no token.
SentencePieceModel ReadFairseq(const std::string& folder, const TokenizerConfig& config, const std::string& path);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_FAIRSEQ_H_
