// AddSinusoid: y = x + position vector; all sines, then all cosines (CHECKPOINT: position_embedding "sinusoidal"), of position * a
// frequency: those of the paper, or given ones. Computed for any position: there is no table that ends.
#include <cmath>

#include "runtime/ops/pointwise/frequencies.h"
#include "runtime/ops/registry.h"
#include "runtime/ops/scratch.h"

namespace tarn {
namespace {

class AddSinusoidOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    width_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "x", width_));
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "y", width_));
    // pairs - 1 divides
    if (width_ < 4 || width_ % 2 != 0) return Error(TARN_BAD_FORMAT, "width is %u, an even number >= 4 expected", width_);
    given_ = context.op().attributes_as_AddSinusoid()->frequencies();
    TARN_RETURN_IF_ERROR(CheckFrequencies(given_, pairs()));
    context.RequestConstants(pairs() * sizeof(double));
    context.RequestScratch(CountScratch([&](Scratch* scratch) { LayVector(scratch); }));
    return Ok();
  }

  void FillConstants(uint8_t* memory) override {
    double* frequency = reinterpret_cast<double*>(memory);
    for (size_t i = 0; i < pairs(); ++i) {
      frequency[i] = given_ != nullptr ? given_->Get(static_cast<uint32_t>(i))
                                       : std::exp(-static_cast<double>(i) * std::log(10000.0) / static_cast<double>(pairs() - 1));
    }
    frequency_ = frequency;
  }

  Status Run(const RunContext& context) override {
    const Operand& x = context.inputs[0];
    const Operand& y = context.outputs[0];
    Scratch scratch(context.scratch);
    float* vector = LayVector(&scratch);
    for (size_t token = 0; token < context.tokens; ++token) {
      for (size_t sequence = 0; sequence < context.batch; ++sequence) {
        const uint64_t position = context.position(sequence, token);
        if (sequence == 0 || position != context.position(sequence - 1, token)) {  // of sequences in lockstep it is one
          context.kernels->sinusoid(pairs(), static_cast<double>(position), frequency_, vector, vector + pairs());
        }
        const size_t row = sequence * context.tokens + token;
        context.kernels->add(1, width_, x.f32() + row * x.stride, 0, vector, 0, y.f32() + row * y.stride, 0);
      }
    }
    return Ok();
  }

 private:
  size_t pairs() const { return width_ / 2; }
  float* LayVector(Scratch* scratch) const { return scratch->Take(width_); }

  uint32_t width_;
  const flatbuffers::Vector<double>* given_ = nullptr;  // of the model file
  const double* frequency_ = nullptr;
};

}  // namespace

const OpKind kAddSinusoidOp = MakeOpKind<AddSinusoidOp>("add_sinusoid");

}  // namespace tarn
