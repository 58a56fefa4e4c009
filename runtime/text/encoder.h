// Text to token ids, with the range of the text that each stands for.
//
//   text -> added tokens -> normalizer -> added tokens of normalized text -> splits -> words -> tokens -> ranges
//
// Everything is pulled from behind: Read() asks for the next word, and so on. The working memory is that of the creation, whatever
// the length of the text. It bounds the length of a word.
#ifndef TARN_RUNTIME_TEXT_ENCODER_H_
#define TARN_RUNTIME_TEXT_ENCODER_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/edge_spaces.h"
#include "runtime/text/text_window.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/word_cache.h"
#include "runtime/text/word_model.h"
#include "runtime/text/word_splitter.h"

namespace tarn {

struct EncoderConfig {
  uint32_t max_word_bytes;  // 1 to kMostWordBytes
  uint32_t cache_words;     // 1 to kMostCacheWords
};
constexpr uint32_t kMostWordBytes = 1u << 26;
constexpr uint32_t kMostCacheWords = 1u << 20;
constexpr uint32_t kDefaultCacheWords = 8192;

struct EncoderOptions {
  bool add_template = true;  // the ids before and after a text
  bool with_special = true;  // special tokens in the text are found
  // Parts of the text in which they are not, ascending; the array outlives what is read of the text. A token that touches one is
  // none.
  Span<const TextRange> plain = {};
};

class Encoder {
 public:
  // The bytes of the block that Create() takes. Errors: TARN_INVALID_ARGUMENT, TARN_UNSUPPORTED (no tokenizer).
  static Result<uint64_t> Measure(const TokenizerTables& tables, const EncoderConfig& config);
  // `tables` outlive it. Errors: those of Measure() and of Block::From.
  static Result<Encoder*> Create(const TokenizerTables& tables, const EncoderConfig& config, const BlockSource& memory);
  // Accepts nullptr.
  static void Destroy(Encoder* encoder);

  // Begins a text, which outlives what is read of it.
  void Begin(Span<const char> text, const EncoderOptions& options);
  // Writes the next ids and, unless it is empty, their ranges; both have one size. Sets `*count`; fewer than there is room for: the
  // text is at its end. Errors: TARN_BUFFER_TOO_SMALL (a word, or what stands for one, is longer than max_word_bytes; `*count` are
  // written, and nothing more comes of this text).
  Status Read(Span<int32_t> tokens, Span<TextRange> ranges, size_t* count);

 private:
  Encoder(const TokenizerTables& tables, const EncoderConfig& config);
  void TakeArrays(Bump* bump);

  enum class Phase : uint8_t { kPrefix, kText, kSuffix, kEnd };

  // Finds the next tokens of the text and puts them into `found_`. False: there are none.
  Result<bool> Advance();
  // Without words: the next bytes, or the next of the longest tokens.
  void AdvanceBytes();
  void AdvanceLongest();
  // From a part to the next one, from a gap to the next one. False: there are no more.
  bool NextPart();
  Status NextGap();
  void SetGap(ScanStatus status, const FoundToken& token);
  Status ReadMore();
  Status EncodeWord(TextRange word);
  // The word as the model sees it: another character may stand for spaces. Empty: it is too long.
  Span<const uint8_t> Spell(TextRange word);
  void SetAdded(const FoundToken& token, bool in_whole_text);
  void SetFound(Span<const WordToken> tokens, TextRange word);
  void WriteFound(Span<int32_t> tokens, Span<TextRange> ranges, size_t* count);
  TextRange NextRange(const WordToken& token);
  TextRange NextSlice(const WordToken& token);
  TextRange SliceAsSpelled(const WordToken& token);
  EdgeSpaces SpacesOf(const WordToken& token, TextRange slice) const;
  uint32_t SpelledBytes(size_t at) const;
  Status TooLong() const;

  const TokenizerTables* tables_;
  EncoderConfig config_;
  AddedTokenSet raw_set_, normalized_set_;
  Block block_;
  WordModel model_;
  WordCache cache_;
  TextWindow window_;
  Span<uint8_t> spelled_;  // [max_word_bytes], where a character stands for spaces

  EncoderOptions options_;
  Phase phase_ = Phase::kEnd;
  Span<const char> text_;
  size_t template_next_ = 0;  // of the ids before or after the text
  uint64_t written_ = 0;      // tokens of the text

  // The whole text. A part is what lies between two added tokens of it.
  AddedTokenScanner raw_;
  size_t part_begin_ = 0;  // of the next one
  FoundToken after_part_ = {};
  bool has_after_part_ = false, in_part_ = false, is_last_part_ = false;

  // A part as `window_` has it. A gap is what lies between two added tokens of normalized text.
  AddedTokenScanner normalized_;
  size_t gap_begin_ = 0, gap_end_ = 0;
  FoundToken after_gap_ = {};
  bool gap_is_whole_ = true;  // else it goes on behind gap_end_
  bool has_after_gap_ = false, in_gap_ = false, is_last_gap_ = false;
  WordSplitter words_;

  // What was found and is not written yet: the tokens of a word, or an added one.
  Span<const WordToken> found_;
  size_t found_next_ = 0;
  TextRange word_ = {};  // in the text of `window_`, or in the whole text: `is_raw_`
  size_t word_at_ = 0;   // where the next token begins
  // Where the word is spelled otherwise: where what byte word_at_ became and the next token begin in it. With a gap (WordTokens),
  // as the byte-level alphabet spells it.
  uint32_t spelled_at_ = 0, spelled_next_ = 0;
  bool has_gap_ = false, is_added_ = false, is_raw_ = false;
  WordToken few_[WordCache::kMaxTokens] = {};
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_ENCODER_H_
