// Where a model file is written to: a file that appears only when it is complete, or memory.
#ifndef TARN_TOOLS_CONVERT_WRITER_OUTPUT_FILE_H_
#define TARN_TOOLS_CONVERT_WRITER_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/common/output_file.h"

namespace tarn::convert {

using tools::ByteSink;
using tools::OutputFile;

class MemorySink : public ByteSink {
 public:
  void Write(const void* bytes, size_t count) override;
  void Rewrite(size_t at, const void* bytes, size_t count) override;
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_WRITER_OUTPUT_FILE_H_
