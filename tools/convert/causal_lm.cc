#include "tools/convert/causal_lm.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using format::Slice;

class CausalLm {
 public:
  CausalLm(const ModelConfig& config, GraphBuilder* builder) : c_(config), b_(*builder) {}

  void Build() {
    Graph& graph = b_.graph();
    graph.vocab_size = c_.vocab_size;
    graph.first_position = c_.first_position;
    graph.tokenizer = c_.tokenizer;
    graph.source = c_.text;

    b_.BeginProgram("decode");
    const Slice tokens = b_.AddValue("tokens", 1, format::Time::Tokens, format::DType::I32);
    b_.program().num_inputs = 1;
    Slice x = Embeddings(tokens);
    for (uint32_t i = 0; i < c_.num_layers; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      x = Block(layer + "attn", x, [&](Slice in) { return Attention(layer + "attn", c_.attention[i], in); });
      x = Block(layer + "mlp", x, [&](Slice in) { return Mlp(layer + "mlp", in); });
    }
    b_.program().outputs = {Head(x).value()};
    b_.CheckRules();
  }

 private:
  // x + f(norm x), or norm(x + f x)
  template <typename F>
  Slice Block(const std::string& name, Slice x, const F& f) {
    if (c_.pre_norm) return Add(name + ".add", x, f(Norm(name + "_norm", x)));
    return Norm(name + "_norm", Add(name + ".add", x, f(x)));
  }

  Slice Norm(const std::string& name, Slice x) {
    const auto attributes = [kind = c_.norm, eps = c_.norm_eps](FlatBufferBuilder& builder) {
      return format::CreateNorm(builder, kind, eps).Union();
    };
    return b_.AddOp(name, format::OpAttributes::Norm, attributes, {x}, x.width(),
                    b_.AddNormTensors("model." + name, c_.norm, x.width()));
  }

  Slice Add(const std::string& name, Slice a, Slice b) {
    const auto attributes = [](FlatBufferBuilder& builder) { return format::CreateAdd(builder).Union(); };
    return b_.AddOp(name, format::OpAttributes::Add, attributes, {a, b}, a.width());
  }

  // One dense layer with the weights of one projection, named like it.
  Slice Dense(const std::string& name, uint32_t rows, bool bias, Slice x) {
    return b_.AddDense(name, "model." + name, {{"model." + name, rows, bias}}, x);
  }

  Slice Embeddings(Slice tokens) {
    embeddings_ =
        b_.AddMatrix("model.embeddings.weight", {{"model.embeddings.weight", {c_.vocab_size, c_.hidden_size}, Init::kLinear}});
    const float scale = c_.scale_embeddings ? std::sqrt(static_cast<float>(c_.hidden_size)) : 1.0f;
    const auto attributes = [scale](FlatBufferBuilder& builder) { return format::CreateEmbedding(builder, scale).Union(); };
    const Slice x =
        Positions(b_.AddOp("embeddings", format::OpAttributes::Embedding, attributes, {tokens}, c_.hidden_size, {embeddings_}));
    return c_.embedding_norm ? Norm("embedding_norm", x) : x;
  }

  Slice Positions(Slice x) {
    switch (c_.position_embedding) {
      case PositionEmbedding::kNone:
        return x;
      case PositionEmbedding::kSinusoidal:
        return b_.AddOp(
            "positions", format::OpAttributes::AddSinusoid,
            [](FlatBufferBuilder& builder) { return format::CreateAddSinusoid(builder).Union(); }, {x}, x.width());
      case PositionEmbedding::kLearned: {
        const std::string name = "model.position_embeddings.weight";
        const std::vector<uint32_t> shape = {c_.max_positions, c_.hidden_size};
        const uint32_t table = b_.AddConstant(name, shape, {{name, shape, Init::kLinear}});
        return b_.AddOp("positions", format::OpAttributes::AddLearnedPosition,
                        [](FlatBufferBuilder& builder) { return format::CreateAddLearnedPosition(builder).Union(); }, {x},
                        x.width(), {table});
      }
      case PositionEmbedding::kRope:
        angles_ = b_.AddOp(
            "rope_angles", format::OpAttributes::RopeAngles,
            [theta = c_.rope_theta](FlatBufferBuilder& builder) { return format::CreateRopeAngles(builder, theta).Union(); }, {},
            c_.heads.head_dim());
        return x;
    }
    return x;
  }

