#include "tools/convert/checkpoint/zip.h"

#include <algorithm>
#include <cstring>

#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

// Signatures and sizes of records (APPNOTE.TXT 4.3): of an entry before its bytes, of an entry in the directory, of its end.
constexpr uint32_t kLocal = 0x04034B50, kCentral = 0x02014B50, kEnd = 0x06054B50, kEnd64 = 0x06064B50, kLocator64 = 0x07064B50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 65535;
constexpr uint16_t kExtra64 = 1;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // a number that stands in the extra field, with 64 bits

class Archive {
 public:
  Archive(const uint8_t* data, size_t size, const std::string& name) : data_(data), size_(size), name_(name) {}

  std::map<std::string, ZipEntry> Read() {
    FindDirectory();
    std::map<std::string, ZipEntry> entries;
    uint64_t at = directory_begin_;
    for (uint64_t i = 0; i < count_; ++i) {
      if (directory_end_ - at < kCentralBytes || Number<uint32_t>(at) != kCentral) FailDamaged(at);
      const uint64_t name_bytes = Number<uint16_t>(at + 28), extra_bytes = Number<uint16_t>(at + 30);
      const uint64_t bytes = kCentralBytes + name_bytes + extra_bytes + Number<uint16_t>(at + 32);
      if (bytes > directory_end_ - at) FailDamaged(at);
      std::string entry(reinterpret_cast<const char*>(data_) + at + kCentralBytes, name_bytes);
      const ZipEntry place = ReadEntry(at, entry, at + kCentralBytes + name_bytes, extra_bytes);
      at += bytes;
      if (!entry.empty() && entry.back() == '/') continue;
      if (!entries.emplace(entry, place).second) Fail(name_, ": ", ValueText(entry), " is in the archive twice");
    }
    return entries;
  }

 private:
  template <typename T>
  T Number(uint64_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }

  [[noreturn]] void FailDamaged(uint64_t at) const { Fail(name_, ": byte ", at, ": the directory of the zip archive is damaged"); }

  [[noreturn]] void FailTruncated() const {
    Fail(name_, ": ", size_, " bytes without the directory that ends a zip archive: truncated; copy it again");
  }

  // The record that ends the archive: the last one, since a comment of any bytes may stand behind it.
  uint64_t FindEnd() const {
    if (size_ < kEndBytes) FailTruncated();
    const uint64_t last = size_ - kEndBytes, first = last - std::min(last, kMaxComment);
    for (uint64_t at = last + 1; at-- > first;) {
      if (Number<uint32_t>(at) == kEnd && at + kEndBytes + Number<uint16_t>(at + 20) == size_) return at;
    }
    FailTruncated();
  }

  void FindDirectory() {
    const uint64_t end = FindEnd();
    count_ = Number<uint16_t>(end + 10);
    uint64_t bytes = Number<uint32_t>(end + 12);
    directory_begin_ = Number<uint32_t>(end + 16);
    directory_end_ = end;
    if (end >= kLocator64Bytes && Number<uint32_t>(end - kLocator64Bytes) == kLocator64) {
      const uint64_t at = Number<uint64_t>(end - kLocator64Bytes + 8);
      if (end < kEnd64Bytes || at > end - kEnd64Bytes || Number<uint32_t>(at) != kEnd64) FailDamaged(end - kLocator64Bytes);
      count_ = Number<uint64_t>(at + 32);
      bytes = Number<uint64_t>(at + 40);
      directory_begin_ = Number<uint64_t>(at + 48);
      directory_end_ = at;
    }
    if (directory_begin_ > directory_end_ || bytes != directory_end_ - directory_begin_) FailDamaged(end);
  }

  // The 64-bit numbers of an extra field, or nothing.
  struct Extra {
    uint64_t at = 0, bytes = 0;
  };
  Extra FindExtra64(uint64_t at, uint64_t bytes) const {
    while (bytes >= 4) {
      const uint64_t size = Number<uint16_t>(at + 2);
      if (size > bytes - 4) break;
      if (Number<uint16_t>(at) == kExtra64) return {at + 4, size};
      at += 4 + size;
      bytes -= 4 + size;
    }
    return {};
  }

  ZipEntry ReadEntry(uint64_t at, const std::string& entry, uint64_t extra_at, uint64_t extra_bytes) const {
    const uint16_t flags = Number<uint16_t>(at + 8), method = Number<uint16_t>(at + 10);
    uint64_t stored = Number<uint32_t>(at + 20), bytes = Number<uint32_t>(at + 24), local = Number<uint32_t>(at + 42);
    Extra extra = FindExtra64(extra_at, extra_bytes);
    for (uint64_t* number : {&bytes, &stored, &local}) {  // in this order, those that need it
      if (*number != kIn64) continue;
      if (extra.bytes < 8) FailDamaged(at);
      *number = Number<uint64_t>(extra.at);
      extra = {extra.at + 8, extra.bytes - 8};
    }
    if (local > directory_begin_ || directory_begin_ - local < kLocalBytes || Number<uint32_t>(local) != kLocal) FailDamaged(at);
    const uint64_t header = kLocalBytes + Number<uint16_t>(local + 26) + Number<uint16_t>(local + 28);
    if (header > directory_begin_ - local || stored > directory_begin_ - local - header) {
      Fail(name_, ": ", ValueText(entry), ": ", stored, " bytes from byte ", local, " on do not lie inside the archive");
    }
    return {local + header, stored, method == 0 && (flags & 1) == 0 && stored == bytes};
  }

  const uint8_t* const data_;
  const uint64_t size_;
  const std::string& name_;
  uint64_t count_ = 0, directory_begin_ = 0, directory_end_ = 0;
};

}  // namespace

bool IsZip(const uint8_t* data, size_t size) { return size >= sizeof(kLocal) && std::memcmp(data, &kLocal, sizeof(kLocal)) == 0; }

std::map<std::string, ZipEntry> ReadZip(const uint8_t* data, size_t size, const std::string& name) {
  return Archive(data, size, name).Read();
}

}  // namespace tarn::convert
