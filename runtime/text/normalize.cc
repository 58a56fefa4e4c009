#include "runtime/text/normalize.h"

#include <algorithm>

#include "runtime/text/code_point.h"
#include "runtime/text/spaces.h"

namespace tarn {
namespace {

const uint8_t* Bytes(Span<const char> text) { return reinterpret_cast<const uint8_t*>(text.data()); }

size_t Encode(uint32_t code, char* out) {
  if (code < kBadByte) return EncodeCodePoint(code, out);
  out[0] = static_cast<char>(code - kBadByte);
  return 1;
}

}  // namespace

NormalizedText::NormalizedText(const Normalizer& normalizer, Span<const char> text, Span<uint32_t> working)
    : normalizer_(normalizer), text_(text), working_(working), has_begun_(!normalizer.has_begin() && !MayDrift()) {}

uint32_t NormalizedText::CodeAt(size_t at) const {
  const CodePoint c = DecodeCodePoint(Bytes(text_) + at, Bytes(text_) + text_.size());
  return c.is_valid ? c.code : kBadByte + Bytes(text_)[at];
}

// A charsmap may take away the first character (CharsMapStep::is_adrift).
bool NormalizedText::MayDrift() const {
  return normalizer_.tables_.has_charsmap && !text_.empty() && !normalizer_.tables_.IsPlain(CodeAt(0));
}

// Where the last segment begins: spaces that a step strips are behind that character.
size_t NormalizedText::LastSegment() const {
  if (!normalizer_.HasStrip(1)) return SIZE_MAX;
  if (!has_begun_) return 0;  // segments do not end before the first character has come out
  size_t boundary = text_.size(), at = boundary;
  while (at > 0) {
    at = CharacterBegin(text_, at - 1);
    const uint32_t code = CodeAt(at);
    if (boundary < text_.size() && normalizer_.tables_.IsPlain(code)) return boundary;
    boundary = normalizer_.tables_.IsBoundary(code) ? at : text_.size();
  }
  return 0;
}

void NormalizedText::BeginSegment() {
  in_segment_ = true;
  segment_has_text_ = false;
  if (at_ == last_segment_) CountKept();
}

// Goes through the last segment for each step that strips its end, before it is read.
void NormalizedText::CountKept() {
  const NormalTables& tables = normalizer_.tables_;
  bool has_begun[kMaxNormalSteps];
  for (size_t i = 0; i < tables.step_count; ++i) has_begun[i] = steps_[i].has_begun;
  for (size_t i = 0; i < tables.step_count; ++i) {
    if (tables.kind(i) != NormalStepKind::kStrip || tables.argument(i, 1) == 0) continue;
    size_t taken = 0, kept = 0;
    for (NormalChar c; Take(i, &c);) {
      ++taken;
      if ((tables.Class(c.code) & kNormalSpace) == 0) kept = taken;
    }
    for (size_t k = 0; k < tables.step_count; ++k) {
      steps_[k].has_begun = has_begun[k];
      steps_[k].taken = 0;
    }
    charsmap_.Reset();
    steps_[i].kept = kept;
    at_ = last_segment_;
    segment_has_text_ = false;
  }
}

// The steps are made when they are first needed: until then the text may move with its reader.
void NormalizedText::MakeSteps() {
  const NormalTables& tables = normalizer_.tables_;
  size_t used = 0;
  for (size_t i = 0; i < tables.step_count; ++i) {
    const Span<uint32_t> words = working_.subspan(used, normalizer_.step_words(i));
    used += words.size();
    if (tables.kind(i) == NormalStepKind::kForm) {
      steps_[i].form = NormalForm(tables.argument(i, 0) != 0, tables.argument(i, 1) != 0, words);
    } else if (tables.kind(i) == NormalStepKind::kCharsMap) {
      charsmap_ = CharsMapStep(words);
    } else {
      steps_[i].queue = NormalQueue(words);
    }
  }
  has_steps_ = true;
  last_segment_ = LastSegment();
  if (!has_begun_) BeginSegment();
}

bool NormalizedText::TakeFromText(NormalChar* c) {
  if (at_ == text_.size()) return false;
  const uint32_t code = CodeAt(at_);
  const bool is_boundary = segment_has_text_ && is_behind_plain_ && normalizer_.tables_.IsBoundary(code);
  if (is_boundary && has_begun_ && at_ <= last_segment_ && !charsmap_.is_adrift()) return false;
  const size_t bytes = DecodeCodePoint(Bytes(text_) + at_, Bytes(text_) + text_.size()).bytes;
  *c = {code, {at_, at_ + bytes}};
  at_ += bytes;
  segment_has_text_ = true;
  is_behind_plain_ = normalizer_.tables_.IsPlain(code);
  return true;
}

// Text that a step puts in.
bool NormalizedText::TakePutIn(NormalStep* step, NormalChar* c) {
  if (step->next == step->text.size()) return false;
  *c = {step->text[step->next++], step->origin};
  return true;
}

template <typename Form>
bool NormalizedText::TakeForm(size_t i, Form* form, NormalChar* c) {
  for (;;) {
    switch (form->Take(normalizer_.tables_, c)) {
      case NormalForm::Status::kGiven:
        return true;
      case NormalForm::Status::kEnd:
        return false;
      case NormalForm::Status::kInput:
        break;
    }
    NormalChar next;
    if (Take(i, &next)) {
      form->Put(normalizer_.tables_, next);
    } else {
      form->End();
    }
  }
}

bool NormalizedText::TakeLowercase(size_t i, NormalChar* c) {
  NormalStep& step = steps_[i];
  if (TakePutIn(&step, c)) return true;
  if (!Take(i, c)) return false;
  if ((normalizer_.tables_.Class(c->code) & kNormalLower) == 0) return true;
  const CodeView lower = normalizer_.tables_.Map(normalizer_.tables_.lowercase, c->code);
  if (lower.size() == 0) return true;
  step.text = lower;
  step.next = 0;
  step.origin = c->origin;
  return TakePutIn(&step, c);
}

bool NormalizedText::TakeBytes(size_t i, NormalChar* c) {
  NormalStep& step = steps_[i];
  if (step.queue.size() == 0) {
    if (!Take(i, c)) return false;
    if (c->code >= kBadByte) return true;
    char bytes[kMaxCharacterBytes];
    const size_t size = EncodeCodePoint(c->code, bytes);
    const CodeView letters = normalizer_.tables_.Text(normalizer_.tables_.argument(i, 0), 256);
    for (size_t k = 0; k < size; ++k) step.queue.Push({letters[static_cast<uint8_t>(bytes[k])], c->origin});
  }
  *c = step.queue.Pop();
  return true;
}

bool NormalizedText::TakePrepended(size_t i, NormalChar* c) {
  NormalStep& step = steps_[i];
  if (TakePutIn(&step, c)) return true;
  if (step.has_held) {
    *c = step.held;
    step.has_held = false;
    return true;
  }
  if (!Take(i, c)) return false;
  if (step.has_begun) return true;
  step.has_begun = step.has_held = true;
  step.held = *c;
  step.text = normalizer_.tables_.Text(normalizer_.tables_.argument(i, 0), normalizer_.tables_.argument(i, 1));
  step.next = 0;
  step.origin = c->origin;
  return TakePrepended(i, c);
}

bool NormalizedText::TakeReplaced(size_t i, NormalChar* c) {
  const NormalTables& tables = normalizer_.tables_;
  NormalStep& step = steps_[i];
  const CodeView wanted = tables.Text(tables.argument(i, 0), tables.argument(i, 1));
  for (;;) {
    if (TakePutIn(&step, c)) return true;
    NormalChar next;
    while (step.queue.size() < wanted.size() && Take(i, &next)) step.queue.Push(next);
    if (step.queue.size() == 0) return false;
    bool is_match = step.queue.size() == wanted.size();
    for (size_t k = 0; is_match && k < wanted.size(); ++k) is_match = step.queue.Get(k).code == wanted[k];
    if (!is_match) {
      *c = step.queue.Pop();
      return true;
    }
    while (step.queue.size() > 0) step.origin = step.queue.Pop().origin;
    step.text = tables.Text(tables.argument(i, 2), tables.argument(i, 3));
    step.next = 0;
  }
}

// What the pattern matches first in what comes out of the steps before: of the match, the last character; the others are gone.
// False: there is none that begins with the first character that waits.
bool NormalizedText::FindMatch(size_t i, NormalChar* last) {
  NormalStep& step = steps_[i];
  const Pattern& pattern = normalizer_.tables_.patterns[i];
  bool found = false;
  uint32_t state = pattern.start();
  for (size_t read = 0; state != 0;) {
    NormalChar next;
    const bool is_full = step.queue.is_full() && read == step.queue.size();
    if (!is_full && read == step.queue.size() && Take(i, &next)) step.queue.Push(next);
    const bool has_next = read < step.queue.size();
    const Pattern::Move move = has_next ? pattern.Over(state, step.queue.Get(read).code) : pattern.OverEnd(state);
    if (move.matched && read > 0) {
      for (; read > 0; --read) *last = step.queue.Pop();
      found = true;
    }
    state = has_next ? move.state : 0;
    ++read;
  }
  return found;
}

bool NormalizedText::TakeReplacedMatches(size_t i, NormalChar* c) {
  const NormalTables& tables = normalizer_.tables_;
  NormalStep& step = steps_[i];
  for (;;) {
    if (TakePutIn(&step, c)) return true;
    if (step.has_held) {
      *c = step.held;
      step.has_held = false;
      step.next = 0;  // the text once more
      return true;
    }
    NormalChar last;
    if (FindMatch(i, &last)) {
      step.text = tables.Text(tables.argument(i, 0), tables.argument(i, 1));
      step.next = 0;
      step.origin = last.origin;
      step.held = last;
      step.has_held = tables.kind(i) == NormalStepKind::kSurroundMatches;
      continue;
    }
    if (step.queue.size() == 0) return false;
    *c = step.queue.Pop();
    return true;
  }
}

bool NormalizedText::TakeStripped(size_t i, NormalChar* c) {
  NormalStep& step = steps_[i];
  while (Take(i, c)) {
    const bool is_space = (normalizer_.tables_.Class(c->code) & kNormalSpace) != 0;
    if (++step.taken > step.kept || (is_space && !step.has_begun && normalizer_.tables_.argument(i, 0) != 0)) continue;
    step.has_begun = true;
    return true;
  }
  return false;
}

bool NormalizedText::Take(size_t steps, NormalChar* c) {
  if (steps == 0) return TakeFromText(c);
  const size_t i = steps - 1;
  switch (normalizer_.tables_.kind(i)) {
    case NormalStepKind::kForm:
      return TakeForm(i, &steps_[i].form, c);
    case NormalStepKind::kCharsMap:
      return TakeForm(i, &charsmap_, c);
    case NormalStepKind::kLowercase:
      return TakeLowercase(i, c);
    case NormalStepKind::kBytes:
      return TakeBytes(i, c);
    case NormalStepKind::kPrepend:
      return TakePrepended(i, c);
    case NormalStepKind::kReplace:
      return TakeReplaced(i, c);
    case NormalStepKind::kReplaceMatches:
    case NormalStepKind::kSurroundMatches:
      return TakeReplacedMatches(i, c);
    case NormalStepKind::kStrip:
      return TakeStripped(i, c);
    case NormalStepKind::kStripAccents:
      do {
        if (!Take(i, c)) return false;
      } while ((normalizer_.tables_.Class(c->code) & kNormalMark) != 0);
      return true;
  }
  return false;
}

size_t NormalizedText::CopyUnchanged(Span<char> bytes, Span<TextRange> origins) {
  const size_t end = std::max(std::min(text_.size(), last_segment_), at_);
  const size_t rest = end - at_, limit = std::min(rest, bytes.size());
  const Span<const char> part = text_.subspan(at_, limit);
  const bool is_whole = limit == rest;
  const size_t size = normalizer_.tables_.step_count == 0 ? limit : normalizer_.PlainPrefix(part, is_whole);
  size_t i = 0;
  while (i < size) {
    const CodePoint c = DecodeCodePoint(Bytes(part) + i, Bytes(part) + size);
    if (c.is_cut && !is_whole) break;
    for (const TextRange origin = {at_ + i, at_ + i + c.bytes}; at_ + i < origin.end; ++i) {
      bytes[i] = part[i];
      origins[i] = origin;
    }
  }
  at_ += i;
  return i;
}

size_t NormalizedText::Read(Span<char> bytes, Span<TextRange> origins) {
  size_t size = 0;
  if (!has_steps_) MakeSteps();
  for (;;) {
    if (!in_segment_) {
      const size_t room = bytes.size() - size;
      size += CopyUnchanged(bytes.subspan(size, room), origins.subspan(size, room));
      if (at_ == text_.size() || bytes.size() - size < 4) return size;
      BeginSegment();
    }
    NormalChar c = held_;
    if (!has_held_ && !Take(normalizer_.tables_.step_count, &c)) {
      in_segment_ = false;
      if (at_ == text_.size()) return size;
      continue;
    }
    char encoded[4];
    has_begun_ = true;
    const size_t length = Encode(c.code, encoded);
    has_held_ = length > bytes.size() - size;
    if (has_held_) {
      held_ = c;
      return size;
    }
    for (size_t i = 0; i < length; ++i, ++size) {
      bytes[size] = encoded[i];
      origins[size] = c.origin;
    }
  }
}

}  // namespace tarn
