#include "runtime/platform/release_pages.h"

#include <cstddef>
#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tarn {

#if defined(__linux__)
namespace {

// f(pages, is_resident) for every run of whole pages of `memory` that are alike; a run has `kMost` pages at most.
template <typename F>
void ForEachRun(Span<uint8_t> memory, size_t page, const F& f) {
  constexpr size_t kMost = 64;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(memory.begin()) + page - 1) / page * page;
  const uintptr_t last = reinterpret_cast<uintptr_t>(memory.end()) / page * page;
  for (uintptr_t at = first; at < last;) {
    unsigned char resident[kMost];
    const size_t pages = last - at < kMost * page ? (last - at) / page : kMost;
    if (mincore(reinterpret_cast<void*>(at), pages * page, resident) != 0) return;
    for (size_t i = 0, end; i < pages; i = end) {
      for (end = i + 1; end < pages && ((resident[end] ^ resident[i]) & 1) == 0;) ++end;
      f(Span<uint8_t>(reinterpret_cast<uint8_t*>(at) + i * page, (end - i) * page), (resident[i] & 1) != 0);
    }
    at += pages * page;
  }
}

bool Release(Span<uint8_t> pages) { return madvise(pages.data(), pages.size(), MADV_DONTNEED) == 0; }

bool IsZero(Span<uint8_t> bytes) {
  // Every byte is the one before it, and the first is zero.
  return bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Gives back pages that are all zero. Memory that is not anonymous may come back with anything in it; looking at it takes pages of
// nobody's, which go again.
bool ReleaseZero(Span<uint8_t> pages) {
  const bool all = Release(pages);  // or those in front of memory that is locked
  if (IsZero(pages)) return all && Release(pages);
  std::memset(pages.data(), 0, pages.size());
  return false;
}

}  // namespace

uint64_t ReleasePages(Span<uint8_t> memory) {
  uint64_t released = 0;
  ForEachRun(memory, static_cast<size_t>(sysconf(_SC_PAGESIZE)), [&](Span<uint8_t> pages, bool is_resident) {
    if (is_resident && Release(pages)) released += pages.size();
  });
  return released;
}

uint64_t ReleaseZeroPages(Span<uint8_t> memory) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  uint64_t released = 0;
  ForEachRun(memory, page, [&](Span<uint8_t> pages, bool is_resident) {
    for (size_t at = 0, end; is_resident && at < pages.size(); at = end + page) {
      for (end = at; end < pages.size() && IsZero(pages.subspan(end, page));) end += page;
      if (end > at && ReleaseZero(pages.subspan(at, end - at))) released += end - at;
    }
  });
  return released;
}

#else

uint64_t ReleasePages(Span<uint8_t>) { return 0; }
uint64_t ReleaseZeroPages(Span<uint8_t>) { return 0; }

#endif

}  // namespace tarn
