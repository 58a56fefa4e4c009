#include <cstdio>

#include "runtime/ops/op.h"

namespace tarn {
namespace {

template <typename T>
uint32_t Count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

Status ExpectCount(uint32_t found, uint32_t least, uint32_t most, const char* what) {
  if (found >= least && found <= most) return Ok();
  if (least == most) return Error(TARN_BAD_FORMAT, "%s: %u found, %u wanted", what, found, least);
  return Error(TARN_BAD_FORMAT, "%s: %u found, %u to %u wanted", what, found, least, most);
}

// "[2, 3]"
struct ShapeText {
  explicit ShapeText(std::initializer_list<uint64_t> dims) {
    size_t used = 0;
    for (const uint64_t dim : dims) {
      const int wrote =
          std::snprintf(text + used, sizeof(text) - used, "%s%llu", used == 0 ? "[" : ", ", static_cast<unsigned long long>(dim));
      used += static_cast<size_t>(wrote);
    }
    std::snprintf(text + used, sizeof(text) - used, "]");
  }
  char text[4 * 22 + 2];
};

Status ExpectShape(bool dtype_fits, DType dtype, const Shape& shape, const char* name, const char* what, const char* wanted_dtype,
                   std::initializer_list<uint64_t> wanted) {
  if (dtype_fits && shape.Is(wanted)) return Ok();
  char found[96];
  size_t used = 0;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    used += static_cast<size_t>(std::snprintf(found + used, sizeof(found) - used, "%s%u", i == 0 ? "[" : ", ", shape.dims[i]));
  }
  return Error(TARN_BAD_FORMAT, "%s '%s' is %s %s], %s %s wanted", what, name, DTypeName(dtype), found, wanted_dtype,
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
  return Error(TARN_BAD_FORMAT, "%s: %s of width %u found, %s of %llu wanted", what, format::EnumNameDType(value.dtype()),
               input_width(index), format::EnumNameDType(dtype), static_cast<unsigned long long>(width));
}

Status PrepareContext::ExpectOutput(uint32_t index, const char* what, uint64_t width, format::DType dtype) const {
  const format::Value& value = OutputValue(index);
  if (value.width() == width && value.dtype() == dtype) return Ok();
  return Error(TARN_BAD_FORMAT, "%s: %s of width %u found, %s of %llu wanted", what, format::EnumNameDType(value.dtype()),
               value.width(), format::EnumNameDType(dtype), static_cast<unsigned long long>(width));
}

Status PrepareContext::ExpectOneTime(format::Time* time) const {
  *time = output_time(0);
  for (uint32_t i = 0; i < Count(op_.inputs()); ++i) {
    if (input_time(i) != *time) return Error(TARN_BAD_FORMAT, "input %u and the output have different numbers of rows", i);
  }
  return Ok();
}

Status PrepareContext::ExpectTokens() const {
  format::Time time;
  TARN_RETURN_IF_ERROR(ExpectOneTime(&time));
  if (time == format::Time::Tokens) return Ok();
  return Error(TARN_BAD_FORMAT, "runs on every token, but its values have rows of logits only");
}

Result<const float*> PrepareContext::ExpectTensor(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const {
  if (index >= tensor_count()) return Error(TARN_BAD_FORMAT, "%s: tensor %u is missing", what, index);
  const TensorView view = tensor(index);
  TARN_RETURN_IF_ERROR(ExpectShape(view.dtype == DType::kF32, view.dtype, view.shape, view.name, what, "f32", shape));
  return reinterpret_cast<const float*>(view.data);
}

Status PrepareContext::ExpectState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const {
  if (index >= Count(op_.states())) return Error(TARN_BAD_FORMAT, "%s: state %u is missing", what, index);
  const StateView view = model_.state(op_.states()->Get(index));
  return ExpectShape(view.dtype == DType::kF32, view.dtype, view.shape, view.name, what, "f32", shape);
}

Result<DType> PrepareContext::ExpectTypedState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape,
                                               bool or_i8) const {
  if (index >= Count(op_.states())) return Error(TARN_BAD_FORMAT, "%s: state %u is missing", what, index);
  const StateView view = model_.state(op_.states()->Get(index));
  const bool fits = view.dtype == DType::kF32 || view.dtype == DType::kF16 || (or_i8 && view.dtype == DType::kI8);
  TARN_RETURN_IF_ERROR(ExpectShape(fits, view.dtype, view.shape, view.name, what, or_i8 ? "f32, f16 or i8" : "f32 or f16", shape));
  return view.dtype;
}

}  // namespace tarn
