#include "runtime/model/tokenizer.h"

namespace tarn {
namespace {

static_assert(sizeof(BpeMerge) == sizeof(format::Merge) && alignof(BpeMerge) == alignof(format::Merge), "one layout");
static_assert(static_cast<int>(TokenizerKind::kNone) == static_cast<int>(format::TokenizerKind::None), "one numbering");
static_assert(static_cast<int>(TokenizerKind::kBytes) == static_cast<int>(format::TokenizerKind::Bytes), "one numbering");
static_assert(static_cast<int>(TokenizerKind::kBpe) == static_cast<int>(format::TokenizerKind::Bpe), "one numbering");
static_assert(static_cast<int>(TokenizerKind::kUnigram) == static_cast<int>(format::TokenizerKind::Unigram), "one numbering");
static_assert(static_cast<int>(TokenizerKind::kWordPiece) == static_cast<int>(format::TokenizerKind::WordPiece), "one numbering");
static_assert(static_cast<int>(TokenizerKind::kWordLevel) == static_cast<int>(format::TokenizerKind::WordLevel), "one numbering");
static_assert(static_cast<int>(TokenizerKind::kLongest) == static_cast<int>(format::TokenizerKind::Longest), "one numbering");
static_assert(static_cast<int>(SplitBehavior::kContiguous) == static_cast<int>(format::SplitBehavior::Contiguous), "one numbering");

template <typename T>
Span<const T> SpanOf(const flatbuffers::Vector<T>* vector) {
  if (vector == nullptr) return {};
  return {vector->data(), vector->size()};
}

Trie TrieOf(const format::Trie* trie) {
  if (trie == nullptr) return {};
  return Trie(SpanOf(trie->first_edges()), SpanOf(trie->labels()), SpanOf(trie->values()));
}

BpeTables BpeOf(const format::Bpe& bpe) {
  BpeTables tables;
  tables.merges = {reinterpret_cast<const BpeMerge*>(bpe.merges()->data()), bpe.merges()->size()};
  tables.merge_slots = SpanOf(bpe.merge_slots());
  tables.byte_ids = SpanOf(bpe.byte_ids());
  tables.word_slots = SpanOf(bpe.word_slots());
  tables.unk_id = bpe.unk_id();
  tables.fuse_unk = bpe.fuse_unk();
  return tables;
}

VocabularyTables VocabularyOf(const format::Vocabulary& vocabulary) {
  VocabularyTables tables;
  tables.strings = TrieOf(vocabulary.strings());
  tables.byte_ids = SpanOf(vocabulary.byte_ids());
  tables.scores = SpanOf(vocabulary.scores());
  tables.continuation = SpanOf(vocabulary.continuation());
  tables.unk_score = vocabulary.unk_score();
  tables.max_word_chars = vocabulary.max_word_chars();
  tables.unk_id = vocabulary.unk_id();
  tables.whole_words = vocabulary.whole_words();
  return tables;
}

Status ReadModel(const format::Tokenizer& tokenizer, TokenizerTables* tables) {
  const bool is_bpe = tables->kind == TokenizerKind::kBpe;
  if (is_bpe && tokenizer.bpe() == nullptr) return Error(TARN_BAD_FORMAT, "a table 'bpe' expected");
  if (!is_bpe && tokenizer.vocabulary() == nullptr) return Error(TARN_BAD_FORMAT, "a table 'vocabulary' expected");
  if (is_bpe) tables->bpe = BpeOf(*tokenizer.bpe());
  if (tokenizer.vocabulary() != nullptr) tables->vocabulary = VocabularyOf(*tokenizer.vocabulary());
  tables->joint_words = SpanOf(tokenizer.joints());
  return Ok();
}

void ReadDecoder(const format::Tokenizer& tokenizer, TokenizerTables* tables) {
  if (const format::FirstPieces* first = tokenizer.first_pieces()) {
    tables->first = {SpanOf(first->ids()), SpanOf(first->pieces()), SpanOf(first->piece_ends())};
  }
  tables->first_token_drops_space = tokenizer.first_token_drops_space();
  tables->text_drops_space = tokenizer.text_drops_space();
  tables->last_token_drops_space = tokenizer.last_token_drops_space();
}

Status ReadSplits(const format::Tokenizer& tokenizer, TokenizerTables* tables) {
  if (tokenizer.splits() == nullptr) return Ok();
  if (tokenizer.splits()->size() > kMaxSplits) {
    return Error(TARN_BAD_FORMAT, "%u splits, at most %u expected", tokenizer.splits()->size(), kMaxSplits);
  }
  for (const format::Split* split : *tokenizer.splits()) {
    if (split->behavior() > format::SplitBehavior::MAX) {
      return Error(TARN_UNSUPPORTED, "split behavior %u is not known to this version", static_cast<unsigned>(split->behavior()));
    }
    SplitTables& read = tables->splits[tables->split_count++];
    read.words = SpanOf(split->pattern());
    read.behavior = static_cast<SplitBehavior>(split->behavior());
    read.invert = split->invert();
    read.by_bytes = split->by_bytes();
  }
  return Ok();
}

}  // namespace

Status ReadTokenizer(const format::Model& graph, TokenizerTables* tables) {
  const format::Tokenizer& tokenizer = *graph.tokenizer();
  tables->kind = static_cast<TokenizerKind>(tokenizer.kind());
  tables->vocab_size = graph.vocab_size();
  if (!HasTables(tables->kind)) return Ok();
  // Sources and outputs are made of the same tokens.
  const uint32_t sources = graph.source_vocab_size();
  if (sources != 0 && sources < tables->vocab_size) tables->vocab_size = sources;
  tables->pieces = SpanOf(tokenizer.pieces());
  tables->piece_ends = SpanOf(tokenizer.piece_ends());
  tables->special = SpanOf(tokenizer.special());
  if (const format::AddedTokens* added = tokenizer.added()) {
    tables->added.ids = SpanOf(added->ids());
    tables->added.flags = SpanOf(added->flags());
    tables->added.raw = TrieOf(added->raw());
    tables->added.normalized = TrieOf(added->normalized());
    tables->added.word_words = SpanOf(added->word());
  }
  tables->normalizer_words = SpanOf(tokenizer.normalizer());
  tables->prefix_space = tokenizer.prefix_space();
  tables->prefix_level = tokenizer.prefix_level();
  tables->prefix_first = tokenizer.prefix_first();
  if (tokenizer.space() != nullptr) tables->space = {tokenizer.space()->c_str(), tokenizer.space()->size()};
  tables->prefix = SpanOf(tokenizer.prefix());
  tables->suffix = SpanOf(tokenizer.suffix());
  tables->trim_offsets = tokenizer.trim_offsets();
  tables->trim_keeps_first = tokenizer.trim_keeps_first();
  tables->edge_spaces = SpanOf(tokenizer.edge_spaces());
  ReadDecoder(tokenizer, tables);
  TARN_RETURN_IF_ERROR(ReadModel(tokenizer, tables).In("tokenizer"));
  TARN_RETURN_IF_ERROR(ReadSplits(tokenizer, tables).In("tokenizer"));
  return CheckTables(tables).In("tokenizer");
}

}  // namespace tarn
