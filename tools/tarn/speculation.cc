#include "tools/tarn/speculation.h"

#include <tarn/tokenizer.h>

#include <algorithm>

#include "tools/tarn/error.h"
#include "tools/tarn/report.h"
#include "tools/tarn/task.h"

namespace tarn_cli {
namespace {

// What a token stands for at the beginning of a text: what comes out, and what waits for others.
std::string Meaning(const Model& model, int32_t token, std::string* room) {
  tarn_text_decoder decoder = {};
  size_t size = 0;
  tarn_error error;
  Check(tarn_text_decode(model.get(), &decoder, token, room->data(), room->size(), &size, &error), error);
  std::string meaning(tarn_token_is_special(model.get(), token) != 0 ? "s" : "t");
  meaning.append(*room, 0, size);
  return meaning.append(reinterpret_cast<const char*>(decoder.pending), decoder.pending_bytes);
}

// That every id has the same meaning in both.
void RequireSameTokens(const Model& draft, const Model& model) {
  const tarn_model_info &found = draft.info(), &wanted = model.info();
  if (found.task != TARN_TASK_CAUSAL_LM) {
    throw Failure(draft.path() + ": the task is " + TaskName(found.task) + ", causal_lm expected for --draft");
  }
  if (found.vocab_size != wanted.vocab_size) {
    throw Failure(Format("%s: vocab_size is %u, %u expected: a draft model has the tokens of %s", draft.path().c_str(),
                         found.vocab_size, wanted.vocab_size, model.path().c_str()));
  }
  if (found.tokenizer == TARN_TOKENIZER_NONE && wanted.tokenizer == TARN_TOKENIZER_NONE) return;
  if (found.tokenizer != wanted.tokenizer) {
    throw Failure(draft.path() + ": another kind of tokenizer than " + model.path() + " has, the same expected for --draft");
  }
  std::string room(std::max(tarn_max_piece_bytes(draft.get()), tarn_max_piece_bytes(model.get())), '\0');
  for (int32_t token = 0; static_cast<uint32_t>(token) < wanted.vocab_size; ++token) {
    if (Meaning(draft, token, &room) == Meaning(model, token, &room)) continue;
    throw Failure(Format("%s: token %d is another text than in %s, the same expected for --draft", draft.path().c_str(), token,
                         model.path().c_str()));
  }
}

int Take(void* on_token, int32_t token, const float* logits) {
  return (**static_cast<const Speculation::OnToken**>(on_token))(token, logits) ? 0 : 1;
}

}  // namespace

tarn_session_config WithDrafts(tarn_session_config config, const SpeculationOptions& options) {
  // The chunks of the prompt stay as they are: others would give it other last bits.
  if (options.drafts > 0) config.max_logits_rows = std::min(options.drafts + 1, config.max_chunk);
  return config;
}

Speculation::Speculation(const SpeculationOptions& options, const ModelOptions& model_options, const Model& model,
                         const tarn_session_config& config, tarn_session* session, tarn_sampler* sampler)
    : tokens_(config.max_logits_rows) {
  tarn_speculation_config drafts = TARN_SPECULATION_CONFIG_INIT;
  drafts.max_draft = config.max_logits_rows - 1;
  drafts.on_token = Take;
  drafts.context = &on_token_;
  if (!options.draft_model.empty()) {
    OpenDraft(options, model_options, model, config);
    drafts.draft = draft_session_->get();
  }
  tarn_error error;
  Check(tarn_speculation_requirements(session, sampler, &drafts, &size_bytes_, &error), error);
  tarn_speculation* created = nullptr;
  Check(tarn_speculation_create(session, sampler, &drafts, &created, &error), error);
  speculation_.reset(created);
}

void Speculation::OpenDraft(const SpeculationOptions& options, ModelOptions model_options, const Model& model,
                            const tarn_session_config& config) {
  model_options.path = options.draft_model;
  draft_model_.emplace(model_options);
  RequireSameTokens(*draft_model_, model);
  tarn_session_config draft = config;
  draft.max_logits_rows = 1;
  draft_session_.emplace(CreateSession(*draft_model_, draft));
}

void Speculation::Read(const std::vector<int32_t>& tokens) {
  tarn_error error;
  Check(tarn_speculation_read(speculation_.get(), tokens.data(), tokens.size(), &error), error);
}

tarn_status Speculation::Step(int32_t token, const OnToken& on_token, tarn_error* error) {
  on_token_ = &on_token;
  size_t count = 0;
  return tarn_speculation_step(speculation_.get(), token, tokens_.data(), tokens_.size(), &count, error);
}

tarn_speculation_stats Speculation::Stats() const {
  tarn_speculation_stats stats = TARN_SPECULATION_STATS_INIT;
  tarn_error error;
  Check(tarn_speculation_get_stats(speculation_.get(), &stats, &error), error);
  return stats;
}

}  // namespace tarn_cli
