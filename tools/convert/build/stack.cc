#include "tools/convert/build/stack.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tools/convert/build/attention_block.h"
#include "tools/convert/build/layers.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

namespace {

// The MLP: down(f(up x)), or with a gate down(f(gate x) * up x).
struct MlpKind {
  format::ActivationKind f;
  bool gated;
};

MlpKind KindOf(HiddenAct act) {
  using Kind = format::ActivationKind;
  switch (act) {
    case HiddenAct::kSwiglu:
      return {Kind::Silu, true};
    case HiddenAct::kGeglu:
      return {Kind::Gelu, true};
    case HiddenAct::kGegluTanh:
      return {Kind::GeluTanh, true};
    case HiddenAct::kRelu:
      return {Kind::Relu, false};
    case HiddenAct::kGelu:
      return {Kind::Gelu, false};
    case HiddenAct::kGeluTanh:
      return {Kind::GeluTanh, false};
    case HiddenAct::kSilu:
      return {Kind::Silu, false};
    case HiddenAct::kReluSquared:
      return {Kind::ReluSquared, false};
  }
  return {Kind::Relu, false};
}

bool SameRope(const Rope& a, const Rope& b) {
  return a.frequencies == b.frequencies && (!a.frequencies.empty() || !(a.theta < b.theta || b.theta < a.theta));
}

}  // namespace

template <typename F>
Slice Stack::Residual(const std::string& name, Slice x, const F& f) const {
  const std::string norm = name + "_norm", tensor = "model." + norm;
  switch (c_.norm_position) {
    case NormPosition::kPre:
      return AddSum(&b_, name + ".add", x, f(ops_.Norm(norm, tensor, x)));
    case NormPosition::kPost:
      return ops_.Norm(norm, tensor, AddSum(&b_, name + ".add", x, f(x)));
    case NormPosition::kOutput:
      return AddSum(&b_, name + ".add", x, ops_.Norm(norm, tensor, f(x)));
    case NormPosition::kBoth: {
      const std::string outer = name + "_output_norm";
      return AddSum(&b_, name + ".add", x, ops_.Norm(outer, "model." + outer, f(ops_.Norm(norm, tensor, x))));
    }
  }
  return x;
}

Slice Stack::Embed(Slice tokens, uint32_t table) {
  const float scale = c_.embedding_scale;
  const auto attributes = [scale](FlatBufferBuilder& builder) { return format::CreateEmbedding(builder, scale).Union(); };
  const Slice x =
      Positions(b_.AddOp(prefix_ + "embeddings", format::OpAttributes::Embedding, attributes, {tokens}, c_.hidden_size, {table}));
  const std::string norm = prefix_ + "embedding_norm";
  return c_.embedding_norm ? ops_.Norm(norm, "model." + norm, x) : x;
}

Slice Stack::Positions(Slice x) {
  // Angles of rope: before the layers, which share them.
  for (size_t layer = 0; layer < std::max({c_.layer_rope.size(), c_.layers.size(), size_t{1}}); ++layer) {
    const std::optional<Rope> rope = RopeOf(layer);
    if (rope) AddAngles(*rope, Shape(layer).heads.head_dim());
  }
  switch (c_.position_embedding) {
    case PositionEmbedding::kNone:
      return x;
    case PositionEmbedding::kSinusoidal:
      if (!c_.sinusoid_frequencies.empty()) b_.Need("sinusoid_frequencies");
      return b_.AddOp(
          prefix_ + "positions", format::OpAttributes::AddSinusoid,
          [frequencies = c_.sinusoid_frequencies](FlatBufferBuilder& builder) {
            return format::CreateAddSinusoidDirect(builder, frequencies.empty() ? nullptr : &frequencies).Union();
          },
          {x}, x.width());
    case PositionEmbedding::kLearned: {
      const std::string name = "model." + prefix_ + "position_embeddings.weight";
      const std::vector<uint32_t> shape = {c_.max_positions, c_.hidden_size};
      const uint32_t table = b_.AddConstant(name, shape, {{name, shape, Init::kLinear}});
      return b_.AddOp(prefix_ + "positions", format::OpAttributes::AddLearnedPosition,
                      NoAttributes(format::CreateAddLearnedPosition), {x}, x.width(), {table});
    }
  }
  return x;
}

