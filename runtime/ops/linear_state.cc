// Linear state attention (MATH F1): S <- g S + phi(k) x (1-g) v, o = phi(q)^T S / den. RFA with Gaussian and arc-cosine features, with
// and without the forget gate.
#include <cmath>
#include <cstdio>

#include "runtime/ops/attention.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

// The schema's numbers are the kernels'.
static_assert(static_cast<int>(format::FeatureMap::Gaussian) == static_cast<int>(FeatureMap::kGaussian));
static_assert(static_cast<int>(format::FeatureMap::Arccos) == static_cast<int>(FeatureMap::kArccos));
static_assert(static_cast<size_t>(format::FeatureMap::MAX) + 1 == kFeatureMapCount);
static_assert(static_cast<int>(format::DenMode::None) == static_cast<int>(DenMode::kNone));
static_assert(static_cast<int>(format::DenMode::Add) == static_cast<int>(DenMode::kAdd));
static_assert(static_cast<int>(format::DenMode::ClampMin) == static_cast<int>(DenMode::kClampMin));
static_assert(static_cast<int>(format::DenMode::AbsClampMin) == static_cast<int>(DenMode::kAbsClampMin));

// M of a feature map with D projections.
size_t FeatureCount(format::FeatureMap map, size_t projections) {
  return map == format::FeatureMap::Gaussian ? 2 * projections : projections;
}

bool IsPositive(float x) { return x > 0 && std::isfinite(x); }
bool IsNotNegative(float x) { return x >= 0 && std::isfinite(x); }

class LinearStateOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::LinearState& attributes = *context.op().attributes_as_LinearState();
    TARN_RETURN_IF_ERROR(ReadAttributes(attributes));
    const uint32_t states = den_mode_ == DenMode::kNone ? 1 : 2;
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/has_gate_ ? 4 : 3, /*outputs=*/1, /*tensors=*/1, 1, states));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Read(context, *attributes.heads()));
    const size_t kv_heads = heads_.kv_heads();
    if (has_gate_) TARN_RETURN_IF_ERROR(context.ExpectInput(3, "gate", kv_heads));
    TARN_ASSIGN_OR_RETURN(projection_, context.ExpectTensor(0, "projection", {kv_heads, heads_.key_dim(), projections_}));
    TARN_RETURN_IF_ERROR(context.ExpectState(0, "S", {kv_heads, features_, heads_.value_dim()}));
    if (states == 2) TARN_RETURN_IF_ERROR(context.ExpectState(1, "z", {kv_heads, features_}));

    const size_t chunk = context.limits().max_tokens;
    const size_t rows = (heads_.group() + 1) * chunk;
    scratch_floats_ = ScratchFloats::Padded(rows * heads_.key_dim()) + ScratchFloats::Padded(rows * features_) +
                      2 * ScratchFloats::Padded(chunk) +
                      ScratchFloats::Padded(LinearChunkScratch(chunk, features_, heads_.value_dim()));
    context.RequestScratch(uint64_t{context.limits().threads} * scratch_floats_ * sizeof(float));
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const uint64_t cost = 2 * features_ * heads_.value_dim();
    ForEachHead(context, heads_, cost, [&](size_t sequence, size_t kv_head, size_t thread) {
      ScratchFloats scratch(reinterpret_cast<float*>(context.scratch) + thread * scratch_floats_);
      RunHead(context, sequence, kv_head, scratch);
    });
    return Ok();
  }

 private:
  Status ReadAttributes(const format::LinearState& attributes) {
    if (attributes.feature_map() > format::FeatureMap::MAX || attributes.gate() > format::Gate::MAX ||
        attributes.den_mode() > format::DenMode::MAX || attributes.qk_norm() > format::VectorNorm::MAX) {
      return Error(TARN_BAD_FORMAT, "unknown feature_map %u, gate %u, den_mode %u or qk_norm %u",
                   static_cast<unsigned>(attributes.feature_map()), static_cast<unsigned>(attributes.gate()),
                   static_cast<unsigned>(attributes.den_mode()), static_cast<unsigned>(attributes.qk_norm()));
    }
    constexpr uint32_t kMostFeatures = 1u << 20;
    if (attributes.num_features() < 1 || attributes.num_features() > kMostFeatures) {
      return Error(TARN_BAD_FORMAT, "num_features is %u, 1 to %u wanted", attributes.num_features(), kMostFeatures);
    }
    if (!IsPositive(attributes.input_scale()) || !IsPositive(attributes.q_input_scale()) ||
        !IsNotNegative(attributes.qk_norm_eps()) || !IsNotNegative(attributes.den_eps()) ||
        !std::isfinite(attributes.scale())) {
      return Error(TARN_BAD_FORMAT, "input_scale %g, q_input_scale %g (> 0), qk_norm_eps %g, den_eps %g (>= 0) or scale %g",
                   static_cast<double>(attributes.input_scale()), static_cast<double>(attributes.q_input_scale()),
                   static_cast<double>(attributes.qk_norm_eps()), static_cast<double>(attributes.den_eps()),
                   static_cast<double>(attributes.scale()));
    }
    feature_map_ = static_cast<size_t>(attributes.feature_map());
    projections_ = attributes.num_features();
    features_ = FeatureCount(attributes.feature_map(), projections_);
    k_scale_ = attributes.input_scale();
    q_scale_ = attributes.input_scale() * attributes.q_input_scale();
    qk_norm_ = attributes.qk_norm();
    qk_norm_eps_ = attributes.qk_norm_eps();
    has_gate_ = attributes.gate() == format::Gate::Forget;
    den_mode_ = static_cast<DenMode>(attributes.den_mode());
    den_eps_ = attributes.den_eps();
    scale_ = attributes.scale();
    return Ok();
  }

  // Rows of x, scaled and normalised, to contiguous rows of y.
  void Normalize(const Kernels& kernels, size_t rows, const float* x, size_t x_stride, float scale, float* y) const {
    const size_t d = heads_.key_dim();
    if (qk_norm_ == format::VectorNorm::None) {
      for (size_t row = 0; row < rows; ++row) kernels.scale_f32(d, x + row * x_stride, scale, y + row * d);
      return;
    }
    // The norm of s x, written with x: s x / (|s x| + eps) = x / (|x| + eps / s), and with eps / s^2 inside the root.
    const bool inside = qk_norm_ == format::VectorNorm::L2Inside;
    const float eps = inside ? qk_norm_eps_ / (scale * scale) : qk_norm_eps_ / scale;
    kernels.l2_normalize(rows, d, x, x_stride, /*scale=*/1, eps, inside, y);
  }

  void RunHead(const RunContext& context, size_t sequence, size_t kv_head, ScratchFloats scratch) const {
    const Kernels& kernels = *context.kernels;
    const HeadSlices slices(context, heads_, sequence, kv_head);
    const size_t tokens = context.tokens;
    const size_t group = heads_.group();
    const size_t d = heads_.key_dim();

    // The rows of all queries, then those of the keys, so that one call maps them all.
    const size_t rows = (group + 1) * tokens;
    float* x = scratch.Take(rows * d);
    float* phi = scratch.Take(rows * features_);
    for (size_t g = 0; g < group; ++g) {
      Normalize(kernels, tokens, slices.q + g * d, slices.q_stride, q_scale_, x + g * tokens * d);
    }
    Normalize(kernels, tokens, slices.k, slices.k_stride, k_scale_, x + group * tokens * d);
    kernels.features[feature_map_]({rows, d, projections_, x, projection_ + kv_head * d * projections_, phi});
    const float* phi_k = phi + group * tokens * features_;

    const size_t state_elements = features_ * heads_.value_dim();
    float* state = context.states[0].f32(sequence) + kv_head * state_elements;
    float* norm = den_mode_ == DenMode::kNone ? nullptr : context.states[1].f32(sequence) + kv_head * features_;
    const float* gate = nullptr;
    size_t gate_stride = 0;
    if (has_gate_) {
      gate_stride = context.inputs[3].stride;
      gate = context.inputs[3].f32() + sequence * tokens * gate_stride + kv_head;
    }

    if (tokens == 1) {
      float decay = 1;
      float write = 1;
      if (has_gate_) kernels.forget_gate(1, gate, gate_stride, &decay, &write, nullptr);
      kernels.linear_step({group, features_, heads_.value_dim(), phi, phi_k, slices.v, decay, write, den_mode_, den_eps_, scale_,
                           state, norm, slices.o});
      return;
    }
    float* log_decay = nullptr;
    float* write = nullptr;
    if (has_gate_) {
      log_decay = scratch.Take(tokens);
      write = scratch.Take(tokens);
      kernels.forget_gate(tokens, gate, gate_stride, nullptr, write, log_decay);
    }
    float* work = scratch.Take(LinearChunkScratch(tokens, features_, heads_.value_dim()));
    kernels.linear_chunk({tokens, group, features_, heads_.value_dim(), phi, phi_k, slices.v, slices.v_stride, log_decay, write,
                          den_mode_, den_eps_, scale_, state, norm, slices.o, slices.o_stride, work});
  }

  Heads heads_;
  size_t feature_map_;
  size_t projections_;  // D
  size_t features_;     // M
  float q_scale_;
  float k_scale_;
  format::VectorNorm qk_norm_;
  float qk_norm_eps_;
  bool has_gate_;
  DenMode den_mode_;
  float den_eps_;
  float scale_;
  const float* projection_ = nullptr;  // [kv_heads, d, D]
  size_t scratch_floats_;              // of one thread
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::LinearState& a = *op.attributes_as_LinearState();
  std::snprintf(text, text_bytes, "rfa: %s features D %u, gate %s, den %s %g, heads %u/%u x %u/%u",
                format::EnumNameFeatureMap(a.feature_map()), a.num_features(), format::EnumNameGate(a.gate()),
                format::EnumNameDenMode(a.den_mode()), static_cast<double>(a.den_eps()), a.heads()->heads(),
                a.heads()->kv_heads(), a.heads()->head_dim(), a.heads()->value_dim());
}

const format::Heads* HeadsOf(const format::Op& op) { return op.attributes_as_LinearState()->heads(); }

}  // namespace

const OpKind kLinearStateOp = MakeOpKind<LinearStateOp>("linear_state", Describe, HeadsOf);

}  // namespace tarn
