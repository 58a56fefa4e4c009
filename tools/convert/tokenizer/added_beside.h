// Added tokens that stand beside the file of a vocabulary: older checkpoints have no tokenizer.json, which lists them.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_ADDED_BESIDE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_ADDED_BESIDE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/tokenizer/folder.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

// Those of added_tokens_decoder of tokenizer_config.json, by their ids. Errors: an entry that is no id and token.
std::vector<AddedToken> AddedTokensDecoder(const TokenizerConfig& config);

// Those of added_tokens_decoder, or else of added_tokens.json, by their ids. Errors: as above.
std::vector<AddedToken> AddedTokensBeside(const std::string& folder, const TokenizerConfig& config);

// <extra_id_0> and those after it, the sentinels of T5: as many as "extra_ids" of tokenizer_config.json says, or else `fallback`.
// The ids from `first` on are theirs, in reverse order. Errors: "extra_ids" that is no such number.
std::vector<AddedToken> SentinelTokens(const TokenizerConfig& config, size_t fallback, uint32_t first);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_ADDED_BESIDE_H_
