#include "tools/convert/tokenizer/model.h"

#include <cmath>
#include <optional>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/component.h"

namespace tarn::convert {
namespace {

using Kind = format::TokenizerKind;

constexpr Choice<Kind> kModels[] = {
    {"BPE", Kind::Bpe}, {"Unigram", Kind::Unigram}, {"WordPiece", Kind::WordPiece}, {"WordLevel", Kind::WordLevel}};

// Of a file without a "type".
const char* TypeByFields(const Json& model) {
  if (model.contains("merges")) return "BPE";
  if (model.contains("max_input_chars_per_word")) return "WordPiece";
  return model.contains("vocab") && model["vocab"].is_array() ? "Unigram" : "WordLevel";
}

void ReadMerges(Fields* fields, Vocabulary* vocabulary) {
  const Json* merges = fields->Find("merges");
  if (merges == nullptr || !merges->is_array()) fields->FailAt("merges", "a list expected");
  for (const Json& merge : *merges) {
    const std::string place = fields->where() + ".merges[" + std::to_string(vocabulary->merges.size()) + "]";
    const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!is_pair && !merge.is_string()) Fail(place, ": ", ValueText(merge), ", a pair of tokens expected");
    if (is_pair) {
      AddMerge(merge[0].get<std::string>(), merge[1].get<std::string>(), place, vocabulary);
    } else {
      AddMerge(merge.get<std::string>(), place, vocabulary);
    }
  }
}

void ReadVocab(Fields* fields, Vocabulary* vocabulary) {
  const Json* vocab = fields->Find("vocab");
  if (vocab == nullptr) fields->FailMissing("vocab", "an object of tokens and ids");
  ReadIds(*vocab, fields->where() + ".vocab", vocabulary);
}

void ReadBpe(Fields* fields, Vocabulary* vocabulary) {
  const Json* prefix = fields->Find("continuing_subword_prefix");
  if (prefix != nullptr && !prefix->is_null() && *prefix != "") {
    fields->FailAt("continuing_subword_prefix", ValueText(*prefix) + " is not supported, null is");
  }
  const Json* suffix = fields->Find("end_of_word_suffix");
  if (suffix != nullptr && !suffix->is_null()) vocabulary->word_suffix = fields->Text("end_of_word_suffix");
  const Json* dropout = fields->Find("dropout");
  if (dropout != nullptr && !dropout->is_null() && *dropout != 0.0) fields->FailAt("dropout", "is not supported, null is");
  vocabulary->byte_fallback = fields->Bool("byte_fallback", false);
  const Json* unknown = fields->Find("unk_token");
  if (unknown != nullptr && !unknown->is_null()) vocabulary->unk_token = fields->Text("unk_token");
  vocabulary->fuse_unk = fields->Bool("fuse_unk", false);
  vocabulary->ignore_merges = fields->Bool("ignore_merges", false);
  ReadVocab(fields, vocabulary);
  ReadMerges(fields, vocabulary);
}

void ReadUnigram(Fields* fields, Vocabulary* vocabulary) {
  vocabulary->byte_fallback = fields->Bool("byte_fallback", false);
  const Json* vocab = fields->Find("vocab");
  if (vocab == nullptr || !vocab->is_array()) fields->FailAt("vocab", "a list of tokens and scores expected");
  for (const Json& entry : *vocab) {
    const bool is_entry = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!is_entry || !std::isfinite(entry[1].get<double>())) {
      Fail(fields->where(), ".vocab[", vocabulary->listed.size(), "]: ", ValueText(entry), ", a token and its score expected");
    }
    vocabulary->listed.push_back(entry[0]);
    vocabulary->ids[entry[0]] = static_cast<uint32_t>(vocabulary->scores.size());
    vocabulary->scores.push_back(entry[1]);
  }
  if (vocabulary->listed.empty()) fields->FailAt("vocab", "is empty");
  const Json* unknown = fields->Find("unk_id");
  if (unknown == nullptr || unknown->is_null()) fields->FailAt("unk_id", "null is not supported: characters may be unknown");
  vocabulary->unk_token = vocabulary->listed[fields->Integer("unk_id", 0, vocabulary->listed.size() - 1)];
}

void ReadWordPiece(Fields* fields, Vocabulary* vocabulary) {
  vocabulary->unk_token = fields->Text("unk_token", "[UNK]");
  vocabulary->continuation = fields->Text("continuing_subword_prefix", "##");
  vocabulary->max_word_chars = static_cast<uint32_t>(fields->Integer("max_input_chars_per_word", 0, UINT32_MAX, 100));
  ReadVocab(fields, vocabulary);
}

}  // namespace

void ReadModel(const Json& model, const std::string& where, Vocabulary* vocabulary) {
  Fields typed(model, where);
  Json with_type = {{"type", typed.Has("type") ? model["type"] : Json(TypeByFields(model))}};
  vocabulary->kind = Fields(with_type, where).OneOf("type", kModels);
  typed.Find("type");
  if (vocabulary->kind == Kind::Bpe) ReadBpe(&typed, vocabulary);
  if (vocabulary->kind == Kind::Unigram) ReadUnigram(&typed, vocabulary);
  if (vocabulary->kind == Kind::WordPiece) ReadWordPiece(&typed, vocabulary);
  if (vocabulary->kind == Kind::WordLevel) {
    vocabulary->unk_token = typed.Text("unk_token", "<unk>");
    ReadVocab(&typed, vocabulary);
  }
  typed.Finish();
}

void ReadIds(const Json& vocab, const std::string& where, Vocabulary* vocabulary) {
  if (!vocab.is_object()) Fail(where, ": ", ValueText(vocab), ", an object of tokens and ids expected");
  for (const auto& [token, value] : vocab.items()) {
    const std::optional<uint32_t> id = TokenId(value);
    if (!id) Fail(where, ": \"", token, "\" has id ", ValueText(value));
    vocabulary->ids[token] = *id;
  }
}

void AddMerge(const std::string& left, const std::string& right, const std::string& where, Vocabulary* vocabulary) {
  const uint32_t left_id = IdOf(*vocabulary, left, where), right_id = IdOf(*vocabulary, right, where);
  vocabulary->merges.emplace_back(left_id, right_id, IdOf(*vocabulary, left + right, where));
}

void AddMerge(const std::string& line, const std::string& where, Vocabulary* vocabulary) {
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
    Fail(where, ": \"", line, "\", two tokens with a space between them expected");
  }
  AddMerge(line.substr(0, space), line.substr(space + 1), where, vocabulary);
}

}  // namespace tarn::convert
