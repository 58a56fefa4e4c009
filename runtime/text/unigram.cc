#include "runtime/text/unigram.h"

#include <algorithm>

#include "runtime/text/code_point.h"

namespace tarn {

void Unigram::TakeArrays(Bump* bump, uint32_t max_word_bytes) {
  nodes_ = TakeArray<Node>(*bump, uint64_t{max_word_bytes} + 1);
  tokens_ = TakeArray<WordToken>(*bump, max_word_bytes);
}

void Unigram::Reach(size_t begin, size_t end, double score, int32_t id) {
  Node& node = nodes_[end];
  if (node.begin == kUnreached || score > node.score) node = {score, static_cast<uint32_t>(begin), id};
}

void Unigram::LeaveFrom(Span<const uint8_t> word, size_t at, size_t character_bytes) {
  const double score = nodes_[at].score;
  bool has_character = false;
  uint32_t trie_node = Trie::kRoot;
  for (size_t end = at; end < word.size();) {
    trie_node = vocabulary_->strings.Child(trie_node, word[end]);
    if (trie_node == Trie::kNone) break;
    ++end;
    const int32_t id = vocabulary_->strings.value(trie_node);
    if (id < 0) continue;
    Reach(at, end, vocabulary_->scores[static_cast<size_t>(id)] + score, id);
    has_character |= end - at == character_bytes;
  }
  if (!has_character) Reach(at, at + character_bytes, vocabulary_->unk_score + score, vocabulary_->unk_id);
}

void Unigram::PutUnknown(Span<const uint8_t> string) {
  const auto length = static_cast<uint32_t>(string.size());
  const int32_t id = vocabulary_->strings.Find(string);  // the package looks again what unknown characters make together
  const Span<const int32_t> byte_ids = vocabulary_->byte_ids;
  const bool as_bytes =
      id < 0 && !byte_ids.empty() && std::all_of(string.begin(), string.end(), [&](uint8_t byte) { return byte_ids[byte] >= 0; });
  if (!as_bytes) return Put(id < 0 ? vocabulary_->unk_id : id, length);
  for (size_t i = string.size(); i > 0; --i) Put(byte_ids[string[i - 1]], i == string.size() ? length : length | kStays);
}

WordTokens Unigram::Encode(Span<const uint8_t> word, bool continues) {
  nodes_[0] = {continues ? end_score_ : 0, 0, -1};
  for (size_t i = 1; i <= word.size(); ++i) nodes_[i].begin = kUnreached;
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = DecodeCodePoint(&word[at], word.end()).bytes;
    LeaveFrom(word, at, bytes);
    at += bytes;
  }
  end_score_ = nodes_[word.size()].score;
  first_token_ = tokens_.size();
  for (size_t end = word.size(); end > 0;) {
    const int32_t id = nodes_[end].id;
    size_t begin = nodes_[end].begin;
    if (id == vocabulary_->unk_id) {
      while (begin > 0 && nodes_[begin].id == id) begin = nodes_[begin].begin;
      PutUnknown(word.subspan(begin, end - begin));
    } else {
      Put(id, static_cast<uint32_t>(end - begin));
    }
    end = begin;
  }
  return {{tokens_.data() + first_token_, tokens_.size() - first_token_}, false};
}

}  // namespace tarn
