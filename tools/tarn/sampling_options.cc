#include "tools/tarn/sampling_options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/number_option.h"
#include "tools/json_schema/json_schema.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/sources.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;

constexpr float kMostPenalty = 100;                  // of either sign; the field has 2
constexpr uint32_t kMostLookBack = 1u << 20;         // tokens; they are kept in memory
constexpr size_t kMostRuleBytes = size_t{16} << 20;  // of a grammar, as the library has it, and of a schema
constexpr uint32_t kMostAlternatives = 1000;         // a line is made in memory that is taken before

uint64_t RandomSeed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

int32_t TokenId(const std::string& option, const std::string& text) {
  const std::optional<int32_t> id = tarn::tools::ParseInteger<int32_t>(text, 0, INT32_MAX);
  if (!id) throw tarn::tools::InvalidValue(option, tarn::tools::NotInteger<int32_t>(text, 0, INT32_MAX));
  return *id;
}

// An option that may be given several times; `parse` gets the text of each.
template <typename Parse>
Option* AddRepeatable(App* app, const std::string& name, const std::string& type_name, const std::string& description,
                      Parse parse) {
  const auto all = [=](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) parse(text);
  };
  return app->add_option_function(name, all, description)->type_name(type_name)->allow_extra_args(false);
}

Option* AddTokenIds(App* app, const std::string& name, std::vector<int32_t>* ids, const std::string& description) {
  return AddRepeatable(app, name, "ID", description, [=](const std::string& text) { ids->push_back(TokenId(name, text)); });
}

Option* AddLogitBias(App* app, std::vector<tarn_logit_bias>* biases) {
  const std::string name = "--logit-bias";
  const auto parse = [=](const std::string& text) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string number = text.substr(std::min(equals + 1, text.size()));
    char* end = nullptr;
    const float bias = std::strtof(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !std::isfinite(bias)) {
      throw tarn::tools::InvalidValue(name, "is '" + text + "', expected ID=BIAS with a finite number as BIAS, for example 10=-5");
    }
    biases->push_back({TokenId(name, text.substr(0, equals)), bias});
  };
  return AddRepeatable(app, name, "ID=BIAS", "Add BIAS to the logit of token ID, for example 10=-5; repeatable", parse);
}

Option* AddMirostat(App* app, uint32_t* target) {
  const auto parse = [=](const std::string& text) {
    if (text != "0" && text != "2") throw tarn::tools::InvalidValue("--mirostat", "is '" + text + "', expected 0 or 2");
    *target = text == "2" ? 2 : 0;
  };
  return app
      ->add_option_function("--mirostat", parse,
                            "2: Mirostat 2 in place of the stages from --top-n-sigma to --xtc-probability; 0: off (default: 0)")
      ->type_name("N");
}

// The library names a limit by its field.
std::string OptionOfLimit(const std::string& message) {
  if (message.find("raise max_states") != std::string::npos) return " (--grammar-states)";
  return message.find("raise max_work") != std::string::npos ? " (--grammar-work)" : "";
}

}  // namespace

