// A file that appears when it is complete.
#ifndef TARN_TOOLS_COMMON_OUTPUT_FILE_H_
#define TARN_TOOLS_COMMON_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/signals.h"

namespace tarn::tools {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Write(const void* bytes, size_t count) = 0;               // at the end
  virtual void Rewrite(size_t at, const void* bytes, size_t count) = 0;  // bytes that were written before
};

// Where a path is a link: what it leads to is replaced, or the link itself.
enum class Links { kFollow, kReplace };

// Writes to a temporary file beside `path`. Commit() makes it durable and renames it; without a Commit() the destructor removes it.
// Every function throws a Failure with the path and the system's reason (a
// full disk, no permission).
class OutputFile : public ByteSink {
 public:
  // Errors: `path` is one of `inputs`, by whatever name, or where standard output goes, or exists and is not a regular file.
  OutputFile(const std::string& path, const std::vector<std::string>& inputs) : OutputFile(path, inputs, path) {}
  // Errors name `name`: of a scratch file, the output that it serves.
  OutputFile(const std::string& path, const std::vector<std::string>& inputs, std::string name, Links links = Links::kFollow);
  ~OutputFile() override;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* bytes, size_t count) override;
  void Rewrite(size_t at, const void* bytes, size_t count) override;
  void Commit();
  // The temporary file, with all that was written so far, to be read before or instead of a Commit().
  const std::string& Flush();

 private:
  [[noreturn]] void FailWriting() const;

  const std::string name_;  // of errors
  std::string final_;       // the path without links
  std::string temporary_;
  // What is written at once lies together in the page cache. Weights that are read in place are read from there, faster than from
  // scattered pages.
  std::vector<char> buffer_ = std::vector<char>(size_t{1} << 20);
  std::FILE* file_ = nullptr;
  std::optional<RemovedAtSuddenEnd> removed_;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_OUTPUT_FILE_H_
