// Memory that must not be touched, for AddressSanitizer: gaps between the pieces of a block, and what is not in use. It sees a
// block from the allocator as one object, so that an overrun inside one would go unnoticed. In any other build these do nothing.
#ifndef TARN_CORE_POISON_H_
#define TARN_CORE_POISON_H_

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define TARN_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TARN_POISONS 1
#endif
#endif

#if defined(TARN_POISONS)
#include <sanitizer/asan_interface.h>
#endif

namespace tarn {

#if defined(TARN_POISONS)
constexpr bool kPoisons = true;
inline void Poison(const void* memory, uint64_t bytes) { __asan_poison_memory_region(memory, static_cast<size_t>(bytes)); }
inline void Unpoison(const void* memory, uint64_t bytes) { __asan_unpoison_memory_region(memory, static_cast<size_t>(bytes)); }
#else
constexpr bool kPoisons = false;
inline void Poison(const void*, uint64_t) {}
inline void Unpoison(const void*, uint64_t) {}
#endif

// Behind every piece of a block, since most end where the next begins; a multiple of kAlignment.
constexpr uint64_t kRedZone = kPoisons ? 64 : 0;

}  // namespace tarn

#endif  // TARN_CORE_POISON_H_
