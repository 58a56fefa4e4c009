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

// Errors: TARN_INVALID_ARGUMENT: the caller's block is not aligned, or has a size but no address.
Status CheckBlock(Span<const uint8_t> block);

// Where the block of an object comes from: the caller's own memory, or, if `block.data()` is nullptr, the allocator.
struct BlockSource {
  Span<uint8_t> block;
  Allocator allocator;
};

// One block, aligned to kAlignment: an allocator's, which is given back at the end, or the caller's. Nothing of it is poisoned
// then.
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
    if (allocator_.release != nullptr) allocator_.release(allocator_.context, bytes_.data(), bytes_.size());
  }

  // Errors: TARN_OUT_OF_MEMORY, which names `what` and the size. Zero bytes give an empty block.
  static Result<Block> Allocate(const Allocator& allocator, uint64_t size_bytes, const char* what);

  // The first `size_bytes` >= 1 of the caller's block, which outlives this, or a block of the allocator. Errors:
  // TARN_INVALID_ARGUMENT (a block that is not aligned, or has a size but no address), TARN_BUFFER_TOO_SMALL, those of Allocate().
  static Result<Block> From(const BlockSource& source, uint64_t size_bytes, const char* what);

  Span<uint8_t> bytes() const { return bytes_; }

 private:
  Allocator allocator_{};  // without functions: the bytes are the caller's
  Span<uint8_t> bytes_;
};

}  // namespace tarn

#endif  // TARN_CORE_ALLOCATOR_H_
