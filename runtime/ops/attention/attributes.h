// Checks of attributes that the families of attention share. Every error is TARN_BAD_FORMAT, and names the attribute, its value and
// what is expected.
#ifndef TARN_RUNTIME_OPS_ATTENTION_ATTRIBUTES_H_
#define TARN_RUNTIME_OPS_ATTENTION_ATTRIBUTES_H_

#include "runtime/ops/op.h"
#include "variants/attribute.h"
#include "variants/limits.h"

namespace tarn {

// An attribute that counts tokens or rows, or something of which there are at most `most`.
Status ExpectAtLeast(const char* name, uint64_t value, uint64_t least, uint64_t most = kMaxRows);

// A place in a list of `count` entries.
Status ExpectChoice(const char* name, uint8_t value, size_t count);

Status ExpectNumber(const char* name, float value, Bounds bounds);

// All numbers of a list of attributes.
template <typename Attributes, size_t kCount>
Status ExpectNumbers(const Attributes& attributes, const FloatAttribute<Attributes> (&numbers)[kCount]) {
  for (const FloatAttribute<Attributes>& number : numbers) {
    TARN_RETURN_IF_ERROR(ExpectNumber(number.name, attributes.*number.value, number.bounds));
  }
  return Ok();
}

// `least` to `most` numbers, each above the one before it; a list that is not there has none.
Status ExpectAscending(const char* name, const flatbuffers::Vector<uint32_t>* list, uint32_t least, uint32_t most);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_ATTRIBUTES_H_
