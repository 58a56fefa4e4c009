// What families of decoders with softmax attention have in common.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_DECODER_H_
#define TARN_TOOLS_CONVERT_FAMILIES_DECODER_H_

#include <cstdint>
#include <string>

#include "tools/convert/families/family.h"

namespace tarn::convert {

// The attention object of a layer that sees everything before it: a cache of max_context rows, by the options or else of
// `max_positions`; or, with --window, a window and the first tokens. It says in `translation` what bounds it.
Json FullAttention(uint32_t max_positions, const FamilyOptions& options, Translation* translation);
// The attention object of a layer that sees itself and window - 1 tokens before.
Json WindowAttention(uint32_t window, const Translation& translation);

// Sizes, heads, norm and tied embeddings of a decoder with rotated positions, RMS norms and a gated MLP, as Llama has them, and the
// table of its tensors but for the projections into q, k, v, gate and up. What else the family has is for the caller.
struct LlamaDefaults {
  uint32_t max_positions;
  float norm_eps;
  uint32_t kv_heads;  // 0: as many as heads, which null means everywhere
};
uint32_t ReadLlama(ForeignConfig* config, const LlamaDefaults& defaults, Translation* translation);  // max_position_embeddings

// Projections of their own into q, k, v, gate and up.
void AddProjections(std::vector<TensorRule>* rules);

// The same of a decoder with learned positions, layer norms and biases, as GPT-2 has them, under the names that the family gives to
// the fields. Its tensors: tables and norms.
struct GptFields {
  const char *hidden, *layers, *heads, *inner, *positions;
  uint32_t default_hidden, default_layers, default_heads, default_positions;
};
struct GptSizes {
  uint32_t hidden, layers, heads, positions;
};
GptSizes ReadGpt(ForeignConfig* config, const GptFields& names, Translation* translation);

// Rules for weight and bias.
void AddBoth(const std::string& from, const std::string& to, std::vector<TensorRule>* rules, bool transposed = false);
// The biases of projections that have none where others have one. `width`: of each.
void AddZeroBiases(const char* projections, uint32_t width, uint32_t layers, std::vector<TensorRule>* rules);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_DECODER_H_
