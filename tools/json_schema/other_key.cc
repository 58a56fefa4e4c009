#include "tools/json_schema/other_key.h"

#include <algorithm>
#include <vector>

namespace tarn::tools {
namespace {

constexpr size_t kMostNameBytes = 1024;
constexpr int kMostGroups = 16;  // inside each other, in one rule

class OtherKeyCompiler {
 public:
  OtherKeyCompiler(const std::vector<std::string>& names, Rules* rules) : names_(names), rules_(*rules) {}

  // What may follow the first `depth` bytes that the names [begin, end), in order, share: where a key leaves their tree of
  // characters, it may go on as it likes.
  std::string Rest(size_t begin, size_t end, size_t depth, int groups) {
    std::string taken, next;
    bool is_ascii = true;
    const bool is_name = begin < end && names_[begin].size() == depth;
    for (size_t first = begin + (is_name ? 1 : 0), last = first; first < end; first = last) {
      const std::string character = CharacterAt(names_[first], depth);
      while (last < end && names_[last].compare(depth, character.size(), character) == 0) ++last;
      taken += InClass(character);
      is_ascii = is_ascii && character.size() == 1;
      const size_t behind = depth + character.size();
      next += " | " + Quoted(character) + " ";
      if (groups < kMostGroups) {
        next += "(" + Rest(first, last, behind, groups + 1) + ")";
      } else {
        next += rules_.Add(Rest(first, last, behind, 0));
      }
    }
    const std::string rest = rules_.Common("key-rest"), escape = rules_.Common("key-escape");
    std::string all = escape + " | [^\"\\\\\\x00-\\x1f" + taken + (is_ascii ? "\\x80-\\U0010ffff" : "") + "] " + rest;
    if (is_ascii) all += " | " + rules_.Common("key-wide");
    return all + next + (is_name ? "" : " | \"\\\"\"");
  }

 private:
  static std::string InClass(const std::string& character) {
    if (character == "]" || character == "[") return "\\" + character;
    if (character == "-") return "\\x2d";
    return character == "^" ? "\\x5e" : character;
  }

  static std::string CharacterAt(const std::string& text, size_t at) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    return text.substr(at, end - at);
  }

  const std::vector<std::string>& names_;
  Rules& rules_;
};

}  // namespace

std::string OtherKey(const Schema& properties, const std::string& at, Rules* rules) {
  std::vector<std::string> names;
  for (const auto& [name, schema] : properties.items()) {
    if (name.size() > kMostNameBytes) {
      FailAt(at + "/properties", "a name of " + std::to_string(name.size()) +
                                     " bytes is not supported beside additionalProperties, expected at most " +
                                     std::to_string(kMostNameBytes));
    }
    if (Schema(name).dump().find('\\') != std::string::npos) {
      FailAt(Under(at + "/properties", name),
             "a name with '\"', '\\' or control characters is not supported beside additionalProperties");
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return "\"\\\"\" (" + OtherKeyCompiler(names, rules).Rest(0, names.size(), 0, 0) + ")";
}

}  // namespace tarn::tools
