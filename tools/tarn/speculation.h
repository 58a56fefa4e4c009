// --speculate and --draft of tarn run: drafts beside a session, and the model that makes some of them.
#ifndef TARN_TOOLS_TARN_SPECULATION_H_
#define TARN_TOOLS_TARN_SPECULATION_H_

#include <tarn/speculation.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/tarn/model.h"

namespace tarn_cli {

struct SpeculationOptions {
  uint32_t drafts = 0;      // at a time; 0: none
  std::string draft_model;  // a file; empty: drafts are from the text alone
};

// A session's config with rows for the drafts.
tarn_session_config WithDrafts(tarn_session_config config, const SpeculationOptions& options);

class Speculation {
 public:
  // Gets a token and its logits; false: it is the last.
  using OnToken = std::function<bool(int32_t, const float*)>;

  // Throws Failure: the models do not have the same tokens, or the context of the session is too short.
  Speculation(const SpeculationOptions& options, const ModelOptions& model_options, const Model& model,
              const tarn_session_config& config, tarn_session* session, tarn_sampler* sampler);

  void Read(const std::vector<int32_t>& tokens);
  // As tarn_speculation_step(); the tokens come to `on_token`.
  tarn_status Step(int32_t token, const OnToken& on_token, tarn_error* error);

  tarn_speculation_stats Stats() const;
  uint64_t size_bytes() const { return size_bytes_; }  // of the drafts, without the session of a draft model

 private:
  void OpenDraft(const SpeculationOptions& options, ModelOptions model_options, const Model& model,
                 const tarn_session_config& config);

  std::optional<Model> draft_model_;
  std::optional<Session> draft_session_;
  const OnToken* on_token_ = nullptr;  // of the step that runs
  std::vector<int32_t> tokens_;
  uint64_t size_bytes_ = 0;
  std::unique_ptr<tarn_speculation, void (*)(tarn_speculation*)> speculation_{nullptr, tarn_speculation_destroy};
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_SPECULATION_H_
