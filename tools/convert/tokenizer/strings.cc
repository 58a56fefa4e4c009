#include "tools/convert/tokenizer/strings.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "runtime/text/code_point.h"
#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/trie.h"

namespace tarn::convert {
namespace {

// So few bits of a filter are set that most pairs that are not in it are seen not to be.
constexpr size_t kBitsOfJoint = 16;
constexpr double kUnknownPenalty = 10;  // of the package

std::vector<uint32_t> CodesOf(const std::string& text) {
  std::vector<uint32_t> codes;
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    const CodePoint character = DecodeCodePoint(at, end);
    codes.push_back(character.code);
    at += character.bytes;
  }
  return codes;
}

using Pairs = std::set<std::pair<uint32_t, uint32_t>>;

void AddPairs(const std::string& token, Pairs* pairs) {
  const std::vector<uint32_t> codes = CodesOf(token);
  for (size_t i = 1; i < codes.size(); ++i) pairs->insert({codes[i - 1], codes[i]});
}

std::vector<uint64_t> Filter(const Pairs& pairs) {
  size_t bits = 64;
  while (bits < kBitsOfJoint * pairs.size()) bits *= 2;
  std::vector<uint64_t> words(bits / 64);
  for (const auto& [left, right] : pairs) {
    const size_t bit = HashPair(left, right) & (bits - 1);
    words[bit / 64] |= uint64_t{1} << bit % 64;
  }
  return words;
}

// Merges stay inside of what they make. But where a character can be left out, its neighbours may merge; and what stands for
// unknown characters must not merge, as no token shows what it is next to. A part of a word is not a word of `ignore_merges`.
bool MayCutBpe(const Vocabulary& vocabulary, const TokenizerData& data) {
  std::set<uint32_t> unknown(data.byte_ids.begin(), data.byte_ids.end());
  if (vocabulary.ignore_merges || (data.unk_id < 0 && !vocabulary.byte_fallback)) return false;
  if (data.unk_id >= 0) unknown.insert(static_cast<uint32_t>(data.unk_id));
  return std::none_of(data.merges.begin(), data.merges.end(), [&](const format::Merge& merge) {
    return unknown.count(merge.left()) != 0 || unknown.count(merge.right()) != 0;
  });
}

void CompileLetters(const Vocabulary& vocabulary, TokenizerData* data) {
  std::map<std::string, int32_t> strings;
  Pairs pairs;
  std::set<uint32_t> made;
  for (const format::Merge& merge : vocabulary.merges) made.insert(merge.id());
  for (const auto& [token, id] : vocabulary.ids) {
    if (made.count(id) != 0) AddPairs(token, &pairs);
    if (vocabulary.ignore_merges || CodesOf(token).size() == 1) strings[token] = static_cast<int32_t>(id);
  }
  data->vocabulary.strings = MakeTrie(strings);
  data->vocabulary.whole_words = vocabulary.ignore_merges;
  if (MayCutBpe(vocabulary, *data)) data->joints = Filter(pairs);
}

void CompileUnigram(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  Pairs pairs;
  for (const std::string& token : vocabulary.listed) AddPairs(token, &pairs);
  // Two unknown tokens in the text become one.
  const std::vector<uint32_t> unknown = CodesOf(*vocabulary.unk_token);
  if (!unknown.empty()) pairs.insert({unknown.back(), unknown.front()});
  data->joints = Filter(pairs);
  data->vocabulary.scores = vocabulary.scores;
  data->vocabulary.scores.resize(data->piece_ends.size());  // added tokens are found before
  data->vocabulary.unk_score = *std::min_element(vocabulary.scores.begin(), vocabulary.scores.end()) - kUnknownPenalty;
  if (vocabulary.byte_fallback) data->vocabulary.byte_ids = FallbackIds(vocabulary, where);
}

}  // namespace

std::vector<int32_t> FallbackIds(const Vocabulary& vocabulary, const std::string& where) {
  std::vector<int32_t> ids;
  for (unsigned byte = 0; byte < kByteTokens; ++byte) {
    char name_text[8];
    std::snprintf(name_text, sizeof(name_text), "<0x%02X>", byte);
    const std::string name = name_text;
    // A byte that is a character, and a token as such, is never looked up. Gemma has no <0x09>.
    const std::string character(1, static_cast<char>(byte));
    const bool is_found_before = byte < 0x80 && !vocabulary.Find(name) && vocabulary.Find(character);
    const std::string& token = is_found_before ? character : name;
    ids.push_back(static_cast<int32_t>(IdOf(vocabulary, token, where + ": byte_fallback")));
  }
  return ids;
}

void CompileStrings(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  if (vocabulary.kind == format::TokenizerKind::Bpe) return CompileLetters(vocabulary, data);
  std::map<std::string, int32_t> strings;
  for (const auto& [token, id] : vocabulary.ids) strings[token] = static_cast<int32_t>(id);
  data->vocabulary.strings = MakeTrie(strings);
  if (vocabulary.unk_token) {
    const std::optional<uint32_t> unknown = vocabulary.Find(*vocabulary.unk_token);
    if (!unknown) Fail(where, ": unk_token: \"", *vocabulary.unk_token, "\" is not in the vocabulary");
    data->vocabulary.unk_id = static_cast<int32_t>(*unknown);
  }
  data->vocabulary.continuation.assign(vocabulary.continuation.begin(), vocabulary.continuation.end());
  data->vocabulary.max_word_chars = vocabulary.max_word_chars;
  if (vocabulary.kind == format::TokenizerKind::Unigram) CompileUnigram(vocabulary, where, data);
}

}  // namespace tarn::convert
