// The layout of a compiled normalizer: what tarn-convert writes into the model file and Normalizer::Open() checks. Little-endian
// 16-bit words, used in place; a code point is two words, the low one first:
//
//   header        [kNormalHeaderWords]: kNormalVersion, steps, leaves, classes, canonical, compatibility, lowercase (mappings),
//                 compositions, texts low, texts high (code points)
//   steps         [steps, kNormalStepWords]: kind of step, and 4 arguments
//   roots         [kNormalRoots]: for each block of kNormalLeaf code points the leaf that has its classes
//   leaves        [leaves, kNormalLeaf] bytes: the class of a code point
//   classes       [classes]: Canonical_Combining_Class + NormalFlags
//   mappings      of the three kinds, each [mappings, kNormalMappingWords], by ascending code point: what it becomes, as a code
//   point,
//                 first text low, first text high, count of texts
//   compositions  [compositions, kNormalCompositionWords], ascending: two code points and the one that they compose to
//   texts         code points
//   patterns      of the steps that have one, in their order: pattern_format.h; behind that of kCharsMap the charsmap: charsmap.h
//
// Hangul syllables are in no table: they decompose and compose by arithmetic.
#ifndef TARN_RUNTIME_TEXT_NORMALIZE_FORMAT_H_
#define TARN_RUNTIME_TEXT_NORMALIZE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr uint16_t kNormalVersion = 1;
constexpr size_t kNormalHeaderWords = 10;
constexpr size_t kNormalStepWords = 5;
constexpr size_t kNormalMappingWords = 5;
constexpr size_t kNormalCompositionWords = 6;
constexpr size_t kNormalLeaf = 128;
constexpr size_t kNormalRoots = 0x110000 / kNormalLeaf;
constexpr size_t kMaxNormalSteps = 16;
constexpr size_t kMaxNormalTexts = 1u << 20;
constexpr size_t kMaxReplacedCodes = 32;     // that a kReplace looks for, or that wait for a kReplaceMatches to decide
constexpr size_t kMaxDecomposedCodes = 18;   // U+FDFA
constexpr uint64_t kMaxNormalGrowth = 4096;  // how many code points all steps together may make of one

enum class NormalStepKind : uint16_t {
  kForm,             // arguments: 1 if it is a compatibility form; 1 if it composes
  kLowercase,        //
  kStripAccents,     // leaves marks out
  kPrepend,          // first text, count of texts (both below 65536)
  kReplace,          // first text, count: what is looked for; first text, count: what replaces it
  kReplaceMatches,   // first text, count: what replaces a match of the pattern; its words low, high
  kSurroundMatches,  // as kReplaceMatches, of patterns of one character: what is put before it and behind it
  kStrip,            // 1: spaces at the begin; 1: spaces at the end
  kBytes,            // first text: what each of the 256 bytes of a character becomes
  kCharsMap,         // words low, high of the pattern of grapheme clusters; words low, high of the charsmap. Once at most.
};

constexpr uint16_t kNormalCombining = 0xFF;  // of a class: its combining class
// Of a class, above that.
enum NormalFlags : uint16_t {
  kNormalPlain = 1 << 8,           // no step changes it, and it changes none before it
  kNormalCanonical = 1 << 9,       // has a canonical mapping
  kNormalCompatibility = 1 << 10,  // has a compatibility mapping
  kNormalLower = 1 << 11,          // has a lowercase mapping
  kNormalMark = 1 << 12,           // is left out by kStripAccents
  kNormalHangul = 1 << 13,         // is a Hangul syllable, which decomposes
  kNormalSpace = 1 << 14,          // is left out by kStrip
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_NORMALIZE_FORMAT_H_
