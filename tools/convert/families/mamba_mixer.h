// The mixer of Mamba 2, as models of that name have it and hybrids of it. A row of in_proj is z, x, B, C and dt one behind the
// other: the gate, v, k and q of heads that share keys in groups, and the logits of the step.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_MAMBA_MIXER_H_
#define TARN_TOOLS_CONVERT_FAMILIES_MAMBA_MIXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/families/family.h"

namespace tarn::convert {

struct MambaSizes {
  uint32_t heads, groups, state, head_dim, taps;
  bool conv_bias = true;
  bool in_bias = false, out_bias = false;  // of in_proj and out_proj

  uint32_t inner() const { return heads * head_dim; }
  uint32_t keys() const { return groups * state; }
};

// Limits of steps: null, or two numbers, of which the second may be infinite; what `key` says of the attention object.
void ReadSteps(Fields* fields, const char* key, Json* attention);

// The fields of a hybrid: mamba_n_heads, mamba_d_head and so on. `inner`: the width of all heads. Errors: numbers that do not
// divide each other.
struct MambaDefaults {
  uint32_t heads, state;
};
MambaSizes ReadMambaFields(Fields* fields, uint32_t inner, const MambaDefaults& defaults);

// Heads, projections and block of the layer, with a norm of eps `eps` behind the gate, of the columns of each group by themselves.
Json MambaBlock(const MambaSizes& sizes, float eps);

// What stands between the tensors of a folder and those of the mixer: factors of the parts of in_proj behind its bias, of its
// weight alone, and of out_proj.
struct MambaFactors {
  float z = 1, x = 1, b = 1, c = 1, dt = 1;
  float in = 1, out = 1;
};
// The rules of a mixer that `from` ("layers.*.mixer.") names, as the attention `to` ("model.layers.*.attn.").
std::vector<TensorRule> MambaRules(const std::string& from, const std::string& to, const MambaSizes& sizes,
                                   const MambaFactors& factors = {});

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_MAMBA_MIXER_H_
