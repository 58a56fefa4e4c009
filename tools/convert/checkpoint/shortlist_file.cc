#include "tools/convert/checkpoint/shortlist_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kMagic = 0xF11A48D5013417F5;
constexpr size_t kHeaderBytes = 48, kHashedFrom = 16;

class Bytes {
 public:
  explicit Bytes(const MappedFile& file) : data_(file.data()), size_(file.size()) {}

  size_t size() const { return size_; }
  uint64_t U64(size_t at) const { return Load<uint64_t>(at); }
  uint32_t U32(size_t at) const { return Load<uint32_t>(at); }

  // As Marian combines the hashes of numbers, which are these numbers.
  uint64_t Hash() const {
    uint64_t hash = 0;
    for (size_t at = kHashedFrom; at + 8 <= size_; at += 8) hash ^= U64(at) + 0x9e3779b9 + (hash << 6) + (hash >> 2);
    return hash;
  }

 private:
  template <typename T>
  T Load(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }
  const uint8_t* data_;
  size_t size_;
};

void CheckKind(const Bytes& bytes, const std::string& path) {
  const uint32_t begin = bytes.size() >= 4 ? bytes.U32(0) & 0xffff : 0;
  if (begin == 0x8b1f) Fail(path, ": is compressed by gzip: gunzip it first");
  if (bytes.size() < kHeaderBytes || bytes.U64(0) != kMagic) {
    Fail(path, ": is no binary shortlist of Marian (magic f5 17 34 01 d5 48 1a f1 expected)");
  }
}

}  // namespace

ShortlistFile ReadShortlist(const std::string& path) {
  const MappedFile file(path);
  const Bytes bytes(file);
  CheckKind(bytes, path);
  ShortlistFile shortlist;
  shortlist.path = path;
  const uint64_t first = bytes.U64(16), offsets = bytes.U64(32), targets = bytes.U64(40);
  const uint64_t body = bytes.size() - kHeaderBytes;
  if (offsets > body / 8 || targets != (body - offsets * 8) / 4 || (body - offsets * 8) % 4 != 0) {
    Fail(path, ": ", offsets, " offsets and ", targets, " targets do not fit the ", body,
         " bytes behind the header: truncated or damaged");
  }
  if (bytes.Hash() != bytes.U64(8)) Fail(path, ": does not match its hash: it is damaged; copy it again");
  if (offsets < 2 || targets < 1 || targets > INT32_MAX / 2) {
    Fail(path, ": ", offsets, " offsets and ", targets, " targets, expected 2 or more and 1 to ", INT32_MAX / 2);
  }
  if (first < 1 || first > INT32_MAX) Fail(path, ": ", first, " first tokens, expected 1 to ", INT32_MAX);
  shortlist.first = static_cast<uint32_t>(first);
  uint64_t least = 0;
  for (uint64_t i = 0; i < offsets; ++i) {
    const uint64_t offset = bytes.U64(kHeaderBytes + i * 8), most = i == 0 ? 0 : targets;
    if (offset < least || offset > most || (i + 1 == offsets && offset != targets)) {
      Fail(path, ": offset ", i, " is ", offset, ", expected ", i + 1 == offsets ? targets : least, " to ", most);
    }
    least = offset;
    shortlist.offsets.push_back(static_cast<int32_t>(offset));
  }
  for (uint64_t i = 0; i < targets; ++i) {
    const uint32_t target = bytes.U32(kHeaderBytes + offsets * 8 + i * 4);
    if (target > INT32_MAX) Fail(path, ": target ", i, " is ", target, ", expected at most ", INT32_MAX);
    shortlist.targets.push_back(static_cast<int32_t>(target));
  }
  return shortlist;
}

std::vector<std::string> FindShortlists(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failed;  // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".bin" && path.filename().string().rfind("lex", 0) == 0) found.push_back(path.string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tarn::convert
