// Pieces of a grammar: rules by name, texts in quotes, numbers in a range, formats.
#ifndef TARN_TOOLS_JSON_SCHEMA_RULES_H_
#define TARN_TOOLS_JSON_SCHEMA_RULES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tarn::tools {

// `text` as the notation writes it, in quotes.
std::string Quoted(const std::string& text);

class Rules {
 public:
  // Adds a rule of a new name, or of one that was reserved, and returns the name.
  std::string Add(const std::string& body) {
    const std::string name = Reserve();
    Define(name, body);
    return name;
  }
  std::string Reserve() { return "r" + std::to_string(next_++); }
  void Define(const std::string& name, const std::string& body) { bodies_.emplace_back(name, body); }
  // A rule that every grammar may use: "ws", "string", "char", "key-char", "integer", "number", "boolean", "null", "value",
  // "array", "object", "key-rest", "key-escape", "key-wide"; with all that it uses.
  std::string Common(const std::string& name);

  uint64_t count() const { return next_; }  // without common ones
  std::string Text(const std::string& root) const;

 private:
  std::vector<std::pair<std::string, std::string>> bodies_;
  std::map<std::string, bool> common_;
  uint64_t next_ = 0;
};

constexpr uint64_t kUnlimited = UINT64_MAX;

// Integers from `low` to `high` without needless zeros.
std::string IntegerRange(std::optional<int64_t> low, std::optional<int64_t> high);

// What stands between the quotes; nullptr: not a format that is supported.
const char* FormatRule(const std::string& format);
extern const char kFormatNames[];

}  // namespace tarn::tools

#endif  // TARN_TOOLS_JSON_SCHEMA_RULES_H_
