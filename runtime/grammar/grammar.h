// A text that a grammar constrains: which tokens may come next. docs/grammars.md has the notation and the limits.
#ifndef TARN_RUNTIME_GRAMMAR_GRAMMAR_H_
#define TARN_RUNTIME_GRAMMAR_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/allocator.h"
#include "core/bump.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/effort.h"
#include "runtime/grammar/stacks.h"
#include "runtime/grammar/state_masks.h"
#include "runtime/grammar/text_tree.h"
#include "runtime/text/logit_mask.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

struct GrammarConfig {
  StackLimits limits;
  uint32_t max_states;
  uint64_t max_work = kMostWork;
  uint64_t max_mask_bytes = kMostMaskBytes;
};

class Grammar final : public LogitMask {
 public:
  // Numbers are those of tarn_grammar_progress.
  enum class Progress : uint8_t { kOpen = 0, kMayEnd = 1, kComplete = 2 };

  // `tables` and the model that they are of must outlive it; `end_token`: -1: none. Errors: TARN_INVALID_ARGUMENT, TARN_BAD_FORMAT,
  // TARN_UNSUPPORTED, TARN_OUT_OF_MEMORY.
  static Result<Grammar*> Create(const TokenizerTables& tables, int32_t end_token, Span<const char> text,
                                 const GrammarConfig& config, const Allocator& allocator);
  static void Destroy(Grammar* grammar);

  // Errors: TARN_CONTEXT_FULL (a limit is exceeded), TARN_INVALID_ARGUMENT (no token is left).
  Status Apply(Span<float> logits) override;
  // Errors: TARN_INVALID_ARGUMENT (a token that the grammar does not take), TARN_CONTEXT_FULL. The text is then as before.
  Status Accept(int32_t token) override;
  uint32_t vocab_size() const override { return tables_.vocab_size; }

  void Reset() { Begin(); }  // begins another text
  // Where the text stands, in state_bytes(), which change with it, at any alignment. Restore() takes what Save() wrote for this
  // grammar.
  size_t state_bytes() const;
  void Save(uint8_t* state) const;
  void Restore(const uint8_t* state);
  // Tokens of the text.
  uint64_t tokens_read() const { return tokens_read_; }
  Progress progress() const;
  bool is_complete() const override { return progress() == Progress::kComplete; }
  // All memory that it holds.
  uint64_t bytes() const;

 private:
  Grammar(const TokenizerTables& tables, int32_t end_token, const GrammarConfig& config, const Allocator& allocator)
      : tables_(tables),
        texts_(tables, end_token),
        end_token_(end_token),
        config_(config),
        automaton_(allocator),
        vocabulary_(allocator),
        masks_(allocator) {}
  Grammar(const Grammar&) = delete;

  Status Build(Span<const char> text, const Allocator& allocator);
  bool Begin();
  void TakeArrays(Bump* bump);
  Status FindTokens();
  bool AddMask(const StateMask& mask, const Stack& stack);
  bool AddWalk(const TextTree& tree);
  Status Refuse(int32_t token) const;

  const TokenizerTables& tables_;
  const TokenTexts texts_;
  const int32_t end_token_;
  const GrammarConfig config_;
  Automaton automaton_;
  TextTrees vocabulary_;  // one tree, of all tokens
  StateMasks masks_;
  std::optional<Stacks> stacks_;
  Span<uint64_t> words_;  // the tokens that may come next
  Span<Stack> others_;    // stacks whose state has no mask
  uint64_t bytes_read_ = 0;
  uint64_t tokens_read_ = 0;
  bool ended_ = false;  // by the end token
  Block own_block_, work_block_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_GRAMMAR_H_