std::optional<Rope> Stack::RopeOf(size_t layer) const {
  if (!c_.has_rope) return std::nullopt;
  return c_.layer_rope.empty() ? c_.rope : c_.layer_rope[layer];
}

const Slice* Stack::FindAngles(const Rope& rope, uint32_t head_dim) const {
  const auto found = std::find_if(angles_.begin(), angles_.end(),
                                  [&](const Angles& made) { return made.head_dim == head_dim && SameRope(made.rope, rope); });
  return found == angles_.end() ? nullptr : &found->values;
}

void Stack::AddAngles(const Rope& rope, uint32_t head_dim) {
  if (FindAngles(rope, head_dim) != nullptr) return;
  if (!rope.frequencies.empty()) b_.Need("rope_frequencies");
  const std::string number = angles_.empty() ? "" : "." + std::to_string(angles_.size());
  const auto attributes = [rope](FlatBufferBuilder& builder) {
    return format::CreateRopeAnglesDirect(builder, rope.theta, rope.frequencies.empty() ? nullptr : &rope.frequencies).Union();
  };
  angles_.push_back(
      {rope, head_dim, b_.AddOp(prefix_ + "rope_angles" + number, format::OpAttributes::RopeAngles, attributes, {}, head_dim)});
}

Slice Stack::Turned(const Mixer& mixer, const std::string& part, Slice x) const {
  if (!mixer.rope) return x;
  const Slice angles = *FindAngles(*mixer.rope, mixer.shape.heads.head_dim());
  return b_.AddOp(mixer.name + part, format::OpAttributes::Rope, NoAttributes(format::CreateRope), {x, angles}, x.width());
}

std::pair<Slice, Slice> Stack::NormedAndTurned(const Mixer& mixer, Slice qk) const {
  const AttentionLayer& shape = mixer.shape;
  const uint32_t q_width = shape.q_width(), k_width = shape.k_width();
  if (shape.qk_norm == QkNorm::kNone) {  // they are neighbours: one op turns both
    qk = Turned(mixer, ".rope", qk);
    return {Columns(qk, 0, q_width), Columns(qk, q_width, k_width)};
  }
  const uint32_t group = shape.qk_norm == QkNorm::kHead ? shape.heads.head_dim() : 0;
  const auto part = [&](const std::string& letter, Slice x) {
    const std::string norm = mixer.name + "." + letter + "_norm";
    const Slice normed = AddNorm(&b_, norm, "model." + norm, c_.norm, shape.qk_norm_eps, x, group);
    return Turned(mixer, "." + letter + "_rope", normed);
  };
  return {part("q", Columns(qk, 0, q_width)), part("k", Columns(qk, q_width, k_width))};
}

Slice Stack::SelfAttention(size_t layer, const AttentionOp& op, Slice x) {
  if (layer == 0 && !c_.first_norm) return AddSum(&b_, Name(layer, "attn") + ".add", x, AttendSelf(layer, op, x));
  return Residual(Name(layer, "attn"), x, [&](Slice in) { return AttendSelf(layer, op, in); });
}

Slice Stack::AttendSelf(size_t layer, const AttentionOp& op, Slice x) {
  const std::string name = Name(layer, "attn");
  if (!op.composed || !op.composed->pack) {
    const Slice attended = Attend(FirstMixer(layer), op, x);
    if (c_.second.empty()) return attended;
    const Mixer second = SecondMixer(layer);
    return AddSum(&b_, second.name + ".add", attended, Attend(second, c_.second[layer], x));
  }
  if (Shape(layer).qk_norm != QkNorm::kNone) Fail(name, ": qk_norm: ", op.system, " has no q and k of its own");
  if (!Shape(layer).output_projection) Fail(name, ": output_projection: ", op.system, " has one of its own");
  return AttendPacked(name, *op.composed, x);
}

Slice Stack::Layer(size_t layer, const AttentionOp& op, Slice x) {
  if (!c_.parallel) return Mlp(layer, SelfAttention(layer, op, x));
  const std::string attention = Name(layer, "attn"), mlp = Name(layer, "mlp");
  const Slice attended = AttendSelf(layer, op, ops_.Norm(attention + "_norm", "model." + attention + "_norm", x));
  const Slice fed = FeedForward(layer, ops_.Norm(mlp + "_norm", "model." + mlp + "_norm", x));
  return AddSum(&b_, mlp + ".add", AddSum(&b_, attention + ".add", x, attended), fed);
}

