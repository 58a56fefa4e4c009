#include "tools/convert/config/config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "tools/convert/config/parse_layer.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

// Beyond every model, and far enough from the ends of the integers that nothing overflows.
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;

constexpr Choice<format::Task> kTasks[] = {{"causal_lm", format::Task::CausalLm},
                                           {"seq2seq", format::Task::Seq2Seq},
                                           {"classification", format::Task::Classification},
                                           {"masked_lm", format::Task::MaskedLm}};
constexpr Choice<format::PoolKind> kPoolings[] = {
    {"first", format::PoolKind::First}, {"mean", format::PoolKind::Mean}, {"max", format::PoolKind::Max}};
constexpr Choice<HiddenAct> kHiddenActs[] = {{"swiglu", HiddenAct::kSwiglu}, {"relu", HiddenAct::kRelu},
                                             {"gelu", HiddenAct::kGelu},     {"gelu_tanh", HiddenAct::kGeluTanh},
                                             {"geglu", HiddenAct::kGeglu},   {"geglu_tanh", HiddenAct::kGegluTanh},
                                             {"silu", HiddenAct::kSilu},     {"relu_squared", HiddenAct::kReluSquared}};
constexpr Choice<format::ActivationKind> kHeadActs[] = {{"tanh", format::ActivationKind::Tanh},
                                                        {"gelu", format::ActivationKind::Gelu},
                                                        {"gelu_tanh", format::ActivationKind::GeluTanh},
                                                        {"relu", format::ActivationKind::Relu},
                                                        {"silu", format::ActivationKind::Silu}};
constexpr Choice<format::NormKind> kNorms[] = {{"rmsnorm", format::NormKind::RmsNorm}, {"layernorm", format::NormKind::LayerNorm}};
constexpr Choice<NormPosition> kNormPositions[] = {
    {"pre", NormPosition::kPre}, {"post", NormPosition::kPost}, {"output", NormPosition::kOutput}, {"both", NormPosition::kBoth}};
// What is added comes first, as PositionEmbedding has it.
constexpr const char* kPositions[] = {"none", "sinusoidal", "learned", "rope"};
constexpr size_t kRopePlace = 3;
// Files may hold any kind that has tables.
constexpr Choice<TokenizerFiles> kTokenizers[] = {{"bytes", TokenizerFiles::kBytes},
                                                  {"tokenizer.json", TokenizerFiles::kJson},
                                                  {"rwkv", TokenizerFiles::kRwkv},
                                                  {"characters", TokenizerFiles::kCharacters},
                                                  {"none", TokenizerFiles::kNone}};

// `count` numbers, or none. `count_text`: in terms of other fields.
std::vector<double> ParseFrequencies(Fields* fields, const char* key, uint32_t count, const std::string& count_text) {
  const std::string values = "a list of " + count_text + " numbers, 0 or more";
  const Json* list = fields->Find(key, values.c_str(), "none");
  if (list == nullptr) return {};
  if (!list->is_array() || list->size() != count) {
    fields->FailAt(key, ValueText(*list) + " is not a list of " + count_text + " = " + std::to_string(count) + " numbers");
  }
  std::vector<double> frequencies;
  for (const Json& number : *list) {
    if (!number.is_number() || !(number.get<double>() >= 0)) {
      fields->FailAt(key, ValueText(number) + " is not a number of 0 or more");
    }
    frequencies.push_back(number.get<double>());
  }
  return frequencies;
}

// One kind of positions, or a list with rope and what is added.
void ParsePositionKinds(Fields* fields, ModelConfig* config) {
  constexpr char kKey[] = "position_embedding";
  std::vector<size_t> places;
  const Json* list = fields->Find(kKey);
  if (list != nullptr && list->is_array()) {
    places = fields->PlacesOf(kKey, *list, {kPositions, kPositions + kRopePlace + 1});
  } else {
    places = {fields->OneOf<size_t>(kKey, kPositions, size_t{0})};
  }
  for (const size_t place : places) {
    const bool rope = place == kRopePlace;
    if (places.size() > 1 && !rope && (place == 0 || config->position_embedding != PositionEmbedding::kNone)) {
      fields->FailAt(kKey, ValueText(*list) + " is not \"rope\" and one of \"sinusoidal\", \"learned\"");
    }
    config->has_rope = config->has_rope || rope;
    if (!rope) config->position_embedding = static_cast<PositionEmbedding>(place);
  }
}

