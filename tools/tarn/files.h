// Whole files in, whole files out.
#ifndef TARN_TOOLS_TARN_FILES_H_
#define TARN_TOOLS_TARN_FILES_H_

#include <cstddef>
#include <cstdio>
#include <string>

namespace tarn_cli {

// Throws Failure with the path and the reason.
std::string ReadFile(const std::string& path);

// A file that appears complete or not at all: written under a temporary name beside its own, then renamed. What exists already and
// is no regular file (a device, a pipe, a link) is written in place, since a rename would replace it.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);  // throws Failure
  ~OutputFile();                                 // without Commit(): the temporary file goes away
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* data, size_t size_bytes);  // throws Failure
  void Commit();                                    // throws Failure

 private:
  [[noreturn]] void Fail(const char* what);

  std::string path_;
  std::string written_path_;  // the temporary name, or path_ if written in place
  std::FILE* file_;
};

// Standard output, flushed. False if its reader has gone away (a closed pipe), which is no error: it has seen enough. Throws
// Failure on any other error (a full disk).
bool WriteStdout(const void* data, size_t size_bytes);
bool WriteStdout(const std::string& text);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_FILES_H_
