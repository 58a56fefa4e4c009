#include <algorithm>

#include "core/arith.h"
#include "runtime/ops/op.h"

namespace tarn {
namespace {

template <typename T>
uint32_t Count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

Status ExpectCount(uint32_t found, uint32_t least, uint32_t most, const char* what) {
  if (found >= least && found <= most) return Ok();
  if (least == most) return Error(TARN_BAD_FORMAT, "%s: %u found, %u expected", what, found, least);
  return Error(TARN_BAD_FORMAT, "%s: %u found, %u to %u expected", what, found, least, most);
}

Span<const uint64_t> SpanOf(std::initializer_list<uint64_t> shape) { return {shape.begin(), shape.size()}; }

// "[2, 3]"
struct ShapeText {
  explicit ShapeText(Span<const uint64_t> dims) {
    size_t used = 0;
    for (const uint64_t dim : dims) {
      used += Format(text + used, sizeof(text) - used, "%s%llu", used == 0 ? "[" : ", ", static_cast<unsigned long long>(dim));
    }
    Format(text + used, sizeof(text) - used, "]");
  }
  char text[4 * 22 + 2];
};

Status ExpectShape(bool dtype_fits, DType dtype, const Shape& shape, const char* name, const char* what, const char* wanted_dtype,
                   Span<const uint64_t> wanted) {
  if (dtype_fits && shape.rank == wanted.size() && std::equal(wanted.begin(), wanted.end(), shape.dims)) return Ok();
  char found[96];
  size_t used = 0;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    used += Format(found + used, sizeof(found) - used, "%s%u", i == 0 ? "[" : ", ", shape.dims[i]);
  }
  return Error(TARN_BAD_FORMAT, "%s '%s' is %s %s], %s %s expected", what, name, DTypeName(dtype), found, wanted_dtype,
               ShapeText(wanted).text);
}

}  // namespace

Status PrepareContext::Expect(uint32_t inputs, uint32_t outputs, uint32_t tensors_least, uint32_t tensors_most,
                              uint32_t states) const {
  TARN_RETURN_IF_ERROR(ExpectValues(inputs, outputs));
  return ExpectOwned(tensors_least, tensors_most, states);
}

Status PrepareContext::ExpectValues(uint32_t inputs, uint32_t outputs) const {
  TARN_RETURN_IF_ERROR(ExpectCount(Count(op_.inputs()), inputs, inputs, "inputs"));
  return ExpectCount(Count(op_.outputs()), outputs, outputs, "outputs");
}

Status PrepareContext::ExpectOwned(uint32_t tensors_least, uint32_t tensors_most, uint32_t states) const {
  TARN_RETURN_IF_ERROR(ExpectCount(Count(op_.tensors()), tensors_least, tensors_most, "tensors"));
  return ExpectCount(Count(op_.states()), states, states, "states");
}

Status PrepareContext::ExpectInput(uint32_t index, const char* what, uint64_t width, format::DType dtype) const {
  const format::Value& value = InputValue(index);
  if (input_width(index) == width && value.dtype() == dtype) return Ok();
  return Error(TARN_BAD_FORMAT, "%s: %s of width %u found, %s of %llu expected", what, format::EnumNameDType(value.dtype()),
               input_width(index), format::EnumNameDType(dtype), static_cast<unsigned long long>(width));
}

Status PrepareContext::ExpectOutput(uint32_t index, const char* what, uint64_t width, format::DType dtype) const {
  const format::Value& value = OutputValue(index);
  if (value.width() == width && value.dtype() == dtype) return Ok();
  return Error(TARN_BAD_FORMAT, "%s: %s of width %u found, %s of %llu expected", what, format::EnumNameDType(value.dtype()),
               value.width(), format::EnumNameDType(dtype), static_cast<unsigned long long>(width));
}

Status PrepareContext::ExpectStage(Stage stage) const {
  if (stage_ == stage) return Ok();
  return Error(TARN_BAD_FORMAT, "stands in program '%s', '%s' expected", StageName(stage_), StageName(stage));
}

Status PrepareContext::ExpectOneAxis(Axis* axis) const {
  *axis = output_axis(0);
  for (uint32_t i = 0; i < Count(op_.inputs()); ++i) {
    if (!(input_axis(i) == *axis)) return Error(TARN_BAD_FORMAT, "input %u and the output have different numbers of rows", i);
  }
  return Ok();
}

Status PrepareContext::ExpectTokens() const {
  Axis axis;
  TARN_RETURN_IF_ERROR(ExpectOneAxis(&axis));
  if (axis.time == format::Time::Tokens) return Ok();
  return Error(TARN_BAD_FORMAT, "runs on every token, but its values have other rows");
}

