#include "runtime/text/text_window.h"

#include <cstring>

#include "runtime/text/spaces.h"

namespace tarn {

void TextWindow::TakeArrays(Bump* bump, const Normalizer& normalizer, size_t bytes) {
  buffer_ = TakeArray<char>(*bump, bytes);
  origins_ = TakeArray<TextRange>(*bump, bytes);
  working_ = TakeArray<uint32_t>(*bump, normalizer.working_words());
}

void TextWindow::BeginAsIs(Span<const char> text, size_t origin) {
  text_ = text;
  origin_ = origin;
  is_buffered_ = false;
  is_whole_ = true;
}

void TextWindow::BeginBuffered(const Normalizer& normalizer, Span<const char> text, size_t origin) {
  reader_ = NormalizedText(normalizer, text, working_);
  text_ = buffer_.subspan(0, 1);
  origin_ = origin;
  is_buffered_ = true;
  is_whole_ = false;
  Read();
}

void TextWindow::Read() {
  size_t size = text_.size();
  while (!is_whole_ && buffer_.size() - size >= kMaxCharacterBytes) {
    const size_t room = buffer_.size() - size;
    const size_t read = reader_.Read(buffer_.subspan(size, room), origins_.subspan(size, room));
    size += read;
    is_whole_ = read == 0;
  }
  text_ = buffer_.subspan(0, size);
}

bool TextWindow::Refill(size_t dropped) {
  const size_t kept = text_.size() - dropped;
  std::memmove(buffer_.data(), buffer_.data() + dropped, kept);
  std::memmove(origins_.data(), origins_.data() + dropped, kept * sizeof(TextRange));
  text_ = buffer_.subspan(0, kept);
  const bool was_whole = is_whole_;
  Read();
  return text_.size() > kept || is_whole_ != was_whole;
}

void TextWindow::PutSpaceBefore(size_t at) {
  buffer_[at - 1] = ' ';
  origins_[at - 1] = origins_[at];
}

TextRange TextWindow::Origin(size_t begin, size_t end) const {
  if (is_buffered_) return {origin_ + origins_[begin].begin, origin_ + origins_[end - 1].end};
  return {origin_ + CharacterBegin(text_, begin), origin_ + CharacterEnd(text_, end - 1)};
}

}  // namespace tarn
