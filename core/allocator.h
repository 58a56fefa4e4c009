// Memory for what is made before a session runs: a pair of functions from the caller, and an owner for one block of it.
#ifndef TARN_CORE_ALLOCATOR_H_
#define TARN_CORE_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/arith.h"
#include "core/poison.h"
#include "core/result.h"
#include "core/span.h"

namespace tarn {

// Same meaning as tarn_allocator of tarn.h.
struct Allocator {
  void* (*allocate)(void* context, size_t size_bytes, size_t alignment);
  void (*release)(void* context, void* pointer, size_t size_bytes);
  void* context;
};

// The C library's. Without a heap (heap_bare.cc) its functions are nullptr, and Block::Allocate says so.
Allocator DefaultAllocator();

// Errors: TARN_INVALID_ARGUMENT: `memory` of the caller, which `what` names, is not aligned to kAlignment.
Status ExpectAligned(const char* what, const void* memory);

// Owns one block, aligned to kAlignment.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (bytes_.data() == nullptr) return;
    Unpoison(bytes_.data(), bytes_.size());
    allocator_.release(allocator_.context, bytes_.data(), bytes_.size());
  }

  // Errors: TARN_OUT_OF_MEMORY, which names `what` and the size. Zero bytes give an empty block.
  static Result<Block> Allocate(const Allocator& allocator, uint64_t size_bytes, const char* what);

  Span<uint8_t> bytes() const { return bytes_; }

 private:
  Allocator allocator_{};
  Span<uint8_t> bytes_;
};

}  // namespace tarn

#endif  // TARN_CORE_ALLOCATOR_H_
