#include "tools/json_schema/rules.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tarn::tools {
namespace {

struct CommonRule {
  const char* name;
  const char* body;
  const char* uses;  // others, between spaces
};
constexpr CommonRule kCommon[] = {
    // A space, or a line break with what indents the next line.
    {"ws", R"((" " | "\n" [ \t]{0,64})?)", ""},
    {"hex", "[0-9a-fA-F]", ""},
    // A character of a string in any spelling. Halves of a pair of surrogates stand together.
    {"char",
     R"([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex |)"
     R"( [dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex)))",
     "hex"},
    // A character in its shortest spelling.
    {"key-char", R"([^"\\\x00-\x1f] | "\\" (["\\bfnrt] | "u00" [01] [0-9a-f]))", ""},
    // What goes on as it likes where a key leaves all names: behind any character, at an escape, at a character of several bytes.
    {"key-rest", R"(key-char* "\"")", "key-char"},
    {"key-escape", R"("\\" (["\\bfnrt] | "u00" [01] [0-9a-f]) key-char* "\"")", "key-char"},
    {"key-wide", R"([\x80-\U0010ffff] key-char* "\"")", "key-char"},
    {"string", R"("\"" char* "\"")", "char"},
    {"integer", R"("-"? ("0" | [1-9] [0-9]*))", ""},
    {"number", R"("-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?)", ""},
    {"boolean", R"("true" | "false")", ""},
    {"null", R"("null")", ""},
    {"array", R"("[" ws (value ws ("," ws value ws)*)? "]")", "ws value"},
    {"object", R"("{" ws (member ("," ws member)*)? "}")", "ws member"},
    {"member", R"(string ":" ws value ws)", "ws value string"},
    {"value", "object | array | string | number | boolean | null", "object array string number boolean null"},
};

std::string Digit(char low, char high) {
  if (low == high) return std::string("\"") + low + "\"";
  return std::string("[") + low + "-" + high + "]";
}
std::string AnyDigits(size_t count) {
  if (count == 0) return "";
  return count == 1 ? " [0-9]" : " [0-9]{" + std::to_string(count) + "}";
}

// Numbers of as many digits as both have.
std::string SameLength(const std::string& low, const std::string& high) {
  if (low.empty()) return "";
  const std::string rest_low = low.substr(1), rest_high = high.substr(1);
  const std::string zeros(rest_low.size(), '0'), nines(rest_low.size(), '9');
  if (low[0] == high[0]) return Digit(low[0], low[0]) + (rest_low.empty() ? "" : " (" + SameLength(rest_low, rest_high) + ")");
  if (rest_low == zeros && rest_high == nines) return Digit(low[0], high[0]) + AnyDigits(rest_low.size());
  std::string all;
  char first = low[0], last = high[0];
  if (rest_low != zeros) {
    all += Digit(first, first) + " (" + SameLength(rest_low, nines) + ")";
    ++first;
  }
  if (rest_high != nines) --last;
  if (first <= last) all += (all.empty() ? "" : " | ") + Digit(first, last) + AnyDigits(rest_low.size());
  if (rest_high != nines) all += (all.empty() ? "" : " | ") + Digit(high[0], high[0]) + " (" + SameLength(zeros, rest_high) + ")";
  return all;
}

// `high` may be kUnlimited.
std::string NaturalRange(uint64_t low, uint64_t high) {
  std::string all;
  std::string digits = std::to_string(low);
  const bool ends = high != kUnlimited;
  const size_t most = ends ? std::to_string(high).size() : digits.size();
  while (digits.size() <= most) {
    const std::string last = ends && digits.size() == most ? std::to_string(high) : std::string(digits.size(), '9');
    all += (all.empty() ? "" : " | ") + SameLength(digits, last);
    digits = "1" + std::string(digits.size(), '0');
  }
  if (!ends) all += " | [1-9] [0-9]{" + std::to_string(most) + ",}";
  return all;
}

// Without overflow at the least of all integers.
uint64_t Magnitude(int64_t value) { return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value); }

#define TARN_LEAP_PAIR "(\"0\" [48] | [2468] [048] | [13579] [26])"
#define TARN_YEAR "([1-9] [0-9]{3} | \"0\" [1-9] [0-9]{2} | \"00\" [1-9] [0-9] | \"000\" [1-9])"
#define TARN_DATE                                                                                                               \
  "(" TARN_YEAR                                                                                                                 \
  " \"-\" ((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | (\"0\" [469] | \"11\")"                 \
  " \"-\" (\"0\" [1-9] | [12] [0-9] | \"30\") | \"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8])) | ([0-9]{2} " TARN_LEAP_PAIR \
  " | " TARN_LEAP_PAIR " \"00\") \"-02-29\")"
#define TARN_CLOCK "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9]"
#define TARN_TIME "(" TARN_CLOCK " \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? (\"Z\" | [-+] " TARN_CLOCK "))"
#define TARN_OCTET "(\"25\" [0-5] | \"2\" [0-4] [0-9] | \"1\" [0-9] [0-9] | [1-9]? [0-9])"

struct Format {
  const char* name;
  const char* rule;
};
constexpr Format kFormats[] = {
    {"date", TARN_DATE},
    {"time", TARN_TIME},
    {"date-time", TARN_DATE " \"T\" " TARN_TIME},
    {"uuid", "[0-9a-fA-F]{8} (\"-\" [0-9a-fA-F]{4}){3} \"-\" [0-9a-fA-F]{12}"},
    {"ipv4", TARN_OCTET " (\".\" " TARN_OCTET "){3}"},
};

}  // namespace

const char kFormatNames[] = "date, time, date-time, uuid, ipv4";

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) {
      quoted += c;
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof(escape), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    quoted += escape;
  }
  return quoted + "\"";
}

std::string Rules::Common(const std::string& name) {
  if (!common_.emplace(name, true).second) return name;
  for (const CommonRule& rule : kCommon) {
    if (name != rule.name) continue;
    Define(name, rule.body);
    const std::string uses = rule.uses;
    for (size_t begin = 0; begin < uses.size();) {
      const size_t end = std::min(uses.find(' ', begin), uses.size());
      Common(uses.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return name;
}

std::string Rules::Text(const std::string& root) const {
  std::string text = "root ::= " + root + "\n";
  for (const auto& [name, body] : bodies_) text += name + " ::= " + body + "\n";
  return text;
}

std::string IntegerRange(std::optional<int64_t> low, std::optional<int64_t> high) {
  std::string all;
  if (!low || *low < 0) {
    const uint64_t least = high && *high < 0 ? Magnitude(*high) : 1;
    all += "\"-\" (" + NaturalRange(least, low ? Magnitude(*low) : kUnlimited) + ")";
  }
  if (!high || *high >= 0) {
    const uint64_t least = low && *low > 0 ? static_cast<uint64_t>(*low) : 0;
    all += (all.empty() ? "" : " | ") + NaturalRange(least, high ? static_cast<uint64_t>(*high) : kUnlimited);
  }
  return all;
}

const char* FormatRule(const std::string& format) {
  for (const Format& known : kFormats) {
    if (format == known.name) return known.rule;
  }
  return nullptr;
}

}  // namespace tarn::tools