// The pack begins as rows of the model, has a residual of its own, and a norm behind or before it.
Slice Stack::AttendPacked(const std::string& name, const ComposedAttention& attention, Slice x) {
  const std::string rows = prefix_ + "pack", norm = name + ".pack_norm";
  if (!pack_) pack_ = AddRows(&b_, rows, "model." + rows, attention.pack_rows, c_.hidden_size);
  const uint32_t wanted = b_.program().values[pack_->value()].rows;
  if (attention.pack_rows != wanted) {
    Fail(name, ": num_slots: ", attention.pack_rows, " is not the ", wanted, " of the first layer");
  }
  const auto normed = [&](Slice pack) { return ops_.Norm(norm, "model." + norm, pack); };
  const bool first = attention.pack_norm_first;
  const ComposedAttention::Packed packed = attention.pack(&b_, "model." + name + ".", x, first ? normed(*pack_) : *pack_);
  const Slice sum = AddSum(&b_, name + ".pack_add", *pack_, packed.pack);
  pack_ = first ? sum : normed(sum);
  return packed.x;
}

Slice Stack::CrossAttention(size_t layer, const AttentionOp& op, const std::vector<uint32_t>& states, Slice x) const {
  const std::string name = Name(layer, "cross_attn");
  return Residual(name, x, [&](Slice in) { return AttendSource(name, op, states, in); });
}

Slice Stack::Mlp(size_t layer, Slice x) const {
  if (c_.intermediate_size == 0) return x;
  const std::string name = Name(layer, "mlp");
  return Residual(name, x, [&](Slice in) { return FeedForward(layer, in); });
}

Slice Stack::FinalNorm(Slice x) const { return c_.final_norm ? ops_.Norm(prefix_ + "norm", "model." + prefix_ + "norm", x) : x; }

Slice Stack::Project(const std::string& name, std::string fused, std::vector<DenseRows> parts, const AttentionOp& op,
                     Slice x) const {
  const std::string prefix = "model." + name + ".";
  for (const LogitInput& logit : op.logits) {
    if (!logit.with_qkv) continue;
    parts.push_back({prefix + logit.projection, logit.width, logit.bias, logit.weight_init, logit.bias_init});
    fused += logit.projection[0];
  }
  return b_.AddDense(name + "." + fused + "_proj", prefix + fused + "_proj", parts, x);
}

// Not below int8: the projections of logits are small, and an exp or a sigmoid of them decides what every later token reads.
Slice Stack::ProjectLogits(const std::string& name, const std::string& tensor, const LogitInput& logit,
                           const LogitSources& from) const {
  if (logit.rows != LogitRows::kLayer) {
    return AddHeadLogits(&b_, name, tensor, logit, logit.rows == LogitRows::kKeys ? from.k : from.v);
  }
  const Slice x = from.x;
  constexpr Precision kNarrowest = Precision::kInt8;
  const auto rows = [&](const std::string& of) {
    return std::vector<DenseRows>{{of, logit.width, logit.bias, logit.weight_init, logit.bias_init}};
  };
  if (logit.rank == 0) return b_.AddDense(name, tensor, rows(tensor), x, kNarrowest);
  Slice narrow = b_.AddDense(name + ".0", tensor + ".0", {{tensor + ".0", logit.rank, /*bias=*/false}}, x, kNarrowest);
  if (logit.tanh) narrow = AddActivation(&b_, name + ".act", format::ActivationKind::Tanh, narrow);
  return b_.AddDense(name + ".1", tensor + ".1", rows(tensor + ".1"), narrow, kNarrowest);
}

