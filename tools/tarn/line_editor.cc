#include "tools/tarn/line_editor.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "tools/common/signals.h"
#include "tools/tarn/color.h"

namespace tarn_cli {
namespace {

constexpr size_t kMostHistory = 100, kLongestKept = 4096;  // lines, and bytes of one
constexpr size_t kLongestSequence = 32;
constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l";
constexpr std::string_view kPasteBegins = "[200~", kPasteEnds = "\033[201~";

constexpr char Control(char letter) { return static_cast<char>(letter & 0x1F); }

size_t TerminalColumns() {
  constexpr size_t kUsual = 80;
  struct winsize window = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return kUsual;
  return window.ws_col;
}

// For a signal that ends the process at once.
struct termios usual_modes = {};

void RestoreTerminal() {
  tcsetattr(STDIN_FILENO, TCSANOW, &usual_modes);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kPasteOff.data(), kPasteOff.size());
}

// A handler does nothing: that the signal comes ends the wait, and the line is drawn again.
void OnChange(int) {}

void CatchChanges() {
  struct sigaction action = {};
  action.sa_handler = OnChange;
  sigaction(SIGWINCH, &action, nullptr);
  sigaction(SIGCONT, &action, nullptr);
}

}  // namespace

LineEditor::LineEditor() : use_color_(UseColor(stderr)) {
  tcgetattr(STDIN_FILENO, &before_);
  usual_modes = before_;
  tarn::tools::AtSuddenEnd(RestoreTerminal);
  CatchChanges();
  SetTerminal();
}

LineEditor::~LineEditor() {
  tarn::tools::AtSuddenEnd(nullptr);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void LineEditor::SetTerminal() {
  struct termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);  // Ctrl-C and Ctrl-Z stay signals
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | ISTRIP | IXON);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

LineInput::End LineEditor::Read(const std::string& prompt, std::string* line) {
  prompt_ = prompt;
  line_.Set("");
  history_at_ = history_.size();
  SetTerminal();
  Write(kPasteOn);
  const End end = Edit();
  Write(kPasteOff);
  Write("\n");
  *line = line_.text();
  const bool is_new = history_.empty() || history_.back() != *line;
  if (end == End::kLine && !line->empty() && line->size() <= kLongestKept && is_new) {
    history_.push_back(*line);
    if (history_.size() > kMostHistory) history_.erase(history_.begin());
  }
  return end;
}

LineInput::End LineEditor::Edit() {
  const InputBytes input;
  for (;;) {
    const Key key = TakeKeys();
    Draw();
    if (key == Key::kEnter) return End::kLine;
    if (key == Key::kEnd) return End::kEndOfInput;
    if (tarn::tools::Interrupted()) {
      typed_.clear();
      in_paste_ = false;
      return End::kSignal;
    }
    switch (input.Wait(&typed_)) {
      case InputBytes::Got::kEnd:
        return End::kEndOfInput;
      case InputBytes::Got::kSignal:  // a new width, or the job goes on
        SetTerminal();
        break;
      case InputBytes::Got::kBytes:
        break;
    }
  }
}

LineEditor::Key LineEditor::TakeKeys() {
  while (!typed_.empty()) {
    if (in_paste_) {
      if (!TakePaste()) return Key::kNone;
      continue;
    }
    if (typed_[0] == '\033') {
      if (!TakeSequence()) return Key::kNone;
      continue;
    }
    const auto is_control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
    const size_t text = static_cast<size_t>(std::find_if(typed_.begin(), typed_.end(), is_control) - typed_.begin());
    if (text > 0) {
      line_.Insert(std::string_view(typed_).substr(0, text));
      typed_.erase(0, text);
      continue;
    }
    const char control = typed_[0];
    typed_.erase(0, 1);
    const Key key = TakeControl(control);
    if (key != Key::kNone) return key;
  }
  return Key::kNone;
}

