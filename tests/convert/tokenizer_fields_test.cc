// What the fields of the tokenizer files may hold, and what the messages about others say.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {
namespace {

using nlohmann::json;

constexpr char kFixtures[] = "tests/data/tokenizers/";

json Fixture(const std::string& name) { return json::parse(std::ifstream(kFixtures + name + "/tokenizer.json")); }

// What ReadTokenizer() says of a folder; "": it takes it.
std::string Refusal(const TestFolder& folder, uint32_t vocab_size = 1000) {
  try {
    ReadTokenizer(folder.path(), vocab_size);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

std::string RefusalOf(const json& file) {
  const TestFolder folder;
  folder.Write("tokenizer.json", file.dump());
  return Refusal(folder);
}

// The id of the next added token.
size_t TokenCount(const json& file) {
  size_t count = file["model"]["vocab"].size();
  for (const json& token : file["added_tokens"]) count += file["model"]["vocab"].count(token["content"]) == 0 ? 1 : 0;
  return count;
}

void ExpectMessage(const std::string& message, const std::string& words) {
  EXPECT_NE(message.find(words), std::string::npos) << "expected: " << words << "\nfound:    " << message;
}

// Calls on_place for the members of `value` and theirs. Of lists and of the vocabulary the first member stands for all that are of
// its type.
void ForEachPlace(const json& value, const std::string& place, const std::string& kind,
                  const std::function<void(const std::string& place, const std::string& kind)>& on_place) {
  on_place(place, kind);
  if (!value.is_structured()) return;
  std::set<std::string> seen;
  for (const auto& [key, member] : value.items()) {
    const bool is_one_of_many = value.is_array() || place == "/model/vocab";
    const std::string type = member.is_object() ? member.value("type", json()).dump() : member.type_name();
    const std::string step = is_one_of_many ? "*" + type : key;
    if (!seen.insert(step).second) continue;
    ForEachPlace(member, (json::json_pointer(place) / key).to_string(), kind + "/" + step, on_place);
  }
}

// The smallest first: what several have is tried with it.
std::vector<std::string> FixturesBySize() {
  std::set<std::pair<uintmax_t, std::string>> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    const auto path = entry.path() / "tokenizer.json";
    if (std::filesystem::exists(path)) found.insert({std::filesystem::file_size(path), entry.path().filename()});
  }
  std::vector<std::string> names;
  for (const auto& [size, name] : found) names.push_back(name);
  return names;
}

const std::vector<json> kOdd = {nullptr, 4294967297u, "odd", {5}, {{"id", 5}}};

// Every field, with values of every type: a message of the JSON library would have neither the file nor the field.
TEST(TokenizerFields, ValuesOfOtherTypesAreRefusedWithTheirPlace) {
  std::set<std::string> done;
  size_t refused = 0;
  for (const std::string& name : FixturesBySize()) {
    json file = Fixture(name);
    const json whole = file;
    ForEachPlace(whole, "", "", [&](const std::string& place, const std::string& kind) {
      if (!done.insert(kind).second) return;
      for (const json& odd : kOdd) {
        json& field = file[json::json_pointer(place)];
        const json kept = field;
        field = odd;
        std::string message;
        try {
          message = RefusalOf(file);
        } catch (const std::exception& error) {
          ADD_FAILURE() << name << place << ": " << odd << ": " << error.what();
        }
        file[json::json_pointer(place)] = kept;
        refused += message.empty() ? 0 : 1;
        if (!message.empty()) ExpectMessage(message, "tokenizer.json");
      }
    });
  }
  EXPECT_GT(done.size(), 150u);
  EXPECT_GT(refused, 500u);
}

// The same of the files beside it.
TEST(TokenizerFields, SpecialTokensOfOtherTypesAreRefusedWithTheirPlace) {
  const TestFolder folder;
  folder.Write("tokenizer.json", Fixture("gpt2").dump());
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    for (const char* key : {"bos_token", "eos_token", "mask_token"}) {
      for (const json& odd : kOdd) {
        folder.Write(name, json{{key, odd}}.dump());
        const std::string message = Refusal(folder);
        EXPECT_EQ(message.empty(), odd.is_null()) << name << key << odd;
        const std::string file = odd.is_string() ? "special_tokens_map.json" : name;  // a string is looked up in the end
        if (!odd.is_null()) ExpectMessage(message, file + ": " + key);
      }
    }
    folder.Write(name, R"({"eos_token": 5})");
    ExpectMessage(Refusal(folder), std::string(name) + ": eos_token: 5, a string or an object with \"content\" expected");
    folder.Write(name, "[]");
    ExpectMessage(Refusal(folder), std::string(name) + ": [] is not an object");
    folder.Write(name, "{}");
  }
}

json Template(const json& single) {
  json file = Fixture("gpt2");
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", single},
                            {"pair", json::array()},
                            {"special_tokens", {{"x", {{"id", "x"}, {"ids", {5}}, {"tokens", {"x"}}}}}}};
  return file;
}

