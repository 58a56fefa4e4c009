// RopeAngles: d/2 cosines, then d/2 sines of position * theta^(-2i/d), or of position * a given frequency, once per token for all
// layers that rotate.
#include <cmath>

#include "runtime/ops/pointwise/frequencies.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class RopeAnglesOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/0, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "angles", width_));
    if (width_ % 2 != 0) return Error(TARN_BAD_FORMAT, "head size is %u, an even number expected", width_);
    theta_ = context.op().attributes_as_RopeAngles()->theta();
    if (!(theta_ > 0) || !std::isfinite(theta_)) {
      return Error(TARN_BAD_FORMAT, "theta is %g, a number > 0 expected", static_cast<double>(theta_));
    }
    given_ = context.op().attributes_as_RopeAngles()->frequencies();
    TARN_RETURN_IF_ERROR(CheckFrequencies(given_, pairs()));
    context.RequestConstants(pairs() * sizeof(double));
    return Ok();
  }

  void FillConstants(uint8_t* memory) override {
    double* frequency = reinterpret_cast<double*>(memory);
    for (size_t i = 0; i < pairs(); ++i) {
      frequency[i] = given_ != nullptr
                         ? given_->Get(static_cast<uint32_t>(i))
                         : std::pow(static_cast<double>(theta_), -2.0 * static_cast<double>(i) / static_cast<double>(width_));
    }
    frequency_ = frequency;
  }

  Status Run(const RunContext& context) override {
    const Operand& angles = context.outputs[0];
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      for (size_t token = 0; token < context.tokens; ++token) {
        float* row = angles.f32() + (sequence * context.tokens + token) * angles.stride;
        context.kernels->sinusoid(pairs(), static_cast<double>(context.position(sequence, token)), frequency_, row + pairs(), row);
      }
    }
    return Ok();
  }

 private:
  size_t pairs() const { return width_ / 2; }

  uint32_t width_;
  float theta_;
  const flatbuffers::Vector<double>* given_ = nullptr;  // of the model file
  const double* frequency_ = nullptr;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::RopeAngles& attributes = *op.attributes_as_RopeAngles();
  if (attributes.frequencies() != nullptr) {
    Format(text, text_bytes, "%u frequencies", attributes.frequencies()->size());
  } else {
    Format(text, text_bytes, "theta %g", static_cast<double>(attributes.theta()));
  }
}

}  // namespace

const OpKind kRopeAnglesOp = MakeOpKind<RopeAnglesOp>("rope_angles", Describe);

}  // namespace tarn
