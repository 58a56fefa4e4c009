#include "state_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>

namespace tarn_server {
namespace {

namespace fs = std::filesystem;

// A file: this, then pieces with their sizes (the request, the tokens that were drawn, the snapshot), then a hash of all before it.
constexpr char kMagic[] = "tarn request 2\n";

constexpr char kRequest[] = ".request";
constexpr char kPart[] = ".part";  // after it, until the file is complete

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File Open(const std::string& path, const char* mode) { return {std::fopen(path.c_str(), mode), std::fclose}; }

// FNV-1a: it finds damage, and is no protection against malice.
struct Hash {
  uint64_t value = 0xcbf29ce484222325u;
  void Add(const void* piece, size_t bytes) {
    const auto* const from = static_cast<const unsigned char*>(piece);
    for (size_t i = 0; i < bytes; ++i) value = (value ^ from[i]) * 0x100000001b3u;
  }
};

// All that an answer depends on.
std::string Describe(const Request& request) {
  const tarn_sampler_config& chain = request.chain;
  std::ostringstream text;
  text << std::hexfloat << request.max_tokens << ' ' << chain.temperature << ' ' << chain.top_k << ' ' << chain.top_p << ' '
       << chain.min_p << ' ' << chain.seed << ' ' << chain.frequency_penalty << ' ' << chain.presence_penalty << '\n';
  for (const std::string& stop : request.stop) text << stop.size() << ' ' << stop << '\n';
  text << request.prompt.size() << ' ' << request.prompt << '\n';
  return text.str();
}

// Writes and hashes. After a failure nothing more is written.
class Writer {
 public:
  explicit Writer(std::FILE* file) : file_(file) {}

  void Bytes(const void* from, size_t bytes) {
    hash_.Add(from, bytes);
    good_ = good_ && std::fwrite(from, 1, bytes, file_) == bytes;
  }
  void Piece(const void* from, size_t bytes) {
    const uint64_t size = bytes;
    Bytes(&size, sizeof(size));
    Bytes(from, bytes);
  }
  // Whether all is written. Nothing waits for the disk: after a power failure, the hash tells a file that is not whole.
  bool End() {
    const uint64_t hash = hash_.value;
    Bytes(&hash, sizeof(hash));
    return good_ && std::fflush(file_) == 0;
  }

 private:
  std::FILE* const file_;
  Hash hash_;
  bool good_ = true;
};

// Reads and hashes. False: the file is shorter, or a piece longer, than what is expected.
class Reader {
 public:
  explicit Reader(std::FILE* file) : file_(file) {}

  bool Bytes(void* to, size_t bytes) {
    if (std::fread(to, 1, bytes, file_) != bytes) return false;
    hash_.Add(to, bytes);
    return true;
  }
  bool Size(size_t most, size_t* bytes) {
    uint64_t size = 0;
    if (!Bytes(&size, sizeof(size)) || size > most) return false;
    *bytes = static_cast<size_t>(size);
    return true;
  }
  // Whether these bytes come next.
  bool Is(const std::string& expected) {
    std::string found(expected.size(), '\0');
    return Bytes(found.data(), found.size()) && found == expected;
  }
  // Whether the hash is that of all before it, and the end of the file.
  bool End() {
    const uint64_t expected = hash_.value;
    uint64_t found = 0;
    return Bytes(&found, sizeof(found)) && found == expected && std::fgetc(file_) == EOF;
  }

 private:
  std::FILE* const file_;
  Hash hash_;
};

}  // namespace

StateFolder::StateFolder(const std::string& path, size_t most) : path_(path) {
  if (path_.empty()) return;
  fs::create_directories(path_);
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string extension = entry.path().extension(), inner = entry.path().stem().extension();
    if (inner == kRequest && extension == kPart) fs::remove(entry.path());
    if (extension == kRequest) files.emplace_back(entry.last_write_time(), entry.path());
  }
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i + most < files.size(); ++i) fs::remove(files[i].second);
}

void StateFolder::Save(const Request& request, const std::vector<int32_t>& drawn, const char* snapshot, size_t bytes) const {
  const std::string path = PathOf(request), part = path + kPart, name = Describe(request);
  {
    const File file = Open(part, "wb");
    if (file == nullptr) return;
    Writer writer(file.get());
    writer.Bytes(kMagic, sizeof(kMagic) - 1);
    writer.Piece(name.data(), name.size());
    writer.Piece(drawn.data(), drawn.size() * sizeof(int32_t));
    writer.Piece(snapshot, bytes);
    if (!writer.End()) return;
  }
  std::rename(part.c_str(), path.c_str());
}

bool StateFolder::Load(const Request& request, std::vector<int32_t>* drawn, std::vector<char>* snapshot, size_t* bytes) const {
  const File file = Open(PathOf(request), "rb");
  if (file == nullptr) return false;
  Reader reader(file.get());
  const std::string name = Describe(request);
  size_t size = 0;
  if (!reader.Is(kMagic) || !reader.Size(name.size(), &size) || size != name.size() || !reader.Is(name)) return false;
  if (!reader.Size(request.max_tokens * sizeof(int32_t), &size) || size % sizeof(int32_t) != 0) return false;
  drawn->resize(size / sizeof(int32_t));
  if (!reader.Bytes(drawn->data(), size)) return false;
  return reader.Size(snapshot->size(), bytes) && reader.Bytes(snapshot->data(), *bytes) && reader.End();
}

std::string StateFolder::PathOf(const Request& request) const { return path_ + "/" + request.key + kRequest; }

void StateFolder::Remove(const Request& request) const { std::remove(PathOf(request).c_str()); }

}  // namespace tarn_server
