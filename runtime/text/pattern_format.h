// The layout of a compiled pattern: what tarn-convert writes into the model file and Pattern::Open() checks. Little-endian 16-bit
// words, used in place:
//
//   header       [kPatternHeaderWords]: kPatternVersion, stride, states, leaves
//   roots        [kPatternRoots]: for each block of kPatternLeaf code points the leaf that has its classes
//   leaves       [leaves, kPatternLeaf] bytes: the class of a code point, in [1, stride); leaf 0 is that of ASCII
//   transitions  [states, stride]: see below
//
// The automaton is deterministic and reads classes of characters; class 0 is the end of the text. It says one character late that
// a match ends, so that one character of look-ahead costs nothing: an entry is (next state * stride * 2 + matched), where matched
// is 1 if a match ends before the character that is read. State 0 is dead: all of its entries are 0. State 1 is the start. The last
// match end before the automaton dies is the one that leftmost-first (backtracking) search would find.
#ifndef TARN_RUNTIME_TEXT_PATTERN_FORMAT_H_
#define TARN_RUNTIME_TEXT_PATTERN_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr uint16_t kPatternVersion = 1;
constexpr size_t kPatternHeaderWords = 4;
constexpr size_t kPatternLeaf = 128;                       // code points
constexpr size_t kPatternRoots = 0x110000 / kPatternLeaf;  // 8704
constexpr size_t kMaxPatternStride = 256;                  // classes, the end of the text among them: a class is a byte
constexpr size_t kMaxPatternEntries = 1u << 15;            // states * stride, so that an entry fits 16 bits

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_PATTERN_FORMAT_H_
