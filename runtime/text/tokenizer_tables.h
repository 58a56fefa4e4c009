// What a model file says about its tokenizer: views of arrays that are used where they lie (schema/tarn.fbs, Tokenizer).
#ifndef TARN_RUNTIME_TEXT_TOKENIZER_TABLES_H_
#define TARN_RUNTIME_TEXT_TOKENIZER_TABLES_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/text/normalize.h"
#include "runtime/text/pattern.h"
#include "runtime/text/pattern_split.h"
#include "runtime/text/trie.h"

namespace tarn {

// Numbers are those of tarn_tokenizer_kind.
enum class TokenizerKind : uint8_t {
  kNone = 0,   // ids only
  kBytes = 1,  // id = byte value
  kBpe = 2,    // over bytes, or with `vocabulary.strings` over characters
  kUnigram = 3,
  kWordPiece = 4,
  kWordLevel = 5,
  kLongest = 6,
};
inline bool HasTables(TokenizerKind kind) { return kind >= TokenizerKind::kBpe; }

constexpr uint32_t kByteTokens = 256;
constexpr uint32_t kEmptySlot = UINT32_MAX;
constexpr uint32_t kMaxProbes = 1024;  // full slots in a row of a hash table
constexpr uint32_t kMaxSplits = 8;
constexpr uint32_t kMaxPieceBytes = 1u << 12;       // of what an id decodes to
constexpr uint32_t kMaxAddedTokenBytes = 1u << 10;  // of what is found in a text
constexpr size_t kMaxJointWords = size_t{1} << 26;  // 2^32 bits
constexpr uint32_t kMaxTemplateTokens = 16;         // before a text, and after it

struct BpeMerge {
  uint32_t left, right, id;
};

struct BpeTables {
  Span<const BpeMerge> merges;       // in the order of their ranks
  Span<const uint32_t> merge_slots;  // ranks
  Span<const int32_t> byte_ids;      // [256]: -1: unknown; or [512]: then those of the last byte of a word
  Span<const uint32_t> word_slots;   // ids; may be empty
  int32_t unk_id = -1;
  bool fuse_unk = false;
};

// What words are made of, but for BPE over bytes.
struct VocabularyTables {
  Trie strings;
  Span<const int32_t> byte_ids;      // empty: none
  Span<const double> scores;         // of ids
  Span<const uint8_t> continuation;  // may be empty
  double unk_score = 0;
  uint32_t max_word_chars = 0;
  int32_t unk_id = -1;
  bool whole_words = false;
};

// Pairs of characters that stand next to each other in a token, as bits of a filter: those that do not may be told apart for
// certain.
class Joints {
 public:
  Joints() = default;
  explicit Joints(Span<const uint64_t> bits) : bits_(bits) {}
  bool empty() const { return bits_.empty(); }
  bool MayJoin(uint32_t left, uint32_t right) const;

 private:
  Span<const uint64_t> bits_;  // 2^n, or none
};

// Ids that decode to something else as the first token of a text.
struct FirstPieceTables {
  Span<const uint32_t> ids;  // ascending
  Span<const uint8_t> pieces;
  Span<const uint32_t> piece_ends;
};

enum PieceFlag : uint8_t { kSpecialPiece = 1, kBytePiece = 2, kNoPiece = 4 };

enum AddedFlag : uint8_t { kTakesSpacesBefore = 1, kTakesSpacesAfter = 2, kIsSpecial = 4, kIsSingleWord = 8 };

struct AddedTables {
  Span<const uint32_t> ids;
  Span<const uint8_t> flags;
  Trie raw, normalized;  // values are places in `ids`
  Span<const uint16_t> word_words;
  Pattern word;  // of `word_words`: a character of a word
};

struct SplitTables {
  Span<const uint16_t> words;
  Pattern pattern;  // of `words`
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  bool by_bytes = false;
};

struct TokenizerTables {
  TokenizerKind kind = TokenizerKind::kNone;
  uint32_t vocab_size = 0;
  Span<const uint8_t> pieces;
  Span<const uint32_t> piece_ends;
  Span<const uint8_t> special;  // PieceFlags
  AddedTables added;
  Span<const uint16_t> normalizer_words;
  Normalizer normalizer;  // of `normalizer_words`
  bool prefix_space = false;
  uint32_t prefix_level = 0;  // splits before it
  bool prefix_first = false;  // only where the text begins
  Span<const char> space;     // stands for a space in the words; empty: the space
  SplitTables splits[kMaxSplits];
  uint32_t split_count = 0;
  BpeTables bpe;
  VocabularyTables vocabulary;
  Span<const uint64_t> joint_words;
  Joints joints;  // of `joint_words`
  FirstPieceTables first;
  bool first_token_drops_space = false, text_drops_space = false, last_token_drops_space = false;
  Span<const uint32_t> prefix, suffix;
  bool trim_offsets = false;
  bool trim_keeps_first = false;
  Span<const uint32_t> edge_spaces;  // of ids: those a token begins with + 2^16 * those it ends with; empty: those of its piece
  uint32_t max_piece_bytes = 0;      // the longest piece

  // What an id of this kind of tokenizer decodes to; empty for one without a piece.
  Span<const uint8_t> Piece(uint32_t id) const {
    if (id >= piece_ends.size()) return {};
    const uint32_t begin = id == 0 ? 0 : piece_ends[id - 1];
    return pieces.subspan(begin, piece_ends[id] - begin);
  }
};

// Checks every index once, in linear time, opens patterns and normalizer, and sets `max_piece_bytes`. After that nothing in the
// tables can lead out of them. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED.
Status CheckTables(TokenizerTables* tables);

// The hashes of the slots (schema/tarn.fbs, Bpe).
inline uint32_t HashPair(uint32_t left, uint32_t right) {
  const uint32_t x = left * 0x9E3779B1u + right * 0x85EBCA77u;
  const uint32_t y = (x ^ x >> 15) * 0x2C1B3C6Du;
  return y ^ y >> 13;
}
inline bool Joints::MayJoin(uint32_t left, uint32_t right) const {
  const uint32_t bit = HashPair(left, right) & static_cast<uint32_t>(bits_.size() * 64 - 1);
  return (bits_[bit / 64] >> bit % 64 & 1) != 0;
}
inline uint32_t HashWord(Span<const uint8_t> word) {
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : word) hash = (hash ^ byte) * 16777619u;
  return hash;
}

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_TOKENIZER_TABLES_H_
