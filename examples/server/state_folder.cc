#include "state_folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace tarn_server {
namespace {

namespace fs = std::filesystem;

// A file: this, then pieces with their sizes: the request, the tokens that were drawn, the snapshot (which has a hash of its own).
constexpr char kMagic[] = "tarn request 1\n";

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

void WritePiece(const void* piece, size_t bytes, std::ostream* file) {
  const uint64_t size = bytes;
  file->write(reinterpret_cast<const char*>(&size), sizeof(size));
  file->write(static_cast<const char*>(piece), static_cast<std::streamsize>(bytes));
}

// Of at most `most` bytes; false: there is none.
bool ReadSize(size_t most, std::istream* file, size_t* bytes) {
  uint64_t size = 0;
  file->read(reinterpret_cast<char*>(&size), sizeof(size));
  *bytes = static_cast<size_t>(size);
  return file->good() && size <= most;
}

}  // namespace

StateFolder::StateFolder(const std::string& path, size_t most) : path_(path) {
  if (path_.empty()) return;
  fs::create_directories(path_);
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string extension = entry.path().extension();
    if (extension == ".part") fs::remove(entry.path());
    if (extension == ".request") files.emplace_back(entry.last_write_time(), entry.path());
  }
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i + most < files.size(); ++i) fs::remove(files[i].second);
}

void StateFolder::Save(const Request& request, const std::vector<int32_t>& drawn, const char* snapshot, size_t bytes) const {
  const std::string path = PathOf(request), name = Describe(request);
  {
    std::ofstream file(path + ".part", std::ios::binary | std::ios::trunc);
    file << kMagic;
    WritePiece(name.data(), name.size(), &file);
    WritePiece(drawn.data(), drawn.size() * sizeof(int32_t), &file);
    WritePiece(snapshot, bytes, &file);
    if (!file.flush()) return;
  }
  std::rename((path + ".part").c_str(), path.c_str());
}

bool StateFolder::Load(const Request& request, std::vector<int32_t>* drawn, std::vector<char>* snapshot, size_t* bytes) const {
  std::ifstream file(PathOf(request), std::ios::binary);
  const std::string wanted = Describe(request);
  std::string found(sizeof(kMagic) - 1, '\0');
  if (!file.read(found.data(), static_cast<std::streamsize>(found.size())) || found != kMagic) return false;
  size_t size = 0;
  if (!ReadSize(wanted.size(), &file, &size)) return false;
  found.resize(size);
  if (!file.read(found.data(), static_cast<std::streamsize>(size)) || found != wanted) return false;
  if (!ReadSize(request.max_tokens * sizeof(int32_t), &file, &size)) return false;
  drawn->resize(size / sizeof(int32_t));
  if (!file.read(reinterpret_cast<char*>(drawn->data()), static_cast<std::streamsize>(size))) return false;
  return ReadSize(snapshot->size(), &file, bytes) && file.read(snapshot->data(), static_cast<std::streamsize>(*bytes)).good();
}

void StateFolder::Remove(const Request& request) const { std::remove(PathOf(request).c_str()); }

}  // namespace tarn_server
