// A file mapped for reading, and small files read whole.
#ifndef TARN_TOOLS_CONVERT_JSON_MAPPED_FILE_H_
#define TARN_TOOLS_CONVERT_JSON_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace tarn::convert {

class MappedFile {
 public:
  // Errors: the file cannot be opened or mapped, is not a regular file, or is a Git LFS pointer. An empty file gives size 0.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Gives back the memory that pages of the file take in this process. They are read again when they are needed.
  void Release() const;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// The bytes of a file. Errors: as MappedFile; more than `max_bytes`.
std::string ReadFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_JSON_MAPPED_FILE_H_
