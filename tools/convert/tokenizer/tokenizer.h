// The tokenizer files of a checkpoint, compiled into the tables of the model file (schema/tarn.fbs, Tokenizer).
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_TOKENIZER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schema/tarn_generated.h"
#include "tools/convert/tokenizer/files.h"

namespace tarn::convert {

struct TrieTables {
  std::vector<uint32_t> first_edges;
  std::vector<uint8_t> labels;
  std::vector<int32_t> values;
};

struct VocabularyData {
  TrieTables strings;
  bool whole_words = false;
  int32_t unk_id = -1;
  std::vector<int32_t> byte_ids;
  std::vector<double> scores;
  double unk_score = 0;
  std::vector<uint8_t> continuation;
  uint32_t max_word_chars = 0;
};

struct SplitStep {
  std::vector<uint16_t> pattern;
  format::SplitBehavior behavior = format::SplitBehavior::Isolated;
  bool invert = false;
  bool by_bytes = false;
};

// What the tables say, in their order.
struct TokenizerData {
  format::TokenizerKind kind = format::TokenizerKind::None;
  std::vector<uint8_t> pieces;
  std::vector<uint32_t> piece_ends;
  std::vector<uint8_t> special;

  std::vector<uint32_t> added_ids;
  std::vector<uint8_t> added_flags;
  TrieTables raw, normalized;
  std::vector<uint16_t> word;  // where a token is a single word

  std::vector<uint16_t> normalizer;
  bool prefix_space = false, prefix_first = false;
  uint8_t prefix_level = 0;
  std::string space;        // stands for spaces in words
  bool byte_level = false;  // words are spelled in the byte-level alphabet
  std::vector<SplitStep> splits;

  std::vector<format::Merge> merges;
  std::vector<uint32_t> merge_slots, word_slots;
  std::vector<int32_t> byte_ids;
  int32_t unk_id = -1;
  bool fuse_unk = false;

  VocabularyData vocabulary;
  std::vector<uint64_t> joints;

  std::vector<uint32_t> first_ids, first_piece_ends;
  std::vector<uint8_t> first_pieces;
  bool first_token_drops_space = false, text_drops_space = false, last_token_drops_space = false;

  std::vector<uint32_t> prefix, suffix;
  bool trim_offsets = false, trim_keeps_first = false;
  std::vector<uint32_t> edge_spaces;

  std::string note;  // what was left out, for people

  // Of tokenizer_config.json; -1: it names none.
  int32_t bos_token = -1, eos_token = -1, mask_token = -1;
};

// Reads the files of a folder, and what tokenizer_config.json adds.
// Added tokens with ids that are not below `vocab_size` are left out.
// Errors: no such files; a component that is not supported, with the file and the field; other ids that do not fit `vocab_size`.
TokenizerData ReadTokenizer(const std::string& folder, uint32_t vocab_size, TokenizerFiles files = TokenizerFiles::kJson);

flatbuffers::Offset<format::Tokenizer> WriteTokenizer(const TokenizerData& data, flatbuffers::FlatBufferBuilder* builder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_TOKENIZER_H_