std::vector<Slice> Stack::Logits(const std::string& name, const AttentionOp& op, Slice small, const std::string& shared_prefix,
                                 const LogitSources& from, SharedLogits* shared) const {
  const std::string prefix = "model." + name + ".";
  std::vector<Slice> logits;
  uint32_t column = 0;  // of `small`
  for (const LogitInput& logit : op.logits) {
    if (logit.with_qkv) {
      logits.push_back(Columns(small, column, logit.width));
      column += logit.width;
      continue;
    }
    const std::string tensor = (logit.shared ? shared_prefix : prefix) + logit.projection;
    if (logit.rows != LogitRows::kLayer) {  // every layer has k and v of its own
      logits.push_back(ProjectLogits(name + "." + logit.projection, tensor, logit, from));
      continue;
    }
    const std::string key = tensor + (logit.bias ? ".bias" : ".weight");  // a layer may go without the bias
    auto made = shared->find(key);
    if (made == shared->end()) {
      made = shared->emplace(key, ProjectLogits(name + "." + logit.projection, tensor, logit, from)).first;
    }
    logits.push_back(made->second);
  }
  if (op.drawn) logits.push_back(b_.AddDrawn(name, *op.drawn));
  return logits;
}

Slice Stack::Attend(const Mixer& mixer, const AttentionOp& op, Slice x) {
  const std::string &name = mixer.name, prefix = "model." + name + ".";
  const AttentionLayer& shape = mixer.shape;
  if (shape.block.token_shift) return AttendShifted(mixer, op, x);
  const uint32_t q_width = shape.q_width(), k_width = shape.k_width(), v_width = shape.v_width();
  std::vector<DenseRows> parts = {{prefix + "v_proj", v_width, shape.bias.v}};
  if (op.reads_qk) {
    parts.insert(parts.begin(), {{prefix + "q_proj", q_width, shape.bias.q}, {prefix + "k_proj", k_width, shape.bias.k}});
  } else if (shape.qk_norm != QkNorm::kNone || shape.block.output_skip == OutputSkip::kProducts) {
    Fail(name, shape.qk_norm != QkNorm::kNone ? ": qk_norm: " : ": output_skip: ", op.system, " has no q and k");
  }
  const uint32_t qk_width = op.reads_qk ? q_width + k_width : 0, width = qk_width + v_width;
  std::string fused = op.reads_qk ? "qkv" : "v";
  if (op.reads_global) {
    parts.insert(parts.end(), {{prefix + "q_global_proj", q_width, shape.bias.q},
                               {prefix + "k_global_proj", k_width, shape.bias.k},
                               {prefix + "v_global_proj", v_width, shape.bias.v}});
    fused += "qkv";
  }
  const Slice all = Project(name, fused, std::move(parts), op, x);
  const AttentionBlockOps block(ops_, shape, name);
  const Slice qkv = block.Convolve(Columns(all, 0, shape.block.conv_logits ? all.width() : width), op);
  Slice q, k;
  if (op.reads_qk) {
    std::tie(q, k) = NormedAndTurned(mixer, block.ActivateQk(Columns(qkv, 0, qk_width)));
    q = block.ActivateQ(q);
  }
  const Slice v = WithFirstValues(mixer, x, block.ActivateV(Columns(qkv, qk_width, v_width)));
  if (op.composed) return Output(name, shape, block.Finish({x, q, k, v, op.composed->heads(&b_, prefix, q, k, v)}));
  if (op.reads_global) return AttendWith(mixer, op, q, k, v, GlobalInputs(mixer, Columns(all, width, width)), x);
  SharedLogits none;
  const Slice small = Columns(shape.block.conv_logits ? qkv : all, width, all.width() - width);
  return AttendWith(mixer, op, q, k, v, Logits(name, op, small, "model." + prefix_, {x, k, v}, &none), x);
}

std::vector<Slice> Stack::GlobalInputs(const Mixer& mixer, Slice qkv) const {
  const AttentionLayer& shape = mixer.shape;
  if (shape.qk_norm != QkNorm::kNone) Fail(mixer.name, ": qk_norm: q and k of global_projections have none");
  const uint32_t q_width = shape.q_width(), k_width = shape.k_width(), v_width = shape.v_width();
  const Slice qk = Turned(mixer, ".global_rope", Columns(qkv, 0, q_width + k_width));
  return {Columns(qk, 0, q_width), Columns(qk, q_width, k_width), Columns(qkv, q_width + k_width, v_width)};
}

