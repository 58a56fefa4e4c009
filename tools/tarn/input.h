// What a command is given to read: -p TEXT, -f FILE, --tokens IDS, or standard input.
#ifndef TARN_TOOLS_TARN_INPUT_H_
#define TARN_TOOLS_TARN_INPUT_H_

#include <string>

#include "tools/common/command_line.h"
#include "tools/tarn/files.h"
#include "tools/tarn/sources.h"

namespace tarn_cli {

// --plain: special tokens in the text that a command reads are text like any other.
Option* AddPlain(App* command, bool* plain);

class Input {
 public:
  // -p, -f and --tokens; the texts say what they are to this command.
  void AddOptions(App* command, const std::string& text, const std::string& file, const std::string& ids);

  // Of the text of -p, after Choose(): escape sequences are what they stand for. Throws UsageError.
  void UnescapeText();

  // After the command line was read: what was chosen. Where nothing was, and somebody feeds standard input, that is the file.
  // Throws UsageError: two inputs, ids that are none; standard input, where it is `taken` by something else.
  void Choose(const std::string& command, bool taken = false);

  // At most one of these. With neither there is no input, or a text: Text().
  const Tokens& tokens() const { return tokens_; }
  bool is_file() const { return chosen_ == Chosen::kFile; }
  bool is_nothing() const { return chosen_ == Chosen::kNothing; }
  bool reads_stdin() const { return is_file() ? file_ == "-" : text_is_read_; }

  const std::string& file() const { return file_; }  // "-": standard input

  // The text, the whole file, or "". Of what is read one newline at the end is left out, which editors and `echo` put there.
  // Throws Failure.
  std::string Text(bool keep_newline = false) const;
  // The same, not in memory where it may be long, with its newline.
  InputText Open() const;

 private:
  enum class Chosen { kNothing, kText, kFile, kIds };

  Chosen chosen_ = Chosen::kNothing;
  std::string text_, file_, ids_;
  bool text_is_read_ = false;  // -p -
  Tokens tokens_;
  const Option* text_option_ = nullptr;
  const Option* file_option_ = nullptr;
  const Option* ids_option_ = nullptr;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_INPUT_H_
