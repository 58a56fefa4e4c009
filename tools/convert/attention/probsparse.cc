// ProbSparse attention: the queries whose weights are furthest from uniform attend, the others take the mean of V (or, masked, a
// running mean or sum).
#include "tools/convert/attention/attention.h"

namespace tarn::convert {
namespace {

constexpr Choice<format::ProbSparseFill> kFills[] = {{"cummean", format::ProbSparseFill::CumulativeMean},
                                                     {"cumsum", format::ProbSparseFill::CumulativeSum}};

}  // namespace

AttentionOp ParseProbSparse(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  const uint32_t factor = fields->Size("factor", 5);
  fields->Fix("sampling", "all_keys");
  const bool masked = fields->Bool("masked", false);
  auto fill = fields->OneOf<format::ProbSparseFill>("masked_fill", kFills, format::ProbSparseFill::CumulativeMean);
  if (!masked) fill = format::ProbSparseFill::Mean;
  const float scale = fields->Number("scale", DefaultScale(heads));
  const uint32_t capacity = fields->Size("max_context");

  AttentionOp op;
  op.type = format::OpAttributes::ProbSparse;
  op.attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
    const auto name = builder.CreateString("probsparse");
    return format::CreateProbSparse(builder, &heads, factor, masked, fill, scale, capacity, name).Union();
  };
  return op;
}

}  // namespace tarn::convert
