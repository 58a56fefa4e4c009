#include "tools/convert/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/text/spaces.h"
#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/tokenizer/charsmap.h"
#include "tools/convert/tokenizer/component.h"
#include "tools/convert/tokenizer/folder.h"
#include "tools/convert/tokenizer/normalize.h"
#include "tools/convert/tokenizer/protobuf.h"
#include "tools/convert/tokenizer/utf8_codes.h"

namespace tarn::convert {
namespace {

constexpr char kSpace[] = "\xE2\x96\x81";  // stands for a space in pieces

// A piece has as many merges as it can be cut into two pieces: in a made-up file, as many as it has letters. Gemma's 256,000 pieces
// have 0.6 million.
constexpr size_t kMaxMerges = 2'000'000;

// Numbers of sentencepiece_model.proto.
enum PieceType : uint64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
enum ModelType : uint64_t { kUnigram = 1, kBpe = 2 };

struct ScoredPiece {
  std::string text;
  float score = 0;
  uint64_t type = kNormal;
};

struct Specification {
  std::vector<ScoredPiece> pieces;
  uint64_t model_type = kUnigram;
  bool byte_fallback = false, space_is_suffix = false;
  uint64_t bos_id = 1, eos_id = 2;
  std::string charsmap;
  bool adds_dummy_prefix = true, removes_extra_spaces = true, escapes_spaces = true;
  bool has_denormalizer = false;
};

ScoredPiece ReadPiece(std::string_view bytes, const std::string& where) {
  ScoredPiece piece;
  for (ProtobufFields fields(bytes, where); fields.Next();) {
    if (fields.number() == 1) piece.text = fields.Bytes();
    if (fields.number() == 2) piece.score = fields.Number();
    if (fields.number() == 3) piece.type = fields.Integer();
  }
  if (piece.text.empty() || piece.text.size() > kMaxPieceBytes) {
    Fail(where, ": ", piece.text.size(), " bytes, 1 to ", kMaxPieceBytes, " expected");
  }
  CodesOfUtf8(piece.text, where);
  if (!std::isfinite(piece.score)) Fail(where, ": its score is not finite");
  const bool is_known = piece.type >= kNormal && piece.type <= kByte;
  if (!is_known || piece.type == kUnused) {
    Fail(where, ": \"", piece.text, "\" has type ", piece.type, is_known ? " (unused)" : "", ", which is not supported");
  }
  return piece;
}

void ReadTrainer(std::string_view bytes, const std::string& where, Specification* model) {
  for (ProtobufFields fields(bytes, where); fields.Next();) {
    if (fields.number() == 3) model->model_type = fields.Integer();
    if (fields.number() == 24) model->space_is_suffix = fields.Integer() != 0;
    if (fields.number() == 35) model->byte_fallback = fields.Integer() != 0;
    if (fields.number() == 41) model->bos_id = fields.Integer();
    if (fields.number() == 42) model->eos_id = fields.Integer();
  }
  if (model->model_type != kUnigram && model->model_type != kBpe) {
    const char* const names[] = {"", "", "", " (word)", " (char)"};
    Fail(where, ".model_type: ", model->model_type, names[std::min<uint64_t>(model->model_type, 5) % 5],
         " is not supported, 1 (unigram) and 2 (bpe) are");
  }
  if (model->space_is_suffix) Fail(where, ".treat_whitespace_as_suffix: true is not supported");
}

void ReadNormalizerSpec(std::string_view bytes, const std::string& where, Specification* model) {
  for (ProtobufFields fields(bytes, where); fields.Next();) {
    if (fields.number() == 2) model->charsmap = fields.Bytes();
    if (fields.number() == 3) model->adds_dummy_prefix = fields.Integer() != 0;
    if (fields.number() == 4) model->removes_extra_spaces = fields.Integer() != 0;
    if (fields.number() == 5) model->escapes_spaces = fields.Integer() != 0;
  }
  if (!model->escapes_spaces) Fail(where, ".escape_whitespaces: false is not supported");
}

void CheckDenormalizer(std::string_view bytes, const std::string& where) {
  for (ProtobufFields fields(bytes, where); fields.Next();) {
    if (fields.number() == 2 && !fields.Bytes().empty()) Fail(where, ".precompiled_charsmap: is not supported");
  }
}

Specification ReadSpecification(std::string_view bytes, const std::string& path) {
  Specification model;
  for (ProtobufFields fields(bytes, path); fields.Next();) {
    if (fields.number() == 1) {
      model.pieces.push_back(ReadPiece(fields.Bytes(), path + ": piece " + std::to_string(model.pieces.size())));
    }
    if (fields.number() == 2) ReadTrainer(fields.Bytes(), path + ": trainer_spec", &model);
    if (fields.number() == 3) ReadNormalizerSpec(fields.Bytes(), path + ": normalizer_spec", &model);
    if (fields.number() == 5) CheckDenormalizer(fields.Bytes(), path + ": denormalizer_spec");
  }
  if (model.pieces.empty()) Fail(path, ": it has no pieces, which a model of SentencePiece has");
  return model;
}

// The pairs of pieces that make another one: those of the largest score first, of these the longest.
std::vector<format::Merge> MergesOf(const std::vector<ScoredPiece>& pieces, const std::string& path) {
  std::unordered_map<std::string_view, uint32_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) ids[pieces[id].text] = static_cast<uint32_t>(id);
  struct Merge {
    std::tuple<float, uint32_t, uint32_t> order;  // score, characters of both
    uint32_t left, right, made;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view text = pieces[id].text;
    const size_t first = merges.size();
    uint32_t characters = 0, left_characters = 0;
    for (const char byte : text) characters += IsContinuation(byte) ? 0 : 1;
    for (size_t at = 1; at < text.size(); ++at) {
      if (IsContinuation(text[at])) continue;
      ++left_characters;
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      if (merges.size() == kMaxMerges)
        Fail(path, ": piece ", id, ": merge ", kMaxMerges + 1, ", at most ", kMaxMerges, " expected");
      merges.push_back({{pieces[id].score, left_characters, characters - left_characters},
                        left->second,
                        right->second,
                        static_cast<uint32_t>(id)});
    }
    std::sort(merges.begin() + static_cast<std::ptrdiff_t>(first), merges.end(),
              [](const Merge& a, const Merge& b) { return std::tie(a.left, a.right) < std::tie(b.left, b.right); });
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) { return a.order > b.order; });
  std::vector<format::Merge> made;
  made.reserve(merges.size());
  for (const Merge& merge : merges) made.emplace_back(merge.left, merge.right, merge.made);
  return made;
}