TEST(TokenizerFields, Templates) {
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, token = {{"SpecialToken", {{"id", "x"}, {"type_id", 0}}}};
  EXPECT_EQ(RefusalOf(Template({token, text, token})), "");
  ExpectMessage(RefusalOf(Template({{{"SpecialToken", {{"id", 5}}}}, text})), "single[0].SpecialToken: id: 5 is not a string");
  ExpectMessage(RefusalOf(Template({{{"SpecialToken", {{"id", "y"}}}}, text})),
                "single[0].SpecialToken: id: \"y\" is not in special_tokens");
  // The package takes it, and panics on the first text.
  ExpectMessage(RefusalOf(Template({token, {{"Sequence", {{"id", "B"}, {"type_id", 0}}}}})), "single[1].Sequence: id: \"B\"");
  ExpectMessage(RefusalOf(Template({text, text})), "single[1]: the text is there twice");
  ExpectMessage(RefusalOf(Template(json::array({token}))), "post_processor: single: the text is missing");
}

// Ids have 32 bits in the model file.
TEST(TokenizerFields, IdsOfPostProcessorsAreNotCut) {
  json file = Template({{{"Sequence", {{"id", "A"}}}}});
  file["post_processor"]["special_tokens"]["x"]["ids"] = {5, 4294967297u};
  ExpectMessage(RefusalOf(file), "post_processor.special_tokens: \"x\": ids[1]: 4294967297 is not an id");
  for (const char* type : {"RobertaProcessing", "BertProcessing"}) {
    file["post_processor"] = {{"type", type}, {"sep", {"x", 5}}, {"cls", {"x", 5}}};
    EXPECT_EQ(RefusalOf(file), "");
    file["post_processor"]["cls"] = {"x", 4294967297u};
    ExpectMessage(RefusalOf(file), "post_processor: cls[1]: 4294967297 is not an id");
  }
}

// The limits that docs/tokenizers.md lists.
TEST(TokenizerFields, LimitsOfTheDocumentation) {
  const json kept = Fixture("wordlevel");
  json file = kept;
  const auto replace = [](size_t size) -> json {
    return {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(size, 'a')}};
  };
  file["normalizer"] = replace(32);
  EXPECT_EQ(RefusalOf(file), "");
  file["normalizer"] = replace(33);
  ExpectMessage(RefusalOf(file), "normalizer: a text of 33 characters, at most 32 are supported");
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", {replace(32), replace(32), replace(32)}}};
  ExpectMessage(RefusalOf(file), "it may make a text 32768 times as long, at most 4096 expected");
  file["normalizer"] = {{"type", "Strip"}};
  const size_t id = TokenCount(file);
  file["added_tokens"].push_back({{"id", id}, {"content", "  "}});
  ExpectMessage(RefusalOf(file), "added token \"  \": the normalizer leaves nothing of it");
  file = kept;
  file["decoder"] = {{"type", "BPEDecoder"}, {"suffix", "</w>"}};
  EXPECT_EQ(RefusalOf(file), "");
  for (const char* content : {"ends with ", "a</w>b"}) {
    file["added_tokens"] = kept["added_tokens"];
    file["added_tokens"].push_back({{"id", id}, {"content", content}});
    ExpectMessage(RefusalOf(file), "token \"" + std::string(content) + "\": a space, or \"</w>\" of BPEDecoder");
  }
  file = Fixture("gpt2");
  file["decoder"] = {{"type", "Fuse"}};
  ExpectMessage(RefusalOf(file), "decoder: ByteLevel, as the pre-tokenizer, expected");
}

// Each added token is compared with those before it, and sought among them: with time in proportion to their number.
TEST(TokenizerFields, ManyAddedTokens) {
  constexpr size_t kCount = 60000;
  json file = Fixture("gpt2");
  const size_t first = file["model"]["vocab"].size();
  file["added_tokens"] = json::array();
  for (size_t i = 0; i < kCount; ++i) {
    file["added_tokens"].push_back({{"id", first + i}, {"content", "<extra_" + std::to_string(i) + ">"}, {"special", true}});
  }
  const TestFolder folder;
  folder.Write("tokenizer.json", file.dump());
  const TokenizerData data = ReadTokenizer(folder.path(), 100000);
  EXPECT_EQ(data.added_ids.size(), kCount);
  EXPECT_EQ(data.added_ids.back(), first + kCount - 1);
  file["added_tokens"].push_back({{"id", first + kCount}, {"content", "<extra_7>"}});
  folder.Write("tokenizer.json", file.dump());
  ExpectMessage(Refusal(folder, 100000), "added_tokens: \"<extra_7>\" is there twice");
}

// The file that is damaged, not the one beside it.
TEST(TokenizerFields, MessagesNameVocabOrMerges) {
  const json model = Fixture("gpt2")["model"];
  const TestFolder folder;
  folder.Write("vocab.json", model["vocab"].dump());
  const auto with_merges = [&](const std::string& merges) {
    folder.Write("merges.txt", merges);
    return Refusal(folder);
  };
  EXPECT_EQ(with_merges("#version: 0.2\n"), "");
  const std::string cut = with_merges("#version: 0.2\n\ni");
  ExpectMessage(cut, folder.path() + "/merges.txt: line 3: \"i\", two tokens with a space between them expected");
  ExpectMessage(with_merges("a zzzzz\n"), folder.path() + "/merges.txt: line 1: \"zzzzz\" is not in the vocabulary");
  with_merges("");
  folder.Write("vocab.json", R"({"a": 0, "b": "1"})");
  ExpectMessage(Refusal(folder), folder.path() + "/vocab.json: \"b\" has id \"1\"");
  folder.Write("vocab.json", "[]");
  ExpectMessage(Refusal(folder), folder.path() + "/vocab.json: [], an object of tokens and ids expected");
}

}  // namespace
}  // namespace tarn::convert
