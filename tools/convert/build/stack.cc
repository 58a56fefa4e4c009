#include "tools/convert/build/stack.h"

#include <cmath>
#include <utility>

#include "tools/convert/build/layers.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

namespace {

// swiglu is none of these.
format::ActivationKind ActivationOf(HiddenAct act) {
  if (act == HiddenAct::kRelu) return format::ActivationKind::Relu;
  return act == HiddenAct::kGelu ? format::ActivationKind::Gelu : format::ActivationKind::GeluTanh;
}

}  // namespace

template <typename F>
Slice Stack::Residual(const std::string& name, Slice x, const F& f) const {
  const std::string norm = name + "_norm", tensor = "model." + norm;
  if (c_.pre_norm) return AddSum(&b_, name + ".add", x, f(ops_.Norm(norm, tensor, x)));
  return ops_.Norm(norm, tensor, AddSum(&b_, name + ".add", x, f(x)));
}

Slice Stack::Embed(Slice tokens, uint32_t table) {
  const float scale = c_.scale_embeddings ? std::sqrt(static_cast<float>(c_.hidden_size)) : 1.0f;
  const auto attributes = [scale](FlatBufferBuilder& builder) { return format::CreateEmbedding(builder, scale).Union(); };
  const Slice x =
      Positions(b_.AddOp(prefix_ + "embeddings", format::OpAttributes::Embedding, attributes, {tokens}, c_.hidden_size, {table}));
  const std::string norm = prefix_ + "embedding_norm";
  return c_.embedding_norm ? ops_.Norm(norm, "model." + norm, x) : x;
}

Slice Stack::Positions(Slice x) {
  switch (c_.position_embedding) {
    case PositionEmbedding::kNone:
      return x;
    case PositionEmbedding::kSinusoidal:
      return b_.AddOp(prefix_ + "positions", format::OpAttributes::AddSinusoid, NoAttributes(format::CreateAddSinusoid), {x},
                      x.width());
    case PositionEmbedding::kLearned: {
      const std::string name = "model." + prefix_ + "position_embeddings.weight";
      const std::vector<uint32_t> shape = {c_.max_positions, c_.hidden_size};
      const uint32_t table = b_.AddConstant(name, shape, {{name, shape, Init::kLinear}});
      return b_.AddOp(prefix_ + "positions", format::OpAttributes::AddLearnedPosition,
                      NoAttributes(format::CreateAddLearnedPosition), {x}, x.width(), {table});
    }
    case PositionEmbedding::kRope:
      angles_ = b_.AddOp(
          prefix_ + "rope_angles", format::OpAttributes::RopeAngles,
          [theta = c_.rope_theta, frequencies = c_.rope_frequencies](FlatBufferBuilder& builder) {
            return format::CreateRopeAnglesDirect(builder, theta, frequencies.empty() ? nullptr : &frequencies).Union();
          },
          {}, c_.heads.head_dim());
      return x;
  }
  return x;
}

Slice Stack::SelfAttention(size_t layer, const AttentionOp& op, Slice x) {
  const std::string name = Name(layer, "attn");
  return Residual(name, x, [&](Slice in) {
    return op.composed && op.composed->pack ? AttendPacked(name, *op.composed, in) : Attend(name, op, in);
  });
}

// The pack begins as rows of the model, has a residual of its own, and a norm behind it.
Slice Stack::AttendPacked(const std::string& name, const ComposedAttention& attention, Slice x) {
  const std::string rows = prefix_ + "pack", norm = name + ".pack_norm";
  if (!pack_) pack_ = AddRows(&b_, rows, "model." + rows, attention.pack_rows, c_.hidden_size);
  const uint32_t wanted = b_.program().values[pack_->value()].rows;
  if (attention.pack_rows != wanted) {
    Fail(name, ": num_slots: ", attention.pack_rows, " is not the ", wanted, " of the first layer");
  }
  const ComposedAttention::Packed packed = attention.pack(&b_, "model." + name + ".", x, *pack_);
  pack_ = ops_.Norm(norm, "model." + norm, AddSum(&b_, name + ".pack_add", *pack_, packed.pack));
  return packed.x;
}

Slice Stack::CrossAttention(size_t layer, const AttentionOp& op, const std::vector<uint32_t>& states, Slice x) const {
  const std::string name = Name(layer, "cross_attn");
  return Residual(name, x, [&](Slice in) { return AttendSource(name, op, states, in); });
}

