// Whole files in, standard output.
#ifndef TARN_TOOLS_TARN_FILES_H_
#define TARN_TOOLS_TARN_FILES_H_

#include <cstddef>
#include <string>

namespace tarn_cli {

// Throws Failure with the path and the reason.
std::string ReadFile(const std::string& path);

// Standard output, flushed. False if its reader has gone away (a closed pipe), which is no error: it has seen enough. Throws
// Failure on any other error (a full disk).
bool WriteStdout(const void* data, size_t size_bytes);
bool WriteStdout(const std::string& text);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_FILES_H_
