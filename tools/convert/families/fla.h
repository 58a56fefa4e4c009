// What models of flash-linear-attention have in common (MATH 2.1): a Llama-like skeleton around an attention of their own.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_FLA_H_
#define TARN_TOOLS_CONVERT_FAMILIES_FLA_H_

#include <cstdint>
#include <string>

#include "tools/convert/families/family.h"

namespace tarn::convert {

struct FlaDefaults {
  uint32_t heads;
  double expand_k, expand_v;
  uint32_t hidden_ratio;
};

// Sizes of the heads of a layer.
struct FlaHeads {
  uint32_t heads, key_dim, value_dim;
};

// Sizes, MLP, norms and tied embeddings, and the table of the tensors that all have. What the attention has is for the caller.
void ReadFlaSkeleton(ForeignConfig* config, uint32_t hidden_ratio, uint32_t layers, Translation* translation);

// The same, with heads whose widths together are a part of hidden_size. Errors: a width that the heads do not divide.
FlaHeads ReadFla(ForeignConfig* config, const FlaDefaults& defaults, Translation* translation);

// Models of the gated delta rule: num_v_heads heads of v, each group of which shares one of q and k, with head_dim and expand_v.
// Returns them, not those of q and k. Errors: numbers that do not divide each other.
FlaHeads ReadGatedDelta(ForeignConfig* config, const FlaHeads& defaults, double expand_v, uint32_t layers,
                        Translation* translation);

// num_kv_heads, of models that have it; null: as many as heads.
void ReadFlaKvHeads(ForeignConfig* config, const FlaHeads& heads, Translation* translation);

// use_short_conv and conv_size. Returns whether there is a convolution. `silu`: its activation; `names`: a letter for each of
// `parts` in the folder.
bool ReadShortConv(ForeignConfig* config, bool fallback, bool silu, Translation* translation, const std::string& names = "qkv",
                   const std::string& parts = "qkv");

// The norm of each head with the gate behind it. `norm`: the name of its weight in the folder; `gate`: whether there is one.
void SetHeadNorm(const char* norm, float eps, bool gate, Translation* translation);

// The softmax attention of the layers that `attn` of a hybrid names, in place of that of `translation`, which all its other fields
// have made. The translation as it was where there is no such layer.
Translation WithFlaAttention(ForeignConfig* config, const FamilyOptions& options, Translation translation);

// The positions of a model that does not bound them: its caches have as many rows.
uint32_t FlaPositions(Fields* fields);

// Rules for "layers.*.attn.<from>" -> "model.layers.*.attn.<to>".
void AddAttnRule(const std::string& from, const std::string& to, Translation* translation);

// The name of a function of fla's as config.json of tarn has it; null: "none". Errors: one that is not supported.
std::string FlaFunction(ForeignConfig* config, const char* key, const char* fallback);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_FLA_H_
