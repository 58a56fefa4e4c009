// Whole files and standard input in, standard output.
#ifndef TARN_TOOLS_TARN_FILES_H_
#define TARN_TOOLS_TARN_FILES_H_

#include <cstddef>
#include <string>

namespace tarn_cli {

// "-" is standard input. Throws Failure with the path and the reason; while it waits for standard input also if it is interrupted.
std::string ReadFile(const std::string& path);

// As messages name it: "standard input" for "-".
std::string FileName(const std::string& path);

// Whether somebody feeds standard input, with a pipe or a file: no terminal, no /dev/null.
bool InputIsFed();

// Standard output, at once. False if its reader has gone away (a closed pipe), which is no error: it has seen enough. Also false,
// and from then on, if the reader does not read and a signal asks for the end: the command ends without it. Throws Failure on any
// other error (a full disk).
bool WriteStdout(const void* data, size_t size_bytes);
bool WriteStdout(const std::string& text);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_FILES_H_
