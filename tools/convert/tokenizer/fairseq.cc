#include "tools/convert/tokenizer/fairseq.h"

#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/added_beside.h"
#include "tools/convert/tokenizer/folder.h"

namespace tarn::convert {
namespace {

constexpr char kLanguage[] = "$L";  // in a template: the token of the language
constexpr char kText[] = "$A";
constexpr char kMask[] = "<mask>";

// What stands around a text, and behind the pieces.
struct Kind {
  const char* tokenizer_class;
  const char* text;
  const char* language;  // where the files name none; "": the kind has no languages
  const char* last;      // behind the languages
};
constexpr Kind kKinds[] = {
    {"XLMRobertaTokenizer", "<s> $A </s>", "", kMask},
    {"MBartTokenizer", "$A </s> $L", "en_XX", kMask},
    {"MBart50Tokenizer", "$L $A </s>", "en_XX", kMask},
    {"NllbTokenizer", "$L $A </s>", "eng_Latn", kMask},
    {"M2M100Tokenizer", "$L $A </s>", "__en__", ""},
    {"XGLMTokenizer", "</s> $A", "",
     "<madeupword0> <madeupword1> <madeupword2> <madeupword3> <madeupword4> <madeupword5> <madeupword6>"},
};
constexpr char kNllbText[] = "$A </s> $L";  // with legacy_behaviour

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

const Kind& KindOf(const std::string& folder, const TokenizerConfig& config) {
  const std::string name = config.ClassName();
  std::string known;
  for (const Kind& kind : kKinds) {
    if (name == kind.tokenizer_class) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.tokenizer_class);
  }
  const std::string found = name.empty() ? "no tokenizer_class" : "tokenizer_class \"" + name + "\"";
  Fail(folder, ": tokenizer_config.json has ", found, ", sentencepiece.bpe.model needs one of ", known);
}

constexpr const char* kFlags[] = {"lstrip", "rstrip", "single_word", "normalized"};

// The special tokens of added_tokens_decoder from the id `first` on, each with all of kFlags.
std::vector<Json> NamedTokens(const TokenizerConfig& config, size_t first) {
  std::vector<Json> tokens;
  for (const AddedToken& token : AddedTokensDecoder(config)) {
    if (token.id < first) continue;
    if (token.id != first + tokens.size()) {
      Fail(config.path(), ": added_tokens_decoder: ", token.id, ": ", first + tokens.size(), " expected behind the pieces");
    }
    tokens.push_back({{"content", token.content},
                      {"lstrip", token.lstrip},
                      {"rstrip", token.rstrip},
                      {"single_word", token.single_word},
                      {"normalized", token.normalized}});
  }
  return tokens;
}

std::string LanguageName(const Json& token, const std::string& where) {
  const std::string name = token.is_string() ? token.get<std::string>() : StringOf(token, "content");
  if (name.empty()) Fail(where, ": ", ValueText(token), ", a string or an object with \"content\" expected");
  return name;
}

// Special tokens that are no pieces, by their ids: languages, and what stands behind them. `first`: the id behind the pieces.
std::vector<Json> LastTokens(const std::string& folder, const Kind& kind, const TokenizerConfig& config, size_t first) {
  std::vector<Json> tokens = NamedTokens(config, first);
  if (!tokens.empty()) return tokens;
  std::vector<std::string> names;
  const std::string map_path = folder + "/special_tokens_map.json";
  for (const auto& [file, path] : {std::pair{&config.config(), config.path()}, std::pair{&config.special_tokens_map(), map_path}}) {
    const auto list = file->find("additional_special_tokens");
    if (kind.language[0] == '\0' || !names.empty() || list == file->end() || list->is_null()) continue;
    const std::string where = path + ": additional_special_tokens";
    if (!list->is_array()) Fail(where, ": ", ValueText(*list), ", a list expected");
    for (const Json& token : *list) names.push_back(LanguageName(token, where + "[" + std::to_string(names.size()) + "]"));
  }
  if (kind.language[0] != '\0' && names.empty()) {
    Fail(folder,
         ": neither tokenizer_config.json nor special_tokens_map.json has additional_special_tokens, which name the languages of ",
         kind.tokenizer_class, " in the order of their ids");
  }
  for (const std::string& name : Words(kind.last)) names.push_back(name);
  for (const std::string& name : names) {
    Json& token = tokens.emplace_back(Json{{"content", name}});
    for (const char* key : kFlags) token[key] = false;
    token["lstrip"] = name == kMask;
  }
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

SentencePieceModel ReadFairseq(const std::string& folder, const TokenizerConfig& config, const std::string& path) {
  const Kind& kind = KindOf(folder, config);
  const bool is_m2m = std::string(kind.tokenizer_class) == "M2M100Tokenizer";
  FairseqPieces pieces;
  if (is_m2m) pieces.ids = ReadObject(folder + "/vocab.json");
  std::vector<Json> last;
  pieces.last = [&](size_t first) {
    last = LastTokens(folder, kind, config, first);
    std::vector<std::string> names;
    for (const Json& token : last) names.push_back(StringOf(token, "content"));
    return names;
  };
  SentencePieceModel model = ReadSentencePiece(path, DummyPrefix::kAlways, &pieces);
  Json& tokenizer = model.tokenizer;
  std::map<std::string, const Json*> flags;
  for (const Json& token : last) flags[StringOf(token, "content")] = &token;
  for (Json& token : tokenizer["added_tokens"]) {
    const auto found = flags.find(StringOf(token, "content"));
    if (found == flags.end()) continue;
    for (const char* key : kFlags) token[key] = (*found->second)[key];
  }
  std::string language = config.Text("src_lang").value_or("");
  if (!language.empty() && is_m2m) language = "__" + language + "__";
  if (language.empty()) language = kind.language;
  const bool is_legacy = config.Bool("legacy_behaviour").value_or(false);
  const char* const text = is_legacy && std::string(kind.tokenizer_class) == "NllbTokenizer" ? kNllbText : kind.text;
  tokenizer["post_processor"] = Template(text, language, tokenizer["added_tokens"], folder);
  return model;
}

}  // namespace tarn::convert
