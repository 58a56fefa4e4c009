// A stack of transformer layers with what stands before and behind it: what causal models, encoders and decoders have in common.
#ifndef TARN_TOOLS_CONVERT_BUILD_STACK_H_
#define TARN_TOOLS_CONVERT_BUILD_STACK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/build/model_ops.h"

namespace tarn::convert {

class Stack {
 public:
  // `prefix`: before the names of its ops, and after "model." in those of its tensors: "", "encoder.", "decoder.". It adds to the
  // program that is the builder's at the time. `block`: of the self attention of every layer; nullptr: as the config has it.
  Stack(const ModelOps& ops, std::string prefix, const AttentionLayer* block = nullptr)
      : ops_(ops), c_(ops.config()), b_(ops.builder()), prefix_(std::move(prefix)), block_(block) {}

  // ids -> rows, with positions and their norm. `table`: a tensor.
  format::Slice Embed(format::Slice tokens, uint32_t table);
  // The parts of layer i, with their residuals and norms.
  format::Slice SelfAttention(size_t layer, const AttentionOp& op, format::Slice x);
  // Both parts of a layer without cross attention.
  format::Slice Layer(size_t layer, const AttentionOp& op, format::Slice x);
  format::Slice CrossAttention(size_t layer, const AttentionOp& op, const std::vector<uint32_t>& states, format::Slice x) const;
  format::Slice Mlp(size_t layer, format::Slice x) const;
  // x as it is where the config has no such norm.
  format::Slice FinalNorm(format::Slice x) const;

  // What CrossAttention() reads, made of the rows of the source, for all layers: their states.
  std::vector<std::vector<uint32_t>> WriteSource(const std::vector<AttentionOp>& cross, format::Slice rows) const;

 private:
  // Dense layers that have been made, by the name of their tensor: of one input.
  using SharedLogits = std::map<std::string, format::Slice>;

  // Projections of x for an attention op: `parts`, and behind them the op's small logits, out of one dense layer: one pass over x.
  // `fused` names it, by a letter for each part.
  format::Slice Project(const std::string& name, std::string fused, std::vector<DenseRows> parts, const AttentionOp& op,
                        format::Slice x) const;
  // What logits are projected from: the layer input, and k and v as the op reads them.
  struct LogitSources {
    format::Slice x, k, v;
  };
  // A projection of its own: one dense layer, or two with a narrow row between them. `tensor`: its name in the checkpoint.
  format::Slice ProjectLogits(const std::string& name, const std::string& tensor, const LogitInput& logit,
                              const LogitSources& from) const;
  // What an op reads behind q, k and v: its logits, the small ones being `small`, and what is drawn. `shared_prefix`: before
  // the projections that layers share.
  std::vector<format::Slice> Logits(const std::string& name, const AttentionOp& op, format::Slice small,
                                    const std::string& shared_prefix, const LogitSources& from, SharedLogits* shared) const;

  // x and f of it with its residual and norms: NormPosition.
  template <typename F>
  format::Slice Residual(const std::string& name, format::Slice x, const F& f) const;
  format::Slice Positions(format::Slice x);
  // The rope of a layer's attention; nullopt: none.
  std::optional<Rope> RopeOf(size_t layer) const;
  // What mixes the tokens of a layer: its attention, or the second one beside it.
  struct Mixer {
    std::string name;  // "layers.0.attn"
    const AttentionLayer& shape;
    std::optional<Rope> rope;
  };
  Mixer FirstMixer(size_t layer) const { return {Name(layer, "attn"), Shape(layer), RopeOf(layer)}; }
  Mixer SecondMixer(size_t layer) const { return {Name(layer, "second_attn"), c_.second_layer(layer), std::nullopt}; }
  // Angles that layers with that rope and width of heads share.
  struct Angles {
    Rope rope;
    uint32_t head_dim;
    format::Slice values;
  };
  void AddAngles(const Rope& rope, uint32_t head_dim);
  const format::Slice* FindAngles(const Rope& rope, uint32_t head_dim) const;
  format::Slice Turned(const Mixer& mixer, const std::string& part, format::Slice x) const;
  // Of q and k side by side.
  std::pair<format::Slice, format::Slice> NormedAndTurned(const Mixer& mixer, format::Slice qk) const;
  // What self attention adds, with the second one's.
  format::Slice AttendSelf(size_t layer, const AttentionOp& op, format::Slice x);
  format::Slice Attend(const Mixer& mixer, const AttentionOp& op, format::Slice x);
  // q, k and v of the attention of global tokens: of a cache, which reads them in place of logits.
  std::vector<format::Slice> GlobalInputs(const Mixer& mixer, format::Slice qkv) const;
  // The same with a token shift: every projection has rows of its own.
  format::Slice AttendShifted(const Mixer& mixer, const AttentionOp& op, format::Slice x);
  // What both do with q, k, v and logits. `gate_rows`: what the gate of the output is projected from.
  format::Slice AttendWith(const Mixer& mixer, const AttentionOp& op, format::Slice q, format::Slice k, format::Slice v,
                           const std::vector<format::Slice>& logits, format::Slice gate_rows) const;
  // v of a layer behind the first one mixed with v of that, where the config wants it. `rows`: what v is projected from.
  format::Slice WithFirstValues(const Mixer& mixer, format::Slice rows, format::Slice v);
  format::Slice AttendPacked(const std::string& name, const ComposedAttention& attention, format::Slice x);
  format::Slice AttendSource(const std::string& name, const AttentionOp& op, const std::vector<uint32_t>& states,
                             format::Slice x) const;
  format::Slice FeedForward(size_t layer, format::Slice x) const;
  // o_proj, of a layer that has it.
  format::Slice Output(const std::string& name, const AttentionLayer& shape, format::Slice o) const;
  const AttentionLayer& Shape(size_t layer) const { return block_ != nullptr ? *block_ : c_.layer(layer); }

  // "layers.0.attn" in this stack
  std::string Name(size_t layer, const char* part) const { return prefix_ + "layers." + std::to_string(layer) + "." + part; }

  const ModelOps& ops_;
  const ModelConfig& c_;
  GraphBuilder& b_;
  const std::string prefix_;
  const AttentionLayer* const block_;
  std::vector<Angles> angles_;
  std::optional<format::Slice> pack_;          // as the layer before left it
  std::optional<format::Slice> first_values_;  // v of the first layer with a value residual
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_STACK_H_