void ParsePositions(Fields* fields, ModelConfig* config) {
  ParsePositionKinds(fields, config);
  const bool learned = config->position_embedding == PositionEmbedding::kLearned;
  config->max_positions = fields->Size("max_positions", learned ? std::nullopt : std::optional<uint32_t>(1));
  config->rope.theta = fields->PositiveNumber("rope_theta", 10000.0f);
  config->rope.frequencies = ParseFrequencies(fields, "rope_frequencies", config->heads.head_dim() / 2, "head_dim / 2");
  if (!config->rope.frequencies.empty() && !config->has_rope) {
    fields->FailAt("rope_frequencies", "position_embedding is not \"rope\"");
  }
  config->sinusoid_frequencies = ParseFrequencies(fields, "sinusoid_frequencies", config->hidden_size / 2, "hidden_size / 2");
  if (!config->sinusoid_frequencies.empty() && config->position_embedding != PositionEmbedding::kSinusoidal) {
    fields->FailAt("sinusoid_frequencies", "position_embedding is not \"sinusoidal\"");
  }
  config->first_position = fields->Integer("first_position", 0, kMaxPosition, 0);
  const bool scaled = fields->Bool("scale_embeddings", false);
  config->embedding_scale =
      fields->PositiveNumber("embedding_scale", scaled ? std::sqrt(static_cast<float>(config->hidden_size)) : 1.0f);

  if (learned && config->first_position >= config->max_positions) {
    fields->FailAt("first_position",
                   std::to_string(config->first_position) + " is past max_positions = " + std::to_string(config->max_positions));
  }
  if (config->position_embedding == PositionEmbedding::kSinusoidal && (config->hidden_size % 2 != 0 || config->hidden_size < 4)) {
    fields->FailAt("hidden_size", std::to_string(config->hidden_size) + " must be even and at least 4 for sinusoidal positions");
  }
}

TokenizerFiles ParseTokenizer(Fields* fields, const ModelConfig& config) {
  const TokenizerFiles files = fields->OneOf<TokenizerFiles>(
      "tokenizer", kTokenizers, std::nullopt,
      " (\"tokenizer.json\": the tokenizer files beside it; with \"none\" a model reads and writes token ids)");
  if (files != TokenizerFiles::kBytes) return files;
  for (const auto& [key, size] : {std::pair{"vocab_size", config.vocab_size}, {"source_vocab_size", config.source_vocab_size}}) {
    if (size != 256) {
      fields->FailAt(key, std::to_string(size) + " is not the 256 of tokenizer \"bytes\" (\"none\": token ids of any vocabulary)");
    }
  }
  return files;
}

// An id of a vocabulary; -1 where none is given.
int32_t ParseTokenId(Fields* fields, const char* key, uint32_t vocab_size) {
  const std::optional<uint64_t> id = fields->OptionalInteger(key, 0, vocab_size - 1);
  return id ? static_cast<int32_t>(*id) : -1;
}

// Of a task that generates.
void ParseEndTokens(Fields* fields, ModelConfig* config) {
  config->bos_token = ParseTokenId(fields, "bos_token_id", config->vocab_size);
  config->eos_token = ParseTokenId(fields, "eos_token_id", config->vocab_size);
  ParseTokenId(fields, "pad_token_id", config->vocab_size);  // nothing is padded
}

// The attention of a stack: an object for all layers, or a list with one for each.
struct StackFields {
  const char* attention;
  const char* layers;  // says how many
  AttentionForm form;
  bool second = false;  // beside the attention of every layer; there may be none
};
constexpr char kAttentionValues[] = "an attention object, or a list with one for each layer";

