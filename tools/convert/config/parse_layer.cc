#include "tools/convert/config/parse_layer.h"

#include <string>
#include <utility>

namespace tarn::convert {
namespace {

constexpr Choice<QkNorm> kQkNorms[] = {{"none", QkNorm::kNone}, {"head", QkNorm::kHead}, {"full", QkNorm::kFull}};
constexpr Choice<ElementFunction> kElementFunctions[] = {
    {"none", ElementFunction::kNone}, {"relu", ElementFunction::kRelu}, {"silu", ElementFunction::kSilu}};
constexpr Choice<bool> kSiluOrNone[] = {{"none", false}, {"silu", true}};
constexpr Choice<OutputGate> kOutputGates[] = {{"none", OutputGate::kNone},          {"silu", OutputGate::kSilu},
                                               {"sigmoid", OutputGate::kSigmoid},    {"gelu", OutputGate::kGelu},
                                               {"gelu_tanh", OutputGate::kGeluTanh}, {"linear", OutputGate::kLinear}};
constexpr Choice<bool> kSigmoidOrNone[] = {{"none", false}, {"sigmoid", true}};
constexpr Choice<OutputSkip> kOutputSkips[] = {
    {"none", OutputSkip::kNone}, {"head", OutputSkip::kHead}, {"products", OutputSkip::kProducts}};
constexpr Choice<OutputNorm> kOutputNorms[] = {
    {"none", OutputNorm::kNone}, {"head", OutputNorm::kHead}, {"full", OutputNorm::kFull}, {"groups", OutputNorm::kGroups}};

// Fewer heads of q and k than of v; 0: there are as many.
uint32_t ParseKeyHeads(Fields* fields, const format::Heads& heads) {
  const uint32_t key_heads = fields->Size("num_key_heads", heads.heads(), kMaxHeads);
  if (key_heads == heads.heads()) return 0;
  if (heads.heads() % key_heads != 0 || heads.kv_heads() != heads.heads()) {
    fields->FailAt("num_key_heads", std::to_string(key_heads) + " must divide num_heads = " + std::to_string(heads.heads()) +
                                        ", and num_kv_heads = " + std::to_string(heads.kv_heads()) + " must be num_heads");
  }
  return key_heads;
}

// A layer of its own. `where` begins every message. `norm_eps`: of other norms.
AttentionLayer ParseLayer(const Json& object, const std::string& where, uint32_t hidden_size, float norm_eps) {
  Fields own(object, where);
  AttentionLayer layer;
  layer.heads = ParseHeads(&own, hidden_size);
  ParseProjections(&own, norm_eps, &layer);
  ParseBlock(&own, &layer);
  own.Finish([](const std::string&) { return std::string("; a layer has fields of its heads, projections and block alone"); });
  return layer;
}

// Groups of columns of the output that are normed by themselves.
void ParseNormGroups(Fields* fields, AttentionLayer* layer) {
  const uint32_t width = layer->heads.heads() * layer->heads.value_dim(), groups = fields->Size("output_norm_groups", 1);
  if (width % groups != 0) {
    fields->FailAt("output_norm_groups",
                   std::to_string(groups) + " does not divide the " + std::to_string(width) + " columns of all heads of v");
  }
  layer->block.output_norm_groups = groups;
}

// Errors: a skip of heads that do not have a q, a k and a v each.
void CheckSkip(Fields* fields, const AttentionLayer& layer) {
  if (layer.block.output_skip == OutputSkip::kNone) return;
  const bool products = layer.block.output_skip == OutputSkip::kProducts;
  if (products && layer.block.output_gate_first)
    fields->FailAt("output_skip", "\"products\" is not supported with output_gate_first");
  if (layer.heads.kv_heads() == layer.heads.heads() && !(products && layer.key_heads > 0)) return;
  fields->FailAt("output_skip", std::string("num_kv_heads must be num_heads") + (products ? ", and num_key_heads, too" : ""));
}

}  // namespace

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

void ParseProjections(Fields* fields, float norm_eps, AttentionLayer* layer) {
  layer->qk_norm = fields->OneOf<QkNorm>("qk_norm", kQkNorms, QkNorm::kNone);
  if (layer->qk_norm != QkNorm::kNone) layer->qk_norm_eps = fields->NonNegativeNumber("qk_norm_eps", norm_eps);
  const uint32_t biased = fields->Some("attention_bias", {"q", "k", "v", "o"}, false);
  layer->bias = {(biased & 1) != 0, (biased & 2) != 0, (biased & 4) != 0, (biased & 8) != 0};
  layer->output_projection = fields->Bool("output_projection", true);
}

void ParseBlock(Fields* fields, AttentionLayer* layer) {
  layer->key_heads = ParseKeyHeads(fields, layer->heads);
  AttentionBlock& block = layer->block;
  if (fields->Bool("attention_conv", false)) {
    block.conv_taps = static_cast<uint32_t>(fields->Integer("conv_taps", kMinConvTaps, kMaxConvTaps, 4));
    block.conv_bias = fields->Bool("conv_bias", false);
    block.conv_silu = fields->OneOf<bool>("conv_activation", kSiluOrNone, true);
    block.conv_logits = fields->Bool("conv_logits", false);
  }
  block.q_activation = fields->OneOf<ElementFunction>("q_activation", kElementFunctions, ElementFunction::kNone);
  block.qk_activation = fields->OneOf<ElementFunction>("qk_activation", kElementFunctions, ElementFunction::kNone);
  block.v_activation = fields->OneOf<ElementFunction>("v_activation", kElementFunctions, ElementFunction::kNone);
  block.output_activation = fields->OneOf<ElementFunction>("output_activation", kElementFunctions, ElementFunction::kNone);
  block.output_norm = fields->OneOf<OutputNorm>("output_norm", kOutputNorms, OutputNorm::kNone);
  if (block.output_norm != OutputNorm::kNone) block.output_norm_eps = fields->NonNegativeNumber("output_norm_eps");
  if (block.output_norm == OutputNorm::kFull) ParseNormGroups(fields, layer);
  block.output_gate = fields->OneOf<OutputGate>("output_gate", kOutputGates, OutputGate::kNone);
  if (block.output_gate != OutputGate::kNone) {
    if (fields->Bool("output_gate_low_rank", false)) {
      block.output_gate_rank = fields->Size("output_gate_rank", 16);
      block.output_gate_hidden_sigmoid = fields->OneOf<bool>("output_gate_hidden_act", kSigmoidOrNone, false);
    }
    block.output_gate_bias = fields->Bool("output_gate_bias", false);
    block.output_gate_first = fields->Bool("output_gate_first", false);
    if (block.output_gate_first && block.output_norm == OutputNorm::kNone) {
      fields->FailAt("output_gate_first", "true needs an output_norm, before which the gate is");
    }
  }
  block.output_skip = fields->OneOf<OutputSkip>("output_skip", kOutputSkips, OutputSkip::kNone);
  CheckSkip(fields, *layer);
  block.token_shift = fields->Bool("token_shift", false);
  if (block.token_shift && (block.conv_taps > 0 || layer->qk_norm != QkNorm::kNone)) {
    fields->FailAt("token_shift", "it is not supported with attention_conv or qk_norm");
  }
  block.value_residual = fields->Bool("value_residual", false);
  if (block.value_residual && fields->Bool("value_residual_low_rank", false)) {
    block.value_residual_rank = fields->Size("value_residual_rank", 16);
  }
}

std::vector<AttentionLayer> ParseLayerBlocks(Fields* fields, const ModelConfig& config) {
  const Json* list = fields->Find("layer_blocks", "a list with null or an object for each layer", "none");
  if (list == nullptr) return {};
  const auto count = fields->Integer("num_layers", 1, kMaxLayers);
  if (!list->is_array() || list->size() != count) {
    fields->FailAt("layer_blocks", ValueText(*list) + " is not a list of num_layers = " + std::to_string(count) + " values");
  }
  std::vector<AttentionLayer> layers;
  for (const Json& object : *list) {
    layers.push_back(config);
    if (object.is_null()) continue;
    const std::string where = fields->where() + ": layer_blocks[" + std::to_string(layers.size() - 1) + "]";
    layers.back() = ParseLayer(object, where, config.hidden_size, config.norm_eps);
  }
  return layers;
}

std::optional<AttentionLayer> ParseOtherBlock(Fields* fields, const char* key, const ModelConfig& config) {
  const Json* object = fields->Find(key, "an object", "none");
  if (object == nullptr) return std::nullopt;
  return ParseLayer(*object, fields->where() + ": " + key, config.hidden_size, config.norm_eps);
}

}  // namespace tarn::convert
