// What a tokenizer sees of a text: the text itself where nothing changes it, else what the normalizer makes of it, a window of
// which lies in a buffer. Every byte knows where in the text it comes from.
#ifndef TARN_RUNTIME_TEXT_TEXT_WINDOW_H_
#define TARN_RUNTIME_TEXT_TEXT_WINDOW_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/normalize.h"

namespace tarn {

class TextWindow {
 public:
  // A buffer for windows of `bytes`; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, const Normalizer& normalizer, size_t bytes);

  // All of `text`, as it is. `origin` is where it lies in the whole text.
  void BeginAsIs(Span<const char> text, size_t origin);
  // What `normalizer` makes of `text`, in the buffer.
  void BeginBuffered(const Normalizer& normalizer, Span<const char> text, size_t origin);

  Span<const char> text() const { return text_; }
  // Where the text begins: 1 in a buffer, so that there is room for a space before it.
  size_t begin() const { return is_buffered_ ? 1 : 0; }
  // There is nothing behind text().
  bool is_whole() const { return is_whole_; }
  // Drops the first `dropped` bytes and reads more. False: nothing came in.
  bool Refill(size_t dropped);
  // Of a buffered text: makes the byte before `at` >= 1, which nobody needs any more, a space that comes from where byte `at` does.
  void PutSpaceBefore(size_t at);

  // Where bytes [begin, end), at least one, come from in the whole text.
  TextRange Origin(size_t begin, size_t end) const;

 private:
  void Read();

  Span<char> buffer_;
  Span<TextRange> origins_;  // of the bytes of `buffer_`, in `reader_`'s text
  Span<uint32_t> working_;   // of `reader_`
  NormalizedText reader_{Normalizer(), {}, {}};
  Span<const char> text_;
  size_t origin_ = 0;
  bool is_buffered_ = false;
  bool is_whole_ = true;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_TEXT_WINDOW_H_
