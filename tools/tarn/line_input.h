// The lines that a user types, or that a pipe feeds.
#ifndef TARN_TOOLS_TARN_LINE_INPUT_H_
#define TARN_TOOLS_TARN_LINE_INPUT_H_

#include <csignal>
#include <memory>
#include <string>

namespace tarn_cli {

class LineInput {
 public:
  enum class End { kLine, kEndOfInput, kSignal };

  virtual ~LineInput() = default;
  // Waits for a line, of any length and any bytes, and gives it without its end. After kSignal, Interrupted() says which, and the
  // line is what was typed so far. Throws Failure if standard input cannot be read.
  virtual End Read(const std::string& prompt, std::string* line) = 0;

  // With an editor where a terminal is at both ends. One of them at a time.
  static std::unique_ptr<LineInput> Create();
};

// Bytes of standard input. Signals that end or change something are let in only while it waits, so that none is missed.
class InputBytes {
 public:
  InputBytes();
  ~InputBytes();
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  enum class Got { kBytes, kEnd, kSignal };
  // Waits and appends what there is.
  Got Wait(std::string* bytes) const;

 private:
  sigset_t before_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_LINE_INPUT_H_
