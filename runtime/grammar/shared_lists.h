// Lists in one array; equal ones are there once.
#ifndef TARN_RUNTIME_GRAMMAR_SHARED_LISTS_H_
#define TARN_RUNTIME_GRAMMAR_SHARED_LISTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"

namespace tarn {

template <typename T>
class SharedLists {
 public:
  explicit SharedLists(const Allocator& allocator) : elements_(allocator), lists_(allocator), buckets_(allocator) {}

  // Forgets all lists. Errors: TARN_OUT_OF_MEMORY.
  Status Begin() {
    elements_.Clear();
    lists_.Clear();
    return MakeBuckets(64);
  }

  // Of all lists, and behind them those of the one that is being made.
  Array<T>& elements() { return elements_; }
  size_t size() const { return lists_.size(); }
  Span<const T> Of(uint32_t list) const { return {elements_.data() + lists_[list].begin, lists_[list].size}; }
  uint64_t used_bytes() const { return elements_.size() * sizeof(T); }
  uint64_t bytes() const { return elements_.bytes() + lists_.bytes() + buckets_.bytes(); }

  // The number of the list of elements [begin, elements().size()), which are dropped where an equal list is there.
  Result<uint32_t> Keep(size_t begin) {
    const size_t size = elements_.size() - begin;
    const T* const list = elements_.data() + begin;
    uint64_t hash = 14695981039346656037u ^ size;
    for (size_t i = 0; i < size; ++i) hash = (hash ^ list[i]) * 1099511628211u;
    hash ^= hash >> 32;
    for (uint32_t i = *BucketOf(hash); i != UINT32_MAX; i = lists_[i].next_in_bucket) {
      if (lists_[i].hash != hash || lists_[i].size != size || !std::equal(list, list + size, Of(i).begin())) continue;
      elements_.Truncate(begin);
      return i;
    }
    if (lists_.size() == buckets_.size()) TARN_RETURN_IF_ERROR(MakeBuckets(2 * buckets_.size()));
    TARN_GROW_OR_RETURN(lists_.Push({hash, static_cast<uint32_t>(begin), static_cast<uint32_t>(size), UINT32_MAX}));
    AddToBucket(static_cast<uint32_t>(lists_.size() - 1));
    return static_cast<uint32_t>(lists_.size() - 1);
  }

 private:
  struct List {
    uint64_t hash;
    uint32_t begin, size;
    uint32_t next_in_bucket;
  };

  uint32_t* BucketOf(uint64_t hash) const { return &buckets_[static_cast<size_t>(hash & (buckets_.size() - 1))]; }
  void AddToBucket(uint32_t list) {
    uint32_t* const bucket = BucketOf(lists_[list].hash);
    lists_[list].next_in_bucket = *bucket;
    *bucket = list;
  }
  // `count`: a power of two.
  Status MakeBuckets(size_t count) {
    buckets_.Clear();
    TARN_GROW_OR_RETURN(buckets_.Resize(count));
    std::fill(buckets_.begin(), buckets_.end(), UINT32_MAX);
    for (uint32_t list = 0; list < lists_.size(); ++list) AddToBucket(list);
    return Ok();
  }

  Array<T> elements_;
  Array<List> lists_;
  Array<uint32_t> buckets_;  // lists, by their hashes
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_SHARED_LISTS_H_
