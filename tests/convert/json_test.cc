#include "tools/convert/json/json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"

namespace tarn::convert {
namespace {

TEST(ParseJson, ReadsEveryKindOfValue) {
  const std::string text = R"({"a": [null, true, -1, 2, 0.5, "s\u00e9\n", {}, []], "b": {"c": {"d": [[1], {"e": 2}]}}})";
  EXPECT_EQ(ParseJson(text, "x"), Json::parse(text));
  for (const char* scalar : {"3", "\"s\"", "null", " [ ] ", "18446744073709551615", "-9223372036854775808", "1e308"}) {
    EXPECT_EQ(ParseJson(scalar, "x"), Json::parse(scalar)) << scalar;
  }
}

TEST(ParseJson, SaysThatATextIsUtf16) {
  const std::string_view text("\xFF\xFE{\0}\0", 6);
  EXPECT_TRUE(FailsWith([&] { ParseJson(text, "config.json"); }, {"config.json: UTF-16 text, expected UTF-8: save it as UTF-8"}));
}

TEST(ParseJson, SaysWhereAndWhatIsExpected) {
  const struct {
    const char* text;
    std::vector<std::string> parts;
  } cases[] = {
      {"", {"line 1, column 1: expected a value, but the text ends"}},
      {"{\n  \"a\": 1,\n", {"line 3, column 1: expected a key in double quotes, but the text ends"}},
      {"{\n  \"a\": 1", {"line 2, column 9: expected ',' or '}', but the text ends"}},
      {"{\n  \"a\": 1,\n  }", {"line 3, column 3: expected a key in double quotes, found '  }'"}},
      {"{a: 1}", {"line 1, column 2: expected a key in double quotes or '}', found '{a'"}},
      {"{\"a\" 1}", {"line 1, column 6: expected ':' and a value, found '{\"a\" 1'"}},
      {"{\"a\": nul}", {"column 10: expected a value, found '{\"a\": nul}'"}},
      {"{\"a\": 1 \"b\": 2}", {"column 11: expected ',' or '}', found '{\"a\": 1 \"b\"'"}},
      {"[1, 2,]", {"column 7: expected a value, found '[1, 2,]'"}},
      {"[1, nan]", {"column 6: expected a value, found '[1, na'"}},
      {"[1 2]", {"column 4: expected ',' or ']', found '[1 2'"}},
      {"[}", {"column 2: expected a value or ']', found '[}'"}},
      {"{} {}", {"column 4: expected nothing behind the value, found '{} {'"}},
      {"[\"a\nb\"]", {"line 1, column 4: expected a closing quote, UTF-8 and JSON's escapes in a string, found '[\"a'"}},
      {"[\"\\x\"]", {"JSON's escapes"}},
      {"[\"\xFF\"]", {"UTF-8"}},
      {"[1e999]", {"column 6: expected a number that a double can hold"}},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(FailsWith([&] { ParseJson(c.text, "config.json"); }, c.parts)) << c.text;
    EXPECT_TRUE(FailsWith([&] { ParseJson(c.text, "config.json"); }, {"config.json: not valid JSON: line "})) << c.text;
    try {
      ParseJson(c.text, "config.json");
    } catch (const ConvertError& error) {
      EXPECT_EQ(std::string(error.what()).find("json.exception"), std::string::npos) << error.what();
    }
  }
}

// Numbers and strings of megabytes are wrong in a line.
TEST(ParseJson, ErrorsAreShort) {
  const std::string long_text(5'000'000, '1');
  for (const std::string& text :
       {"[" + long_text + "]", "[\"" + long_text, "[" + long_text + "x]", "{\"a\": 1," + long_text + "}"}) {
    try {
      ParseJson(text, "config.json");
      ADD_FAILURE() << text.substr(0, 10);
    } catch (const ConvertError& error) {
      EXPECT_LT(std::string(error.what()).size(), 200u) << error.what();
    }
  }
}

TEST(ParseJson, Refuses) {
  EXPECT_TRUE(FailsWith([] { ParseJson(R"({"a": {"b": 1, "b": 2}})", "x"); }, {"x: the key \"b\" stands there twice"}));
  EXPECT_TRUE(FailsWith([] { ParseJson(std::string(65, '[') + std::string(65, ']'), "x"); }, {"64 levels"}));
  EXPECT_NO_THROW(ParseJson(std::string(64, '[') + std::string(64, ']'), "x"));
  std::string many = "[0";
  for (int i = 0; i < 1 << 22; ++i) many += ",0";
  EXPECT_TRUE(FailsWith([&] { ParseJson(many + "]", "x"); }, {"more than 4194304 values"}));
}

TEST(ReadMembers, CallsForEachMemberInItsOrder) {
  std::vector<std::string> seen;
  const auto collect = [&](const std::string& key, const Json& value) { seen.push_back(key + "=" + value.dump()); };
  ReadMembers(R"({"b": {"x": [1, {"y": 2}]}, "a": 3, "c": []})", "x", collect);
  EXPECT_EQ(seen, (std::vector<std::string>{R"(b={"x":[1,{"y":2}]})", "a=3", "c=[]"}));
  EXPECT_TRUE(FailsWith([&] { ReadMembers(R"({"a": 1, "a": 2})", "x", collect); }, {"\"a\"", "twice"}));
  for (const char* text : {"[]", "3", "[{\"a\": 1}]"}) {
    EXPECT_TRUE(FailsWith([&] { ReadMembers(text, "x", collect); }, {"x: not an object"})) << text;
  }
}

// As many values as there may be are counted anew for each member.
TEST(ReadMembers, TakesAnyNumberOfMembers) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 300'000; ++i) text += ",\"" + std::to_string(i) + "\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0]";
  size_t members = 0;
  ReadMembers(text + "}", "x", [&](const std::string&, const Json&) { ++members; });
  EXPECT_EQ(members, 300'001u);
}

}  // namespace
}  // namespace tarn::convert
