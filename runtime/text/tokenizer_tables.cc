#include "runtime/text/tokenizer_tables.h"

#include <algorithm>

#include "runtime/text/spaces.h"

namespace tarn {
namespace {

// `ends` divide `bytes` bytes into pieces.
Status CheckEnds(Span<const uint32_t> ends, size_t bytes, uint32_t* max_piece_bytes) {
  uint32_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < begin || ends[i] > bytes || ends[i] - begin > kMaxPieceBytes) {
      return Error(TARN_BAD_FORMAT, "piece %zu lies at bytes %u to %u of %zu, at most %u bytes expected", i, begin, ends[i], bytes,
                   kMaxPieceBytes);
    }
    *max_piece_bytes = std::max(*max_piece_bytes, ends[i] - begin);
    begin = ends[i];
  }
  return Ok();
}

Status CheckPieces(TokenizerTables* tables) {
  const Span<const uint32_t> ends = tables->piece_ends;
  if (ends.size() > tables->vocab_size || tables->special.size() != ends.size()) {
    return Error(TARN_BAD_FORMAT, "%zu pieces and %zu marks of special ones, expected as many of both, at most vocab_size %u",
                 ends.size(), tables->special.size(), tables->vocab_size);
  }
  return CheckEnds(ends, tables->pieces.size(), &tables->max_piece_bytes);
}

Status CheckFirstPieces(TokenizerTables* tables) {
  const FirstPieceTables& first = tables->first;
  if (first.ids.size() != first.piece_ends.size()) {
    return Error(TARN_BAD_FORMAT, "%zu ids and %zu pieces, the same number expected", first.ids.size(), first.piece_ends.size());
  }
  for (size_t i = 1; i < first.ids.size(); ++i) {
    if (first.ids[i - 1] >= first.ids[i])
      return Error(TARN_BAD_FORMAT, "id %zu is %u, above %u expected", i, first.ids[i], first.ids[i - 1]);
  }
  return CheckEnds(first.piece_ends, first.pieces.size(), &tables->max_piece_bytes);
}

// A reader that probes must meet an empty slot, and soon: a hostile table must not make every search a walk over all of it.
Status CheckSlots(Span<const uint32_t> slots, size_t limit, const char* what) {
  const size_t count = slots.size();
  if (count == 0 || (count & (count - 1)) != 0) {
    return Error(TARN_BAD_FORMAT, "%s: %zu slots, a power of two expected", what, count);
  }
  size_t run = 0;  // of full slots; those at the end go on at the beginning
  for (size_t i = 0; i < count + kMaxProbes; ++i) {
    const uint32_t value = slots[i & (count - 1)];
    run = value == kEmptySlot ? 0 : run + 1;
    if (run > kMaxProbes || run > count) {
      return Error(TARN_BAD_FORMAT, "%s: more than %u full slots in a row of %zu", what, kMaxProbes, count);
    }
    if (value == kEmptySlot || value < limit) continue;
    return Error(TARN_BAD_FORMAT, "%s: slot %zu is %u, below %zu expected", what, i, value, limit);
  }
  return Ok();
}

Status CheckByteIds(Span<const int32_t> byte_ids, size_t expected, uint32_t ids) {
  if (byte_ids.size() != expected) return Error(TARN_BAD_FORMAT, "byte_ids: %zu found, %zu expected", byte_ids.size(), expected);
  for (size_t i = 0; i < expected; ++i) {
    if (byte_ids[i] >= -1 && byte_ids[i] < static_cast<int64_t>(ids)) continue;
    return Error(TARN_BAD_FORMAT, "byte_ids: the id of byte %zu is %d, -1 to %u expected", i % kByteTokens, byte_ids[i], ids - 1);
  }
  return Ok();
}

Status CheckUnknown(int32_t id, int32_t least, uint32_t ids) {
  if (id >= least && id < static_cast<int64_t>(ids)) return Ok();
  return Error(TARN_BAD_FORMAT, "unk_id is %d, %d to %u expected", id, least, ids - 1);
}

Status CheckBpe(const BpeTables& bpe, uint32_t ids) {
  for (size_t rank = 0; rank < bpe.merges.size(); ++rank) {
    const BpeMerge& merge = bpe.merges[rank];
    if (merge.left < ids && merge.right < ids && merge.id < ids) continue;
    return Error(TARN_BAD_FORMAT, "merge %zu of ids %u and %u to %u, all below %u expected", rank, merge.left, merge.right,
                 merge.id, ids);
  }
  TARN_RETURN_IF_ERROR(CheckSlots(bpe.merge_slots, bpe.merges.size(), "merge_slots"));
  if (!bpe.word_slots.empty()) TARN_RETURN_IF_ERROR(CheckSlots(bpe.word_slots, ids, "word_slots"));
  const bool has_last = bpe.byte_ids.size() == 2 * kByteTokens;
  TARN_RETURN_IF_ERROR(CheckByteIds(bpe.byte_ids, has_last ? 2 * kByteTokens : kByteTokens, ids));
  return CheckUnknown(bpe.unk_id, -1, ids);
}

