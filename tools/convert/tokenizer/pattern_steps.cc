#include <algorithm>
#include <map>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/pattern_automaton.h"

namespace tarn::convert {
namespace {

using Kind = PatternStep::Kind;

constexpr size_t kMaxSteps = 20'000;
constexpr size_t kMaxClasses = 256;

// Builds from the end to the start: what follows a node is there before the node.
class StepCompiler {
 public:
  PatternProgram Compile(const PatternNode& tree) {
    const uint32_t match = Add({Kind::kMatch});
    program_.start = Build(tree, match);
    return std::move(program_);
  }

 private:
  uint32_t Add(const PatternStep& step) {
    if (program_.steps.size() >= kMaxSteps) Fail("its repeats make more than 20000 steps");
    program_.steps.push_back(step);
    return static_cast<uint32_t>(program_.steps.size() - 1);
  }

  uint32_t SetIndex(const CodeSet& set) {
    const auto [found, is_new] = set_indices_.emplace(set, static_cast<uint32_t>(program_.sets.size()));
    if (is_new) program_.sets.push_back(set);
    return found->second;
  }

  // `first` and `second` in the order in which a repeat tries them.
  uint32_t Split(uint32_t inner, uint32_t behind, bool greedy) {
    return Add({Kind::kSplit, 0, greedy ? inner : behind, greedy ? behind : inner});
  }

  // The step at which `node` begins, where `next` follows it.
  uint32_t Build(const PatternNode& node, uint32_t next) {
    switch (node.kind) {
      case PatternNode::Kind::kSet:
        return Add({Kind::kSet, SetIndex(node.set), next});
      case PatternNode::Kind::kAhead:
        return Add({Kind::kAhead, SetIndex(node.ahead.set), next, 0, node.ahead.at_end});
      case PatternNode::Kind::kSequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) next = Build(*child, next);
        return next;
      case PatternNode::Kind::kAlternate: {
        uint32_t begin = Build(node.children.back(), next);
        for (auto child = node.children.rbegin() + 1; child != node.children.rend(); ++child) {
          const uint32_t preferred = Build(*child, next);
          begin = Add({Kind::kSplit, 0, preferred, begin});
        }
        return begin;
      }
      case PatternNode::Kind::kRepeat:
        return BuildRepeat(node, next);
    }
    return next;
  }

  uint32_t BuildRepeat(const PatternNode& node, uint32_t next) {
    const PatternNode& child = node.children[0];
    uint32_t copies = node.min;
    if (node.max != PatternNode::kUnbounded) {
      uint32_t begin = next;
      for (uint32_t i = node.min; i < node.max; ++i) begin = Split(Build(child, begin), next, node.greedy);
      next = begin;
    } else {
      // x+: x, then a split back to x. x* is that split.
      const uint32_t split = Split(0, next, node.greedy);
      const uint32_t body = Build(child, split);
      (node.greedy ? program_.steps[split].next : program_.steps[split].other) = body;
      if (copies > 0) {
        --copies;
        next = body;
      } else {
        next = split;
      }
    }
    for (; copies > 0; --copies) next = Build(child, next);
    return next;
  }

  PatternProgram program_;
  std::map<CodeSet, uint32_t> set_indices_;
};

}  // namespace

PatternProgram CompileSteps(const PatternNode& tree) { return StepCompiler().Compile(tree); }

CharacterClasses Classify(const std::vector<CodeSet>& sets) {
  std::vector<uint32_t> bounds = {0};
  for (const CodeSet& set : sets) {
    for (const CodeSet::Range& range : set.ranges()) {
      bounds.push_back(range.first);
      if (range.second < kMaxCodePoint) bounds.push_back(range.second + 1);
    }
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());

  CharacterClasses classes;
  std::map<std::vector<bool>, uint32_t> numbers;  // of what each set says
  for (const uint32_t first : bounds) {
    std::vector<bool> in(sets.size());
    for (size_t i = 0; i < sets.size(); ++i) in[i] = sets[i].Contains(first);
    const auto [found, is_new] = numbers.emplace(std::move(in), static_cast<uint32_t>(classes.count));
    if (is_new && ++classes.count > kMaxClasses) Fail("it tells apart more than ", kMaxClasses - 1, " classes of characters");
    if (classes.runs.empty() || classes.runs.back().of != found->second) classes.runs.push_back({first, found->second});
  }
  classes.has.assign(sets.size(), std::vector<bool>(classes.count));
  for (const auto& [in, number] : numbers) {
    for (size_t i = 0; i < sets.size(); ++i) classes.has[i][number] = in[i];
  }
  return classes;
}

}  // namespace tarn::convert
