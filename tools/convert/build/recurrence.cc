#include "tools/convert/build/recurrence.h"

#include <utility>
#include <vector>

#include "tools/convert/attention/recurrence.h"

namespace tarn::convert {

using format::Slice;

Slice AddBlockDense(GraphBuilder* builder, const std::string& name, const std::string& tensor, uint32_t blocks, Slice x) {
  const uint32_t width = x.width() / blocks;
  // A row of the op's weight makes one output.
  const auto transposed = [width](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(parts[0].size());
    const size_t matrix = size_t{width} * width;
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t row = i % matrix / width, column = i % width;
      out[i - i % matrix + column * width + row] = parts[0][i];
    }
    return out;
  };
  const std::vector<uint32_t> shape = {blocks, width, width};
  std::vector<uint32_t> tensors = {
      builder->AddConstant(tensor + ".weight", shape, {{tensor + ".weight", shape, Init::kLinear}}, transposed),
      builder->AddConstant(tensor + ".bias", {x.width()}, {{tensor + ".bias", {x.width()}, Init::kZero}})};
  builder->Need(kRecurrenceFeature);
  return builder->AddOp(name, format::OpAttributes::BlockDense, NoAttributes(format::CreateBlockDense), {x}, x.width(),
                        std::move(tensors));
}

Slice AddShortConv(GraphBuilder* builder, const std::string& prefix, uint32_t taps, bool bias, Slice q, Slice k, Slice v) {
  const auto product = format::ActivationKind::Linear;
  const Slice written = AddGated(builder, prefix + "write", product, k, v);
  const Slice convolved = AddCausalConv(builder, prefix + "conv", prefix + "conv", {{prefix + "conv", v.width()}},
                                        {taps, bias, /*silu=*/false}, written);
  return AddGated(builder, prefix + "read", product, q, convolved);
}

Slice AddRgLru(GraphBuilder* builder, const std::string& prefix, const RgLru& recurrence, Slice v) {
  const uint32_t width = v.width();
  const Slice input = AddBlockDense(builder, prefix + "i_proj", prefix + "i_proj", recurrence.blocks, v),
              gate = AddBlockDense(builder, prefix + "g_proj", prefix + "g_proj", recurrence.blocks, v);
  const Slice gated = AddGated(builder, prefix + "input_gate", format::ActivationKind::Sigmoid, input, v);
  const Slice output = builder->AddValue(prefix + "recurrence", width);
  const uint32_t rate = builder->AddConstant(prefix + "rate", {width}, RateParts(prefix, width), RateFold(recurrence.rate_scale));
  GraphState state = RecurrenceState(width);
  state.name = prefix + state.name;
  builder->AddOp({prefix + "recurrence",
                  format::OpAttributes::DiagonalRecurrence,
                  RecurrenceAttributes(RecurrenceDecay::kExponential, RecurrenceInput::kRoot),
                  {gated, gate},
                  {output.value()},
                  {rate},
                  {builder->AddState(std::move(state))}});
  return output;
}

}  // namespace tarn::convert
