// Families of published checkpoints (Hugging Face folders): which config.json of tarn says the same as theirs, and which of their
// tensors is which of ours. A family is one file with a table of tensors and a function that reads its config.json.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_FAMILY_H_
#define TARN_TOOLS_CONVERT_FAMILIES_FAMILY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/convert/families/foreign_config.h"
#include "tools/convert/families/tensor_rule.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {

// What the command line says beside the folder.
struct FamilyOptions {
  std::optional<uint32_t> max_context;  // of layers that see everything before them
  std::optional<uint32_t> window;       // they see this many tokens instead
  uint32_t sinks = 0;                   // and the first ones
};

// A folder in the terms of this converter.
struct Translation {
  Json config;                      // config.json of tarn
  std::vector<TensorRule> rules;    // the first that fits a name is taken; several may take one tensor
  std::string prefix;               // of their names, left out by checkpoints of the base model
  std::optional<double> scale;      // of attention logits; nullopt: 1 / sqrt(head_dim)
  bool has_full_attention = false;  // so that options may bound it
  bool bounded_by_model = false;    // it is bounded by the config's own longest context
  bool gpt2_tokenizer = false;      // vocab.json and merges.txt say all of it: nothing stands around a text
  bool marian_tokenizer = false;    // vocab*.spm, if it is the only one
  std::vector<std::string> notes;   // what the user should know
  std::string other_prefix;         // in place of `prefix`, where no tensor has that one
  std::string own_head;             // a tensor without which the head is the table of the embeddings; "": the config says it
};

struct Family {
  const char* model_type;  // in their config.json
  const char* attention;   // what bounds its memory, for the table of families
  Translation (*translate)(ForeignConfig* config, const FamilyOptions& options);
};

// All that are known, by model_type.
struct FamilyList {
  const Family* begin_;
  size_t size_;
  const Family* begin() const { return begin_; }
  const Family* end() const { return begin_ + size_; }
};
FamilyList Families();

// The translation of a config.json that has a model_type; nullopt: it has none, and is tarn's own.
// Errors: as ParseJson; a model_type that is not known; a field that is not known, or whose value changes the arithmetic in a way
// that is not supported; options that the family has no use for.
std::optional<Translation> Translate(const std::string& text, const std::string& where, const FamilyOptions& options);

// A Markdown table of the families: tarn-convert --families.
std::string FamilyTable();

Translation TranslateAbc(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateBart(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateBert(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateBloom(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateDistilBert(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGemma(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGemma2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGemma3(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGemma3Text(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateDeltaNet(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateFalconH1(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateFlaTransformer(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGatedDeltaNet(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGla(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGpt2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGptJ(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGptNeo(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGptNeox(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateHgrn(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateHgrn2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGranite(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGraniteMoeHybrid(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateGsa(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateKda(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateLfm2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateLinearAttn(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateLlama(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateLongformer(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateM2m100(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateMamba2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateMarian(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateMarianNmt(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateMistral(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateModernBert(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateMt5(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateOlmo(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateOlmo2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateOpt(ForeignConfig* config, const FamilyOptions& options);
Translation TranslatePhi(ForeignConfig* config, const FamilyOptions& options);
Translation TranslatePhi3(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateQwen2(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateQwen3(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateQwen35(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateQwen35Text(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateQwen3Next(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateRecurrentGemma(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateRetNet(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateRoberta(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateRwkv7(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateSmolLm3(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateStableLm(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateT5(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateUmt5(ForeignConfig* config, const FamilyOptions& options);
Translation TranslateXglm(ForeignConfig* config, const FamilyOptions& options);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_FAMILY_H_