LineEditor::Key LineEditor::TakeControl(char key) {
  switch (key) {
    case '\r':
    case '\n':
      return Key::kEnter;
    case Control('D'):
      if (line_.text().empty()) return Key::kEnd;
      line_.EraseAfter();
      break;
    case Control('A'):
      line_.MoveToBegin();
      break;
    case Control('E'):
      line_.MoveToEnd();
      break;
    case Control('B'):
      line_.MoveLeft();
      break;
    case Control('F'):
      line_.MoveRight();
      break;
    case Control('H'):
    case 0x7F:
      line_.EraseBefore();
      break;
    case Control('W'):
      line_.EraseWordBefore();
      break;
    case Control('U'):
      line_.EraseAllBefore();
      break;
    case Control('K'):
      line_.EraseAllAfter();
      break;
    case Control('P'):
      GoInHistory(-1);
      break;
    case Control('N'):
      GoInHistory(1);
      break;
    case '\t':
      line_.Insert("\t");
      break;
    default:
      break;
  }
  return Key::kNone;
}

bool LineEditor::TakeSequence() {
  // ESC [ parameters letter, or ESC O letter; ESC and another character are no key of ours. Of two ESC the second one counts.
  if (typed_.size() >= 2 && typed_[1] == '\033') {
    typed_.erase(0, 1);
    return true;
  }
  size_t end = 1 + (typed_.size() < 2 ? 1 : CharacterLength(typed_[1]));
  if (typed_.size() >= 2 && typed_[1] == '[') {
    while (end < typed_.size() && end < kLongestSequence && (typed_[end] < 0x40 || typed_[end] > 0x7E)) ++end;
    ++end;
  } else if (typed_.size() >= 2 && typed_[1] == 'O') {
    end = 3;
  }
  if (typed_.size() < end) return false;
  OnSequence(typed_.substr(1, end - 1));
  typed_.erase(0, end);
  return true;
}

void LineEditor::OnSequence(std::string_view sequence) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), sequence) != names.end();
  };
  if (sequence == kPasteBegins) in_paste_ = true;
  if (is({"[A", "OA"})) GoInHistory(-1);
  if (is({"[B", "OB"})) GoInHistory(1);
  if (is({"[C", "OC"})) line_.MoveRight();
  if (is({"[D", "OD"})) line_.MoveLeft();
  if (is({"[H", "OH", "[1~", "[7~"})) line_.MoveToBegin();
  if (is({"[F", "OF", "[4~", "[8~"})) line_.MoveToEnd();
  if (sequence == "[3~") line_.EraseAfter();
}

bool LineEditor::TakePaste() {
  const size_t found = typed_.find(kPasteEnds);
  // The sequence may have come in part.
  const size_t whole = found != std::string::npos ? found : typed_.size() - std::min(typed_.size(), kPasteEnds.size() - 1);
  std::string text = typed_.substr(0, whole);
  std::replace(text.begin(), text.end(), '\r', '\n');  // as terminals paste a line break
  line_.Insert(text);
  typed_.erase(0, found != std::string::npos ? found + kPasteEnds.size() : whole);
  in_paste_ = found == std::string::npos;
  return !in_paste_;
}

void LineEditor::GoInHistory(int step) {
  const bool forward = step > 0;
  if (forward ? history_at_ == history_.size() : history_at_ == 0) return;
  if (history_at_ == history_.size()) unfinished_ = line_.text();
  history_at_ = forward ? history_at_ + 1 : history_at_ - 1;
  line_.Set(history_at_ == history_.size() ? unfinished_ : history_[history_at_]);
}

void LineEditor::Draw() {
  constexpr size_t kFewestOfText = 4;
  const size_t columns = TerminalColumns();
  const std::string prompt = columns < prompt_.size() + kFewestOfText ? "" : prompt_;  // ASCII
  const LineText::Shown shown = line_.Show(columns - prompt.size());
  std::string bytes = "\r" + (use_color_ ? kQuestionColor + prompt + kNoColor : prompt) + shown.text + "\033[K";
  if (shown.columns > shown.cursor_column) bytes += "\033[" + std::to_string(shown.columns - shown.cursor_column) + "D";
  Write(bytes);
}

void LineEditor::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(STDERR_FILENO, bytes.data(), bytes.size());
    if (size < 0 && errno != EINTR && errno != EAGAIN) return;  // a terminal that is gone: the next read says so
    if (size > 0) bytes.remove_prefix(static_cast<size_t>(size));
  }
}

}  // namespace tarn_cli
