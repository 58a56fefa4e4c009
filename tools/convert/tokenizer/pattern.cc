#include "tools/convert/tokenizer/pattern.h"

#include <array>
#include <map>

#include "runtime/text/pattern_format.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/pattern_automaton.h"
#include "tools/convert/tokenizer/pattern_tree.h"

namespace tarn::convert {
namespace {

using Leaf = std::array<uint8_t, kPatternLeaf>;

std::vector<uint16_t> Words(const PatternAutomaton& automaton, const CharacterClasses& classes) {
  std::vector<uint16_t> roots;
  std::vector<Leaf> leaves;
  std::map<Leaf, uint16_t> numbers;
  size_t run = 0;
  for (uint32_t code = 0; code <= kMaxCodePoint;) {
    Leaf leaf;
    for (uint8_t& of : leaf) {
      if (run + 1 < classes.runs.size() && classes.runs[run + 1].first == code) ++run;
      of = static_cast<uint8_t>(classes.runs[run].of);
      ++code;
    }
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

std::vector<uint16_t> CompilePattern(std::string_view pattern, const std::string& where, UnicodeVersion version) {
  const PatternNode tree = ParsePattern(pattern, where, version);
  try {
    const PatternProgram program = CompileSteps(tree);
    CharacterClasses classes = Classify(program.sets);
    const PatternAutomaton automaton = Minimize(Determine(program, classes), &classes);
    const size_t entries = automaton.states.size() * classes.count;
    if (entries > kMaxPatternEntries)
      Fail("it needs a table of ", entries, " entries, at most ", kMaxPatternEntries, " are supported");
    return Words(automaton, classes);
  } catch (const ConvertError& error) {
    FailInPattern(pattern, 0, where, std::string("the pattern is too large: ") + error.what());
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
