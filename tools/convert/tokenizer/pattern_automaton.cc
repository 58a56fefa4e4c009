#include "tools/convert/tokenizer/pattern_automaton.h"

#include <map>
#include <utility>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Edge = PatternAutomaton::Edge;

constexpr size_t kMaxStates = 10'000;

// Threads by falling priority. A thread that is behind another one in the same place can never win.
using Threads = std::vector<uint32_t>;

class Determinizer {
 public:
  Determinizer(const PatternProgram& program, const CharacterClasses& classes)
      : program_(program), classes_(classes), visited_(program.steps.size()), queued_(program.steps.size()) {}

  PatternAutomaton Run() {
    Number({});
    Number({program_.start});
    for (size_t state = 0; state < threads_.size(); ++state) {
      std::vector<Edge> edges;
      for (uint32_t next_class = 0; next_class < classes_.count; ++next_class)
        edges.push_back(Advance(threads_[state], next_class));
      automaton_.states.push_back(std::move(edges));
    }
    return std::move(automaton_);
  }

 private:
  uint32_t Number(Threads threads) {
    const auto [found, is_new] = numbers_.emplace(std::move(threads), static_cast<uint32_t>(threads_.size()));
    if (is_new) {
      if (threads_.size() >= kMaxStates) Fail("it needs more than ", kMaxStates, " states");
      threads_.push_back(found->first);
    }
    return found->second;
  }

  // All threads read one character of a class, or the end (0). The first one that has a match before it ends those behind it.
  Edge Advance(const Threads& threads, uint32_t next_class) {
    ++round_;
    Threads next;
    for (const uint32_t thread : threads) {
      if (Follow(thread, next_class, &next)) return {Number(std::move(next)), true};
    }
    return {Number(std::move(next)), false};
  }

  // Follows a thread up to the characters that it reads. Whether it matches.
  bool Follow(uint32_t thread, uint32_t next_class, Threads* next) {
    std::vector<uint32_t> pending = {thread};
    while (!pending.empty()) {
      const uint32_t at = pending.back();
      pending.pop_back();
      if (visited_[at] == round_) continue;
      visited_[at] = round_;
      const PatternStep& step = program_.steps[at];
      switch (step.kind) {
        case PatternStep::Kind::kMatch:
          return true;
        case PatternStep::Kind::kSplit:
          pending.push_back(step.other);
          pending.push_back(step.next);
          break;
        case PatternStep::Kind::kAhead:
          if (next_class == 0 ? step.at_end : classes_.has[step.set][next_class]) pending.push_back(step.next);
          break;
        case PatternStep::Kind::kSet:
          if (next_class == 0 || !classes_.has[step.set][next_class] || queued_[step.next] == round_) break;
          queued_[step.next] = round_;
          next->push_back(step.next);
          break;
      }
    }
    return false;
  }

  const PatternProgram& program_;
  const CharacterClasses& classes_;
  PatternAutomaton automaton_;
  std::map<Threads, uint32_t> numbers_;
  std::vector<Threads> threads_;  // of each state
  uint32_t round_ = 0;
  std::vector<uint32_t> visited_, queued_;  // the last round in which a step was
};

// States with one number are equivalent (Moore's algorithm). The number of the dead state is 0.
std::vector<uint32_t> EquivalentStates(const PatternAutomaton& automaton) {
  std::vector<uint32_t> group(automaton.states.size(), 0);
  for (size_t count = 1;;) {
    std::map<std::vector<Edge>, uint32_t> numbers;
    std::vector<uint32_t> finer;
    for (size_t state = 0; state < automaton.states.size(); ++state) {
      std::vector<Edge> edges = automaton.states[state];
      for (Edge& edge : edges) edge.next = group[edge.next];
      edges.push_back({group[state], false});
      finer.push_back(numbers.emplace(std::move(edges), static_cast<uint32_t>(numbers.size())).first->second);
    }
    group = std::move(finer);
    if (numbers.size() == count) return group;
    count = numbers.size();
  }
}

// Gives classes that all states treat alike one number. Class 0 stays alone.
void JoinClasses(PatternAutomaton* automaton, CharacterClasses* classes) {
  std::vector<uint32_t> numbers = {0};
  std::vector<uint32_t> kept = {0};
  std::map<std::vector<Edge>, uint32_t> columns;
  for (uint32_t old = 1; old < classes->count; ++old) {
    std::vector<Edge> column;
    for (const auto& edges : automaton->states) column.push_back(edges[old]);
    const auto [found, is_new] = columns.emplace(std::move(column), static_cast<uint32_t>(kept.size()));
    if (is_new) kept.push_back(old);
    numbers.push_back(found->second);
  }
  for (auto& edges : automaton->states) {
    std::vector<Edge> fewer;
    for (const uint32_t old : kept) fewer.push_back(edges[old]);
    edges = std::move(fewer);
  }
  std::vector<CharacterClasses::Run> runs;
  for (const CharacterClasses::Run& run : classes->runs) {
    if (runs.empty() || runs.back().of != numbers[run.of]) runs.push_back({run.first, numbers[run.of]});
  }
  *classes = {kept.size(), std::move(runs), {}};
}

}  // namespace

PatternAutomaton Determine(const PatternProgram& program, const CharacterClasses& classes) {
  return Determinizer(program, classes).Run();
}

PatternAutomaton Minimize(const PatternAutomaton& automaton, CharacterClasses* classes) {
  const std::vector<uint32_t> group = EquivalentStates(automaton);
  // The start may be as good as dead; it is a state of its own all the same.
  std::vector<uint32_t> members = {0, 1};  // one of each new state
  std::map<uint32_t, uint32_t> numbers = {{group[1], 1}};
  numbers[group[0]] = 0;
  PatternAutomaton small;
  for (size_t state = 0; state < members.size(); ++state) {
    std::vector<Edge> edges = automaton.states[members[state]];
    for (Edge& edge : edges) {
      const auto [found, is_new] = numbers.emplace(group[edge.next], static_cast<uint32_t>(members.size()));
      if (is_new) members.push_back(edge.next);
      edge.next = found->second;
    }
    small.states.push_back(std::move(edges));
  }
  JoinClasses(&small, classes);
  return small;
}

}  // namespace tarn::convert
