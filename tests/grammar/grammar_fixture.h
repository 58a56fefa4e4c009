// Grammars over vocabularies that a test writes down.
#ifndef TARN_TESTS_GRAMMAR_GRAMMAR_FIXTURE_H_
#define TARN_TESTS_GRAMMAR_GRAMMAR_FIXTURE_H_

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace tarn::test {

// Token i has the text pieces[i]; the last token is the end token, which is special.
class PieceTokenizer {
 public:
  explicit PieceTokenizer(const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces) Add(piece, false);
    Add("</s>", true);
    tables_.kind = TokenizerKind::kBpe;
    tables_.vocab_size = static_cast<uint32_t>(ends_.size());
    tables_.pieces = {bytes_.data(), bytes_.size()};
    tables_.piece_ends = {ends_.data(), ends_.size()};
    tables_.special = {special_.data(), special_.size()};
  }
  const TokenizerTables& tables() const { return tables_; }
  int32_t end_token() const { return static_cast<int32_t>(ends_.size()) - 1; }

 private:
  void Add(const std::string& piece, bool special) {
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
    special_.push_back(special ? 1 : 0);
  }

  std::vector<uint8_t> bytes_, special_;
  std::vector<uint32_t> ends_;
  TokenizerTables tables_;
};

// A token for each byte, and the end token 256.
inline const PieceTokenizer& ByteTokens() {
  static const PieceTokenizer* tokenizer = [] {
    std::vector<std::string> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    return new PieceTokenizer(bytes);
  }();
  return *tokenizer;
}

constexpr GrammarConfig kGrammarConfig = {{256, 64}, 1u << 16};

using GrammarOwner = std::unique_ptr<Grammar, void (*)(Grammar*)>;
inline Result<Grammar*> CreateGrammar(const std::string& text, const PieceTokenizer& tokenizer = ByteTokens(),
                                      const GrammarConfig& config = kGrammarConfig,
                                      const Allocator& allocator = DefaultAllocator()) {
  return Grammar::Create(tokenizer.tables(), tokenizer.end_token(), {text.data(), text.size()}, config, allocator);
}
inline GrammarOwner MakeGrammar(const std::string& text, const PieceTokenizer& tokenizer = ByteTokens(),
                                const GrammarConfig& config = kGrammarConfig) {
  Result<Grammar*> grammar = CreateGrammar(text, tokenizer, config);
  return {grammar.ok() ? grammar.value() : nullptr, Grammar::Destroy};
}

// Tokens that may come next.
inline Status Allowed(Grammar* grammar, std::vector<bool>* allowed) {
  std::vector<float> logits(grammar->vocab_size(), 1.0f);
  TARN_RETURN_IF_ERROR(grammar->Apply({logits.data(), logits.size()}));
  allowed->assign(logits.size(), false);
  for (size_t i = 0; i < logits.size(); ++i) (*allowed)[i] = logits[i] == 1.0f;
  return Ok();
}

// How many bytes of `text` the grammar takes, one token each. `*why`: why no more.
inline size_t TakenBytes(Grammar* grammar, const std::string& text, Status* why = nullptr) {
  grammar->Reset();
  for (size_t i = 0; i < text.size(); ++i) {
    const Status status = grammar->Accept(static_cast<uint8_t>(text[i]));
    if (why != nullptr) *why = status;
    if (!status.ok()) return i;
  }
  return text.size();
}

}  // namespace tarn::test

#endif  // TARN_TESTS_GRAMMAR_GRAMMAR_FIXTURE_H_
