// What the system says of memory that asked for huge pages.
#if defined(__linux__)

#include "runtime/platform/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace tarn {
namespace {

// The flags of the mapping that `address` lies in, as smaps has them.
std::string FlagsOf(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t first, last;
    char dash;
    std::istringstream range(line);
    if (range >> std::hex >> first >> dash >> last && dash == '-') {
      inside = first <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < last;
    }
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(HugePages, AreAskedForWhereOneFits) {
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0) GTEST_SKIP() << "this system has none";
  constexpr size_t kBytes = size_t{8} << 20;
  void* base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(base, MAP_FAILED);
  uint8_t* bytes = static_cast<uint8_t*>(base);
  madvise(base, kBytes, MADV_HUGEPAGE);
  const bool shows = FlagsOf(bytes).find(" hg ") != std::string::npos;
  madvise(base, kBytes, MADV_NOHUGEPAGE);
  if (!shows) {
    munmap(base, kBytes);
    GTEST_SKIP() << "smaps does not show advice here (an emulator takes it and does nothing)";
  }
  AdviseHugePages({bytes + 64, size_t{1} << 20});  // too little
  EXPECT_EQ(FlagsOf(bytes + (size_t{512} << 10)).find(" hg "), std::string::npos);
  AdviseHugePages({bytes + 64, kBytes - 64});
  EXPECT_NE(FlagsOf(bytes + kBytes / 2).find(" hg "), std::string::npos);
  munmap(base, kBytes);
}

}  // namespace
}  // namespace tarn

#endif  // __linux__
