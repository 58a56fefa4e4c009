// Text as a program gives it out: what goes back with a session.
#ifndef TARN_RUNTIME_GENERATION_TEXT_STATE_H_
#define TARN_RUNTIME_GENERATION_TEXT_STATE_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"

namespace tarn {

class TextState {
 public:
  // How it took a token.
  enum class How : uint8_t { kNot, kPrompt, kFeed };
  // How many tokens it has taken since it was made.
  struct Counts {
    uint64_t prompt = 0, feed = 0;
  };

  virtual Counts counts() const = 0;
  // All of the state, the counts too, at any alignment.
  virtual size_t state_bytes() const = 0;
  virtual void Save(uint8_t* state) const = 0;
  virtual void Restore(const uint8_t* state) = 0;
  // The most bytes that a token gives out.
  virtual size_t max_bytes() const = 0;
  // As the program had it take the token, but what it gives out goes to `dropped` [max_bytes()].
  virtual Status Replay(int32_t token, How how, Span<char> dropped) = 0;

 protected:
  ~TextState() = default;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_TEXT_STATE_H_
