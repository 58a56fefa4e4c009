// How fast this machine reads memory: what the speed of decode is a share of.
#ifndef TARN_TOOLS_TARN_BANDWIDTH_H_
#define TARN_TOOLS_TARN_BANDWIDTH_H_

#include <cstddef>
#include <cstdint>

namespace tarn_cli {

// Anonymous memory, mapped, every page written once.
class Buffer {
 public:
  // kHuge is a wish that the system may not grant. kSmall reads as a mapped file does: the page tables are the same.
  enum class Pages { kSmall, kHuge };
  Buffer() = default;
  Buffer(uint64_t size_bytes, Pages pages);  // throws Failure
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  const uint8_t* data() const { return static_cast<const uint8_t*>(data_); }
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  void* data_ = nullptr;
  uint64_t size_bytes_ = 0;
  uint64_t mapped_bytes_ = 0;
};

// Returns something that depends on every byte.
using ReadLoop = uint64_t (*)(const uint8_t* data, size_t size_bytes);

// Reads a buffer again and again with a number of threads, each its own part of it, and nothing that makes them wait for each
// other.
class ReadBandwidth {
 public:
  // Tries small and huge pages and every loop that this CPU can run, for a moment each, and keeps what reads fastest: a slow
  // reference would flatter those who are compared with it. `size_bytes` >= 1; threads >= 1, the caller's included.
  // Throws Failure where the memory cannot be had.
  ReadBandwidth(uint64_t size_bytes, uint32_t threads);

  // Bytes per second, of about 0.2 s.
  double Measure() const;

  uint64_t size_bytes() const { return buffer_.size_bytes(); }
  // What of the process's anonymous memory is this buffer.
  uint64_t anonymous_bytes() const { return buffer_.mapped_bytes(); }

 private:
  double Rate(ReadLoop loop, uint64_t passes) const;

  uint32_t threads_;
  Buffer buffer_;
  ReadLoop loop_ = nullptr;
  uint64_t passes_ = 1;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_BANDWIDTH_H_