  // q, k, v and the small logits come out of one dense layer, in this order: one pass over the input, and q beside k for rope.
  Slice Attention(const std::string& name, const AttentionOp& op, Slice x) {
    const std::string prefix = "model." + name + ".";
    const uint32_t q_width = c_.heads.heads() * c_.heads.head_dim();
    const uint32_t k_width = c_.heads.kv_heads() * c_.heads.head_dim();
    const uint32_t v_width = c_.heads.kv_heads() * c_.heads.value_dim();
    std::vector<DenseRows> rows = {{prefix + "q_proj", q_width, c_.attention_bias},
                                   {prefix + "k_proj", k_width, c_.attention_bias},
                                   {prefix + "v_proj", v_width, c_.attention_bias}};
    std::string fused = "qkv";
    for (const LogitInput& logit : op.logits) {
      if (!logit.with_qkv) continue;
      rows.push_back({prefix + logit.projection, logit.width, logit.bias, logit.weight_init, logit.bias_init});
      fused += logit.projection[0];
    }
    const Slice all = b_.AddDense(name + "." + fused + "_proj", prefix + fused + "_proj", rows, x);

    Slice qk = Columns(all, 0, q_width + k_width);
    if (c_.position_embedding == PositionEmbedding::kRope) {
      qk = b_.AddOp(
          name + ".rope", format::OpAttributes::Rope,
          [](FlatBufferBuilder& builder) { return format::CreateRope(builder).Union(); }, {qk, angles_}, qk.width());
    }
    uint32_t column = q_width + k_width;
    std::vector<Slice> inputs = {Columns(qk, 0, q_width), Columns(qk, q_width, k_width), Columns(all, column, v_width)};
    column += v_width;
    for (const LogitInput& logit : op.logits) {
      if (logit.with_qkv) {
        inputs.push_back(Columns(all, column, logit.width));
        column += logit.width;
      } else {
        const std::string tensor = (logit.shared ? "model." : prefix) + logit.projection;
        inputs.push_back(b_.AddDense(name + "." + logit.projection, tensor,
                                     {{tensor, logit.width, logit.bias, logit.weight_init, logit.bias_init}}, x));
      }
    }
    if (op.drawn) inputs.push_back(b_.AddDrawn(name, *op.drawn));
    const Slice o = b_.AddAttention(name, prefix, op, c_.heads, std::move(inputs));
    return Dense(name + ".o_proj", c_.hidden_size, c_.attention_bias, o);
  }

  Slice Mlp(const std::string& name, Slice x) {
    const uint32_t inner = c_.intermediate_size;
    Slice hidden;
    if (c_.hidden_act == HiddenAct::kSwiglu) {
      const std::string prefix = "model." + name + ".";
      const Slice both = b_.AddDense(name + ".gate_up_proj", prefix + "gate_up_proj",
                                     {{prefix + "gate_proj", inner, c_.mlp_bias}, {prefix + "up_proj", inner, c_.mlp_bias}}, x);
      hidden = b_.AddOp(
          name + ".act", format::OpAttributes::SiluMul,
          [](FlatBufferBuilder& builder) { return format::CreateSiluMul(builder).Union(); },
          {Columns(both, 0, inner), Columns(both, inner, inner)}, inner);
    } else {
      const auto attributes = [kind = Activation()](FlatBufferBuilder& builder) {
        return format::CreateActivation(builder, kind).Union();
      };
      const Slice up = Dense(name + ".up_proj", inner, c_.mlp_bias, x);
      hidden = b_.AddOp(name + ".act", format::OpAttributes::Activation, attributes, {up}, inner);
    }
    return Dense(name + ".down_proj", c_.hidden_size, c_.mlp_bias, hidden);
  }

  format::ActivationKind Activation() const {
    if (c_.hidden_act == HiddenAct::kRelu) return format::ActivationKind::Relu;
    return c_.hidden_act == HiddenAct::kGelu ? format::ActivationKind::Gelu : format::ActivationKind::GeluTanh;
  }

  // The rows that somebody wants logits of are selected first, so that norm and head see no others.
  Slice Head(Slice x) {
    const Slice selected = b_.AddValue("select_outputs", x.width(), format::Time::Outputs);
    b_.AddOp({"select_outputs",
              format::OpAttributes::SelectOutputs,
              [](FlatBufferBuilder& builder) { return format::CreateSelectOutputs(builder).Union(); },
              {x},
              {selected.value()},
              {},
              {}});
    const Slice y = c_.final_norm ? Norm("norm", selected) : selected;
    std::vector<uint32_t> tensors = {embeddings_};
    if (!c_.tie_word_embeddings) {
      tensors[0] = b_.AddMatrix("lm_head.weight", {{"lm_head.weight", {c_.vocab_size, c_.hidden_size}, Init::kLinear}});
    }
    if (c_.lm_head_bias) {
      tensors.push_back(b_.AddConstant("lm_head.bias", {c_.vocab_size}, {{"lm_head.bias", {c_.vocab_size}, Init::kZero}}));
    }
    const Slice logits = b_.AddValue("logits", c_.vocab_size, format::Time::Outputs);
    b_.AddOp({"lm_head",
              format::OpAttributes::FullyConnected,
              [](FlatBufferBuilder& builder) { return format::CreateFullyConnected(builder).Union(); },
              {y},
              {logits.value()},
              std::move(tensors),
              {}});
    return logits;
  }

  const ModelConfig& c_;
  GraphBuilder& b_;
  uint32_t embeddings_ = 0;  // tensor
  Slice angles_;             // of rope
};

}  // namespace

void BuildCausalLm(const ModelConfig& config, GraphBuilder* builder) { CausalLm(config, builder).Build(); }

}  // namespace tarn::convert
