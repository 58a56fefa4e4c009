// Which ops a build links: TARN_OPS of CMake, "Embedding,Norm,..."; empty: all of them. What is known when a program is compiled is
// no part of it: nothing refers to an op that is left out, so that no linker takes it, nor the kernels that it alone needs.
#ifndef TARN_CORE_LINKED_OPS_H_
#define TARN_CORE_LINKED_OPS_H_

#include <string_view>

#if !defined(TARN_OPS)
#define TARN_OPS ""
#endif

namespace tarn {

constexpr std::string_view kLinkedOps = TARN_OPS;

// Calls f(name) for the names between commas.
template <typename F>
constexpr void ForEachLinkedOp(const F& f) {
  for (size_t begin = 0; begin < kLinkedOps.size();) {
    const size_t comma = kLinkedOps.find(',', begin);
    const size_t end = comma == std::string_view::npos ? kLinkedOps.size() : comma;
    f(kLinkedOps.substr(begin, end - begin));
    begin = end + 1;
  }
}

// `op`: as in schema/tarn.fbs.
constexpr bool IsLinked(std::string_view op) {
  bool listed = kLinkedOps.empty();
  ForEachLinkedOp([&](std::string_view name) { listed = listed || name == op; });
  return listed;
}

}  // namespace tarn

#endif  // TARN_CORE_LINKED_OPS_H_
