// What families of decoders with softmax attention have in common.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_DECODER_H_
#define TARN_TOOLS_CONVERT_FAMILIES_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  uint32_t kv_heads;      // 0: as many as heads, which null means everywhere
  uint32_t head_dim = 0;  // 0: hidden_size / heads
  bool tied = false;
  bool own_norms = false;  // other norms, whose rules are the caller's
  // Names of fields.
  const char* eps = "rms_norm_eps";
  const char* inner = "intermediate_size";
  const char* activation = "hidden_act";
  float theta = 10000;
  double turned = 1;  // the part of a head that turns, by partial_rotary_factor
  const char* activation_default = "silu";
  bool rope = true;  // q and k turn
};
struct LlamaSizes {
  uint32_t positions, heads, kv_heads;
  RotaryHeads rotary;
};
LlamaSizes ReadLlama(ForeignConfig* config, const LlamaDefaults& defaults, Translation* translation);

// Projections of their own into q, k, v, gate and up.
void AddProjections(const LlamaSizes& sizes, std::vector<TensorRule>* rules);

// Norms of q and k.
void AddQkNorms(std::vector<TensorRule>* rules);

// Rows of q or k, or of the norm of one head, in the order that rope of the format has: pairs (i, i + head_dim / 2). `first`: the
// row of the first head, `stride`: from one head to the next. nullptr: they have that order.
std::shared_ptr<const std::vector<uint32_t>> RotaryOrder(const RotaryHeads& rotary, uint32_t heads, uint32_t first = 0,
                                                         uint32_t stride = 0);
// Weight and bias of a projection into q or k.
void AddTurned(const std::string& from, const std::string& to, const RotaryHeads& rotary, uint32_t heads,
               std::vector<TensorRule>* rules);

// The rules of tensors that end in `to`: their elements become scale * x + added.
void Fold(const std::string& to, float scale, float added, std::vector<TensorRule>* rules);

// Which layers have a window: by layer_types, or else `by_number`. Errors: a type that is not known; a window where `has_window`
// says that there is none.
std::vector<bool> WindowedLayers(Fields* fields, uint32_t layers, bool has_window,
                                 const std::function<bool(uint32_t layer)>& by_number);
// The attention objects of these layers.
Json AttentionOfLayers(const std::vector<bool>& windowed, uint32_t window, uint32_t positions, const FamilyOptions& options,
                       Translation* translation);

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

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_DECODER_H_
