#include "tools/convert/build/set_transformer.h"

#include <cmath>

#include "tools/convert/build/layers.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using format::Slice;

Slice Norm(GraphBuilder* builder, const std::string& name, const SetBlock& block, Slice x) {
  return block.layer_norm ? AddNorm(builder, name, name, format::NormKind::LayerNorm, block.ln_eps, x) : x;
}

}  // namespace

Slice AddMab(GraphBuilder* builder, const std::string& prefix, const SetBlock& block, Slice x, Slice y) {
  const uint32_t width = block.width;
  if (block.num_heads == 0 || width % block.num_heads != 0) {
    Fail("\"", prefix, "\": a width of ", width, " cannot be divided among ", block.num_heads, " heads");
  }
  const uint32_t head_dim = width / block.num_heads;
  const auto dense = [&](const char* name, Slice in) {
    return builder->AddDense(prefix + name, prefix + name, {{prefix + name, width, true}}, in);
  };
  const Slice q = dense("fc_q", x);
  const Slice kv =
      builder->AddDense(prefix + "fc_kv", prefix + "fc_kv", {{prefix + "fc_k", width, true}, {prefix + "fc_v", width, true}}, y);
  CacheAttention cache;
  cache.capacity = block.max_rows;
  cache.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));  // not of a head
  const format::Heads heads(block.num_heads, block.num_heads, head_dim, head_dim);
  const Slice seen = AddNoncausalAttention(builder, prefix + "attn", "set_transformer", heads, cache, q, Columns(kv, 0, width),
                                           Columns(kv, width, width));
  const Slice o = Norm(builder, prefix + "ln0", block, AddSum(builder, prefix + "add0", q, seen));
  const Slice fed = AddActivation(builder, prefix + "act", format::ActivationKind::Relu, dense("fc_o", o));
  return Norm(builder, prefix + "ln1", block, AddSum(builder, prefix + "add1", o, fed));
}

Slice AddIsab(GraphBuilder* builder, const std::string& prefix, const SetBlock& block, uint32_t num_inducing, Slice x,
              Slice* induced) {
  const Slice points = AddRows(builder, prefix + "inducing_points", prefix + "inducing_points", num_inducing, block.width);
  *induced = AddMab(builder, prefix + "mab0.", block, points, x);
  return AddMab(builder, prefix + "mab1.", block, x, *induced);
}

Slice AddPma(GraphBuilder* builder, const std::string& prefix, const SetBlock& block, uint32_t num_seeds, Slice x) {
  const Slice seeds = AddRows(builder, prefix + "seed_vectors", prefix + "seed_vectors", num_seeds, block.width);
  return AddMab(builder, prefix + "mab.", block, seeds, x);
}

}  // namespace tarn::convert