Slice Stack::AttendWith(const Mixer& mixer, const AttentionOp& op, Slice q, Slice k, Slice v, const std::vector<Slice>& logits,
                        Slice gate_rows) const {
  const std::string &name = mixer.name, prefix = "model." + name + ".";
  const AttentionLayer& shape = mixer.shape;
  const Slice removal = k;
  if (op.blends_keys) k = AddDamping(&b_, name + ".k_blend", prefix + "k_blend", k, logits.back());
  std::vector<Slice> inputs;
  if (op.reads_qk) inputs = {q, k};
  inputs.push_back(v);
  inputs.insert(inputs.end(), logits.begin(), logits.end());
  if (op.reads_removal) inputs.push_back(removal);
  const Slice o = b_.AddAttention(name, prefix, op, shape.heads, std::move(inputs), "model." + prefix_);
  return Output(name, shape, AttentionBlockOps(ops_, shape, name).Finish({gate_rows, q, k, v, o}));
}

std::vector<std::vector<uint32_t>> Stack::WriteSource(const std::vector<AttentionOp>& cross, Slice rows) const {
  std::vector<std::vector<uint32_t>> states;
  SharedLogits shared;  // the layers read the same rows: logits of a projection that they share are the same, too
  const uint32_t k_width = c_.k_width(), v_width = c_.v_width(), width = k_width + v_width;
  for (size_t layer = 0; layer < cross.size(); ++layer) {
    const AttentionOp& op = cross[layer];
    const std::string name = Name(layer, "cross_attn"), prefix = "model." + name + ".";
    const Slice all =
        Project(name, "kv", {{prefix + "k_proj", k_width, c_.bias.k}, {prefix + "v_proj", v_width, c_.bias.v}}, op, rows);
    const LogitSources from = {rows, Columns(all, 0, k_width), Columns(all, k_width, v_width)};
    std::vector<Slice> inputs = {from.k, from.v};
    const Slice small = Columns(all, width, all.width() - width);
    for (const Slice logits : Logits(name, op, small, "model." + prefix_ + "cross_", from, &shared)) inputs.push_back(logits);
    states.push_back(b_.AddAttentionWrite(name, prefix, op, std::move(inputs)));
  }
  return states;
}

Slice Stack::AttendSource(const std::string& name, const AttentionOp& op, const std::vector<uint32_t>& states, Slice x) const {
  const std::string prefix = "model." + name + ".";
  const Slice q = ops_.Dense(name + ".q_proj", prefix + "q_proj", c_.q_width(), c_.bias.q, x);
  return Output(name, c_, b_.AddAttentionRead(name, prefix, op, c_.heads, q, states));
}

Slice Stack::Output(const std::string& name, const AttentionLayer& shape, Slice o) const {
  if (shape.output_projection) {
    return ops_.Dense(name + ".o_proj", "model." + name + ".o_proj", c_.hidden_size, shape.bias.o, o);
  }
  if (o.width() != c_.hidden_size) {
    Fail(name, ": output_projection: false needs heads of v that are hidden_size = ", c_.hidden_size, " wide together, found ",
         o.width());
  }
  return o;
}

Slice Stack::FeedForward(size_t layer, Slice x) const {
  const std::string name = Name(layer, "mlp"), prefix = "model." + name + ".";
  if (Shape(layer).block.token_shift) x = AddTokenShift(&b_, name + ".shift", prefix + "shifts", {prefix + "shift"}, x);
  const uint32_t inner = c_.intermediate_size;
  const MlpKind kind = KindOf(c_.hidden_act);
  Slice hidden;
  if (kind.gated) {
    const Slice both = b_.AddDense(name + ".gate_up_proj", prefix + "gate_up_proj",
                                   {{prefix + "gate_proj", inner, c_.mlp_bias}, {prefix + "up_proj", inner, c_.mlp_bias}}, x);
    hidden = AddGated(&b_, name + ".act", kind.f, Columns(both, 0, inner), Columns(both, inner, inner));
  } else {
    const Slice up = ops_.Dense(name + ".up_proj", prefix + "up_proj", inner, c_.mlp_bias, x);
    hidden = AddActivation(&b_, name + ".act", kind.f, up);
  }
  return ops_.Dense(name + ".down_proj", prefix + "down_proj", c_.hidden_size, c_.mlp_bias, hidden);
}

}  // namespace tarn::convert
