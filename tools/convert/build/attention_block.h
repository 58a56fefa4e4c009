// What a layer of a causal model has around its attention op (MATH 2.1): a convolution and activations before it, a norm and a gate
// behind it.
#ifndef TARN_TOOLS_CONVERT_BUILD_ATTENTION_BLOCK_H_
#define TARN_TOOLS_CONVERT_BUILD_ATTENTION_BLOCK_H_

#include <string>
#include <utility>

#include "tools/convert/build/model_ops.h"

namespace tarn::convert {

class AttentionBlockOps {
 public:
  // `name`: of the layer's attention, before the names of ops ("layers.0.attn") and, after "model.", of tensors.
  AttentionBlockOps(const ModelOps& ops, const AttentionLayer& layer, std::string name)
      : ops_(ops), builder_(ops.builder()), layer_(layer), block_(layer.block), name_(std::move(name)) {}

  // q, k and v side by side, or v alone, and behind them the logits if they are convolved, too; as they are where there is no
  // convolution. Errors: logits that are convolved, and that another layer projects.
  format::Slice Convolve(format::Slice columns, const AttentionOp& op) const;
  format::Slice ActivateQk(format::Slice qk) const { return Activate("qk_act", block_.qk_activation, qk); }
  format::Slice ActivateQ(format::Slice q) const { return Activate("q_act", block_.q_activation, q); }
  format::Slice ActivateV(format::Slice v) const { return Activate("v_act", block_.v_activation, v); }
  // What o_proj reads: the output of the attention op, its activation, skip of v, norm and gate. The gate is a projection of the
  // layer input. A skip by products of q and k comes behind the norm.
  struct Attended {
    format::Slice x, q, k, v, o;  // x: what the gate is projected from; q, k, v: as the op reads them
  };
  format::Slice Finish(const Attended& attended) const;

 private:
  format::Slice Skip(const Attended& attended, OutputSkip kind, format::Slice o) const;
  format::Slice Norm(format::Slice o) const;
  format::Slice Gate(format::Slice o, format::Slice x) const;
  // What the gate is a function of: a projection of x.
  format::Slice GateLogits(const std::string& name, uint32_t width, format::Slice x) const;
  format::Slice Activate(const char* part, ElementFunction function, format::Slice x) const;

  const ModelOps& ops_;
  GraphBuilder& builder_;
  const AttentionLayer& layer_;
  const AttentionBlock& block_;
  const std::string name_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_ATTENTION_BLOCK_H_
