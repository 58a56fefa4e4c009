#include "tools/convert/tokenizer/fairseq.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/folder.h"
#include "tools/convert/tokenizer/sentencepiece.h"

namespace tarn::convert {
namespace {

constexpr char kLanguage[] = "$L";  // in a template: the token of the language
constexpr char kText[] = "$A";
constexpr char kMask[] = "<mask>";

// What stands around a text, and behind the pieces.
struct Kind {
  const char* tokenizer_class;
  const char* model_type;  // that has it where no class is named; "": none
  const char* text;
  const char* language;  // where the files name none; "": the kind has no languages
  const char* last;      // behind the languages
};
constexpr Kind kKinds[] = {
    {"XLMRobertaTokenizer", "xlm-roberta", "<s> $A </s>", "", kMask},
    {"MBartTokenizer", "mbart", "$A </s> $L", "en_XX", kMask},
    {"MBart50Tokenizer", "", "$L $A </s>", "en_XX", kMask},
    {"NllbTokenizer", "", "$L $A </s>", "eng_Latn", kMask},
    {"M2M100Tokenizer", "m2m_100", "$L $A </s>", "__en__", ""},
    {"XGLMTokenizer", "xglm", "</s> $A", "",
     "<madeupword0> <madeupword1> <madeupword2> <madeupword3> <madeupword4> <madeupword5> <madeupword6>"},
};
constexpr char kNllbText[] = "$A </s> $L";  // with legacy_behaviour

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

const Kind& KindOf(const std::string& folder, const Json& config) {
  std::string name = StringOf(config, "tokenizer_class");
  const std::string fast = "Fast";
  if (name.size() > fast.size() && name.compare(name.size() - fast.size(), fast.size(), fast) == 0) {
    name.resize(name.size() - fast.size());
  }
  const std::string model_type = StringOf(ReadJsonIfThere(folder + "/config.json"), "model_type");
  std::string known;
  for (const Kind& kind : kKinds) {
    if (name.empty() ? !model_type.empty() && model_type == kind.model_type : name == kind.tokenizer_class) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.tokenizer_class);
  }
  const std::string found = name.empty() ? "no tokenizer_class" : "tokenizer_class \"" + name + "\"";
  Fail(folder, ": tokenizer_config.json has ", found, ", sentencepiece.bpe.model needs one of ", known);
}

// Special tokens that are no pieces, by their ids: languages, and what stands behind them. `first`: the id behind the pieces.
std::vector<Json> LastTokens(const std::string& folder, const Kind& kind, const Json& config, size_t first) {
  std::vector<Json> tokens;
  const auto named = config.find("added_tokens_decoder");
  if (named != config.end() && named->is_object()) {
    std::map<size_t, Json> by_id;
    for (const auto& [id, token] : named->items()) {
      const size_t number = std::strtoull(id.c_str(), nullptr, 10);
      if (number >= first && token.is_object() && !StringOf(token, "content").empty()) by_id[number] = token;
    }
    for (const auto& [id, token] : by_id) {
      if (id != first + tokens.size()) {
        Fail(folder, ": tokenizer_config.json: added_tokens_decoder: ", id, ": ", first + tokens.size(),
             " expected behind the pieces");
      }
      tokens.push_back(token);
    }
    if (!tokens.empty()) return tokens;
  }
  std::vector<std::string> names;
  for (const Json& file : {config, ReadJsonIfThere(folder + "/special_tokens_map.json")}) {
    const auto list = file.find("additional_special_tokens");
    if (kind.language[0] == '\0' || !names.empty() || list == file.end() || !list->is_array()) continue;
    for (const Json& token : *list) {
      names.push_back(token.is_string() ? token.get<std::string>() : StringOf(token, "content"));
    }
  }
  if (kind.language[0] != '\0' && names.empty()) {
    Fail(folder,
         ": neither tokenizer_config.json nor special_tokens_map.json has additional_special_tokens, which name the languages of ",
         kind.tokenizer_class, " in the order of their ids");
  }
  for (const std::string& name : Words(kind.last)) names.push_back(name);
  for (const std::string& name : names) tokens.push_back({{"content", name}, {"lstrip", name == kMask}, {"normalized", false}});
  return tokens;
}

Json Template(const std::string& text, const std::string& language, const Json& added, const std::string& folder) {
  Json single = Json::array(), specials = Json::object();
  for (std::string word : Words(text)) {
    if (word == kText) {
      single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
      continue;
    }
    if (word == kLanguage) word = language;
    Json id;
    for (const Json& token : added) {
      if (token["content"] == word) id = token["id"];
    }
    if (id.is_null()) Fail(folder, ": \"", word, "\", which stands beside every text, is no token");
    single.push_back({{"SpecialToken", {{"id", word}, {"type_id", 0}}}});
    specials[word] = {{"id", word}, {"ids", Json::array({id})}, {"tokens", Json::array({word})}};
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", single}, {"special_tokens", specials}};
}

}  // namespace

Json ReadFairseq(const std::string& folder, const std::string& path) {
  const Json config = ReadJsonIfThere(folder + "/tokenizer_config.json");
  const Kind& kind = KindOf(folder, config);
  const bool is_m2m = std::string(kind.tokenizer_class) == "M2M100Tokenizer";
  FairseqPieces pieces;
  if (is_m2m) pieces.ids = ReadJson(folder + "/vocab.json");
  std::vector<Json> last;
  pieces.last = [&](size_t first) {
    last = LastTokens(folder, kind, config, first);
    std::vector<std::string> names;
    for (const Json& token : last) names.push_back(StringOf(token, "content"));
    return names;
  };
  Json tokenizer = ReadSentencePiece(path, &pieces).tokenizer;
  for (Json& token : tokenizer["added_tokens"]) {
    for (const Json& flags : last) {
      if (token["content"] != flags["content"]) continue;
      for (const char* key : {"lstrip", "rstrip", "single_word", "normalized"}) token[key] = flags.value(key, false);
    }
  }
  std::string language = StringOf(config, "src_lang");
  if (!language.empty() && is_m2m) language = "__" + language + "__";
  if (language.empty()) language = kind.language;
  const bool is_legacy = config.value("legacy_behaviour", Json()) == true;
  const char* const text = is_legacy && std::string(kind.tokenizer_class) == "NllbTokenizer" ? kNllbText : kind.text;
  tokenizer["post_processor"] = Template(text, language, tokenizer["added_tokens"], folder);
  return tokenizer;
}

}  // namespace tarn::convert
