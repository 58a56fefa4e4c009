// The vocabulary of a tokenizer: its tokens, merges or scores, and added tokens.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_VOCABULARY_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/decoder.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

// As its entry of "added_tokens" says.
struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
  bool is_normal = false;  // `normalized`, and `content` is what normalized text has
};

// In their order, found by their contents. None is longer than kMaxAddedTokenBytes: what is done to them, as normalizing, takes
// many times their length.
class AddedTokens {
 public:
  // False: there is one of this content. Errors: its length, with `where`.
  bool Add(AddedToken token, const std::string& where);
  // In the place of the one of this content, if there is one. Errors: as above.
  void Put(AddedToken token, const std::string& where);
  // nullptr: none.
  const AddedToken* Find(const std::string& content) const;
  // Takes out those that `keeps` is false of, and gives them back, all in their order.
  std::vector<AddedToken> Filter(const std::function<bool(const AddedToken&)>& keeps);

  bool empty() const { return tokens_.empty(); }
  size_t size() const { return tokens_.size(); }
  std::vector<AddedToken>::const_iterator begin() const { return tokens_.begin(); }
  std::vector<AddedToken>::const_iterator end() const { return tokens_.end(); }

 private:
  bool Append(AddedToken token);

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, size_t> places_;  // of contents
};

// Tokens as the files spell them: byte-level ones by the alphabet of GPT-2.
struct Vocabulary {
  format::TokenizerKind kind = format::TokenizerKind::Bpe;
  std::unordered_map<std::string, uint32_t> ids;  // of the model
  std::vector<std::string> listed;                // Unigram: tokens in the order of their ids; of equal ones `ids` has the last
  std::vector<double> scores;                     // Unigram: of `listed`
  std::vector<format::Merge> merges;              // in the order of their ranks
  AddedTokens added;
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
  bool byte_fallback = false;  // unknown characters are tokens for their bytes
  bool ignore_merges = false;  // a word that is a token is that token
  std::string continuation;    // WordPiece
  std::string word_suffix;     // BPE: the last letter of a word has it
  uint32_t max_word_chars = 0;
  Decoder decoder;

  std::optional<uint32_t> Find(const std::string& token) const;  // added ones first
};

// What the byte-level alphabet spells as `text`; nothing where a character is none of its letters.
std::optional<std::string> BytesOf(const std::string& text);

// Errors: it has none.
uint32_t IdOf(const Vocabulary& vocabulary, const std::string& token, const std::string& where);

// An entry of "added_tokens" without its id, or of "added_tokens_decoder".
AddedToken ReadAddedToken(Fields* fields, uint32_t id);
// The list "added_tokens". Ids are given as the package gives them. Errors: one that the file numbers otherwise.
void ReadAddedTokens(const Json& list, const std::string& where, Vocabulary* vocabulary);
void AddToken(AddedToken token, const std::string& where, Vocabulary* vocabulary);

// Pieces, added tokens and the tables of the model of `data`, which has all else of the tokenizer. Errors: names `where` and the
// token.
void CompileVocabulary(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_VOCABULARY_H_
