#include "tools/tarn/prompt_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <regex>
#include <utility>

#include "tools/common/output_file.h"
#include "tools/common/printable.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"
#include "tools/tarn/state_file.h"

namespace tarn_cli {
namespace {

constexpr uint8_t kMagic[8] = {'T', 'P', 'R', 'M', '\r', '\n', 0x1A, '\n'};
constexpr uint32_t kFileVersion = 3;

struct Header {
  uint8_t magic[8];
  uint32_t version;
  uint32_t chunk;
  uint64_t tokens;
  uint8_t fingerprint[32];
  uint64_t kernels;   // hash of the names of those that computed the state: others round in another way
  uint64_t checksum;  // of the tokens and of the header with 0 in its place; the file's name has it, too
};
static_assert(sizeof(Header) == 72, "the header is written and read as bytes");

// FNV-1a.
constexpr uint64_t kEmpty = 0xCBF29CE484222325u;
uint64_t Hash(uint64_t hash, const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3u;
  return hash;
}

// `of_tokens`: hash of the tokens.
uint64_t Checksum(uint64_t of_tokens, Header header) {
  header.checksum = 0;
  return Hash(of_tokens, &header, sizeof(header));
}

Header MakeHeader(const Model& model, uint32_t chunk, size_t tokens, uint64_t of_tokens) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFileVersion;
  header.chunk = chunk;
  header.tokens = tokens;
  std::memcpy(header.fingerprint, model.info().fingerprint, sizeof(header.fingerprint));
  const std::string kernels = model.info().dense + std::string("+") + model.info().isa;
  header.kernels = Hash(kEmpty, kernels.data(), kernels.size());
  header.checksum = Checksum(of_tokens, header);
  return header;
}

void Warn(const std::string& text) { std::fprintf(stderr, "tarn: prompt cache: %s\n", tarn::tools::ErrorLine(text).c_str()); }

}  // namespace

std::optional<PromptFile> ReadPromptFile(std::string_view content) {
  if (content.size() < sizeof(kMagic) || std::memcmp(content.data(), kMagic, sizeof(kMagic)) != 0) return std::nullopt;
  Header header{};
  if (content.size() >= sizeof(header)) std::memcpy(&header, content.data(), sizeof(header));
  constexpr uint64_t kTokenBytes = sizeof(Tokens::value_type);
  if (content.size() < sizeof(header) || (content.size() - sizeof(header)) / kTokenBytes < header.tokens) {
    throw Failure(Format("a file of the prompt cache of %zu bytes, expected %zu bytes, its %llu tokens and a snapshot: it is cut",
                         content.size(), sizeof(header), static_cast<unsigned long long>(header.tokens)));
  }
  if (header.version != kFileVersion) {
    throw Failure(Format("version of the prompt cache is %u, %u expected", header.version, kFileVersion));
  }
  const size_t token_bytes = static_cast<size_t>(header.tokens * kTokenBytes);
  const uint64_t found = Checksum(Hash(kEmpty, content.data() + sizeof(header), token_bytes), header);
  if (found != header.checksum) {
    throw Failure(Format("the checksum of header and tokens is %016llx, %016llx expected: the file of the prompt cache is damaged",
                         static_cast<unsigned long long>(found), static_cast<unsigned long long>(header.checksum)));
  }
  return PromptFile{header.tokens, header.chunk, sizeof(header) + token_bytes};
}

PromptCache::PromptCache(const Model& model, const tarn_session_config& config, std::string directory, uint64_t most_bytes)
    : model_(model),
      chunk_(config.max_chunk),
      most_snapshot_bytes_(MostSnapshotBytes(model, config)),
      directory_(std::move(directory)),
      most_bytes_(most_bytes) {
  constexpr mode_t kForThisUser = 0700;
  if (mkdir(directory_.c_str(), kForThisUser) == 0) return;
  const int reason = errno;
  struct stat info;
  if (stat(directory_.c_str(), &info) != 0) throw Failure(directory_ + ": cannot be created: " + std::strerror(reason));
  if (!S_ISDIR(info.st_mode)) throw Failure(directory_ + ": is no directory, expected one for --prompt-cache");
}

std::string PromptCache::PathOf(uint64_t checksum, size_t count) const {
  return directory_ + Format("/%016llx-%zu.prompt", static_cast<unsigned long long>(checksum), count);
}

// Before the last token, and at ends of chunks: the last one, and 1, 3, 7, 15, ... chunks before it.
bool PromptCache::IsKept(size_t prompt_size, size_t count) const {
  if (count == 0) return false;
  if (count == prompt_size - 1) return true;
  if (count % chunk_ != 0) return false;
  const size_t back = (prompt_size - 1) / chunk_ - count / chunk_ + 1;
  return (back & (back - 1)) == 0;
}

size_t PromptCache::Restore(const Tokens& prompt, tarn_session* session) {
  std::vector<std::pair<size_t, uint64_t>> begins;  // lengths, and the hashes of so many tokens
  const size_t most = prompt.size() - 1;
  uint64_t hash = kEmpty;
  for (size_t begin = 0; begin < most;) {
    const size_t count = std::min<size_t>(most, begin + chunk_);
    hash = Hash(hash, prompt.data() + begin, (count - begin) * sizeof(prompt[0]));
    begins.emplace_back(count, hash);
    begin = count;
  }
  for (; !begins.empty(); begins.pop_back()) {
    const auto [count, of_tokens] = begins.back();
    if (RestoreFrom(of_tokens, prompt, count, session)) return count;
  }
  return 0;
}

