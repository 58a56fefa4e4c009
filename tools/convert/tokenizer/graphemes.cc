#include "tools/convert/tokenizer/graphemes.h"

#include <array>
#include <cstdio>

#include "tools/convert/tokenizer/unicode_data.h"

namespace tarn::convert {
namespace {

using Class = GraphemeClass;

// The ranges of each class as they stand in a pattern.
std::array<std::string, kGraphemeClasses> RangesOfClasses() {
  std::array<std::string, kGraphemeClasses> ranges;
  uint32_t first = 0;
  for (size_t i = 0; i < kGraphemeRunCount; ++i) {
    const uint32_t end = first + kGraphemeRuns[i] / 32;
    char range[32];
    std::snprintf(range, sizeof(range), "\\x{%X}-\\x{%X}", first, end - 1);
    ranges[kGraphemeRuns[i] % 32] += range;
    first = end;
  }
  return ranges;
}

}  // namespace

std::string GraphemePattern() {
  const std::array<std::string, kGraphemeClasses> ranges = RangesOfClasses();
  const auto any = [&](std::initializer_list<Class> classes) {
    std::string set = "[";
    for (const Class one : classes) set += ranges[static_cast<size_t>(one)];
    return set + "]";
  };
  const std::string l = any({Class::kL}), v = any({Class::kV}), t = any({Class::kT}), lv = any({Class::kLv}),
                    lvt = any({Class::kLvt});
  const std::string hangul = l + "*(?:" + v + "+|" + lv + v + "*|" + lvt + ")" + t + "*|" + l + "+|" + t + "+";
  const std::string pictograph = any({Class::kPictograph}), extend = any({Class::kExtend, Class::kLinker});
  const std::string pictographs = pictograph + "(?:" + extend + "*" + any({Class::kZwj}) + pictograph + ")*";
  const std::string consonant = any({Class::kConsonant}), linker = any({Class::kLinker});
  const std::string joiner = "[" + any({Class::kExtend, Class::kLinker, Class::kZwj}) + "&&[^\\x{200C}]]";
  const std::string conjunct = consonant + "(?:" + joiner + "*" + linker + joiner + "*" + consonant + ")+";
  const std::string regional = any({Class::kRegional}) + "{2}";
  const std::string other = "[^" + any({Class::kControl, Class::kCr, Class::kLf}).substr(1);
  const std::string mark = any({Class::kExtend, Class::kLinker, Class::kZwj, Class::kSpacingMark});
  return "\\r\\n|" + any({Class::kControl, Class::kCr, Class::kLf}) + "|" + any({Class::kPrepend}) + "*(?:" + hangul + "|" +
         regional + "|" + pictographs + "|" + conjunct + "|" + other + ")" + mark + "*";
}

std::vector<bool> JoinsNeighbours() {
  std::vector<bool> joins;
  for (size_t i = 0; i < kGraphemeRunCount; ++i) {
    const auto of = static_cast<Class>(kGraphemeRuns[i] % 32);
    const bool only_by_marks = of == Class::kOther || of == Class::kControl || of == Class::kRegional || of == Class::kPictograph ||
                               of == Class::kConsonant || of == Class::kLv || of == Class::kLvt;
    joins.insert(joins.end(), kGraphemeRuns[i] / 32, !only_by_marks);
  }
  return joins;
}

}  // namespace tarn::convert
