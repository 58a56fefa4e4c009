// C API: grammars. Translation only; the work is in runtime/grammar.
#include "runtime/grammar/grammar.h"

#include "runtime/capi/handles.h"
#include "tarn/grammar.h"

namespace tarn {
namespace {

constexpr uint32_t kDefaultDepth = 256, kDefaultStacks = 64, kDefaultStates = 1u << 16;

// A tarn_grammar is a Grammar by another name.
Grammar* Of(tarn_grammar* grammar) { return reinterpret_cast<Grammar*>(grammar); }
const Grammar* Of(const tarn_grammar* grammar) { return reinterpret_cast<const Grammar*>(grammar); }

Status CreateGrammar(const tarn_model* model, Span<const char> text, const tarn_grammar_config* user, tarn_grammar** grammar) {
  if (model == nullptr) return NullArgument("model");
  if (text.data() == nullptr && !text.empty()) return NullArgument("text");
  if (grammar == nullptr) return NullArgument("grammar");
  tarn_grammar_config config = TARN_GRAMMAR_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  const GrammarConfig limits = {{OrDefault(config.max_depth, kDefaultDepth), OrDefault(config.max_stacks, kDefaultStacks)},
                                OrDefault(config.max_states, kDefaultStates),
                                OrDefault(config.max_work, kMostWork)};
  const Model& loaded = ModelOf(model);
  TARN_ASSIGN_OR_RETURN(Grammar * created, Grammar::Create(loaded.tokenizer(), loaded.graph().eos_token(), text, limits,
                                                           AllocatorFrom(config.allocator)));
  *grammar = reinterpret_cast<tarn_grammar*>(created);
  return Ok();
}

Status MaskLogits(tarn_grammar* grammar, float* logits) {
  if (grammar == nullptr) return NullArgument("grammar");
  if (logits == nullptr) return NullArgument("logits");
  return Of(grammar)->Apply({logits, Of(grammar)->vocab_size()});
}

Status AcceptToken(tarn_grammar* grammar, int32_t token) {
  return grammar == nullptr ? NullArgument("grammar") : Of(grammar)->Accept(token);
}

}  // namespace
}  // namespace tarn

tarn_status tarn_grammar_create(const tarn_model* model, const char* text, size_t text_bytes, const tarn_grammar_config* config,
                                tarn_grammar** grammar, tarn_error* error) {
  return tarn::Report(tarn::CreateGrammar(model, {text, text_bytes}, config, grammar), error);
}

void tarn_grammar_destroy(tarn_grammar* grammar) { tarn::Grammar::Destroy(tarn::Of(grammar)); }

tarn_status tarn_grammar_mask(tarn_grammar* grammar, float* logits, tarn_error* error) {
  return tarn::Report(tarn::MaskLogits(grammar, logits), error);
}

tarn_status tarn_grammar_accept(tarn_grammar* grammar, int32_t token, tarn_error* error) {
  return tarn::Report(tarn::AcceptToken(grammar, token), error);
}

tarn_grammar_progress tarn_grammar_progress_of(const tarn_grammar* grammar) {
  if (grammar == nullptr) return TARN_GRAMMAR_COMPLETE;
  return static_cast<tarn_grammar_progress>(tarn::Of(grammar)->progress());
}

void tarn_grammar_reset(tarn_grammar* grammar) {
  if (grammar != nullptr) tarn::Of(grammar)->Reset();
}

uint64_t tarn_grammar_size_bytes(const tarn_grammar* grammar) { return grammar == nullptr ? 0 : tarn::Of(grammar)->bytes(); }
