// The fields of config.json that a layer may have of its own: heads, projections, and what stands around its attention op.
#ifndef TARN_TOOLS_CONVERT_CONFIG_PARSE_LAYER_H_
#define TARN_TOOLS_CONVERT_CONFIG_PARSE_LAYER_H_

#include <optional>
#include <vector>

#include "tools/convert/config/config.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {

constexpr uint64_t kMaxLayers = 512;  // of all stacks: what a reader takes

// num_heads, num_kv_heads, head_dim and value_head_dim. Errors: numbers that do not divide each other.
format::Heads ParseHeads(Fields* fields, uint32_t hidden_size);
// Biases and norms of q, k, v and o. `norm_eps`: of other norms.
void ParseProjections(Fields* fields, float norm_eps, AttentionLayer* layer);
// Heads of q and k, and what stands around the attention op of a causal language model.
void ParseBlock(Fields* fields, AttentionLayer* layer);
// layer_blocks: layers that are not as the others. Empty where there are none.
std::vector<AttentionLayer> ParseLayerBlocks(Fields* fields, const ModelConfig& config);
// decoder_block: the self attention of a decoder that is not as the encoder's; second_block: a second attention that is not as the
// first. nullopt where there is none.
std::optional<AttentionLayer> ParseOtherBlock(Fields* fields, const char* key, const ModelConfig& config);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CONFIG_PARSE_LAYER_H_
