// The step of a normalizer that replaces text by a charsmap, as the `tokenizers` package does it.
//
// The text is cut into grapheme clusters. Of a cluster of fewer than 6 bytes, the shortest string of the charsmap that it begins
// with replaces all of it. Otherwise each of its characters is looked up on its own.
//
// The characters of the output stand for those of the input in their order. If n characters become more, the last ones have the
// range of the one before them. If they become fewer, the last one stands for the rest; if they become none, the character before
// them does. Where there is none before them, every range up to the end of the text is that of an earlier character. This is exact
// for up to kMaxFormRun characters that are gone at the beginning.
#ifndef TARN_RUNTIME_TEXT_CHARSMAP_STEP_H_
#define TARN_RUNTIME_TEXT_CHARSMAP_STEP_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/normal_step.h"
#include "runtime/text/normal_tables.h"

namespace tarn {

class CharsMapStep {
 public:
  CharsMapStep() = default;
  // `words`: kWords of them.
  explicit CharsMapStep(Span<uint32_t> words);

  // As those of NormalForm.
  NormalForm::Status Take(const NormalTables& tables, NormalChar* c);
  void Put(const NormalTables& tables, const NormalChar& c);
  void End() { is_ended_ = is_closed_ = true; }

  // The ranges are those of earlier characters: the text must not be cut.
  bool is_adrift() const { return is_adrift_; }
  // Forgets the text.
  void Reset() { *this = words_.empty() ? CharsMapStep() : CharsMapStep(words_); }

 private:
  void Begin(const NormalTables& tables, const NormalChar& c);
  void Append(const NormalChar& c);
  // The next characters of the cluster become text: all of them together if the charsmap knows them, else the first one.
  void Advance(const NormalTables& tables);
  bool Replace(const NormalTables& tables, size_t characters);
  void Remove(size_t characters);
  NormalChar Make(bool* is_put_in);
  // `characters` of the input are stood for. Returns the range of the first one.
  TextRange StandFor(size_t characters);

  Span<uint32_t> words_;
  NormalQueue cluster_;  // the characters of it that are not replaced yet
  NormalQueue waiting_;  // the input that was not yet stood for
  TextRange last_ = {0, 0};
  uint32_t state_ = 0;  // of the pattern of clusters
  size_t bytes_ = 0;    // of the cluster
  bool has_cluster_ = false;
  bool is_closed_ = false;   // the cluster is complete
  bool is_singles_ = false;  // its characters are looked up on their own
  bool is_ended_ = false, is_adrift_ = false;
  bool has_next_ = false;
  NormalChar next_ = {0, {0, 0}};  // of the next cluster
  // What replaces characters: the rest of a text, or one character; left_ code points. Of these the last added_ are put in, or the
  // last one stands for -added_ more of the input.
  Span<const char> text_;
  uint32_t single_ = 0;
  ptrdiff_t left_ = 0, added_ = 0;
  // A character that was put in: if what follows it becomes nothing, it stands for that.
  bool has_made_ = false, has_held_ = false, held_is_put_in_ = false;
  NormalChar held_ = {0, {0, 0}};

  static constexpr size_t kWholeBytes = 6;  // fewer are looked up as a whole
  static constexpr size_t kWaiting = kMaxFormRun + 2 * kWholeBytes;

 public:
  static constexpr size_t kWords = (kWholeBytes + kWaiting) * NormalQueue::kWords;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_CHARSMAP_STEP_H_
