// What the kernel's texts say of the processors: pure functions, in memory of a fixed size. The texts are as untrusted as files: a
// sandbox may leave them empty, cut them or make them up.
#ifndef TARN_RUNTIME_PLATFORM_CPU_TEXT_H_
#define TARN_RUNTIME_PLATFORM_CPU_TEXT_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr uint32_t kMaxProcessors = 1024;  // of which anything is known

class ProcessorSet {
 public:
  bool Has(uint32_t processor) const { return processor < kMaxProcessors && (words_[processor / 64] >> processor % 64 & 1) != 0; }
  void Add(uint32_t processor) {
    if (processor < kMaxProcessors) words_[processor / 64] |= uint64_t{1} << processor % 64;
  }
  // The first at or after `from`; kMaxProcessors: none.
  uint32_t Next(uint32_t from) const;
  bool empty() const { return Next(0) == kMaxProcessors; }

 private:
  uint64_t words_[kMaxProcessors / 64] = {};
};

// "0-3,8", with or without a newline, as the lists of /sys/devices/system/cpu are. What is no such list gives the empty set;
// numbers from kMaxProcessors on are left out.
ProcessorSet ParseProcessorList(const char* text, size_t text_bytes);

// The kinds of cores in /proc/cpuinfo of ARM, which is fed in pieces of any size.
class CoreKinds {
 public:
  void Feed(const char* text, size_t text_bytes);
  void Finish() { EndLine(); }

  // The text lists a processor; which was the first.
  bool lists_any() const { return first_ < kMaxProcessors; }
  uint32_t first() const { return first_; }
  // The in-order cores, which stand beside others to save power and are several times slower. A processor without a description
  // (offline) is what the one before it is: the cores of a cluster have successive numbers.
  bool IsLittle(uint32_t processor) const;

 private:
  void EndLine();
  void Describe(const char* key, uint32_t value);

  static constexpr size_t kLineBytes = 128;  // of which the rest is not looked at
  char line_[kLineBytes];
  size_t line_bytes_ = 0;
  uint32_t first_ = kMaxProcessors;
  uint32_t current_ = kMaxProcessors;
  uint32_t implementer_ = 0;  // of the current one
  ProcessorSet described_;
  ProcessorSet little_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_CPU_TEXT_H_