std::vector<AttentionOp> ParseLayers(Fields* fields, const ModelConfig& config, const StackFields& stack) {
  const uint64_t most = config.task == format::Task::Seq2Seq ? kMaxLayers / 2 : kMaxLayers;
  const auto count = static_cast<uint32_t>(fields->Integer(stack.layers, 1, most));
  const Json* attention = fields->Find(stack.attention, kAttentionValues, stack.second ? "none" : nullptr);
  if (attention == nullptr && stack.second) return {};
  if (attention == nullptr) fields->FailMissing(stack.attention, kAttentionValues);
  const std::string where = fields->where() + ": " + stack.attention;
  if (attention->is_array() && attention->size() != count) {
    fields->FailAt(stack.attention,
                   std::to_string(attention->size()) + " objects for " + stack.layers + " = " + std::to_string(count));
  }
  // Positions of target and source have no distance to turn by.
  const bool rope = config.has_rope && stack.form != AttentionForm::kCross && !stack.second;
  std::vector<AttentionOp> layers;
  for (uint32_t i = 0; i < count; ++i) {
    const AttentionLayer& layer = stack.second                           ? config.second_layer(i)
                                  : stack.form == AttentionForm::kCausal ? config.decoder_layer(i)
                                                                         : config.layer(i);
    AttentionContext context{layer.heads, i, config.hidden_size, layer.bias.k || layer.bias.v, rope, stack.form};
    context.key_heads = layer.key_heads;
    context.layers = count;
    layers.push_back(attention->is_array() ? ParseAttention((*attention)[i], where + "[" + std::to_string(i) + "]", context)
                                           : ParseAttention(*attention, where, context));
  }
  return layers;
}

// A layer's own angles of rope, or none: null and no list stand for those of the model.
std::vector<std::optional<Rope>> ParseLayerRope(Fields* fields, const ModelConfig& config) {
  const Json* list = fields->Find("layer_rope", "a list with null, false or a number above 0 for each layer", "none");
  if (list == nullptr) return {};
  if (!config.has_rope) fields->FailAt("layer_rope", "position_embedding is not \"rope\"");
  const size_t layers = config.encoder.size() + config.decoder.size();
  if (!list->is_array() || list->size() != layers) {
    fields->FailAt("layer_rope", ValueText(*list) + " is not a list of num_layers = " + std::to_string(layers) + " values");
  }
  std::vector<std::optional<Rope>> ropes;
  for (const Json& value : *list) {
    if (value.is_null()) {
      ropes.emplace_back(config.rope);
    } else if (value == false) {
      ropes.emplace_back(std::nullopt);
    } else if (value.is_number() && value.get<double>() > 0 && std::isfinite(value.get<float>())) {
      ropes.emplace_back(Rope{value.get<float>(), {}});
    } else {
      fields->FailAt("layer_rope", ValueText(value) + " is not null, false or a number above 0");
    }
  }
  return ropes;
}

// Errors: heads that rope turns and that are odd, or not as wide as rope_frequencies are for.
void CheckRope(Fields* fields, const ModelConfig& config) {
  if (!config.has_rope) return;
  const uint32_t width = config.heads.head_dim();
  if (config.decoder_layer(0).heads.head_dim() != config.layer(0).heads.head_dim()) {
    fields->FailAt("decoder_block", "head_dim: rope needs heads as wide as the encoder's");
  }
  for (size_t i = 0; i < std::max({config.layer_rope.size(), config.layers.size(), size_t{1}}); ++i) {
    const std::optional<Rope> rope = config.layer_rope.empty() ? config.rope : config.layer_rope[i];
    if (!rope) continue;
    const uint32_t head_dim = config.layer(i).heads.head_dim();
    if (head_dim % 2 != 0) fields->FailAt("head_dim", std::to_string(head_dim) + " must be even for rope");
    if (head_dim == width || rope->frequencies.empty()) continue;
    fields->FailAt("layer_blocks", "[" + std::to_string(i) + "]: head_dim: " + std::to_string(head_dim) + " is not the " +
                                       std::to_string(width) + " that rope_frequencies are for");
  }
}

