#include "runtime/text/encoder.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/text/edge_spaces.h"
#include "runtime/text/longest.h"
#include "runtime/text/spaces.h"

namespace tarn {
namespace {

// A window holds a word, one character of look-ahead, the character before, and an added token that may begin behind it.
constexpr size_t kWindowSlack = kMaxAddedTokenBytes + 64;

constexpr TextRange kAllText[] = {{0, SIZE_MAX}};

Status CheckConfig(const TokenizerTables& tables, const EncoderConfig& config) {
  if (tables.kind == TokenizerKind::kNone) {
    return Error(TARN_UNSUPPORTED, "the model has no tokenizer: it takes and gives token ids only");
  }
  if (config.max_word_bytes < 1 || config.max_word_bytes > kMostWordBytes) {
    return Error(TARN_INVALID_ARGUMENT, "max_word_bytes is %u, must be in [1, %u]", config.max_word_bytes, kMostWordBytes);
  }
  if (config.cache_words < 1 || config.cache_words > kMostCacheWords) {
    return Error(TARN_INVALID_ARGUMENT, "cache_words is %u, must be in [1, %u]", config.cache_words, kMostCacheWords);
  }
  return Ok();
}

bool IsWithoutWords(TokenizerKind kind) { return kind == TokenizerKind::kBytes || kind == TokenizerKind::kLongest; }

uint32_t PowerOfTwoUpTo(uint32_t most) {
  uint32_t power = 1;
  while (power <= most / 2) power *= 2;
  return power;
}

}  // namespace

Encoder::Encoder(const TokenizerTables& tables, const EncoderConfig& config)
    : tables_(&tables),
      config_(config),
      raw_set_(tables.added, tables.added.raw),
      normalized_set_(tables.added, tables.added.normalized),
      model_(tables) {}

void Encoder::TakeArrays(Bump* bump) {
  if (IsWithoutWords(tables_->kind)) return;
  model_.TakeArrays(bump, config_.max_word_bytes);
  cache_.TakeArrays(bump, PowerOfTwoUpTo(config_.cache_words));
  if (!tables_->space.empty()) spelled_ = TakeArray<uint8_t>(*bump, config_.max_word_bytes);
  if (tables_->prefix_space || !tables_->normalizer_words.empty()) {
    window_.TakeArrays(bump, tables_->normalizer, config_.max_word_bytes + kWindowSlack);
  }
}

Result<uint64_t> Encoder::Measure(const TokenizerTables& tables, const EncoderConfig& config) {
  TARN_RETURN_IF_ERROR(CheckConfig(tables, config));
  Bump bump;
  bump.Take(sizeof(Encoder));
  Encoder(tables, config).TakeArrays(&bump);
  return bump.used();
}

Result<Encoder*> Encoder::Create(const TokenizerTables& tables, const EncoderConfig& config, const BlockSource& memory) {
  TARN_ASSIGN_OR_RETURN(const uint64_t bytes, Measure(tables, config));
  TARN_ASSIGN_OR_RETURN(Block block, Block::From(memory, bytes, "tokenizer"));
  Bump bump(block.bytes());
  Encoder* encoder = new (bump.Take(sizeof(Encoder))) Encoder(tables, config);
  encoder->TakeArrays(&bump);
  encoder->block_ = std::move(block);
  return encoder;
}

void Encoder::Destroy(Encoder* encoder) {
  if (encoder == nullptr) return;
  const Block block = std::move(encoder->block_);  // outlives the object that lies in it
  encoder->~Encoder();
}

void Encoder::Begin(Span<const char> text, const EncoderOptions& options) {
  options_ = options;
  phase_ = Phase::kPrefix;
  text_ = text;
  template_next_ = 0;
  written_ = 0;
  if (!options.with_special) options_.plain = kAllText;
  raw_ = AddedTokenScanner(raw_set_, {options_.plain}, text, /*is_whole=*/true);
  part_begin_ = 0;
  has_after_part_ = in_part_ = is_last_part_ = has_after_gap_ = in_gap_ = false;
  found_ = {};
  found_next_ = 0;
  if (IsWithoutWords(tables_->kind)) window_.BeginAsIs(text, 0);
}

Status Encoder::Read(Span<int32_t> tokens, Span<TextRange> ranges, size_t* count) {
  *count = 0;
  while (*count < tokens.size()) {
    if (found_next_ < found_.size()) {
      WriteFound(tokens, ranges, count);
      continue;
    }
    if (phase_ == Phase::kEnd) break;
    if (phase_ == Phase::kText) {
      const Result<bool> more = Advance();
      if (!more.ok()) phase_ = Phase::kEnd;
      if (!more.ok()) return more.status();
      if (!more.value()) phase_ = Phase::kSuffix;
      continue;
    }
    const Span<const uint32_t> ids = phase_ == Phase::kPrefix ? tables_->prefix : tables_->suffix;
    if (!options_.add_template || template_next_ == ids.size()) {
      phase_ = phase_ == Phase::kPrefix ? Phase::kText : Phase::kEnd;
      template_next_ = 0;
      continue;
    }
    if (!ranges.empty()) ranges[*count] = {0, 0};
    tokens[(*count)++] = static_cast<int32_t>(ids[template_next_++]);
  }
  return Ok();
}

Result<bool> Encoder::Advance() {
  if (IsWithoutWords(tables_->kind)) {
    tables_->kind == TokenizerKind::kBytes ? AdvanceBytes() : AdvanceLongest();
    return !found_.empty();
  }
  for (;;) {
    if (in_gap_) {
      TextRange word = {};
      const ScanStatus status = words_.Next(&word);
      if (status == ScanStatus::kFound) {
        TARN_RETURN_IF_ERROR(EncodeWord(word));
        if (!found_.empty()) return true;
      } else if (status == ScanStatus::kMore) {
        TARN_RETURN_IF_ERROR(ReadMore());
      } else {
        in_gap_ = false;
      }
    } else if (has_after_gap_) {
      has_after_gap_ = false;
      gap_begin_ = after_gap_.range.end;
      SetAdded(after_gap_, /*in_whole_text=*/false);
      return true;
    } else if (in_part_) {
      TARN_RETURN_IF_ERROR(NextGap());
    } else if (has_after_part_) {
      has_after_part_ = false;
      part_begin_ = after_part_.range.end;
      SetAdded(after_part_, /*in_whole_text=*/true);
      return true;
    } else if (!NextPart()) {
      return false;
    }
  }
}

void Encoder::AdvanceBytes() {
  const size_t end = std::min(part_begin_ + WordCache::kMaxTokens, text_.size());
  for (size_t at = part_begin_; at < end; ++at) few_[at - part_begin_] = {static_cast<uint8_t>(text_[at]), 1};
  SetFound({few_, end - part_begin_}, {part_begin_, end});
  part_begin_ = end;
}

// A character that is unknown, without an id for such ones, makes no token.
void Encoder::AdvanceLongest() {
  size_t count = 0, begin = part_begin_;
  while (count < WordCache::kMaxTokens && part_begin_ < text_.size()) {
    const auto* rest = reinterpret_cast<const uint8_t*>(text_.data()) + part_begin_;
    const WordToken token = LongestToken(tables_->vocabulary, {rest, text_.size() - part_begin_});
    if (token.id < 0 && count > 0) break;
    part_begin_ += token.length;
    if (token.id < 0) {
      begin = part_begin_;
    } else {
      few_[count++] = token;
    }
  }
  SetFound({few_, count}, {begin, part_begin_});
}

bool Encoder::NextPart() {
  if (is_last_part_) return false;
  has_after_part_ = raw_.Next(&after_part_) == ScanStatus::kFound;
  is_last_part_ = !has_after_part_;
  const size_t end = has_after_part_ ? after_part_.range.begin : text_.size();
  if (end <= part_begin_) return true;
  const Span<const char> part = text_.subspan(part_begin_, end - part_begin_);
  const bool may_get_space = tables_->prefix_space && (!tables_->prefix_first || part_begin_ == 0);
  if (may_get_space || (!tables_->normalizer_words.empty() && tables_->normalizer.UnchangedPrefix(part) < part.size())) {
    window_.BeginBuffered(tables_->normalizer, part, part_begin_);
  } else {
    window_.BeginAsIs(part, part_begin_);
  }
  normalized_ = AddedTokenScanner(normalized_set_, {options_.plain, &window_}, window_.text(), window_.is_whole(), window_.begin());
  gap_begin_ = window_.begin();
  is_last_gap_ = false;
  in_part_ = true;
  return true;
}

// What the scanner said of the gap that begins at gap_begin_.
void Encoder::SetGap(ScanStatus status, const FoundToken& token) {
  has_after_gap_ = status == ScanStatus::kFound;
  is_last_gap_ = status == ScanStatus::kEnd;
  gap_is_whole_ = status != ScanStatus::kMore;
  if (has_after_gap_) after_gap_ = token;
  gap_end_ = has_after_gap_ ? token.range.begin : normalized_.certain();
}

Status Encoder::NextGap() {
  if (is_last_gap_) {
    in_part_ = false;
    return Ok();
  }
  FoundToken token = {};
  SetGap(normalized_.Next(&token), token);
  if (gap_end_ <= gap_begin_) return gap_is_whole_ ? Ok() : ReadMore();
  words_.Begin(*tables_, &window_, {gap_begin_, gap_end_}, gap_is_whole_);
  in_gap_ = true;
  return Ok();
}

// Moves the window forward as far as it may, and what knows places in it.
Status Encoder::ReadMore() {
  const size_t first = in_gap_ ? words_.needed() : std::min(gap_begin_, normalized_.certain());
  const size_t dropped = first - std::min(first, window_.begin());
  if (!window_.Refill(dropped)) return TooLong();
  normalized_.Continue(window_.text(), dropped, window_.is_whole());
  if (!in_gap_) {
    gap_begin_ -= dropped;
    return Ok();  // NextGap() looks again
  }
  FoundToken token = {};
  SetGap(normalized_.Next(&token), token);
  words_.Continue({first - dropped, gap_end_}, gap_is_whole_);
  return Ok();
}

Status Encoder::TooLong() const {
  return Error(TARN_BUFFER_TOO_SMALL,
               "a word of the text is longer than the %u bytes of max_word_bytes: make a tokenizer for longer ones",
               config_.max_word_bytes);
}

Span<const uint8_t> Encoder::Spell(TextRange word) {
  const size_t bytes = word.end - word.begin;
  const Span<const uint8_t> text = {reinterpret_cast<const uint8_t*>(window_.text().data()) + word.begin, bytes};
  if (bytes > config_.max_word_bytes) return {};
  if (tables_->space.empty()) return text;
  size_t size = 0;
  for (const uint8_t byte : text) {
    const size_t width = byte == ' ' ? tables_->space.size() : 1;
    if (width > spelled_.size() - size) return {};
    std::memcpy(&spelled_[size], byte == ' ' ? tables_->space.data() : reinterpret_cast<const char*>(&byte), width);
    size += width;
  }
  return spelled_.subspan(0, size);
}

Status Encoder::EncodeWord(TextRange word) {
  const Span<const uint8_t> text = Spell(word);
  if (text.empty()) return TooLong();
  if (text.size() > WordCache::kMaxWordBytes || !model_.IsAlwaysTheSame(words_.continues())) {
    const WordTokens tokens = model_.Encode(text, words_.continues());
    SetFound(tokens.tokens, word);
    has_gap_ = tokens.has_gap;
    return Ok();
  }
  const size_t known = cache_.Find(text, few_);
  if (known > 0) {
    SetFound({few_, known}, word);
    return Ok();
  }
  const WordTokens tokens = model_.Encode(text, false);
  if (!tokens.has_gap) cache_.Add(text, tokens.tokens);
  SetFound(tokens.tokens, word);
  has_gap_ = tokens.has_gap;
  return Ok();
}

void Encoder::SetFound(Span<const WordToken> tokens, TextRange word) {
  found_ = tokens;
  found_next_ = 0;
  word_ = word;
  word_at_ = word.begin;
  spelled_at_ = spelled_next_ = 0;
  has_gap_ = is_added_ = is_raw_ = false;
}

void Encoder::SetAdded(const FoundToken& token, bool in_whole_text) {
  few_[0] = {static_cast<int32_t>(token.id), static_cast<uint32_t>(token.range.end - token.range.begin)};
  SetFound({few_, 1}, token.range);
  is_added_ = true;
  is_raw_ = in_whole_text;
}

void Encoder::WriteFound(Span<int32_t> tokens, Span<TextRange> ranges, size_t* count) {
  for (; found_next_ < found_.size() && *count < tokens.size(); ++found_next_, ++written_) {
    const WordToken& token = found_[found_next_];
    if (!ranges.empty()) ranges[*count] = NextRange(token);
    tokens[(*count)++] = token.id;
  }
}

TextRange Encoder::NextRange(const WordToken& token) {
  const TextRange slice = is_added_ ? word_ : NextSlice(token);
  const TextRange range = is_raw_ ? slice : window_.Origin(slice.begin, slice.end);
  if (!tables_->trim_offsets) return range;
  EdgeSpaces spaces = SpacesOf(token, slice);
  const bool is_first = written_ == 0 || range.begin == 0;
  if (is_first && tables_->trim_keeps_first && spaces.leading == 1) spaces.leading = 0;
  return TrimRange(text_, range, spaces);
}

// The next token's part of the text of `window_`.
TextRange Encoder::NextSlice(const WordToken& token) {
  if (has_gap_ || !tables_->space.empty()) return SliceAsSpelled(token);
  const uint32_t length = token.length & ~kStays;
  const TextRange slice = {word_at_, word_at_ + length};
  if (length == token.length) word_at_ += length;
  return slice;
}

// Of an added token, and of what is unknown to Unigram, the package knows the text; of others the token.
EdgeSpaces Encoder::SpacesOf(const WordToken& token, TextRange slice) const {
  const size_t bytes = slice.end - slice.begin;
  if (is_added_) return EdgeSpacesOfText((is_raw_ ? text_ : window_.text()).subspan(slice.begin, bytes));
  if (tables_->kind != TokenizerKind::kUnigram || token.id != tables_->vocabulary.unk_id) {
    return EdgeSpacesOfToken(*tables_, static_cast<uint32_t>(token.id));
  }
  if (tables_->space.empty()) return EdgeSpacesOfText(window_.text().subspan(slice.begin, bytes));
  // NextSlice() has gone on behind the token, unless the next one begins where it does.
  const uint32_t length = token.length & ~kStays, begin = spelled_next_ - (length == token.length ? length : 0);
  return EdgeSpacesOfText({reinterpret_cast<const char*>(&spelled_[begin]), length});
}

// Bytes of what byte `at` of the window's text became.
uint32_t Encoder::SpelledBytes(size_t at) const {
  const auto width = [this](char c) { return has_gap_ ? AlphabetWidth(*tables_, static_cast<uint8_t>(c)) : 1; };
  const char byte = window_.text()[at];
  if (byte != ' ' || tables_->space.empty()) return width(byte);
  uint32_t bytes = 0;
  for (const char c : tables_->space) bytes += width(c);
  return bytes;
}

// The next token's part of the word as it is spelled.
TextRange Encoder::SliceAsSpelled(const WordToken& token) {
  while (spelled_at_ + SpelledBytes(word_at_) <= spelled_next_) spelled_at_ += SpelledBytes(word_at_++);
  const uint32_t length = token.length & ~kStays, end = spelled_next_ + length;
  if (length == token.length) spelled_next_ = end;
  size_t last = word_at_;
  for (uint32_t at = spelled_at_; at + SpelledBytes(last) < end;) at += SpelledBytes(last++);
  return {word_at_, last + 1};
}

}  // namespace tarn