void SamplingOptions::AddTo(App* command, TaskOptions* by_task) {
  const OptionGroup group(command, "Sampling (causal_lm), in the order of the stages");
  const auto only = [=](const Option* option) { by_task->Only({TARN_TASK_CAUSAL_LM}, option); };
  const auto number = [=](const char* name, const char* type_name, float* target, const char* description,
                          tarn::tools::NumberRange range) {
    Option* const option = tarn::tools::AddNumber(command, name, type_name, target, description, range);
    only(option);
    return option;
  };
  only(AddInteger<uint64_t>(command, "-s,--seed", &chain.seed,
                            "Seed of the random draws (default: random, shown in the statistics)"));
  only(AddLogitBias(command, &logit_bias));
  only(AddTokenIds(command, "--ban", &banned_tokens, "Never draw token ID; repeatable"));
  Option* rules = command->add_option("--grammar", grammar, "Write only what the rules in FILE allow (GBNF)")->input_file();
  Option* schema =
      command->add_option("--json-schema", json_schema, "Write only JSON that is valid by the schema in FILE")->input_file();
  only(rules);
  only(schema->excludes(rules));
  only(
      command->add_flag("--print-grammar", print_grammar, "Write the rules of --json-schema, for --grammar or a C program, and end")
          ->needs(schema));
  only(AddInteger<uint32_t>(command, "--grammar-states", &grammar_limits.max_states,
                            "Number of states that a grammar may have (default: 65536)", 1, 1u << 22));
  only(AddInteger<uint64_t>(command, "--grammar-work", &grammar_limits.max_work,
                            "Number of steps that the creation of a grammar may take (default: 1073741824)", 1));
  number("--repeat-penalty", "R", &chain.repeat_penalty,
         "Divide positive logits of recent tokens by R, multiply negative ones; 1: off (default: 1)", {0, true});
  number("--frequency-penalty", "F", &chain.frequency_penalty,
         "Subtract F from the logit of a recent token for each time that it occurs (default: 0)",
         {-kMostPenalty, false, kMostPenalty});
  number("--presence-penalty", "S", &chain.presence_penalty, "Subtract S from the logit of a recent token (default: 0)",
         {-kMostPenalty, false, kMostPenalty});
  only(AddInteger<uint32_t>(command, "--repeat-last-n", &chain.repeat_last_n,
                            "Number of tokens that the three penalties call recent, those of the prompt included (default: 64)", 0,
                            kMostLookBack));
  Option* dry = number(
      "--dry-multiplier", "M", &chain.dry_multiplier,
      "DRY: subtract M * B^(N - A) from the logit of a token that would go on repeating N tokens; 0: off (default: 0)", {0, false});
  number("--dry-base", "B", &chain.dry_base, "DRY: the base B (default: 1.75)", {1, false})->needs(dry);
  only(AddInteger<uint32_t>(command, "--dry-allowed-length", &chain.dry_allowed_length,
                            "DRY: the length A of the shortest repetition that is penalised (default: 2)", 1)
           ->needs(dry));
  only(AddInteger<uint32_t>(command, "--dry-last-n", &chain.dry_last_n, "DRY: number of tokens that are searched (default: 1024)",
                            1, kMostLookBack)
           ->needs(dry));
  only(AddTokenIds(command, "--dry-breaker", &dry_breakers,
                   "DRY: a repetition ends at token ID, for example a line break, which is never penalised; repeatable")
           ->needs(dry));
  number("--top-n-sigma", "S", &chain.top_n_sigma,
         "Keep logits of at least the largest one minus S standard deviations; 0: all (default: 0)", {0, false});
  only(AddInteger<uint32_t>(command, "--top-k", &chain.top_k, "Keep the N most probable tokens; 0: all (default: 40)"));
  number(
      "--typical-p", "P", &chain.typical_p,
      "Keep the fewest tokens whose probabilities sum to P, first those whose surprise is nearest to its mean; 1: all (default: 1)",
      {0, true, 1});
  number("--top-p", "P", &chain.top_p, "Keep the fewest tokens whose probabilities sum to P; 1: all (default: 0.95)", {0, true, 1});
  number("--min-p", "P", &chain.min_p, "Drop tokens less probable than P times the most probable one; 0: none (default: 0.05)",
         {0, false, 1});
  Option* xtc =
      number("--xtc-probability", "P", &chain.xtc_probability,
             "XTC: with probability P, drop all tokens above the threshold but the least probable of them; 0: never (default: 0)",
             {0, false, 1});
  number("--xtc-threshold", "P", &chain.xtc_threshold, "XTC: the threshold, a probability (default: 0.1)", {0, true, 1})
      ->needs(xtc);
  number("--temp", "T", &chain.temperature, "Temperature; 0: always the most probable token (default: 0.8)", {0, false});
  Option* range = number(
      "--dynatemp-range", "R", &chain.dynatemp_range,
      "Let the temperature vary by R: lower where the model is sure, higher where it is not; 0: off (default: 0)", {0, false});
  number("--dynatemp-exponent", "E", &chain.dynatemp_exponent,
         "Exponent of the normalised entropy, which chooses the temperature in the range (default: 1)", {0, true})
      ->needs(range);
  Option* mirostat = AddMirostat(command, &chain.mirostat);
  only(mirostat);
  number("--mirostat-tau", "T", &chain.mirostat_tau, "Mirostat: the mean surprise that it aims at, in bits (default: 5)", {0, true})
      ->needs(mirostat);
  number("--mirostat-eta", "E", &chain.mirostat_eta, "Mirostat: how fast it learns (default: 0.1)", {0, true})->needs(mirostat);
  only(AddInteger<uint32_t>(
      command, "--logprobs", &log_probabilities,
      "Write a line of JSON for each token instead of the text: its log probability before all stages, and the N best tokens", 0,
      kMostAlternatives));
}

void SamplingOptions::CheckTokens(const Model& model) const {
  const uint32_t vocab_size = model.info().vocab_size;
  Tokens biased;
  for (const tarn_logit_bias& bias : logit_bias) biased.push_back(bias.token);
  RequireIds(biased, model, vocab_size, "run", "--logit-bias");
  RequireIds(banned_tokens, model, vocab_size, "run", "--ban");
  RequireIds(dry_breakers, model, vocab_size, "run", "--dry-breaker");
}

tarn_sampler_config SamplingOptions::Config() const {
  tarn_sampler_config config = chain;
  if (!has_seed) config.seed = RandomSeed();
  config.logit_bias = logit_bias.data();
  config.logit_bias_count = logit_bias.size();
  config.banned_tokens = banned_tokens.data();
  config.banned_token_count = banned_tokens.size();
  config.dry_breakers = dry_breakers.data();
  config.dry_breaker_count = dry_breakers.size();
  return config;
}

std::string SamplingOptions::Rules() const {
  if (!grammar.empty()) return ReadFile(grammar, kMostRuleBytes);
  return json_schema.empty() ? "" : tarn::tools::GrammarOfJsonSchema(ReadFile(json_schema, kMostRuleBytes), FileName(json_schema));
}

std::unique_ptr<tarn_grammar, void (*)(tarn_grammar*)> SamplingOptions::Grammar(const Model& model) const {
  std::unique_ptr<tarn_grammar, void (*)(tarn_grammar*)> made(nullptr, tarn_grammar_destroy);
  if (grammar.empty() && json_schema.empty()) return made;
  const std::string text = Rules();
  tarn_error error;
  tarn_grammar* created = nullptr;
  if (tarn_grammar_create(model.get(), text.data(), text.size(), &grammar_limits, &created, &error) != TARN_OK) {
    const std::string why = error.message + OptionOfLimit(error.message);
    if (!grammar.empty()) throw Failure(FileName(grammar) + ": " + why);
    const bool is_large = error.status == TARN_UNSUPPORTED && model.info().tokenizer != TARN_TOKENIZER_NONE;
    throw Failure(FileName(json_schema) + ": in its rules, which --print-grammar writes: " + why +
                  (is_large ? "; in a schema, lower maxLength, maxItems or the number of properties" : ""));
  }
  made.reset(created);
  return made;
}

}  // namespace tarn_cli