// What stands beside the attention of every layer.
void ParseSecond(Fields* fields, ModelConfig* config) {
  config->second_block = ParseOtherBlock(fields, "second_block", *config);
  config->second = ParseLayers(fields, *config, {"second_attention", "num_layers", AttentionForm::kCausal, /*second=*/true});
  if (config->second.empty() && config->second_block) fields->FailAt("second_block", "there is no second_attention");
  for (size_t i = 0; i < config->second.size(); ++i) {
    if (config->second_layer(i).block.value_residual) {
      fields->FailAt("second_attention", "value_residual: only the first attention of a layer may have it");
    }
  }
}

void ParseSeq2Seq(Fields* fields, ModelConfig* config) {
  config->decoder_block = ParseOtherBlock(fields, "decoder_block", *config);
  config->encoder = ParseLayers(fields, *config, {"encoder_attention", "encoder_layers", AttentionForm::kNoncausal});
  config->decoder = ParseLayers(fields, *config, {"decoder_attention", "decoder_layers", AttentionForm::kCausal});
  config->cross = ParseLayers(fields, *config, {"cross_attention", "decoder_layers", AttentionForm::kCross});
  config->share_embeddings = fields->Bool("share_embeddings", false);
  if (config->share_embeddings && config->source_vocab_size != config->vocab_size) {
    fields->FailAt("share_embeddings", "source_vocab_size = " + std::to_string(config->source_vocab_size) +
                                           " is not vocab_size = " + std::to_string(config->vocab_size));
  }
  ParseEndTokens(fields, config);
}

void ParseClassification(Fields* fields, ModelConfig* config) {
  config->encoder = ParseLayers(fields, *config, {"attention", "num_layers", AttentionForm::kNoncausal});
  config->num_labels = fields->Size("num_labels");
  config->pooling = fields->OneOf("pooling", kPoolings);
  config->head_transform = fields->Bool("classifier_transform", false);
  config->head_act = fields->OneOf<format::ActivationKind>("head_act", kHeadActs, format::ActivationKind::Tanh);
  config->head_norm = fields->Bool("classifier_norm", false);
  if (config->head_norm && !config->head_transform) fields->FailAt("classifier_norm", "it needs classifier_transform");
}

void ParseMaskedLm(Fields* fields, ModelConfig* config) {
  config->encoder = ParseLayers(fields, *config, {"attention", "num_layers", AttentionForm::kNoncausal});
  config->head_transform = fields->Bool("lm_head_transform", false);
  config->head_act = fields->OneOf<format::ActivationKind>("head_act", kHeadActs, format::ActivationKind::Gelu);
  config->mask_token = ParseTokenId(fields, "mask_token_id", config->vocab_size);
}

void ParseTask(Fields* fields, ModelConfig* config) {
  switch (config->task) {
    case format::Task::CausalLm:
      ParseBlock(fields, config);
      config->layers = ParseLayerBlocks(fields, *config);
      config->decoder = ParseLayers(fields, *config, {"attention", "num_layers", AttentionForm::kCausal});
      ParseSecond(fields, config);
      ParseEndTokens(fields, config);
      break;
    case format::Task::Seq2Seq:
      ParseSeq2Seq(fields, config);
      break;
    case format::Task::Classification:
      ParseClassification(fields, config);
      break;
    case format::Task::MaskedLm:
      ParseMaskedLm(fields, config);
      break;
  }
}

// What to say of a field that the parser did not ask for: which task has it, or that it belongs elsewhere.
std::string UnknownFieldHint(const std::string& key) {
  const std::vector<FieldRun> runs = ExploreConfig();
  if (IsRead(runs, key)) return ": it is read where " + WhereRead(runs, key);
  const std::vector<std::string> systems = SystemsWithField(key);
  if (!systems.empty()) return ": it is a field of attention objects, of " + QuotedNames(systems);
  return "; tarn-convert --list-fields config prints the known ones";
}

