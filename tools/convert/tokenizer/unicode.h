// What the Unicode character database says of code points, in the versions that tokenizers use, as sets.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tarn::convert {

enum class UnicodeVersion : uint8_t { k8 = 0, k9 = 1, k16 = 2, k17 = 3 };

constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// A set of code points: disjoint ranges, ends included, in ascending order, none beside another.
class CodeSet {
 public:
  using Range = std::pair<uint32_t, uint32_t>;

  CodeSet() = default;
  CodeSet(uint32_t first, uint32_t last) : ranges_{{first, last}} {}
  // `ranges`: as they are kept.
  explicit CodeSet(std::vector<Range> ranges);

  const std::vector<Range>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool Contains(uint32_t code) const;
  bool operator<(const CodeSet& other) const { return ranges_ < other.ranges_; }
  bool operator==(const CodeSet& other) const { return ranges_ == other.ranges_; }

  CodeSet Union(const CodeSet& other) const;
  CodeSet Intersection(const CodeSet& other) const;
  CodeSet Complement() const;

 private:
  std::vector<Range> ranges_;
};

// The code points with a property, by a name as it stands in \p{...}, whose case, spaces, '-' and '_' do not matter: a general
// category ("L", "Lu", "uppercaseletter") of `version`; "Any", "Alphabetic", "Alpha", "Alnum", "Digit", "Space", "White_Space"
// and scripts ("Han"), of 16.0. nullopt: no such property is known.
std::optional<CodeSet> PropertySet(std::string_view name, UnicodeVersion version);

// Scripts of 9.0 as the pre-tokenizer UnicodeScripts tells them apart: Han, Hiragana and Katakana are one; a space and what is not
// assigned are in none.
std::vector<CodeSet> ScriptSets();

// Alphabetic, marks, decimal digits and connecting punctuation, of 16.0.
CodeSet WordSet();

// The code points that differ from one of `set` by case alone, with those of `set`: equal simple folding.
CodeSet CaseClosure(const CodeSet& set);

// The strings that a single character folds to ("ss" of U+00DF), folded, and that character.
struct LongFold {
  uint32_t code;
  std::vector<uint32_t> folded;
};
const std::vector<LongFold>& LongFolds();
// The simple folding.
uint32_t FoldCase(uint32_t code);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_H_
