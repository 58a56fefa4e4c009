// How `tarn run` draws tokens, as the command line says it.
#ifndef TARN_TOOLS_TARN_SAMPLING_OPTIONS_H_
#define TARN_TOOLS_TARN_SAMPLING_OPTIONS_H_

#include <tarn/grammar.h>
#include <tarn/tarn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/tarn/task.h"

namespace tarn_cli {

struct SamplingOptions {
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  std::vector<tarn_logit_bias> logit_bias;
  std::vector<int32_t> banned_tokens;
  std::vector<int32_t> dry_breakers;
  bool has_seed = false;
  std::string grammar;      // the file that --grammar names
  std::string json_schema;  // that of --json-schema
  bool print_grammar = false;
  tarn_grammar_config grammar_limits = TARN_GRAMMAR_CONFIG_INIT;
  std::optional<uint32_t> log_probabilities;  // how many alternatives are written with each token

  // Adds the options of `command` to it, with a heading; only models of the task causal_lm take them. This outlives `command`.
  void AddTo(App* command, TaskOptions* by_task);
  // Throws UsageError with the first token that the model does not have.
  void CheckTokens(const Model& model) const;
  // All of it, with a random seed where none was given. Points into this.
  tarn_sampler_config Config() const;
  // The rules of --grammar or --json-schema; empty where there are none. Throws Failure.
  std::string Rules() const;
  // What the text must be, or nullptr. Throws Failure.
  std::unique_ptr<tarn_grammar, void (*)(tarn_grammar*)> Grammar(const Model& model) const;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_SAMPLING_OPTIONS_H_
