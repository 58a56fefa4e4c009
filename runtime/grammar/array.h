// An array that grows while a grammar is compiled. std::vector would throw where there is no memory.
#ifndef TARN_RUNTIME_GRAMMAR_ARRAY_H_
#define TARN_RUNTIME_GRAMMAR_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/allocator.h"
#include "core/span.h"
#include "core/status.h"

namespace tarn {

template <typename T>
class Array {
  static_assert(std::is_trivially_copyable<T>::value, "elements are moved as bytes");

 public:
  explicit Array(const Allocator& allocator) : allocator_(allocator) {}

  // False: out of memory; the array is as before.
  [[nodiscard]] bool Push(const T& value) {
    if (size_ == capacity_ && !Grow(size_ + 1)) return false;
    data()[size_++] = value;
    return true;
  }
  // New elements are zero. False: as Push().
  [[nodiscard]] bool Resize(size_t size) {
    if (size > capacity_ && !Grow(size)) return false;
    if (size > size_) std::memset(static_cast<void*>(data() + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
    return true;
  }
  void Truncate(size_t size) { size_ = size; }
  void Clear() { size_ = 0; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() const { return reinterpret_cast<T*>(block_.bytes().data()); }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  T& operator[](size_t i) const { return data()[i]; }
  T& back() const { return data()[size_ - 1]; }
  Span<T> span() const { return {data(), size_}; }
  uint64_t bytes() const { return block_.bytes().size(); }

 private:
  bool Grow(size_t least) {
    const size_t capacity = std::max({least, 2 * capacity_, size_t{16}});
    Result<Block> block = Block::Allocate(allocator_, uint64_t{capacity} * sizeof(T), "grammar");
    if (!block.ok()) return false;
    if (size_ > 0) std::memcpy(block.value().bytes().data(), data(), size_ * sizeof(T));
    block_ = std::move(block.value());
    capacity_ = capacity;
    return true;
  }

  Allocator allocator_;
  Block block_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// What a function that grows arrays returns where one could not.
inline Status NoMemoryForGrammar() { return Error(TARN_OUT_OF_MEMORY, "out of memory for the tables of the grammar"); }

}  // namespace tarn

#define TARN_GROW_OR_RETURN(expression)             \
  do {                                              \
    if (!(expression)) return NoMemoryForGrammar(); \
  } while (false)

#endif  // TARN_RUNTIME_GRAMMAR_ARRAY_H_
