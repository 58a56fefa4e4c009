#include "core/allocator.h"

namespace tarn {

Status ExpectAligned(const char* what, const void* memory) {
  const size_t past = reinterpret_cast<uintptr_t>(memory) % kAlignment;
  if (past == 0) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s lies %zu bytes past a multiple of %zu, a multiple expected", what, past, kAlignment);
}

Status CheckBlock(Span<const uint8_t> block) {
  if (block.data() == nullptr && !block.empty()) {
    return Error(TARN_INVALID_ARGUMENT, "block is NULL, block_bytes is %zu", block.size());
  }
  return ExpectAligned("block", block.data());
}

Result<Block> Block::Allocate(const Allocator& allocator, uint64_t size_bytes, const char* what) {
  Block block;
  if (size_bytes == 0) return block;
  if (allocator.allocate == nullptr) {
    return Error(TARN_OUT_OF_MEMORY, "%s: %llu bytes expected, and this build has no heap: set the config's allocator", what,
                 static_cast<unsigned long long>(size_bytes));
  }
  void* pointer = nullptr;
  if (size_bytes <= SIZE_MAX) {
    pointer = allocator.allocate(allocator.context, static_cast<size_t>(size_bytes), kAlignment);
  }
  if (pointer == nullptr) {
    return Error(TARN_OUT_OF_MEMORY, "%s: cannot allocate %llu bytes", what, static_cast<unsigned long long>(size_bytes));
  }
  if (const Status aligned = ExpectAligned("the allocator's memory", pointer); !aligned.ok()) {
    allocator.release(allocator.context, pointer, static_cast<size_t>(size_bytes));
    return aligned.In("%s", what);
  }
  block.allocator_ = allocator;
  block.bytes_ = {static_cast<uint8_t*>(pointer), static_cast<size_t>(size_bytes)};
  return block;
}

Result<Block> Block::From(const BlockSource& source, uint64_t size_bytes, const char* what) {
  const Span<uint8_t> lent = source.block;
  TARN_RETURN_IF_ERROR(CheckBlock(lent));
  if (lent.data() == nullptr) return Allocate(source.allocator, size_bytes, what);
  if (lent.size() < size_bytes) {
    return Error(TARN_BUFFER_TOO_SMALL, "%s: the block has %zu bytes, %llu expected", what, lent.size(),
                 static_cast<unsigned long long>(size_bytes));
  }
  Block block;
  block.bytes_ = lent.subspan(0, static_cast<size_t>(size_bytes));
  return block;
}

}  // namespace tarn
