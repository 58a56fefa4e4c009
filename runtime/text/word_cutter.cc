#include "runtime/text/word_cutter.h"

#include "runtime/text/code_point.h"
#include "runtime/text/spaces.h"
#include "runtime/text/word_cache.h"

namespace tarn {
namespace {

// Parts of a word are no words of their own for Unigram, as sums go on: no part may come from the cache.
constexpr size_t kLeastUnigramPart = 256;
static_assert(kLeastUnigramPart > WordCache::kMaxWordBytes, "the sum of the first part is needed");

CodePoint ReadCharacter(const TokenizerTables& tables, const uint8_t* at, const uint8_t* end) {
  CodePoint character = DecodeCodePoint(at, end);
  if (character.code == ' ' && !tables.space.empty()) {
    const auto* space = reinterpret_cast<const uint8_t*>(tables.space.data());
    character.code = DecodeCodePoint(space, space + tables.space.size()).code;
  }
  return character;
}

// It has an id, or in BPE its bytes have.
bool IsKnown(const TokenizerTables& tables, uint32_t code) {
  char text[kMaxCharacterBytes];
  const Span<const uint8_t> bytes = {reinterpret_cast<const uint8_t*>(text), EncodeCodePoint(code, text)};
  if (tables.vocabulary.strings.Find(bytes) >= 0) return true;
  return tables.kind == TokenizerKind::kBpe && tables.bpe.byte_ids[bytes[0]] >= 0;
}

// Two unknown characters may become one token, and in Unigram also an unknown one and the name of the unknown token.
bool MayCut(const TokenizerTables& tables, const CodePoint& left, const CodePoint& right) {
  return left.is_valid && right.is_valid && !tables.joints.MayJoin(left.code, right.code) && IsKnown(tables, right.code) &&
         (tables.kind != TokenizerKind::kUnigram || IsKnown(tables, left.code));
}

}  // namespace

size_t FirstPart(const TokenizerTables& tables, Span<const char> word, bool is_whole) {
  const size_t all = is_whole ? word.size() : 0;
  if (tables.joints.empty()) return all;
  const size_t least = tables.kind == TokenizerKind::kUnigram ? kLeastUnigramPart : 1;
  const auto* begin = reinterpret_cast<const uint8_t*>(word.data());
  const uint8_t* const end = begin + word.size();
  CodePoint left = {};
  for (const uint8_t* at = begin; at < end; at += left.bytes) {
    const CodePoint right = ReadCharacter(tables, at, end);
    if (right.is_cut && !is_whole) return 0;
    const size_t bytes = static_cast<size_t>(at - begin);
    if (bytes >= least && MayCut(tables, left, right)) return bytes;
    left = right;
  }
  return all;
}

}  // namespace tarn
