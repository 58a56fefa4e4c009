#include "tools/convert/config.h"

#include <optional>
#include <string>
#include <utility>

#include "tools/convert/error.h"
#include "tools/convert/json.h"

namespace tarn::convert {
namespace {

// Beyond every model, and far enough from the ends of the integers that nothing overflows.
constexpr uint64_t kMaxLayers = 512;
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;

enum class Task { kCausalLm, kLater };
enum class TokenizerChoice { kBytes, kNone, kFile };

constexpr Choice<Task> kTasks[] = {
    {"causal_lm", Task::kCausalLm}, {"seq2seq", Task::kLater}, {"classification", Task::kLater}, {"masked_lm", Task::kLater}};
constexpr Choice<HiddenAct> kHiddenActs[] = {
    {"swiglu", HiddenAct::kSwiglu}, {"relu", HiddenAct::kRelu}, {"gelu", HiddenAct::kGelu}, {"gelu_tanh", HiddenAct::kGeluTanh}};
constexpr Choice<format::NormKind> kNorms[] = {{"rmsnorm", format::NormKind::RmsNorm}, {"layernorm", format::NormKind::LayerNorm}};
constexpr Choice<bool> kNormPositions[] = {{"pre", true}, {"post", false}};
constexpr Choice<PositionEmbedding> kPositions[] = {{"none", PositionEmbedding::kNone},
                                                    {"sinusoidal", PositionEmbedding::kSinusoidal},
                                                    {"learned", PositionEmbedding::kLearned},
                                                    {"rope", PositionEmbedding::kRope}};
constexpr Choice<TokenizerChoice> kTokenizers[] = {
    {"bytes", TokenizerChoice::kBytes}, {"none", TokenizerChoice::kNone}, {"tokenizer.json", TokenizerChoice::kFile}};

format::Heads ParseHeads(Fields* fields, uint32_t hidden_size) {
  const uint32_t heads = fields->Size("num_heads", std::nullopt, kMaxHeads);
  const uint32_t kv_heads = fields->Size("num_kv_heads", heads, kMaxHeads);
  if (heads % kv_heads != 0) {
    fields->FailAt("num_kv_heads", std::to_string(kv_heads) + " does not divide num_heads = " + std::to_string(heads));
  }
  if (!fields->Has("head_dim") && hidden_size % heads != 0) {
    fields->FailAt("num_heads", std::to_string(heads) + " does not divide hidden_size = " + std::to_string(hidden_size) +
                                    ", and there is no head_dim");
  }
  const uint32_t head_dim = fields->Size("head_dim", hidden_size / heads, kMaxHeads);
  const uint32_t value_dim = fields->Size("value_head_dim", head_dim, kMaxHeads);
  for (const auto& [key, size] : {std::pair{"head_dim", head_dim}, std::pair{"value_head_dim", value_dim}}) {
    if (uint64_t{heads} * size > Fields::kMaxSize) {
      fields->FailAt(key, std::to_string(size) + " times num_heads = " + std::to_string(heads) + " is too large");
    }
  }
  return format::Heads(heads, kv_heads, head_dim, value_dim);
}

void ParsePositions(Fields* fields, ModelConfig* config) {
  config->position_embedding = fields->OneOf<PositionEmbedding>("position_embedding", kPositions, PositionEmbedding::kNone);
  const bool learned = config->position_embedding == PositionEmbedding::kLearned;
  config->max_positions = fields->Size("max_positions", learned ? std::nullopt : std::optional<uint32_t>(1));
  config->rope_theta = fields->Number("rope_theta", 10000.0f);
  if (config->rope_theta <= 0) fields->FailAt("rope_theta", "must be above 0");
  config->first_position = fields->Integer("first_position", 0, kMaxPosition, 0);
  config->scale_embeddings = fields->Bool("scale_embeddings", false);

  if (learned && config->first_position >= config->max_positions) {
    fields->FailAt("first_position",
                   std::to_string(config->first_position) + " is past max_positions = " + std::to_string(config->max_positions));
  }
  if (config->position_embedding == PositionEmbedding::kSinusoidal && (config->hidden_size % 2 != 0 || config->hidden_size < 4)) {
    fields->FailAt("hidden_size", std::to_string(config->hidden_size) + " must be even and at least 4 for sinusoidal positions");
  }
  if (config->position_embedding == PositionEmbedding::kRope && config->heads.head_dim() % 2 != 0) {
    fields->FailAt("head_dim", std::to_string(config->heads.head_dim()) + " must be even for rope");
  }
}

format::TokenizerKind ParseTokenizer(Fields* fields, uint32_t vocab_size) {
  switch (fields->OneOf("tokenizer", kTokenizers)) {
    case TokenizerChoice::kBytes:
      if (vocab_size != 256) fields->FailAt("vocab_size", std::to_string(vocab_size) + " is not the 256 of tokenizer \"bytes\"");
      return format::TokenizerKind::Bytes;
    case TokenizerChoice::kNone:
      return format::TokenizerKind::None;
    case TokenizerChoice::kFile:
      break;
  }
  fields->FailAt("tokenizer", "\"tokenizer.json\" is not supported by this version");
}

std::vector<AttentionOp> ParseLayers(Fields* fields, const ModelConfig& config) {
  const Json* attention = fields->Find("attention");
  if (attention == nullptr) Fail(fields->where(), ": the field \"attention\" is missing");
  const std::string where = fields->where() + ": attention";
  if (attention->is_array() && attention->size() != config.num_layers) {
    fields->FailAt("attention",
                   std::to_string(attention->size()) + " objects for num_layers = " + std::to_string(config.num_layers));
  }
  std::vector<AttentionOp> layers;
  for (uint32_t i = 0; i < config.num_layers; ++i) {
    const AttentionContext context{config.heads, i, config.hidden_size, config.attention_bias,
                                   config.position_embedding == PositionEmbedding::kRope};
    layers.push_back(attention->is_array() ? ParseAttention((*attention)[i], where + "[" + std::to_string(i) + "]", context)
                                           : ParseAttention(*attention, where, context));
  }
  return layers;
}

}  // namespace

ModelConfig ParseConfig(const std::string& text, const std::string& where) {
  const Json parsed = ParseJson(text, where);
  Fields fields(parsed, where);
  if (fields.OneOf<Task>("task", kTasks, Task::kCausalLm) != Task::kCausalLm) {
    fields.FailAt("task", ValueText(parsed["task"]) + " is not supported yet");
  }
  ModelConfig config{};
  config.text = text;
  config.vocab_size = fields.Size("vocab_size");
  config.hidden_size = fields.Size("hidden_size");
  config.num_layers = static_cast<uint32_t>(fields.Integer("num_layers", 1, kMaxLayers));
  config.heads = ParseHeads(&fields, config.hidden_size);
  config.intermediate_size = fields.Size("intermediate_size");
  config.hidden_act = fields.OneOf("hidden_act", kHiddenActs);
  config.norm = fields.OneOf("norm", kNorms);
  config.norm_eps = fields.Number("norm_eps");
  if (config.norm_eps < 0) fields.FailAt("norm_eps", "must not be negative");
  config.pre_norm = fields.OneOf<bool>("norm_position", kNormPositions, true);
  config.final_norm = fields.Bool("final_norm", true);
  config.embedding_norm = fields.Bool("embedding_norm", false);
  config.attention_bias = fields.Bool("attention_bias", false);
  config.mlp_bias = fields.Bool("mlp_bias", false);
  config.lm_head_bias = fields.Bool("lm_head_bias", false);
  config.tie_word_embeddings = fields.Bool("tie_word_embeddings", true);
  ParsePositions(&fields, &config);
  config.tokenizer = ParseTokenizer(&fields, config.vocab_size);
  config.attention = ParseLayers(&fields, config);
  fields.Finish();
  return config;
}

}  // namespace tarn::convert
