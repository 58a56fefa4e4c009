// Files and standard input in, standard output.
#ifndef TARN_TOOLS_TARN_FILES_H_
#define TARN_TOOLS_TARN_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tools/common/failure.h"

namespace tarn_cli {

// "-" is standard input. Throws Failure with the path and the reason, also where there are more than `most_bytes`; while it waits
// for standard input also if it is interrupted.
std::string ReadFile(const std::string& path, size_t most_bytes = SIZE_MAX);
// The next bytes of standard input, at most `size_bytes`, as soon as there are some; 0: it has ended. Errors: as ReadFile().
size_t ReadStdin(char* buffer, size_t size_bytes);

// A text that is read from one end to the other, of any length. A file is mapped, which takes no memory that the system could not
// take back. What comes through a pipe is held in memory while it is short; what is longer goes to a temporary file without a name.
class InputText {
 public:
  explicit InputText(std::string text) : held_(std::move(text)), text_(held_) {}
  // Of a file, or of standard input; errors: as ReadFile().
  static InputText OfFile(const std::string& path);
  ~InputText();
  InputText(const InputText&) = delete;
  InputText& operator=(const InputText&) = delete;

  std::string_view text() const { return text_; }
  // Leaves out a newline at the end, which editors and `echo` put there.
  void DropNewline();

 private:
  // Of a mapped file, from a byte on.
  InputText(std::string_view mapped, size_t begin) : text_(mapped.substr(begin)), mapped_(mapped) {}
  static InputText OfStdin();

  std::string held_;
  std::string_view text_, mapped_;
};

// As messages name it: "standard input" for "-".
std::string FileName(const std::string& path);

// Whether somebody feeds standard input, with a pipe or a file: no terminal, no /dev/null.
bool InputIsFed();

class OutputFailure : public tarn::tools::Failure {
 public:
  using Failure::Failure;
};

// Standard output, at once. False if its reader has gone away (a closed pipe), which is no error: it has seen enough. Also false,
// and from then on, if the reader does not read and a signal asks for the end: the command ends without it. Throws Failure on any
// other error (a full disk): an OutputFailure.
bool WriteStdout(const void* data, size_t size_bytes);
bool WriteStdout(const std::string& text);

// Standard output, in parts of some size.
class StdoutBuffer {
 public:
  // What is added goes out when there is enough of it. False: as WriteStdout(), and then nothing more goes out.
  std::string* text() { return &text_; }
  bool WriteIfFull() { return text_.size() < kEnough || Write(); }
  bool Write();

 private:
  static constexpr size_t kEnough = size_t{1} << 16;
  std::string text_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_FILES_H_