// The place of the one piece that stands for what is unknown.
size_t UnknownPiece(const std::vector<ScoredPiece>& pieces, const std::string& path) {
  const auto is_unknown = [](const ScoredPiece& piece) { return piece.type == kUnknown; };
  const auto count = std::count_if(pieces.begin(), pieces.end(), is_unknown);
  if (count != 1) Fail(path, ": ", count, " pieces of type 2 (unknown), 1 expected");
  return static_cast<size_t>(std::find_if(pieces.begin(), pieces.end(), is_unknown) - pieces.begin());
}

Json ModelOf(const Specification& model, const std::string& path) {
  const size_t unknown = UnknownPiece(model.pieces, path);
  Json made = {{"byte_fallback", model.byte_fallback}};
  if (model.model_type == kUnigram) {
    made["type"] = "Unigram";
    made["unk_id"] = unknown;
    made["vocab"] = Json::array();
    for (const ScoredPiece& piece : model.pieces) made["vocab"].push_back({piece.text, static_cast<double>(piece.score)});
    return made;
  }
  made["type"] = "BPE";
  made["unk_token"] = model.pieces[unknown].text;
  made["fuse_unk"] = true;
  made["vocab"] = Json::object();
  for (const ScoredPiece& piece : model.pieces) {
    const size_t id = made["vocab"].size();
    if (!made["vocab"].emplace(piece.text, id).second) Fail(path, ": piece ", id, ": \"", piece.text, "\" is there twice");
  }
  made["merges"] = Json::array();  // MergesOf() has them: their texts would take a thousand times the memory of the pieces
  return made;
}

Json AddedTokensOf(const std::vector<ScoredPiece>& pieces) {
  Json added = Json::array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    const uint64_t type = pieces[id].type;
    if (type != kUnknown && type != kControl) continue;
    added.push_back({{"id", id}, {"content", pieces[id].text}, {"normalized", false}, {"special", true}});
  }
  return added;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// User-defined pieces are no borders of a text as added tokens are: SentencePiece finds them in the normalized text, which has one
// prefix and no spaces at its ends. It does not normalize them: only those that stay as they are can be found so.
std::vector<AddedToken> SymbolsOf(const Specification& model, const std::string& path) {
  std::vector<uint16_t> normalizer;
  if (!model.charsmap.empty()) {
    const std::string where = path + ": normalizer_spec.precompiled_charsmap";
    NormalizerStep step{NormalizerStep::Kind::kCharsMap};
    step.charsmap = CompileCharsMap(model.charsmap, where);
    normalizer = CompileNormalizer({step}, where);
  }
  std::vector<AddedToken> symbols;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& text = model.pieces[id].text;
    if (model.pieces[id].type != kUserDefined) continue;
    const std::string normal = Replaced(Normalized(normalizer, Replaced(text, kSpace, " ")), " ", kSpace);
    if (normal != text) {
      Fail(path, ": piece ", id, ": \"", text, "\" is user-defined, and the normalizer makes \"", normal,
           "\" of it, which is not supported: put a tokenizer.json beside the model");
    }
    AddedToken& symbol = symbols.emplace_back(AddedToken{text, static_cast<uint32_t>(id)});
    symbol.is_normal = true;
  }
  return symbols;
}

// A piece has words on both sides of a space: words cannot be told apart before.
bool HasPhrases(const std::vector<ScoredPiece>& pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](const ScoredPiece& piece) {
    return piece.type == kNormal && piece.text.find(kSpace, 1) != std::string::npos;
  });
}

