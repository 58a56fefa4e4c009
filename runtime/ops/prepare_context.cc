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
      const int wrote = std::snprintf(text + used, sizeof(text) - used, "%s%llu", used == 0 ? "[" : ", ",
                                      static_cast<unsigned long long>(dim));
      used += static_cast<size_t>(wrote);
    }
    std::snprintf(text + used, sizeof(text) - used, "]");
  }
  char text[4 * 22 + 2];
};

Status ExpectShape(DType dtype, const Shape& shape, const char* name, const char* what,
                   std::initializer_list<uint64_t> wanted) {
  if (dtype == DType::kF32 && shape.Is(wanted)) return Ok();
  char found[96];
  size_t used = 0;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    used += static_cast<size_t>(
        std::snprintf(found + used, sizeof(found) - used, "%s%u", i == 0 ? "[" : ", ", shape.dims[i]));
  }
  return Error(TARN_BAD_FORMAT, "%s '%s' is %s %s], f32 %s wanted", what, name, DTypeName(dtype), found,
               ShapeText(wanted).text);
}

}  // namespace

Status PrepareContext::Expect(uint32_t inputs, uint32_t outputs, uint32_t tensors_least, uint32_t tensors_most,
                              uint32_t states) const {
  TARN_RETURN_IF_ERROR(ExpectCount(Count(op_.inputs()), inputs, inputs, "inputs"));
  TARN_RETURN_IF_ERROR(ExpectCount(Count(op_.outputs()), outputs, outputs, "outputs"));
  TARN_RETURN_IF_ERROR(ExpectCount(Count(op_.tensors()), tensors_least, tensors_most, "tensors"));
  return ExpectCount(Count(op_.states()), states, states, "states");
}

Status PrepareContext::ExpectInput(uint32_t index, const char* what, uint64_t width, format::DType dtype) const {
  const format::Value& value = InputValue(index);
  if (input_width(index) == width && value.dtype() == dtype) return Ok();
  return Error(TARN_BAD_FORMAT, "%s: %s of width %u found, %s of %llu wanted", what, format::EnumNameDType(value.dtype()),
               input_width(index), format::EnumNameDType(dtype), static_cast<unsigned long long>(width));
}

Status PrepareContext::ExpectOutput(uint32_t index, const char* what, uint64_t width) const {
  const format::Value& value = OutputValue(index);
  if (value.width() == width && value.dtype() == format::DType::F32) return Ok();
  return Error(TARN_BAD_FORMAT, "%s: %s of width %u found, F32 of %llu wanted", what, format::EnumNameDType(value.dtype()),
               value.width(), static_cast<unsigned long long>(width));
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

Result<const float*> PrepareContext::ExpectTensor(uint32_t index, const char* what,
                                                  std::initializer_list<uint64_t> shape) const {
  const TensorView view = tensor(index);
  TARN_RETURN_IF_ERROR(ExpectShape(view.dtype, view.shape, view.name, what, shape));
  return reinterpret_cast<const float*>(view.data);
}

Status PrepareContext::ExpectState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const {
  const StateView view = model_.state(op_.states()->Get(index));
  return ExpectShape(view.dtype, view.shape, view.name, what, shape);
}

}  // namespace tarn