Status CheckVocabulary(const VocabularyTables& vocabulary, TokenizerKind kind, uint32_t ids) {
  TARN_RETURN_IF_ERROR(vocabulary.strings.Check(ids).In("strings"));
  if (vocabulary.strings.MaxDepth() > kMaxPieceBytes) {
    return Error(TARN_BAD_FORMAT, "strings: one has %zu bytes, at most %u expected", vocabulary.strings.MaxDepth(), kMaxPieceBytes);
  }
  if (!vocabulary.byte_ids.empty()) TARN_RETURN_IF_ERROR(CheckByteIds(vocabulary.byte_ids, kByteTokens, ids));
  if (kind == TokenizerKind::kUnigram && (vocabulary.strings.empty() || vocabulary.scores.size() != ids)) {
    return Error(TARN_BAD_FORMAT, "%zu scores, %u expected, and strings", vocabulary.scores.size(), ids);
  }
  const bool may_lack = kind == TokenizerKind::kBpe || kind == TokenizerKind::kLongest;
  return CheckUnknown(vocabulary.unk_id, may_lack ? -1 : 0, ids);
}

Status CheckJoints(TokenizerTables* tables) {
  const size_t words = tables->joint_words.size();
  if ((words & (words - 1)) != 0 || words > kMaxJointWords) {
    return Error(TARN_BAD_FORMAT, "joints: %zu words, a power of two expected, at most %zu", words, kMaxJointWords);
  }
  tables->joints = Joints(tables->joint_words);
  return Ok();
}

Status CheckAdded(const AddedTables& added, uint32_t ids) {
  if (added.flags.size() != added.ids.size() || added.ids.size() > ids) {
    return Error(TARN_BAD_FORMAT, "added tokens: %zu ids and %zu flags, the same number expected, at most %u", added.ids.size(),
                 added.flags.size(), ids);
  }
  for (size_t i = 0; i < added.ids.size(); ++i) {
    if (added.ids[i] >= ids) return Error(TARN_BAD_FORMAT, "added token %zu has id %u, below %u expected", i, added.ids[i], ids);
    if ((added.flags[i] & kIsSingleWord) != 0 && added.word_words.empty()) {
      return Error(TARN_BAD_FORMAT, "added token %zu is a single word, a table 'word' expected", i);
    }
  }
  for (const Trie* trie : {&added.raw, &added.normalized}) {
    TARN_RETURN_IF_ERROR(trie->Check(static_cast<uint32_t>(added.ids.size())).In("added tokens"));
    if (trie->MaxDepth() > kMaxAddedTokenBytes) {
      return Error(TARN_BAD_FORMAT, "added tokens: one has %zu bytes, at most %u expected", trie->MaxDepth(), kMaxAddedTokenBytes);
    }
  }
  return Ok();
}

Status OpenPatterns(TokenizerTables* tables) {
  for (uint32_t i = 0; i < tables->split_count; ++i) {
    Result<Pattern> pattern = Pattern::Open(tables->splits[i].words);
    if (!pattern.ok()) return pattern.status().In("split %u", i);
    tables->splits[i].pattern = pattern.value();
  }
  if (!tables->added.word_words.empty()) {
    Result<Pattern> word = Pattern::Open(tables->added.word_words);
    if (!word.ok()) return word.status().In("added tokens: word");
    tables->added.word = word.value();
  }
  if (tables->normalizer_words.empty()) return Ok();
  Result<Normalizer> normalizer = Normalizer::Open(tables->normalizer_words);
  if (!normalizer.ok()) return normalizer.status().In("normalizer");
  tables->normalizer = normalizer.value();
  return Ok();
}

Status CheckSpace(const TokenizerTables& tables) {
  if (tables.prefix_level > tables.split_count) {
    return Error(TARN_BAD_FORMAT, "prefix_level is %u, at most %u splits expected", tables.prefix_level, tables.split_count);
  }
  if (tables.space.size() <= kMaxCharacterBytes) return Ok();
  return Error(TARN_BAD_FORMAT, "space has %zu bytes, one character expected", tables.space.size());
}

Status CheckEdgeSpaces(const TokenizerTables& tables, uint32_t ids) {
  if (tables.edge_spaces.empty() || tables.edge_spaces.size() == ids) return Ok();
  return Error(TARN_BAD_FORMAT, "edge_spaces: %zu found, %u expected", tables.edge_spaces.size(), ids);
}

Status CheckTemplate(Span<const uint32_t> tokens, uint32_t ids, const char* what) {
  if (tokens.size() > kMaxTemplateTokens) {
    return Error(TARN_BAD_FORMAT, "%s: %zu ids, at most %u expected", what, tokens.size(), kMaxTemplateTokens);
  }
  for (const uint32_t id : tokens) {
    if (id >= ids) return Error(TARN_BAD_FORMAT, "%s: id %u, below %u expected", what, id, ids);
  }
  return Ok();
}

}  // namespace

Status CheckTables(TokenizerTables* tables) {
  if (!HasTables(tables->kind)) return Ok();
  TARN_RETURN_IF_ERROR(CheckPieces(tables));
  const auto ids = static_cast<uint32_t>(tables->piece_ends.size());
  TARN_RETURN_IF_ERROR(CheckFirstPieces(tables).In("first_pieces"));
  if (tables->kind == TokenizerKind::kBpe) TARN_RETURN_IF_ERROR(CheckBpe(tables->bpe, ids));
  TARN_RETURN_IF_ERROR(CheckVocabulary(tables->vocabulary, tables->kind, ids).In("vocabulary"));
  TARN_RETURN_IF_ERROR(CheckJoints(tables));
  TARN_RETURN_IF_ERROR(CheckAdded(tables->added, ids));
  TARN_RETURN_IF_ERROR(CheckTemplate(tables->prefix, ids, "prefix"));
  TARN_RETURN_IF_ERROR(CheckTemplate(tables->suffix, ids, "suffix"));
  TARN_RETURN_IF_ERROR(CheckSpace(*tables));
  TARN_RETURN_IF_ERROR(CheckEdgeSpaces(*tables, ids));
  return OpenPatterns(tables);
}

}  // namespace tarn