bool PromptCache::RestoreFrom(uint64_t of_tokens, const Tokens& prompt, size_t count, tarn_session* session) const {
  const Header header = MakeHeader(model_, chunk_, count, of_tokens);
  const std::string path = PathOf(header.checksum, count);
  if (access(path.c_str(), F_OK) != 0) return false;
  const size_t before = sizeof(header) + count * sizeof(prompt[0]);
  std::string content;
  bool has_size = false;
  try {
    std::error_code failed;
    const uint64_t size = std::filesystem::file_size(path, failed);
    if (failed) return false;  // another process has removed it
    has_size = size >= before && size <= before + most_snapshot_bytes_;
    if (has_size) content = ReadFile(path);
  } catch (const Failure& failure) {
    Warn(failure.what());
    return false;
  }
  try {
    if (!has_size) throw Failure("it has a wrong size");
    if (content.size() < before || std::memcmp(content.data(), &header, sizeof(header)) != 0) throw Failure("its header is wrong");
    if (std::memcmp(content.data() + sizeof(header), prompt.data(), before - sizeof(header)) != 0) {
      throw Failure("it has other tokens");
    }
    tarn_error error;
    Check(tarn_session_restore(session, content.data() + before, content.size() - before, &error), error);
    if (tarn_session_tokens(session) != count) {
      tarn_session_reset(session);
      throw Failure("its state has seen another number of tokens");
    }
  } catch (const Failure& failure) {
    const bool is_removed = unlink(path.c_str()) == 0;
    Warn(path + " is damaged, and " + (is_removed ? "is removed: " : "cannot be removed: ") + failure.what());
    return false;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // where that cannot be, it goes earlier
  return true;
}

void PromptCache::Note(const Tokens& prompt, size_t count, const tarn_session* session) {
  if (!IsKept(prompt.size(), count)) return;
  const Header header = MakeHeader(model_, chunk_, count, Hash(kEmpty, prompt.data(), count * sizeof(prompt[0])));
  const std::string path = PathOf(header.checksum, count);
  if (access(path.c_str(), F_OK) == 0) return;
  const std::vector<uint8_t> snapshot = Snapshot(session);
  const size_t before = sizeof(header) + count * sizeof(prompt[0]);
  if (before + snapshot.size() > most_bytes_) {
    if (!has_warned_)
      Warn(Format("a state takes %zu bytes, more than --prompt-cache-bytes: it is not kept", before + snapshot.size()));
    has_warned_ = true;
    return;
  }
  Noted noted = {path, std::vector<char>(before + snapshot.size())};
  std::memcpy(noted.content.data(), &header, sizeof(header));
  std::memcpy(noted.content.data() + sizeof(header), prompt.data(), before - sizeof(header));
  std::memcpy(noted.content.data() + before, snapshot.data(), snapshot.size());
  noted_.push_back(std::move(noted));
  noted_bytes_ += before + snapshot.size();
  // Longer beginnings are worth more: the shortest ones go.
  for (; noted_bytes_ > most_bytes_; noted_.pop_front()) noted_bytes_ -= noted_.front().content.size();
}

void PromptCache::Write() {
  try {
    for (const Noted& noted : noted_) WriteOne(noted);
    RemoveOld();
  } catch (const std::exception& failure) {  // of the file, or of the directory
    Warn(failure.what());
  }
  noted_.clear();
  noted_bytes_ = 0;
}

void PromptCache::WriteOne(const Noted& noted) const {
  // A link is nothing of this cache: somebody else made it.
  tarn::tools::OutputFile file(noted.path, {}, noted.path, tarn::tools::Links::kReplace);
  chmod(file.Flush().c_str(), S_IRUSR | S_IWUSR);  // a prompt is private, whatever the directory is
  file.Write(noted.content.data(), noted.content.size());
  file.Commit();
}

void PromptCache::RemoveOld() const {
  // And what a process left that was killed while it wrote; one that still writes has less than a minute to do.
  static const std::regex kName("[0-9a-f]{16}-[0-9]+\\.prompt(\\.tmp\\.[0-9-]+)?");
  const auto left_since = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1);
  struct File {
    std::filesystem::file_time_type used;
    std::filesystem::path path;
    uint64_t size;
  };
  std::vector<File> files;
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::error_code gone;  // another process may remove it
    const bool is_own = std::regex_match(entry.path().filename().string(), kName);
    if (!is_own || !std::filesystem::is_regular_file(entry.symlink_status(gone))) continue;  // a link has no bytes of the cache
    const uint64_t size = entry.file_size(gone);
    const auto used = entry.last_write_time(gone);
    if (gone || (entry.path().extension() != ".prompt" && used > left_since)) continue;
    files.push_back({used, entry.path(), size});
    bytes += size;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (bytes <= most_bytes_) return;
    std::error_code gone;
    std::filesystem::remove(file.path, gone);
    if (!gone) bytes -= file.size;
  }
}

}  // namespace tarn_cli
