#include "tools/tarn/input.h"

#include "tools/common/command_line.h"
#include "tools/tarn/error.h"
#include "tools/tarn/escapes.h"

namespace tarn_cli {

Option* AddPlain(App* command, bool* plain) {
  return command->add_flag("--plain", *plain,
                           "Read special tokens in the text, such as <|endoftext|>, as plain text (default: as their ids)");
}

void Input::AddOptions(App* command, const std::string& text, const std::string& file, const std::string& ids) {
  text_option_ = command->add_option("-p,--prompt", text_, text + "; -: standard input")->type_name("TEXT");
  file_option_ = command
                     ->add_option("-f,--file", file_,
                                  file + "; -: standard input, which is also read if it is a pipe or a file and no input is given")
                     ->input_file();
  ids_option_ = command->add_option("--tokens", ids_, ids + " as token ids, for example 1,2,3")->type_name("IDS");
}

void Input::Choose(const std::string& command, bool taken) {
  if (!text_option_->empty() + !file_option_->empty() + !ids_option_->empty() > 1) {
    throw UsageError(command + ": more than one input, expected one of -p, -f and --tokens");
  }
  if (!text_option_->empty()) chosen_ = Chosen::kText;
  if (!file_option_->empty()) chosen_ = Chosen::kFile;
  text_is_read_ = text_ == "-";  // before escapes, which could spell it
  if (!ids_option_->empty()) {
    chosen_ = Chosen::kIds;
    tokens_ = IdsOption(ids_, command, "--tokens");
  }
  if (taken && reads_stdin()) {
    throw UsageError(command + ": -i reads the turns from standard input, expected -p TEXT or -f FILE for the first one");
  }
  if (chosen_ == Chosen::kNothing && !taken && InputIsFed()) {
    chosen_ = Chosen::kFile;
    file_ = "-";
  }
}

void Input::UnescapeText() { text_ = Unescape(text_, "--prompt"); }

InputText Input::Open() const { return is_file() || text_is_read_ ? InputText::OfFile(is_file() ? file_ : "-") : InputText(text_); }

std::string Input::Text(bool keep_newline) const {
  InputText text = Open();
  if (!keep_newline && (is_file() || text_is_read_)) text.DropNewline();
  return std::string(text.text());
}

}  // namespace tarn_cli
