#include <algorithm>
#include <vector>

#include "tools/common/failure.h"
#include "tools/common/suggestion.h"
#include "tools/convert/families/family.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/python_json.h"

namespace tarn::convert {
namespace {

constexpr char kConstant[] = "none: a state of constant size; full or window in the layers of `attn`";
constexpr char kNoCache[] = "none: a state of constant size";

constexpr Family kFamilies[] = {
    {"abc", kConstant, TranslateAbc},
    {"bart", "full, in encoder, decoder and between them", TranslateBart},
    {"bert", "full, in an encoder", TranslateBert},
    {"bloom", "full", TranslateBloom},
    {"delta_net", kConstant, TranslateDeltaNet},
    {"distilbert", "full, in an encoder", TranslateDistilBert},
    {"falcon_h1", "full in every layer, beside a state of constant size", TranslateFalconH1},
    {"gated_deltanet", kConstant, TranslateGatedDeltaNet},
    {"gemma", "full", TranslateGemma},
    {"gemma2", "full and window, in turn", TranslateGemma2},
    {"gemma3", "window; full in every sixth layer", TranslateGemma3},
    {"gemma3_text", "window; full in every sixth layer", TranslateGemma3Text},
    {"gla", kConstant, TranslateGla},
    {"gpt2", "full", TranslateGpt2},
    {"gpt_neo", "full and window, in turn", TranslateGptNeo},
    {"gpt_neox", "full", TranslateGptNeox},
    {"gptj", "full", TranslateGptJ},
    {"granite", "full", TranslateGranite},
    {"granitemoehybrid", "full in some layers; else a state of constant size", TranslateGraniteMoeHybrid},
    {"gsa", kConstant, TranslateGsa},
    {"hgrn", kConstant, TranslateHgrn},
    {"hgrn2", kConstant, TranslateHgrn2},
    {"kda", kConstant, TranslateKda},
    {"lfm2", "full in some layers; else a short convolution", TranslateLfm2},
    {"linear_attn", kConstant, TranslateLinearAttn},
    {"llama", "full", TranslateLlama},
    {"longformer", "window, in an encoder; in a classifier the first token sees all tokens, and all tokens see it",
     TranslateLongformer},
    {"m2m_100", "full, in encoder, decoder and between them", TranslateM2m100},
    {"mamba2", kNoCache, TranslateMamba2},
    {"marian", "full, in encoder, decoder and between them", TranslateMarian},
    {"marian_nmt", "full, in the encoder and from decoder to encoder; in the decoder a state of constant size, or full",
     TranslateMarianNmt},
    {"mistral", "window; full if it has none", TranslateMistral},
    {"modernbert", "window, and full in every third layer, in an encoder", TranslateModernBert},
    {"mt5", "full, in encoder, decoder and between them", TranslateMt5},
    {"olmo", "full", TranslateOlmo},
    {"olmo2", "full", TranslateOlmo2},
    {"opt", "full", TranslateOpt},
    {"phi", "full", TranslatePhi},
    {"phi3", "full, or window", TranslatePhi3},
    {"qwen2", "full; window in some layers", TranslateQwen2},
    {"qwen3", "full; window in some layers", TranslateQwen3},
    {"qwen3_5", "full in every fourth layer, else a state of constant size", TranslateQwen35},
    {"qwen3_5_text", "full in every fourth layer, else a state of constant size", TranslateQwen35Text},
    {"qwen3_next", "full in every fourth layer, else a state of constant size", TranslateQwen3Next},
    {"recurrent_gemma", "window in every third layer, else a state of constant size", TranslateRecurrentGemma},
    {"retnet", kConstant, TranslateRetNet},
    {"roberta", "full, in an encoder", TranslateRoberta},
    {"rwkv7", kNoCache, TranslateRwkv7},
    {"smollm3", "full, or window in some layers", TranslateSmolLm3},
    {"stablelm", "full", TranslateStableLm},
    {"t5", "full, in encoder, decoder and between them", TranslateT5},
    {"transformer", "full, or window", TranslateFlaTransformer},
    {"umt5", "full, in encoder, decoder and between them", TranslateUmt5},
    {"xglm", "full", TranslateXglm},
    {"xlm-roberta", "full, in an encoder", TranslateRoberta},
};

// Known, and not read: why.
constexpr struct {
  const char* model_type;
  const char* reason;
} kNotRead[] = {
    {"gated_deltaproduct", "its delta rule has a decay and several writes for a token"},
    {"mamba", "its layers are selective state spaces"},
    {"rwkv6", "its layers mix a token with the one before it"},
};

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  return names;
}

void CheckOptions(const Translation& translation, const std::string& where, const FamilyOptions& options) {
  if (!options.max_context && !options.window) return;
  const char* option = options.window ? "--window" : "--max-context";
  if (!translation.has_full_attention) {
    throw tools::UsageFailure(std::string(option) + ": " + where +
                              " has no layer of a decoder with full attention, which it bounds");
  }
  const Json& c = translation.config;
  if (!options.max_context || c.value("position_embedding", "none") != "learned") return;
  const auto positions = c["max_positions"].get<uint32_t>();
  if (*options.max_context <= positions) return;
  throw tools::UsageFailure("--max-context: " + std::to_string(*options.max_context) + " is more than the " +
                            std::to_string(positions) + " positions of " + where);
}

}  // namespace

FamilyList Families() { return {kFamilies, std::size(kFamilies)}; }

std::optional<Translation> Translate(const std::string& text, const std::string& where, const FamilyOptions& options) {
  const Json object = ParseJson(WithQuotedInfinities(text), where);
  if (!object.is_object()) return std::nullopt;
  if (!object.contains("model_type")) {
    // Fields that no config.json of tarn has.
    for (const char* key : {"architectures", "num_attention_heads", "n_head", "transformers_version"}) {
      if (object.contains(key)) Fail(where, ": \"model_type\" is missing, by which a config.json with ", key, " is understood");
    }
    return std::nullopt;
  }
  const Json& type = object["model_type"];
  const auto family =
      std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) { return type == f.model_type; });
  if (family == std::end(kFamilies)) {
    const std::string name = type.is_string() ? type.get<std::string>() : "";
    for (const auto& [model_type, reason] : kNotRead) {
      if (name == model_type) Fail(where, ": model_type: ", ValueText(type), " is not supported: ", reason);
    }
    Fail(where, ": model_type: ", ValueText(type), " is not supported, expected ", tools::Alternatives(Names()),
         tools::DidYouMean(name, Names()));
  }
  // A window lets a sequence go on without end.
  ForeignConfig config(object, where, options.window ? std::optional(Fields::kMaxSize) : options.max_context);
  Translation translation = family->translate(&config, options);
  config.Finish();
  translation.notes = config.notes();
  CheckOptions(translation, where, options);
  return translation;
}

std::string FamilyTable() {
  std::string table = "| `model_type` | attention over |\n|---|---|\n";
  for (const Family& family : kFamilies) table += std::string("| `") + family.model_type + "` | " + family.attention + " |\n";
  return table;
}

}  // namespace tarn::convert