Slice Stack::Mlp(size_t layer, Slice x) const {
  const std::string name = Name(layer, "mlp");
  return Residual(name, x, [&](Slice in) { return FeedForward(name, in); });
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

std::vector<Slice> Stack::Logits(const std::string& name, const AttentionOp& op, Slice small, const std::string& shared_prefix,
                                 Slice x, SharedLogits* shared) const {
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
    auto made = shared->find(tensor);
    if (made == shared->end()) {
      const std::vector<DenseRows> rows = {{tensor, logit.width, logit.bias, logit.weight_init, logit.bias_init}};
      made = shared->emplace(tensor, b_.AddDense(name + "." + logit.projection, tensor, rows, x)).first;
    }
    logits.push_back(made->second);
  }
  if (op.drawn) logits.push_back(b_.AddDrawn(name, *op.drawn));
  return logits;
}

Slice Stack::Attend(const std::string& name, const AttentionOp& op, Slice x) const {
  const std::string prefix = "model." + name + ".";
  const Slice all = Project(name, "qkv",
                            {{prefix + "q_proj", q_width(), c_.attention_bias},
                             {prefix + "k_proj", k_width(), c_.attention_bias},
                             {prefix + "v_proj", v_width(), c_.attention_bias}},
                            op, x);
  // q and k are neighbours, so that one op turns both.
  const uint32_t qk_width = q_width() + k_width(), width = qk_width + v_width();
  Slice qk = Columns(all, 0, qk_width);
  if (c_.position_embedding == PositionEmbedding::kRope) {
    qk = b_.AddOp(name + ".rope", format::OpAttributes::Rope, NoAttributes(format::CreateRope), {qk, angles_}, qk_width);
  }
  const Slice q = Columns(qk, 0, q_width()), k = Columns(qk, q_width(), k_width()), v = Columns(all, qk_width, v_width());
  if (op.composed) return Output(name, op.composed->heads(&b_, prefix, q, k, v));
  SharedLogits none;
  std::vector<Slice> inputs = {q, k, v};
  for (const Slice logits : Logits(name, op, Columns(all, width, all.width() - width), "model." + prefix_, x, &none)) {
    inputs.push_back(logits);
  }
  return Output(name, b_.AddAttention(name, prefix, op, c_.heads, std::move(inputs)));
}

std::vector<std::vector<uint32_t>> Stack::WriteSource(const std::vector<AttentionOp>& cross, Slice rows) const {
  std::vector<std::vector<uint32_t>> states;
  SharedLogits shared;  // the layers read the same rows: logits of a projection that they share are the same, too
  const uint32_t width = k_width() + v_width();
  for (size_t layer = 0; layer < cross.size(); ++layer) {
    const AttentionOp& op = cross[layer];
    const std::string name = Name(layer, "cross_attn"), prefix = "model." + name + ".";
    const Slice all =
        Project(name, "kv", {{prefix + "k_proj", k_width(), c_.attention_bias}, {prefix + "v_proj", v_width(), c_.attention_bias}},
                op, rows);
    std::vector<Slice> inputs = {Columns(all, 0, k_width()), Columns(all, k_width(), v_width())};
    const Slice small = Columns(all, width, all.width() - width);
    for (const Slice logits : Logits(name, op, small, "model." + prefix_ + "cross_", rows, &shared)) inputs.push_back(logits);
    states.push_back(b_.AddAttentionWrite(name, prefix, op, std::move(inputs)));
  }
  return states;
}

Slice Stack::AttendSource(const std::string& name, const AttentionOp& op, const std::vector<uint32_t>& states, Slice x) const {
  const std::string prefix = "model." + name + ".";
  const Slice q = ops_.Dense(name + ".q_proj", prefix + "q_proj", q_width(), c_.attention_bias, x);
  return Output(name, b_.AddAttentionRead(name, prefix, op, c_.heads, q, states));
}

Slice Stack::Output(const std::string& name, Slice o) const {
  return ops_.Dense(name + ".o_proj", "model." + name + ".o_proj", c_.hidden_size, c_.attention_bias, o);
}

Slice Stack::FeedForward(const std::string& name, Slice x) const {
  const std::string prefix = "model." + name + ".";
  const uint32_t inner = c_.intermediate_size;
  Slice hidden;
  if (c_.hidden_act == HiddenAct::kSwiglu) {
    const Slice both = b_.AddDense(name + ".gate_up_proj", prefix + "gate_up_proj",
                                   {{prefix + "gate_proj", inner, c_.mlp_bias}, {prefix + "up_proj", inner, c_.mlp_bias}}, x);
    hidden = b_.AddOp(name + ".act", format::OpAttributes::SiluMul, NoAttributes(format::CreateSiluMul),
                      {Columns(both, 0, inner), Columns(both, inner, inner)}, inner);
  } else {
    const Slice up = ops_.Dense(name + ".up_proj", prefix + "up_proj", inner, c_.mlp_bias, x);
    hidden = AddActivation(&b_, name + ".act", ActivationOf(c_.hidden_act), up);
  }
  return ops_.Dense(name + ".down_proj", prefix + "down_proj", c_.hidden_size, c_.mlp_bias, hidden);
}

}  // namespace tarn::convert
