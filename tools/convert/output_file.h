// Where a model file is written to: a file that appears only when it is complete, or memory.
#ifndef TARN_TOOLS_CONVERT_OUTPUT_FILE_H_
#define TARN_TOOLS_CONVERT_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace tarn::convert {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Write(const void* bytes, size_t count) = 0;               // at the end
  virtual void Rewrite(size_t at, const void* bytes, size_t count) = 0;  // bytes that were written before
};

class MemorySink : public ByteSink {
 public:
  void Write(const void* bytes, size_t count) override;
  void Rewrite(size_t at, const void* bytes, size_t count) override;
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// Writes to a temporary file beside `path`. Commit() makes it durable and renames it; without a Commit() the destructor removes it.
// Every function throws a ConvertError with the path and the system's reason (a full disk, no permission).
class OutputFile : public ByteSink {
 public:
  // Errors: `path` is one of `inputs`, or exists and is not a regular file.
  OutputFile(const std::string& path, const std::vector<std::string>& inputs);
  ~OutputFile() override;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* bytes, size_t count) override;
  void Rewrite(size_t at, const void* bytes, size_t count) override;
  void Commit();

 private:
  [[noreturn]] void FailWriting() const;

  const std::string path_;
  const std::string temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_OUTPUT_FILE_H_