ModelConfig ParseObject(const Json& object, const std::string& where, FieldLog* log) {
  Fields fields(object, where, log);
  fields.SetNames([] { return FieldNames(ExploreConfig()); });
  ModelConfig config{};
  config.bos_token = config.eos_token = config.mask_token = -1;
  config.task = fields.OneOf<format::Task>("task", kTasks, format::Task::CausalLm);
  config.vocab_size = config.source_vocab_size = fields.Size("vocab_size");
  if (config.task == format::Task::Seq2Seq) config.source_vocab_size = fields.Size("source_vocab_size", config.vocab_size);
  config.hidden_size = fields.Size("hidden_size");
  config.heads = ParseHeads(&fields, config.hidden_size);
  config.intermediate_size = static_cast<uint32_t>(fields.Integer("intermediate_size", 0, Fields::kMaxSize));
  config.hidden_act = fields.OneOf("hidden_act", kHiddenActs);
  config.norm = fields.OneOf("norm", kNorms);
  config.norm_eps = fields.NonNegativeNumber("norm_eps");
  config.norm_position = fields.OneOf<NormPosition>("norm_position", kNormPositions, NormPosition::kPre);
  config.parallel = fields.Bool("parallel", false);
  if (config.parallel && config.intermediate_size == 0) fields.FailAt("parallel", "intermediate_size 0: there is no MLP");
  if (config.parallel && (config.norm_position != NormPosition::kPre || config.task == format::Task::Seq2Seq)) {
    fields.FailAt("parallel", "it needs norm_position \"pre\" and a task other than seq2seq");
  }
  config.first_norm = fields.Bool("first_norm", true);
  if (!config.first_norm && (config.norm_position != NormPosition::kPre || config.parallel)) {
    fields.FailAt("first_norm", "false needs norm_position \"pre\" and no parallel parts");
  }
  ParseProjections(&fields, config.norm_eps, &config);
  config.final_norm = fields.Bool("final_norm", true);
  config.embedding_norm = fields.Bool("embedding_norm", false);
  config.mlp_bias = fields.Bool("mlp_bias", false);
  // A classifier has no such head; that it may be tied is stated all the same.
  config.tie_word_embeddings = fields.Bool("tie_word_embeddings", true);
  if (config.task != format::Task::Classification) {
    config.lm_head_bias = fields.Bool("lm_head_bias", false);
    config.logits_soft_cap = fields.NonNegativeNumber("logits_soft_cap", 0.0f);
  }
  ParsePositions(&fields, &config);
  config.tokenizer = ParseTokenizer(&fields, config);
  ParseTask(&fields, &config);
  if (config.task != format::Task::Seq2Seq) config.layer_rope = ParseLayerRope(&fields, config);
  CheckRope(&fields, config);
  fields.Finish([](const std::string& key) { return UnknownFieldHint(key); });
  return config;
}

}  // namespace

ModelConfig ParseConfig(const std::string& text, const std::string& where) {
  ModelConfig config = ParseObject(ParseJson(text, where), where, nullptr);
  config.text = text;
  return config;
}

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const auto& task : kTasks) names.emplace_back(task.name);
  return names;
}

std::vector<FieldRun> ExploreConfig(const std::string& task) {
  // Sizes unlike all others, so that it can be seen what a shape is made of; unsigned, as the parser of JSON makes them.
  Json object = {{"vocab_size", 1009u}, {"hidden_size", kSampleHidden}, {"num_heads", kSampleHeads}, {"tokenizer", "none"},
                 {"num_layers", 1u},    {"encoder_layers", 1u},         {"decoder_layers", 1u},      {"norm_eps", 9.0 / 128}};
  const Json attention = {{"system", "softmax"}, {"max_context", 8u}};
  for (const char* key : {"attention", "encoder_attention", "decoder_attention", "cross_attention"}) object[key] = attention;
  if (!task.empty()) object["task"] = task;
  const auto parse = [](const Json& given, FieldLog* log) { ParseObject(given, "", log); };
  return ExploreFields(object, parse, task.empty() ? "" : "task");
}

}  // namespace tarn::convert
