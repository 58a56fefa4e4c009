// A tokenizer with anything in its tables: they are refused with words, or every text gives ids and ranges that exist, and all ids
// decode to UTF-8.
//
// The input says how good tables are spoiled, so that corpus files keep their sense whatever the tables look like:
//
//   [ fixture | options | max_word_bytes | number of changes, mod 8 | { array: u8, where: u16, value: u32 } ... | text ]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/text/code_point.h"
#include "runtime/text/encoder.h"
#include "runtime/text/piece_decoder.h"
#include "runtime/text/tokenizer.h"
#include "tests/support/tokenizers.h"

namespace {

using tarn::convert::TokenizerData;

// Not the numbers of corpus files: at the end.
constexpr const char* kFixtures[] = {
    "gpt2_trimmed", "roberta",         "llama3",       "deepseek",     "few_bytes",      "unknown", "no_split",
    "metaspace",    "metaspace_first", "falcon",       "llama2",       "bpe_gaps",       "unigram", "unigram_bytes",
    "wordpiece",    "wordlevel",       "word_ends",    "rwkv",         "spaces_taken",   "t5",      "scripts",
    "clip",         "gemma_tab",       "byte_letters", "trimmed_gaps", "trimmed_unigram"};

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint32_t Take(size_t bytes) {
    uint32_t value = 0;
    bytes = std::min(bytes, size_);
    std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    return value;
  }
  tarn::Span<const char> rest() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const uint8_t* data_;
  size_t size_;
};

template <typename T>
void Put(std::vector<T>* array, uint32_t where, uint32_t value) {
  if (array->empty()) return;
  if (where == 0xFFFF) {
    array->resize(value % (array->size() + 1));
  } else {
    (*array)[where % array->size()] = static_cast<T>(value);
  }
}

// What models other than byte-level BPE, and decoders, have.
void ChangeVocabulary(uint32_t array, uint32_t where, uint32_t value, TokenizerData* data) {
  tarn::convert::VocabularyData& vocabulary = data->vocabulary;
  switch (array % 16) {
    case 0:
      return Put(&vocabulary.strings.first_edges, where, value);
    case 1:
      return Put(&vocabulary.strings.labels, where, value);
    case 2:
      return Put(&vocabulary.strings.values, where, value);
    case 3:
      return Put(&vocabulary.byte_ids, where, value);
    case 4: {
      double score = 0;
      const uint64_t bits = uint64_t{value} << 32;
      std::memcpy(&score, &bits, sizeof(score));
      vocabulary.unk_score = value % 2 == 0 ? vocabulary.unk_score : score;
      if (!vocabulary.scores.empty()) vocabulary.scores[where % vocabulary.scores.size()] = score;
      return;
    }
    case 5:
      return Put(&vocabulary.scores, 0xFFFF, value);
    case 6:
      return Put(&vocabulary.continuation, where, value);
    case 7:
      vocabulary.max_word_chars = value;
      return;
    case 8:
      vocabulary.unk_id = static_cast<int32_t>(value);
      return;
    case 9:
      return Put(&data->joints, where, value);
    case 10:
      return Put(&data->first_ids, where, value);
    case 11:
      return Put(&data->first_piece_ends, where, value);
    case 12:
      data->first_token_drops_space = value % 2 != 0;
      data->text_drops_space = value / 2 % 2 != 0;
      data->last_token_drops_space = value / 4 % 2 != 0;
      return;
    case 13:
      data->kind = static_cast<tarn::format::TokenizerKind>(2 + where % 5);
      return;
    case 14:
      return Put(&data->edge_spaces, where, value);
    default:
      vocabulary.whole_words = value % 2 != 0;
  }
}

void Change(uint32_t array, uint32_t where, uint32_t value, TokenizerData* data) {
  if (array >= 128) return ChangeVocabulary(array, where, value, data);
  tarn::convert::TrieTables& trie = array / 16 % 2 == 0 ? data->raw : data->normalized;
  auto* pattern = data->splits.empty() ? nullptr : &data->splits[value % data->splits.size()];
  switch (array % 16) {
    case 0:
      return Put(&data->piece_ends, where, value);
    case 1:
      return Put(&data->special, where, value);
    case 2:
      return Put(&data->merge_slots, where, value);
    case 3:
      return Put(&data->word_slots, where, value);
    case 4:
      return Put(&data->byte_ids, where, value);
    case 5:
      return Put(&data->added_ids, where, value);
    case 6:
      return Put(&data->added_flags, where, value);
    case 7:
      return Put(&trie.first_edges, where, value);
    case 8:
      return Put(&trie.labels, where, value);
    case 9:
      return Put(&trie.values, where, value);
    case 10:
      if (array / 32 % 2 != 0) return Put(&data->word, where, value >> 8);
      return pattern == nullptr ? void() : Put(&pattern->pattern, where, value >> 8);
    case 11:
      return Put(&data->prefix, where, value);
    case 12:
      data->unk_id = static_cast<int32_t>(value);
      return;
    case 13:
      data->prefix_space = value % 2 != 0;
      data->prefix_first = value / 2 % 2 != 0;
      data->prefix_level = static_cast<uint8_t>(value / 4 % 8);
      data->space.assign(where % 6, static_cast<char>(value >> 8 | 1));
      return;
    case 14:
      if (pattern == nullptr) return;
      pattern->behavior = static_cast<tarn::format::SplitBehavior>(where % 6);
      pattern->by_bytes = where / 6 % 2 != 0;
      return;
    default:
      if (!data->merges.empty())
        data->merges[where % data->merges.size()] = tarn::format::Merge(value & 1023, value >> 10 & 1023, value >> 20 & 1023);
  }
}

