#include "tools/convert/attention/system_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "kernels/op_kernels.h"
#include "tools/convert/attention/attention.h"

namespace tarn::convert {
namespace {

template <typename F>
bool SameKernel(F kernel, F reference) {
  return kernel == reference;
}

template <typename F, size_t kCount>
bool SameKernel(const F (&kernels)[kCount], const F (&references)[kCount]) {
  return !std::equal(kernels, kernels + kCount, references, [](F kernel, F reference) { return kernel != reference; });
}

bool Calls(const AttentionSystem& system, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) {
    return ((system.forms & kCausalForm) != 0 && op == system.family.causal_op) ||
           ((system.forms & ~kCausalForm) != 0 && op == system.family.noncausal_op);
  });
}

// "4 of 4", or "3 of 4, not `slot_chunk`"
std::string SimdText(const AttentionSystem& system, const Kernels& kernels, const Kernels& reference) {
  size_t called = 0, vectors = 0;
  std::string scalar;
#define TARN_COMPARE(kernel, ...)                                              \
  if (Calls(system, {__VA_ARGS__})) {                                          \
    ++called;                                                                  \
    if (SameKernel(kernels.kernel, reference.kernel)) {                        \
      scalar += std::string(scalar.empty() ? ", not `" : ", `") + #kernel "`"; \
    } else {                                                                   \
      ++vectors;                                                               \
    }                                                                          \
  }
  TARN_OP_KERNELS(TARN_COMPARE)
#undef TARN_COMPARE
  return std::to_string(vectors) + " of " + std::to_string(called) + scalar;
}

std::string PrefillText(const AttentionSystem& system) {
  if ((system.forms & kCausalForm) == 0) return "-";
  if (system.token_loop == nullptr) return "chunks";
  const std::string condition = system.token_loop;
  return condition.empty() ? "token loop" : "chunks; token loop with " + condition;
}

std::string BoundText(const AttentionSystem& system) {
  const std::string field = system.bound;
  const size_t end = std::min(field.find(' '), field.size());
  return field.empty() ? "no end" : "`" + field.substr(0, end) + "`" + field.substr(end);
}

}  // namespace

std::string SystemTable(const Kernels& kernels, const Kernels& reference) {
  std::string text =
      "| variant | family | forms | prefill | SIMD | a sequence ends at |\n"
      "|---|---|---|---|---|---|\n";
  for (const AttentionSystem& system : AttentionSystems()) {
    text += std::string("| `") + system.name + "` | " + system.family.name + " | " + FormsText(system.forms) + " | " +
            PrefillText(system) + " | " + SimdText(system, kernels, reference) + " | " + BoundText(system) + " |\n";
  }
  return text;
}

}  // namespace tarn::convert
