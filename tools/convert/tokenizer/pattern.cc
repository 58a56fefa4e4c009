#include "tools/convert/tokenizer/pattern.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/text/pattern_format.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/byte_alphabet.h"
#include "tools/convert/tokenizer/pattern_automaton.h"

namespace tarn::convert {
namespace {

using Leaf = std::array<uint8_t, kPatternLeaf>;

// The class of each code point, as the pattern sees it.
std::vector<uint8_t> ClassesOf(const CharacterClasses& classes, const PatternView& view) {
  std::vector<uint8_t> of(kMaxCodePoint + 1);
  for (size_t run = 0; run < classes.runs.size(); ++run) {
    const uint32_t end = run + 1 < classes.runs.size() ? classes.runs[run + 1].first : kMaxCodePoint + 1;
    std::fill(of.begin() + classes.runs[run].first, of.begin() + end, static_cast<uint8_t>(classes.runs[run].of));
  }
  if (!view.by_bytes) {
    of[' '] = of[view.space];
    return of;
  }
  std::vector<uint8_t> of_bytes(of.size(), 1);
  for (uint32_t byte = 0; byte < 256; ++byte) of_bytes[byte] = of[ByteAlphabet()[byte]];
  return of_bytes;
}

std::vector<uint16_t> Words(const PatternAutomaton& automaton, const CharacterClasses& classes, const PatternView& view) {
  std::vector<uint16_t> roots;
  std::vector<Leaf> leaves;
  std::map<Leaf, uint16_t> numbers;
  const std::vector<uint8_t> of = ClassesOf(classes, view);
  for (size_t code = 0; code <= kMaxCodePoint; code += kPatternLeaf) {
    Leaf leaf;
    std::copy_n(of.begin() + static_cast<std::ptrdiff_t>(code), kPatternLeaf, leaf.begin());
    const auto [found, is_new] = numbers.emplace(leaf, static_cast<uint16_t>(leaves.size()));
    if (is_new) leaves.push_back(leaf);
    roots.push_back(found->second);
  }

  const size_t stride = classes.count, states = automaton.states.size();
  std::vector<uint16_t> words = {kPatternVersion, static_cast<uint16_t>(stride), static_cast<uint16_t>(states),
                                 static_cast<uint16_t>(leaves.size())};
  words.insert(words.end(), roots.begin(), roots.end());
  for (const Leaf& leaf : leaves) {
    for (size_t i = 0; i < leaf.size(); i += 2) words.push_back(static_cast<uint16_t>(leaf[i] | leaf[i + 1] << 8));
  }
  for (const auto& edges : automaton.states) {
    for (const PatternAutomaton::Edge& edge : edges) {
      words.push_back(static_cast<uint16_t>(edge.next * stride * 2 + (edge.matched ? 1 : 0)));
    }
  }
  return words;
}

}  // namespace

std::vector<uint16_t> CompilePattern(std::string_view pattern, const std::string& where, const PatternView& view) {
  return CompilePattern(ParsePattern(pattern, where, view.version), pattern, where, view);
}

std::vector<uint16_t> CompilePattern(const PatternNode& tree, std::string_view name, const std::string& where,
                                     const PatternView& view) {
  try {
    const PatternProgram program = CompileSteps(tree);
    CharacterClasses classes = Classify(program.sets);
    const PatternAutomaton automaton = Minimize(Determine(program, classes), &classes);
    const size_t entries = automaton.states.size() * classes.count;
    if (entries > kMaxPatternEntries)
      Fail("it needs a table of ", entries, " entries, at most ", kMaxPatternEntries, " are supported");
    return Words(automaton, classes, view);
  } catch (const ConvertError& error) {
    FailInPattern(name, 0, where, std::string("the pattern is too large: ") + error.what());
  }
}

std::string EscapePattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("\\()[]{}.*+?|^$-&#").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace tarn::convert
