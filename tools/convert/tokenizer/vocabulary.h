// The vocabulary of a byte-level BPE tokenizer: its tokens, merges and added tokens.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_VOCABULARY_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

// As its entry of "added_tokens" says.
struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
};

// Tokens as the files spell them: byte-level ones by the alphabet of GPT-2.
struct Vocabulary {
  std::unordered_map<std::string, uint32_t> ids;            // of the model
  std::vector<std::pair<std::string, std::string>> merges;  // in the order of their ranks
  std::vector<AddedToken> added;
  std::string unk_token;  // "": none
  bool fuse_unk = false;
  bool ignore_merges = false;  // a word that is a token is that token

  std::optional<uint32_t> Find(const std::string& token) const;  // added ones first
};

// What the byte-level alphabet spells as `text`; nothing where a character is none of its letters.
std::optional<std::string> BytesOf(const std::string& text);

// The object "model" of tokenizer.json. Errors: another kind of model, an option that byte-level BPE does not have.
void ReadBpe(const Json& model, const std::string& where, Vocabulary* vocabulary);
// "a b" -> the two tokens.
std::pair<std::string, std::string> SplitMerge(const std::string& line, const std::string& where);
// The list "added_tokens". Ids are given as the package gives them. Errors: one that the file numbers otherwise.
void ReadAddedTokens(const Json& list, const std::string& where, Vocabulary* vocabulary);
void AddToken(AddedToken token, const std::string& where, Vocabulary* vocabulary);

// pieces, special, added tokens and BPE tables of `data`, whose normalizer is that of the tokenizer. Errors: names `where` and the
// token.
void CompileVocabulary(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_VOCABULARY_H_