Result<const uint8_t*> PrepareContext::ExpectTensorOf(DType dtype, uint32_t index, const char* what,
                                                      Span<const uint64_t> shape) const {
  if (index >= tensor_count()) return Error(TARN_BAD_FORMAT, "%s: tensor %u is missing", what, index);
  const TensorView view = tensor(index);
  TARN_RETURN_IF_ERROR(ExpectShape(view.dtype == dtype, view.dtype, view.shape, view.name, what, DTypeName(dtype), shape));
  return static_cast<const uint8_t*>(view.data);
}

Result<const float*> PrepareContext::ExpectTensor(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const {
  TARN_ASSIGN_OR_RETURN(const uint8_t* const data, ExpectTensorOf(DType::kF32, index, what, SpanOf(shape)));
  return reinterpret_cast<const float*>(data);
}

Result<const float*> PrepareContext::ExpectTensor(uint32_t index, const char* what, const TensorShape& shape) const {
  TARN_ASSIGN_OR_RETURN(const uint8_t* const data, ExpectTensorOf(DType::kF32, index, what, {shape.sizes, shape.rank}));
  return reinterpret_cast<const float*>(data);
}

Result<const int32_t*> PrepareContext::ExpectIntegers(uint32_t index, const char* what,
                                                      std::initializer_list<uint64_t> shape) const {
  TARN_ASSIGN_OR_RETURN(const uint8_t* const data, ExpectTensorOf(DType::kI32, index, what, SpanOf(shape)));
  return reinterpret_cast<const int32_t*>(data);
}

namespace {

const char* NamesOf(StoredAs stored_as) {
  if (stored_as == StoredAs::kF32OrF16OrI8) return "f32, f16 or i8";
  return stored_as == StoredAs::kF32OrF16 ? "f32 or f16" : "f32";
}

const char* OwnerText(format::Owner owner) { return owner == format::Owner::Source ? "a source" : "a sequence"; }

}  // namespace

Result<DType> PrepareContext::ExpectAnyState(uint32_t index, const char* what, Span<const uint64_t> shape, StoredAs stored_as,
                                             format::Owner owner, int source_axis) const {
  if (index >= Count(op_.states())) return Error(TARN_BAD_FORMAT, "%s: state %u is missing", what, index);
  const StateView view = model_.state(op_.states()->Get(index));
  const bool fits = view.dtype == DType::kF32 || (stored_as != StoredAs::kF32 && view.dtype == DType::kF16) ||
                    (stored_as == StoredAs::kF32OrF16OrI8 && view.dtype == DType::kI8);
  TARN_RETURN_IF_ERROR(ExpectShape(fits, view.dtype, view.shape, view.name, what, NamesOf(stored_as), shape));
  if (view.owner != owner || view.source_axis != source_axis) {
    return Error(TARN_BAD_FORMAT, "%s '%s' belongs to %s, source axis %d; %s, %d expected", what, view.name, OwnerText(view.owner),
                 view.source_axis, OwnerText(owner), source_axis);
  }
  return view.dtype;
}

Result<DType> PrepareContext::ExpectState(uint32_t index, const StateInfo& info) const {
  return ExpectAnyState(index, info.name, {info.shape, info.rank}, info.stored_as, format::Owner::Sequence, -1);
}

Status PrepareContext::ExpectState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const {
  return ExpectAnyState(index, what, SpanOf(shape), StoredAs::kF32, format::Owner::Sequence, -1).status();
}

Status PrepareContext::ExpectSourceState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape,
                                         int source_axis) const {
  return ExpectAnyState(index, what, SpanOf(shape), StoredAs::kF32, format::Owner::Source, source_axis).status();
}

Result<DType> PrepareContext::ExpectTypedSourceState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape,
                                                     int source_axis) const {
  return ExpectAnyState(index, what, SpanOf(shape), StoredAs::kF32OrF16OrI8, format::Owner::Source, source_axis);
}

Result<DType> PrepareContext::ExpectTypedState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape,
                                               bool or_i8) const {
  return ExpectAnyState(index, what, SpanOf(shape), or_i8 ? StoredAs::kF32OrF16OrI8 : StoredAs::kF32OrF16, format::Owner::Sequence,
                        -1);
}

void PrepareContext::AddWork(std::initializer_list<uint64_t> factors) {
  uint64_t product = 1;
  for (const uint64_t factor : factors) product = SaturatingMul(product, factor);
  work_ = SaturatingAdd(work_, product);
}

uint64_t PrepareContext::Work() const {
  uint64_t work = work_;
  const auto add_value = [&](const format::Value& value, uint32_t width) {
    work = SaturatingAdd(work, SaturatingMul(limits_.MaxRows(Axis::Of(value)), width));
  };
  for (uint32_t i = 0; i < Count(op_.inputs()); ++i) add_value(InputValue(i), input_width(i));
  for (uint32_t i = 0; i < Count(op_.outputs()); ++i) add_value(OutputValue(i), output_width(i));
  if (has_dense_) work = SaturatingAdd(work, SaturatingMul(SaturatingMul(dense_.inputs, dense_.outputs), dense_.max_rows));
  return work;
}

}  // namespace tarn
