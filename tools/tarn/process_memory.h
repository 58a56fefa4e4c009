// What the kernel says about this process.
#ifndef TARN_TOOLS_TARN_PROCESS_MEMORY_H_
#define TARN_TOOLS_TARN_PROCESS_MEMORY_H_

#include <cstdint>
#include <optional>

namespace tarn_cli {

// Anonymous pages that are resident: what counts against a memory limit and cannot be dropped. Nothing where /proc does not
// say. Allocates nothing.
std::optional<uint64_t> AnonymousPages();

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_PROCESS_MEMORY_H_
