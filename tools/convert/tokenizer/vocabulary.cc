#include "tools/convert/tokenizer/vocabulary.h"

#include <algorithm>
#include <map>

#include "runtime/text/edge_spaces.h"
#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/byte_alphabet.h"
#include "tools/convert/tokenizer/normalize.h"
#include "tools/convert/tokenizer/pattern.h"
#include "tools/convert/tokenizer/strings.h"
#include "tools/convert/tokenizer/trie.h"

namespace tarn::convert {
namespace {

constexpr char kWordCharacter[] = R"([\w\x{200C}\x{200D}])";

// Before and within decoding, which makes one byte of a character of up to four: a space of one that stands for it.
constexpr size_t kMaxSpelledBytes = size_t{4} * kMaxPieceBytes;

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// Letters of the alphabet -> bytes.
const std::map<std::string, uint8_t>& Letters() {
  static const std::map<std::string, uint8_t> letters = [] {
    std::map<std::string, uint8_t> made;
    for (uint32_t byte = 0; byte < 256; ++byte) made[Utf8(ByteAlphabet()[byte])] = static_cast<uint8_t>(byte);
    return made;
  }();
  return letters;
}

// Of a hash table: twice as many slots as entries, more where too many full ones would lie in a row.
template <typename HashOf>
std::vector<uint32_t> MakeSlots(const std::vector<uint32_t>& entries, const HashOf& hash_of) {
  size_t count = 2;
  while (count < 2 * entries.size()) count *= 2;
  for (;; count *= 2) {
    std::vector<uint32_t> slots(count, kEmptySlot);
    size_t longest = 0;
    for (const uint32_t entry : entries) {
      size_t slot = hash_of(entry) & (count - 1), probes = 1;
      for (; slots[slot] != kEmptySlot; ++probes) slot = (slot + 1) & (count - 1);
      slots[slot] = entry;
      longest = std::max(longest, probes);
    }
    if (longest < kMaxProbes / 4) return slots;
    if (count > 64 * entries.size() + 1024) Fail("tokenizer: too many of its ", entries.size(), " tokens or merges have one hash");
  }
}

void CompileBpe(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ranks;
  data->merges = vocabulary.merges;
  for (size_t rank = 0; rank < data->merges.size(); ++rank) {
    const format::Merge& merge = data->merges[rank];
    ranks[{merge.left(), merge.right()}] = static_cast<uint32_t>(rank);  // of two the last one counts
  }
  std::vector<uint32_t> entries;
  for (const auto& [pair, rank] : ranks) entries.push_back(rank);
  data->merge_slots =
      MakeSlots(entries, [&](uint32_t rank) { return HashPair(data->merges[rank].left(), data->merges[rank].right()); });
  if (data->byte_level && vocabulary.byte_fallback) Fail(where, ": byte_fallback: true is not supported with bytes as letters");
  if (!data->byte_level && !vocabulary.word_suffix.empty()) {
    Fail(where, ": end_of_word_suffix: \"", vocabulary.word_suffix, "\" is not supported without ByteLevel");
  }
  const auto add_letters = [&](const std::string& suffix) {
    for (const uint32_t letter : ByteAlphabet()) {
      const auto found = data->byte_level ? vocabulary.ids.find(Utf8(letter) + suffix) : vocabulary.ids.end();
      data->byte_ids.push_back(found == vocabulary.ids.end() ? -1 : static_cast<int32_t>(found->second));
    }
  };
  add_letters("");
  if (!vocabulary.word_suffix.empty()) add_letters(vocabulary.word_suffix);
  if (!data->byte_level && vocabulary.byte_fallback) data->byte_ids = FallbackIds(vocabulary, where);
  if (vocabulary.unk_token) data->unk_id = static_cast<int32_t>(IdOf(vocabulary, *vocabulary.unk_token, where + ": unk_token"));
  data->fuse_unk = vocabulary.fuse_unk;
}

void CompileWords(const Vocabulary& vocabulary, TokenizerData* data) {
  std::map<uint32_t, std::string> words;
  for (const auto& [token, id] : vocabulary.ids) {
    const std::optional<std::string> bytes = BytesOf(token);
    if (bytes && !bytes->empty()) words[id] = *bytes;
  }
  std::vector<uint32_t> entries;
  for (const auto& [id, bytes] : words) entries.push_back(id);
  data->word_slots = MakeSlots(entries, [&](uint32_t id) {
    const std::string& bytes = words[id];
    return HashWord({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  });
}

void CheckAddedBytes(const std::string& content, size_t bytes, const std::string& where) {
  if (bytes > kMaxAddedTokenBytes)
    Fail(where, ": added token ", ValueText(content), ": ", bytes, " bytes, at most ", kMaxAddedTokenBytes, " expected");
}

// What is looked for, and what the token decodes to.
std::string Spelling(const AddedToken& token, const TokenizerData& data, const std::string& where) {
  if (!token.normalized || token.is_normal) return token.content;
  std::string normal = Normalized(data.normalizer, token.content);
  CheckAddedBytes(token.content, normal.size(), where + ": normalizer");
  return normal;
}

void CompileAdded(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  std::map<std::string, int32_t> raw, normalized;
  for (const AddedToken& token : vocabulary.added) {
    const std::string what = where + ": added token \"" + token.content + "\"";
    const std::string sought = Spelling(token, *data, where);
    if (sought.empty()) Fail(what, ": the normalizer leaves nothing of it");
    (token.normalized ? normalized : raw)[sought] = static_cast<int32_t>(data->added_ids.size());
    data->added_ids.push_back(token.id);
    data->added_flags.push_back(static_cast<uint8_t>((token.lstrip ? kTakesSpacesBefore : 0) |
                                                     (token.rstrip ? kTakesSpacesAfter : 0) | (token.special ? kIsSpecial : 0) |
                                                     (token.single_word ? kIsSingleWord : 0)));
    if (token.single_word && data->word.empty()) data->word = CompilePattern(kWordCharacter, what);
  }
  data->raw = MakeTrie(raw);
  data->normalized = MakeTrie(normalized);
}

template <typename T>
void Append(const std::string& piece, std::vector<uint8_t>* pieces, std::vector<T>* ends) {
  pieces->insert(pieces->end(), piece.begin(), piece.end());
  ends->push_back(static_cast<T>(pieces->size()));
}

void CompilePiece(uint32_t id, const Piece& piece, bool is_special, TokenizerData* data) {
  data->piece_ends.resize(id, static_cast<uint32_t>(data->pieces.size()));  // ids without a token
  data->special.resize(id, kNoPiece);
  Append(piece.later, &data->pieces, &data->piece_ends);
  data->special.push_back(static_cast<uint8_t>((is_special ? kSpecialPiece : 0) | (piece.is_byte ? kBytePiece : 0)));
  const bool has_space = data->first_token_drops_space && !piece.later.empty() && piece.later[0] == ' ';
  if (piece.first == (has_space ? piece.later.substr(1) : piece.later)) return;
  data->first_ids.push_back(id);
  Append(piece.first, &data->first_pieces, &data->first_piece_ends);
}

// What ids decode to. Added tokens are decoded as others are, as the package does.
void CompilePieces(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  std::map<uint32_t, std::pair<std::string, bool>> tokens;
  for (uint32_t id = 0; id < vocabulary.listed.size(); ++id) tokens[id] = {vocabulary.listed[id], false};
  for (const auto& [token, id] : vocabulary.ids) {
    const auto [found, is_new] = tokens.insert({id, {token, false}});
    if (!is_new && found->second.first != token) {
      Fail(where, ": \"", token, "\" and \"", found->second.first, "\" have the same id ", id);
    }
  }
  for (const AddedToken& token : vocabulary.added) {
    tokens[token.id] = {Spelling(token, *data, where), token.special};
  }
  std::map<uint32_t, Piece> pieces;
  for (const auto& [id, token] : tokens) {
    Piece piece = Decode(vocabulary.decoder, token.first, where, kMaxSpelledBytes);
    const size_t bytes = std::max(piece.first.size(), piece.later.size());
    if (bytes > kMaxPieceBytes) Fail(where, ": token ", id, " has ", bytes, " bytes, at most ", kMaxPieceBytes, " expected");
    data->first_token_drops_space |= piece.first != piece.later;
    pieces[id] = std::move(piece);
  }
  for (const auto& [id, piece] : pieces) CompilePiece(id, piece, tokens[id].second, data);
  data->text_drops_space = vocabulary.decoder.text_drops_space;
  data->last_token_drops_space = LastTokenDropsSpace(vocabulary.decoder);
}

// A decoder may leave other spaces in a piece than the token has.
void CompileEdgeSpaces(const Vocabulary& vocabulary, TokenizerData* data) {
  data->edge_spaces.resize(data->piece_ends.size());
  for (const auto& [token, id] : vocabulary.ids) {
    const EdgeSpaces spaces = EdgeSpacesOfText({token.data(), token.size()});
    data->edge_spaces[id] = static_cast<uint32_t>(spaces.leading | spaces.trailing << 16);  // a token has at most kMaxPieceBytes
  }
}

}  // namespace

bool AddedTokens::Append(AddedToken token) {
  if (!places_.emplace(token.content, tokens_.size()).second) return false;
  tokens_.push_back(std::move(token));
  return true;
}

bool AddedTokens::Add(AddedToken token, const std::string& where) {
  CheckAddedBytes(token.content, token.content.size(), where);
  return Append(std::move(token));
}

void AddedTokens::Put(AddedToken token, const std::string& where) {
  CheckAddedBytes(token.content, token.content.size(), where);
  const auto found = places_.find(token.content);
  if (found == places_.end()) {
    Append(std::move(token));
  } else {
    tokens_[found->second] = std::move(token);
  }
}

const AddedToken* AddedTokens::Find(const std::string& content) const {
  const auto found = places_.find(content);
  return found == places_.end() ? nullptr : &tokens_[found->second];
}

std::vector<AddedToken> AddedTokens::Filter(const std::function<bool(const AddedToken&)>& keeps) {
  std::vector<AddedToken> all = std::move(tokens_), taken;
  tokens_.clear();
  places_.clear();
  for (AddedToken& token : all) {
    if (keeps(token)) {
      Append(std::move(token));
    } else {
      taken.push_back(std::move(token));
    }
  }
  return taken;
}

std::optional<uint32_t> Vocabulary::Find(const std::string& token) const {
  if (const AddedToken* one = added.Find(token)) return one->id;
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional<uint32_t>(found->second);
}

uint32_t IdOf(const Vocabulary& vocabulary, const std::string& token, const std::string& where) {
  const auto found = vocabulary.ids.find(token);
  if (found == vocabulary.ids.end()) Fail(where, ": \"", token, "\" is not in the vocabulary");
  return found->second;
}

std::optional<std::string> BytesOf(const std::string& text) {
  std::string bytes;
  for (size_t begin = 0; begin < text.size();) {
    const size_t length = (static_cast<uint8_t>(text[begin]) & 0x80) == 0 ? 1 : 2;  // letters have no longer ones
    const auto letter = Letters().find(text.substr(begin, length));
    if (letter == Letters().end()) return std::nullopt;
    bytes += static_cast<char>(letter->second);
    begin += length;
  }
  return bytes;
}

void AddToken(AddedToken token, const std::string& where, Vocabulary* vocabulary) {
  if (token.content.empty()) return;
  const std::string content = token.content;
  if (!vocabulary->added.Add(std::move(token), where)) Fail(where, ": \"", content, "\" is there twice");
}

AddedToken ReadAddedToken(Fields* fields, uint32_t id) {
  AddedToken token{fields->Text("content"), id};
  token.single_word = fields->Bool("single_word", false);
  token.lstrip = fields->Bool("lstrip", false);
  token.rstrip = fields->Bool("rstrip", false);
  token.special = fields->Bool("special", false);
  token.normalized = fields->Bool("normalized", !token.special);
  return token;
}

void ReadAddedTokens(const Json& list, const std::string& where, Vocabulary* vocabulary) {
  if (!list.is_array()) Fail(where, ": a list expected");
  auto next = static_cast<uint32_t>(std::max(vocabulary->ids.size(), vocabulary->listed.size()));
  for (size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], where + "[" + std::to_string(i) + "]");
    const auto id = static_cast<uint32_t>(fields.Integer("id", 0, Fields::kMaxSize - 1));
    AddedToken token = ReadAddedToken(&fields, id);
    fields.Finish();
    const auto found = vocabulary->ids.find(token.content);
    token.id = found != vocabulary->ids.end() ? found->second : next++;
    if (token.id != id) {
      fields.FailAt("id", std::to_string(id) + " of \"" + token.content + "\" is not the id that its place in the file gives it, " +
                              std::to_string(token.id));
    }
    AddToken(token, where, vocabulary);
  }
}

void CompileVocabulary(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  const bool is_bpe = vocabulary.kind == format::TokenizerKind::Bpe;
  if (data->byte_level && !is_bpe) Fail(where, ": the model is not supported with ByteLevel, \"BPE\" is");
  if (data->byte_level && !vocabulary.decoder.is_byte_level) Fail(where, ": decoder: ByteLevel, as the pre-tokenizer, expected");
  data->kind = vocabulary.kind;
  CompilePieces(vocabulary, where, data);
  if (is_bpe) CompileBpe(vocabulary, where, data);
  if (!data->byte_level) CompileStrings(vocabulary, where, data);
  if (!data->byte_level && data->trim_offsets) CompileEdgeSpaces(vocabulary, data);
  if (data->byte_level && vocabulary.ignore_merges) CompileWords(vocabulary, data);
  CompileAdded(vocabulary, where, data);
}

}  // namespace tarn::convert