// Sets what makes spaces of a text part of its pieces, and the way back. A normalizer gives each part of a text its prefix, without
// regard to what stands before it: where only the first part gets one, Metaspace does it.
void SetSpaces(const Specification& model, DummyPrefix prefix, Json* tokenizer) {
  const bool is_first_only = model.adds_dummy_prefix && prefix == DummyPrefix::kFirst;
  const bool splits = model.removes_extra_spaces && !HasPhrases(model.pieces);
  Json normalizers = Json::array();
  if (!model.charsmap.empty()) {
    normalizers.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", EncodeBase64(model.charsmap)}});
  }
  if (model.removes_extra_spaces) {
    normalizers.push_back({{"type", "Strip"}, {"strip_left", !model.adds_dummy_prefix}, {"strip_right", true}});
  }
  // Spaces at the beginning become one with the prefix.
  if (model.adds_dummy_prefix && !is_first_only) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", model.removes_extra_spaces ? " " : kSpace}});
  }
  if (model.removes_extra_spaces) {
    normalizers.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", kSpace}});
  }
  if (is_first_only) {
    (*tokenizer)["pre_tokenizer"] = {
        {"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "first"}, {"split", splits}};
  } else if (splits) {
    (*tokenizer)["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"String", kSpace}}}, {"behavior", "MergedWithNext"}, {"invert", false}};
  }
  normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}});
  (*tokenizer)["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  Json decoders = Json::array(
      {{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}}, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (model.adds_dummy_prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1u}, {"stop", 0u}});
  if (model.byte_fallback) {
    (*tokenizer)["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  } else {
    (*tokenizer)["decoder"] = {
        {"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", model.adds_dummy_prefix ? "always" : "never"}};
  }
}

// `pieces`, each where `ids` has it, and what stands there before.
void PlaceByIds(const Json& ids, const std::string& path, std::vector<ScoredPiece>* pieces) {
  std::vector<ScoredPiece> placed(ids.size());
  for (const ScoredPiece& piece : *pieces) {
    const auto found = ids.find(piece.text);
    if (found == ids.end()) Fail(path, ": \"", piece.text, "\" is not in vocab.json, which has the ids of all pieces");
    const size_t id = TokenId(*found).value_or(placed.size());
    if (id >= placed.size() || !placed[id].text.empty()) {
      Fail(path, ": \"", piece.text, "\" has id ", ValueText(*found), " in vocab.json, ids from 0 to ", placed.size() - 1,
           " expected, each once");
    }
    placed[id] = piece;
  }
  if (pieces->size() != placed.size()) Fail(path, ": ", pieces->size(), " pieces, vocab.json has ", placed.size());
  *pieces = std::move(placed);
}

void Renumber(const FairseqPieces& fairseq, const std::string& path, Specification* model) {
  const uint64_t types[] = {kUnknown, kControl, kControl};
  const size_t replaced = std::size(types);
  for (size_t i = 0; i < replaced; ++i) {
    if (i < model->pieces.size() && model->pieces[i].type == types[i]) continue;
    Fail(path, ": piece ", i, ": <unk>, <s>, </s> expected at the beginning");
  }
  std::vector<ScoredPiece> pieces = {{"<s>", 0, kControl}, {"<pad>", 0, kControl}, {"</s>", 0, kControl}, {"<unk>", 0, kUnknown}};
  pieces.insert(pieces.end(), model->pieces.begin() + replaced, model->pieces.end());
  if (!fairseq.ids.is_null()) PlaceByIds(fairseq.ids, path, &pieces);
  for (const std::string& name : fairseq.last(pieces.size())) pieces.push_back({name, 0, kControl});
  model->pieces = std::move(pieces);
  const auto id_of = [&](const char* name) {
    const auto is_it = [&](const ScoredPiece& piece) { return piece.type == kControl && piece.text == name; };
    return static_cast<uint64_t>(std::find_if(model->pieces.begin(), model->pieces.end(), is_it) - model->pieces.begin());
  };
  model->bos_id = id_of("<s>");
  model->eos_id = id_of("</s>");
}

std::string ControlPiece(const Specification& model, uint64_t id) {
  return id < model.pieces.size() && model.pieces[id].type == kControl ? model.pieces[id].text : "";
}

}  // namespace

SentencePieceModel ReadSentencePiece(const std::string& path, DummyPrefix prefix, const FairseqPieces* fairseq) {
  const std::string bytes = ReadFile(path, kMaxTokenizerFileBytes);
  Specification model = ReadSpecification(bytes, path);
  if (fairseq != nullptr) Renumber(*fairseq, path, &model);
  SentencePieceModel made;
  made.tokenizer = {{"model", ModelOf(model, path)}, {"added_tokens", AddedTokensOf(model.pieces)}};
  if (model.model_type == kBpe) made.merges = MergesOf(model.pieces, path);
  SetSpaces(model, prefix, &made.tokenizer);
  made.symbols = SymbolsOf(model, path);
  made.bos = ControlPiece(model, model.bos_id);
  made.eos = ControlPiece(model, model.eos_id);
  return made;
}

}  // namespace tarn::convert
