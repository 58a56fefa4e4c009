#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<format::Trie> Write(const TrieTables& trie, FlatBufferBuilder* builder) {
  if (trie.values.empty()) return 0;
  return format::CreateTrieDirect(*builder, &trie.first_edges, &trie.labels, &trie.values);
}

Offset<format::Bpe> WriteBpe(const TokenizerData& data, FlatBufferBuilder* builder) {
  return format::CreateBpeDirect(*builder, &data.merges, &data.merge_slots, &data.byte_ids, data.unk_id, data.fuse_unk,
                                 data.word_slots.empty() ? nullptr : &data.word_slots);
}

Offset<format::Vocabulary> WriteVocabulary(const VocabularyData& data, FlatBufferBuilder* builder) {
  if (data.strings.values.empty()) return 0;
  const auto strings = Write(data.strings, builder);
  return format::CreateVocabularyDirect(*builder, strings, data.whole_words, data.unk_id,
                                        data.byte_ids.empty() ? nullptr : &data.byte_ids,
                                        data.scores.empty() ? nullptr : &data.scores, data.unk_score,
                                        data.continuation.empty() ? nullptr : &data.continuation, data.max_word_chars);
}

Offset<format::FirstPieces> WriteFirstPieces(const TokenizerData& data, FlatBufferBuilder* builder) {
  if (data.first_ids.empty()) return 0;
  return format::CreateFirstPiecesDirect(*builder, &data.first_ids, &data.first_pieces, &data.first_piece_ends);
}

}  // namespace

Offset<format::Tokenizer> WriteTokenizer(const TokenizerData& data, FlatBufferBuilder* builder) {
  Offset<format::AddedTokens> added;
  if (!data.added_ids.empty()) {
    const auto raw = Write(data.raw, builder), normalized = Write(data.normalized, builder);
    added = format::CreateAddedTokensDirect(*builder, &data.added_ids, &data.added_flags, raw, normalized,
                                            data.word.empty() ? nullptr : &data.word);
  }
  std::vector<Offset<format::Split>> splits;
  for (const SplitStep& split : data.splits) {
    splits.push_back(format::CreateSplitDirect(*builder, &split.pattern, split.behavior, split.invert, split.by_bytes));
  }
  const auto bpe = data.kind == format::TokenizerKind::Bpe ? WriteBpe(data, builder) : Offset<format::Bpe>();
  const auto vocabulary = WriteVocabulary(data.vocabulary, builder);
  const auto first_pieces = WriteFirstPieces(data, builder);
  const auto optional = [](const std::vector<uint32_t>& ids) { return ids.empty() ? nullptr : &ids; };
  return format::CreateTokenizerDirect(
      *builder, data.kind, &data.pieces, &data.piece_ends, &data.special, added,
      data.normalizer.empty() ? nullptr : &data.normalizer, data.prefix_space, splits.empty() ? nullptr : &splits, bpe,
      optional(data.prefix), optional(data.suffix), data.trim_offsets, data.trim_keeps_first, data.prefix_level, data.prefix_first,
      data.space.empty() ? nullptr : data.space.c_str(), vocabulary, data.joints.empty() ? nullptr : &data.joints, first_pieces,
      data.first_token_drops_space, data.text_drops_space, data.last_token_drops_space, optional(data.edge_spaces));
}

}  // namespace tarn::convert
