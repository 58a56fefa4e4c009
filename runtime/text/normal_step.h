// What one step of a normalizer remembers, and the step that is hard: a normalization form.
#ifndef TARN_RUNTIME_TEXT_NORMAL_STEP_H_
#define TARN_RUNTIME_TEXT_NORMAL_STEP_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/normal_tables.h"
#include "runtime/text/pattern.h"

namespace tarn {

constexpr size_t kMaxFormRun = 256;  // combining marks that are ordered together

// A character between two steps. Codes from kBadByte on are bytes that belong to no character.
struct NormalChar {
  uint32_t code;
  TextRange origin;
};
constexpr uint32_t kBadByte = 0x110000;

// Characters that wait, first in, first out, in words that the caller gives.
class NormalQueue {
 public:
  static constexpr size_t kWords = 5;  // of a character
  NormalQueue() = default;
  explicit NormalQueue(Span<uint32_t> words) : words_(words), capacity_(words.size() / kWords) {}

  size_t size() const { return size_; }
  bool is_full() const { return size_ == capacity_; }
  void Push(const NormalChar& c);
  NormalChar Get(size_t i) const;
  NormalChar Pop();

 private:
  Span<uint32_t> words_;
  size_t capacity_ = 0, first_ = 0, size_ = 0;
};

// A normalization form as the package computes it: decompose, order marks, compose; and the ranges that come of it. A character of
// the output that composes n characters stands for n of the input, in their order; one that a decomposition put in has the range of
// the one before it.
class NormalForm {
 public:
  enum class Status : uint8_t {
    kGiven,
    kInput,  // Put() a character, or End()
    kEnd,    // all of the input is given, and the form is as it was at first
  };

  NormalForm() = default;
  // `words`: kWords of them.
  NormalForm(bool is_compatibility, bool composes, Span<uint32_t> words);

  Status Take(const NormalTables& tables, NormalChar* c);
  void Put(const NormalTables& tables, const NormalChar& c);
  void End() { is_ended_ = true; }

 private:
  // A decomposed or composed character. It stands for 1 - added characters of the input: 0 if a decomposition put it in.
  struct Part {
    uint32_t code;
    int16_t added;
    uint16_t combining;
  };
  static constexpr size_t kPartWords = 2;
  static constexpr size_t kRunParts = kMaxFormRun + kMaxDecomposedCodes;
  static constexpr size_t kKeptParts = kMaxFormRun + 1;
  static constexpr size_t kWaiting = 2 * kRunParts;  // characters of the input

  Part Get(size_t slot) const;
  void Set(size_t slot, const Part& part);
  void Append(const NormalTables& tables, uint32_t code, bool is_first);
  void Order(size_t end);
  void Feed(const NormalTables& tables, const Part& part);
  void Keep(const Part& part);
  bool FindRun();
  NormalChar Aligned(const Part& part);

  bool is_compatibility_ = false;
  bool composes_ = false;
  bool is_ended_ = false;
  NormalQueue waiting_;      // the input that was not yet stood for
  TextRange last_ = {0, 0};  // of the input that was stood for last
  // Slots [0, run_): decomposed; of these [0, ready_) are in order, and [0, fed_) composed. No character begins in [1, scanned_).
  // Slots [kRunParts, kRunParts + kept_): a character and the marks behind it that did not compose with it.
  Span<uint32_t> parts_;
  size_t run_ = 0, ready_ = 0, fed_ = 0, scanned_ = 1;
  size_t kept_ = 0, given_ = 0;
  uint16_t last_combining_ = 0;  // of the marks that are kept; 0: none are
  bool gives_ = false;           // what is kept
  bool has_next_ = false;
  Part next_ = {0, 0, 0};  // is kept when all else is given

 public:
  static constexpr size_t kWords = kWaiting * NormalQueue::kWords + (kRunParts + kKeptParts) * kPartWords;
};

// One step of one text.
struct NormalStep {
  NormalForm form;  // kForm
  // kReplace, kReplaceMatches, kSurroundMatches: characters that may belong to a match. kBytes: what a character became.
  NormalQueue queue;
  // Text that the step puts in: [next, count) of `text`, from `origin`.
  CodeView text;
  size_t next = 0;
  TextRange origin = {0, 0};
  bool has_begun = false;  // kPrepend: the first character was seen; kStrip: the first that stays
  bool has_held = false;   // kPrepend, kSurroundMatches: a character that comes behind the text
  NormalChar held = {0, {0, 0}};
  // kStrip at the end: of what it takes from the last segment (NormalizedText), the first `kept` characters stay.
  size_t taken = 0, kept = SIZE_MAX;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_NORMAL_STEP_H_
