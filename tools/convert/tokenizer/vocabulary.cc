#include "tools/convert/tokenizer/vocabulary.h"

#include <algorithm>
#include <map>

#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/byte_alphabet.h"
#include "tools/convert/tokenizer/pattern.h"
#include "tools/convert/tokenizer/trie.h"

namespace tarn::convert {
namespace {

constexpr char kWordCharacter[] = R"([\w\x{200C}\x{200D}])";

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

uint32_t IdOf(const Vocabulary& vocabulary, const std::string& token, const std::string& where) {
  const auto found = vocabulary.ids.find(token);
  if (found == vocabulary.ids.end()) Fail(where, ": \"", token, "\" is not in the vocabulary");
  return found->second;
}

void CompileBpe(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ranks;
  for (const auto& [left, right] : vocabulary.merges) {
    const std::string merge = where + ": merge " + std::to_string(data->merges.size());
    const uint32_t left_id = IdOf(vocabulary, left, merge), right_id = IdOf(vocabulary, right, merge);
    ranks[{left_id, right_id}] = static_cast<uint32_t>(data->merges.size());  // of two the last one counts
    data->merges.emplace_back(left_id, right_id, IdOf(vocabulary, left + right, merge));
  }
  std::vector<uint32_t> entries;
  for (const auto& [pair, rank] : ranks) entries.push_back(rank);
  data->merge_slots =
      MakeSlots(entries, [&](uint32_t rank) { return HashPair(data->merges[rank].left(), data->merges[rank].right()); });
  for (const uint32_t letter : ByteAlphabet()) {
    const auto found = vocabulary.ids.find(Utf8(letter));
    data->byte_ids.push_back(found == vocabulary.ids.end() ? -1 : static_cast<int32_t>(found->second));
  }
  if (!vocabulary.unk_token.empty()) {
    data->unk_id = static_cast<int32_t>(IdOf(vocabulary, vocabulary.unk_token, where + ": unk_token"));
  }
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

// What the normalizer of a tokenizer makes of a text.
std::string Normalized(const std::vector<uint16_t>& normalizer, const std::string& text) {
  if (normalizer.empty()) return text;
  const Normalizer opened = Normalizer::Open({normalizer.data(), normalizer.size()}).value();
  std::vector<uint32_t> working(opened.working_words());
  NormalizedText reader(opened, {text.data(), text.size()}, {working.data(), working.size()});
  char bytes[64];
  TextRange origins[64];
  std::string made;
  while (const size_t size = reader.Read(bytes, origins)) made.append(bytes, size);
  return made;
}

void CompileAdded(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  std::map<std::string, int32_t> raw, normalized;
  for (const AddedToken& token : vocabulary.added) {
    const std::string what = where + ": added token \"" + token.content + "\"";
    if (token.content.size() > kMaxAddedTokenBytes) Fail(what, ": longer than ", kMaxAddedTokenBytes, " bytes");
    const std::string sought = token.normalized ? Normalized(data->normalizer, token.content) : token.content;
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

// What ids decode to. Added tokens are read by the alphabet, too, as the package does.
void CompilePieces(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data) {
  std::map<uint32_t, std::pair<std::string, bool>> tokens;
  for (const auto& [token, id] : vocabulary.ids) {
    if (!tokens.insert({id, {token, false}}).second) {
      Fail(where, ": \"", token, "\" and \"", tokens[id].first, "\" have the same id ", id);
    }
  }
  for (const AddedToken& token : vocabulary.added) {
    tokens[token.id] = {token.normalized ? Normalized(data->normalizer, token.content) : token.content, token.special};
  }
  for (const auto& [id, token] : tokens) {
    const std::string bytes = BytesOf(token.first).value_or(token.first);
    if (bytes.size() > kMaxPieceBytes)
      Fail(where, ": token ", id, " has ", bytes.size(), " bytes, at most ", kMaxPieceBytes, " expected");
    data->piece_ends.resize(id, static_cast<uint32_t>(data->pieces.size()));  // ids without a token
    data->special.resize(id, 0);
    data->pieces.insert(data->pieces.end(), bytes.begin(), bytes.end());
    data->piece_ends.push_back(static_cast<uint32_t>(data->pieces.size()));
    data->special.push_back(token.second ? 1 : 0);
  }
}

}  // namespace

std::optional<uint32_t> Vocabulary::Find(const std::string& token) const {
  for (const AddedToken& one : added) {
    if (one.content == token) return one.id;
  }
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional<uint32_t>(found->second);
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

std::pair<std::string, std::string> SplitMerge(const std::string& line, const std::string& where) {
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
    Fail(where, ": \"", line, "\", two tokens with a space between them expected");
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

void ReadBpe(const Json& model, const std::string& where, Vocabulary* vocabulary) {
  Fields fields(model, where);
  const std::string type = fields.Text("type", model.contains("merges") ? "BPE" : "unknown");
  if (type != "BPE") fields.FailAt("type", "\"" + type + "\" is not supported, \"BPE\" on bytes is");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* value = fields.Find(key);
    if (value != nullptr && !value->is_null() && *value != "") fields.FailAt(key, ValueText(*value) + " is not supported, null is");
  }
  const Json* dropout = fields.Find("dropout");
  if (dropout != nullptr && !dropout->is_null() && *dropout != 0.0) fields.FailAt("dropout", "is not supported, null is");
  if (fields.Bool("byte_fallback", false)) fields.FailAt("byte_fallback", "true is not supported with bytes as letters");
  const Json* unknown = fields.Find("unk_token");
  if (unknown != nullptr && !unknown->is_null()) vocabulary->unk_token = fields.Text("unk_token");
  vocabulary->fuse_unk = fields.Bool("fuse_unk", false);
  vocabulary->ignore_merges = fields.Bool("ignore_merges", false);
  const Json* vocab = fields.Find("vocab");
  if (vocab == nullptr || !vocab->is_object()) fields.FailAt("vocab", "an object of tokens and ids expected");
  for (const auto& [token, id] : vocab->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= Fields::kMaxSize)
      Fail(where, ".vocab: \"", token, "\" has id ", ValueText(id));
    vocabulary->ids[token] = id.get<uint32_t>();
  }
  const Json* merges = fields.Find("merges");
  if (merges == nullptr || !merges->is_array()) fields.FailAt("merges", "a list expected");
  for (const Json& merge : *merges) {
    const std::string place = where + ".merges[" + std::to_string(vocabulary->merges.size()) + "]";
    const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!is_pair && !merge.is_string()) Fail(place, ": ", ValueText(merge), ", a pair of tokens expected");
    vocabulary->merges.push_back(is_pair ? std::pair(merge[0].get<std::string>(), merge[1].get<std::string>())
                                         : SplitMerge(merge.get<std::string>(), place));
  }
  fields.Finish();
}

void AddToken(AddedToken token, const std::string& where, Vocabulary* vocabulary) {
  if (token.content.empty()) return;
  for (const AddedToken& other : vocabulary->added) {
    if (other.content == token.content) Fail(where, ": \"", token.content, "\" is there twice");
  }
  vocabulary->added.push_back(std::move(token));
}

void ReadAddedTokens(const Json& list, const std::string& where, Vocabulary* vocabulary) {
  if (!list.is_array()) Fail(where, ": a list expected");
  const auto size = static_cast<uint32_t>(vocabulary->ids.size());
  uint32_t next = size;
  for (size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], where + "[" + std::to_string(i) + "]");
    AddedToken token;
    token.content = fields.Text("content");
    token.single_word = fields.Bool("single_word", false);
    token.lstrip = fields.Bool("lstrip", false);
    token.rstrip = fields.Bool("rstrip", false);
    token.normalized = fields.Bool("normalized", true);
    token.special = fields.Bool("special", false);
    const uint64_t id = fields.Integer("id", 0, Fields::kMaxSize - 1);
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
  data->kind = format::TokenizerKind::Bpe;
  CompilePieces(vocabulary, where, data);
  CompileBpe(vocabulary, where, data);
  if (vocabulary.ignore_merges) CompileWords(vocabulary, data);
  CompileAdded(vocabulary, where, data);
}

}  // namespace tarn::convert