void Encode(const tarn::TokenizerTables& tables, uint32_t options, uint32_t max_word_bytes, tarn::Span<const char> text) {
  const tarn::Result<tarn::Encoder*> created = tarn::Encoder::Create(tables, {max_word_bytes, 4}, {{}, tarn::DefaultAllocator()});
  if (!created.ok()) Fail(created.status().message());
  const std::unique_ptr<tarn::Encoder, void (*)(tarn::Encoder*)> encoder(created.value(), tarn::Encoder::Destroy);
  encoder->Begin(text, {(options & 1) != 0, (options & 2) != 0});
  int32_t ids[5];
  tarn::TextRange ranges[5];
  tarn::Utf8State state = {};
  std::vector<char> piece(tarn::MaxPieceBytes(tables));
  for (size_t count = 5; count == 5;) {
    const tarn::Status status = encoder->Read(ids, ranges, &count);
    for (size_t i = 0; i < count; ++i) {
      if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= tables.piece_ends.size()) Fail("an id that there is none of");
      if (ranges[i].begin > ranges[i].end || ranges[i].end > text.size()) Fail("a range outside of the text");
      size_t bytes = 0;
      if (!tarn::Decode(tables, &state, ids[i], {piece.data(), piece.size()}, &bytes).ok()) Fail("an id that does not decode");
    }
    if (!status.ok()) return;
  }
}

void CheckUtf8(const std::string& text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    const tarn::CodePoint character = tarn::DecodeCodePoint(at, end);
    if (!character.is_valid) Fail("decoded text that is not UTF-8");
    at += character.bytes;
  }
}

// Any ids in any order, from the beginning of a text or from any state.
void Decode(const tarn::TokenizerTables& tables, bool any_state, Input input) {
  tarn::Utf8State state = {};
  if (any_state) {
    for (uint8_t& byte : state.pending) byte = static_cast<uint8_t>(input.Take(1));
    state.pending_bytes = input.Take(1);
    state.flags = input.Take(2);
  }
  std::vector<char> piece(tarn::MaxPieceBytes(tables));
  std::string text;
  while (!input.rest().empty()) {
    size_t bytes = 0;
    const auto id = static_cast<int32_t>(input.Take(2));
    const tarn::Status status = tarn::Decode(tables, &state, id, {piece.data(), piece.size()}, &bytes);
    if (status.code() == TARN_BUFFER_TOO_SMALL) Fail("a piece that is longer than MaxPieceBytes()");
    if (status.ok()) text.append(piece.data(), bytes);
  }
  if (any_state) return;
  char rest[3 * tarn::kMaxRunBytes];
  text.append(rest, tarn::FinishPieces(&state, rest));
  CheckUtf8(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const std::vector<TokenizerData>* const fixtures = [] {
    auto* made = new std::vector<TokenizerData>;
    for (const char* name : kFixtures) {
      made->push_back(tarn::test::TokenizerGraph::ReadFolder(std::string("tests/data/tokenizers/") + name));
    }
    return made;
  }();
  Input input(bytes, size);
  TokenizerData data = (*fixtures)[input.Take(1) % fixtures->size()];
  const uint32_t options = input.Take(1), max_word_bytes = 1 + input.Take(1);
  for (uint32_t changes = input.Take(1) % 8; changes > 0; --changes) {
    const uint32_t array = input.Take(1), where = input.Take(2);
    Change(array, where, input.Take(4), &data);
  }
  const tarn::test::TokenizerGraph graph(data);
  const tarn::Result<tarn::TokenizerTables> tables = graph.Read();
  if (!tables.ok()) return 0;
  Encode(tables.value(), options, max_word_bytes, input.rest());
  Decode(tables.value(), (options & 4) != 0, input);
  return 0;
}
