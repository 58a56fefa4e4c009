// What every function of the C API does: checks handles, reads and writes structs of other sizes, turns a Status into a code and
// words.
#ifndef TARN_RUNTIME_CAPI_HANDLES_H_
#define TARN_RUNTIME_CAPI_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/allocator.h"
#include "runtime/session/loaded_model.h"
#include "tarn/tarn.h"

// The model lives in a block of its own allocator.
struct tarn_model {
  tarn::LoadedModel loaded;
  tarn::Block own_block;
  uint64_t opening_bytes;
};

namespace tarn {

static_assert(sizeof(tarn_error::message) == Status::kMessageBytes);

inline tarn_status Report(const Status& status, tarn_error* error) {
  if (error != nullptr && !status.ok()) {
    error->status = status.code();
    std::strcpy(error->message, status.message());
  }
  return status.code();
}

// No memory has more bytes than a size_t counts.
inline size_t SizeOf(uint64_t bytes) { return static_cast<size_t>(bytes < SIZE_MAX ? bytes : SIZE_MAX); }

inline Status NullArgument(const char* name) { return Error(TARN_INVALID_ARGUMENT, "%s is NULL", name); }

// The caller's struct_size: the first field of every struct. Errors: TARN_INVALID_ARGUMENT where it cannot be one.
inline Result<size_t> StructSize(const void* user) {
  size_t size = 0;
  std::memcpy(&size, user, sizeof(size));
  constexpr size_t kLargest = 4096;
  if (size > sizeof(size) && size <= kLargest && size % alignof(size_t) == 0) return size;
  return Error(TARN_INVALID_ARGUMENT, "struct_size is %zu: set it to sizeof the struct (TARN_*_INIT does)", size);
}

// Lays the fields that the caller knows over the defaults in `*out`. A newer caller's fields must be zero, which is their default.
template <typename T>
Status ReadStruct(const T* user, T* out) {
  TARN_ASSIGN_OR_RETURN(const size_t size, StructSize(user));
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(user);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0)
      return Error(TARN_UNSUPPORTED, "a field at byte %zu of a config is set, this version knows %zu", i, sizeof(T));
  }
  std::memcpy(out, bytes, size < sizeof(T) ? size : sizeof(T));
  out->struct_size = sizeof(T);
  return Ok();
}

// Gives the caller the fields that it has room for.
template <typename T>
Status WriteStruct(const T& value, T* user) {
  TARN_ASSIGN_OR_RETURN(const size_t size, StructSize(user));
  constexpr size_t kFirst = sizeof(size_t);
  const size_t shared = size < sizeof(T) ? size : sizeof(T);
  std::memcpy(reinterpret_cast<unsigned char*>(user) + kFirst, reinterpret_cast<const unsigned char*>(&value) + kFirst,
              shared - kFirst);
  return Ok();
}

// Of a field of a config: zero is what callers have who do not know it.
template <typename T>
T OrDefault(T value, T of_zero) {
  return value == 0 ? of_zero : value;
}

inline Status CheckAllocator(const tarn_allocator& allocator) {
  if ((allocator.allocate == nullptr) == (allocator.release == nullptr)) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "allocator: allocate and release must both be set or both be NULL");
}

// Checked before.
inline Allocator AllocatorFrom(const tarn_allocator& allocator) {
  if (allocator.allocate == nullptr) return DefaultAllocator();
  return {allocator.allocate, allocator.release, allocator.context};
}

// Of a config with `block`, `block_bytes` and `allocator`, checked before.
template <typename Config>
BlockSource BlockSourceFrom(const Config& config) {
  return {{static_cast<uint8_t*>(config.block), config.block_bytes}, AllocatorFrom(config.allocator)};
}

inline const Model& ModelOf(const tarn_model* model) { return model->loaded.model(); }

inline tarn_tokenizer_kind TokenizerOf(const tarn_model* model) {
  return static_cast<tarn_tokenizer_kind>(ModelOf(model).graph().tokenizer()->kind());
}

// NULL: the defaults. Errors: TARN_INVALID_ARGUMENT. (session.cc)
Result<Limits> ReadLimits(const LoadedModel& model, const tarn_session_config* user);

}  // namespace tarn

#endif  // TARN_RUNTIME_CAPI_HANDLES_H_
