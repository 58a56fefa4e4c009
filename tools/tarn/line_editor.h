// A line with a cursor, on a terminal: the usual keys, the lines before, texts that are pasted with their line breaks.
//
// It is one row that scrolls sideways, so that a new width of the terminal is one drawing, and a line may have a megabyte.
#ifndef TARN_TOOLS_TARN_LINE_EDITOR_H_
#define TARN_TOOLS_TARN_LINE_EDITOR_H_

#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/tarn/line_input.h"
#include "tools/tarn/line_text.h"

namespace tarn_cli {

class LineEditor : public LineInput {
 public:
  // From here on the terminal shows nothing that is typed by itself; it is kept for the next Read().
  LineEditor();
  ~LineEditor() override;  // the terminal is as it was

  End Read(const std::string& prompt, std::string* line) override;

 private:
  enum class Key { kNone, kEnter, kEnd };

  void SetTerminal();
  End Edit();
  // Takes keys from the front of typed_; stops behind one that ends the line.
  Key TakeKeys();
  Key TakeControl(char key);
  // A sequence of ESC at the front of typed_. False: the rest of it has not come.
  bool TakeSequence();
  void OnSequence(std::string_view sequence);
  // Text that is pasted, up to the sequence that ends it. False: the rest has not come.
  bool TakePaste();
  // The line that is `step` further in the history.
  void GoInHistory(int step);
  void Draw();
  void Write(std::string_view bytes);

  struct termios before_ = {};
  std::string typed_;  // what was read and not taken
  bool in_paste_ = false;
  LineText line_;
  std::string prompt_;
  std::vector<std::string> history_;
  size_t history_at_ = 0;  // history_.size(): the line that is being typed
  std::string unfinished_;
  bool use_color_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_LINE_EDITOR_H_
