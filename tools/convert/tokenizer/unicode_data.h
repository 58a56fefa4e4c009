// The tables of unicode_data.cc, normal_data.cc, grapheme_data.cc and script_data.cc, which tools/dev/unicode_tables.py writes.
// unicode.h is what others use.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_DATA_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_DATA_H_

#include <cstddef>
#include <cstdint>

namespace tarn::convert {

constexpr size_t kCategoryCount = 30;

struct CategoryName {
  const char* brief;  // "Lu"
  const char* full;   // "Uppercase_Letter"
};

struct PropertyRow {
  uint8_t category[4];  // in each UnicodeVersion: an index of kCategoryNames
  uint8_t alphabetic;   // in 16.0: 0 or 1
  uint8_t script;       // in 16.0: 1 + an index of kScriptNames; 0: none of them
};

// The code points first, first + stride, ... map to themselves + delta.
struct CaseRun {
  uint32_t first;
  uint32_t count;
  uint32_t stride;
  int32_t delta;
};

struct LongCaseFold {
  uint32_t code;
  uint32_t folded[3];  // 0 behind the last one
};

extern const CategoryName kCategoryNames[kCategoryCount];
extern const PropertyRow kPropertyRows[];
// From U+0000 on: length * 1024 + row. Together they have all code points.
extern const uint32_t kPropertyRuns[];
extern const size_t kPropertyRunCount;
extern const char* const kScriptNames[];
extern const size_t kScriptCount;

// Case folding of 16.0: to one character (C of CaseFolding.txt), to several (F).
extern const CaseRun kFolds[];
extern const size_t kFoldCount;
extern const LongCaseFold kLongFolds[];
extern const size_t kLongFoldCount;

// Lowercase of 17.0, character by character; U+0130 is an exception.
extern const CaseRun kLowercase[];
extern const size_t kLowercaseCount;

struct CombiningRun {
  uint32_t first;  // up to the next run's
  uint8_t of;      // Canonical_Combining_Class
};

// Of 9.0. kDecompositions: a code point, 2 * n + (1 if it is a compatibility decomposition), n code points; and so on. kComposed:
// the code points that the two code points of their decomposition compose to.
extern const CombiningRun kCombiningRuns[];
extern const size_t kCombiningRunCount;
extern const uint32_t kDecompositions[];
extern const size_t kDecompositionWords;
extern const uint32_t kComposed[];
extern const size_t kComposedCount;

// What decides where a grapheme cluster ends, in 17.0. kExtend without the linkers.
enum class GraphemeClass : uint8_t {
  kOther = 0,
  kCr,
  kLf,
  kControl,
  kPrepend,
  kL,
  kV,
  kT,
  kLv,
  kLvt,
  kSpacingMark,
  kRegional,
  kZwj,
  kExtend,
  kPictograph,
  kConsonant,
  kLinker,
};
constexpr size_t kGraphemeClasses = 17;
// From U+0000 on: length * 32 + GraphemeClass. Together they have all code points.
extern const uint32_t kGraphemeRuns[];
extern const size_t kGraphemeRunCount;

// Scripts of 9.0 as ScriptSets() tells them apart. From U+0000 on: length * 256 + set; 0: in none of them. Together they have all
// code points.
extern const uint32_t kScriptRuns[];
extern const size_t kScriptRunCount;

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_DATA_H_
