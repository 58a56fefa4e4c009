#include "runtime/grammar/rules.h"

#include <algorithm>

#include "runtime/grammar/relation.h"

namespace tarn {
namespace {

uint32_t Sum(uint32_t a, uint32_t b) {
  const uint64_t sum = uint64_t{a} + b;
  return sum >= kRecursiveSize ? kRecursiveSize : static_cast<uint32_t>(sum);
}

// What a part of a rule derives: facts that start as "no".
enum Fact : uint8_t { kEnds = 1, kNullable = 2, kNonempty = 4, kPartIsNonempty = 8 };

// Facts go from the parts of a rule to the whole, and from there to where the rule is used. Each part learns each fact once, so
// that the time is in proportion to the grammar.
class FactFinder {
 public:
  FactFinder(const Syntax& syntax, Span<RuleFacts> facts, const Allocator& allocator)
      : syntax_(syntax),
        facts_(facts),
        nodes_(allocator),
        uses_(allocator),
        users_(allocator),
        open_uses_(allocator),
        todo_(allocator),
        ready_(allocator) {}

  Status Find(uint64_t* work) {
    TARN_RETURN_IF_ERROR(Prepare());
    for (RuleFacts& rule : facts_) rule = {0, 0, 0, 0, 0, kRecursiveSize};
    TARN_RETURN_IF_ERROR(FindTexts());
    TARN_RETURN_IF_ERROR(FindSizes());
    TARN_RETURN_IF_ERROR(FindUsed());
    *work += work_;
    return Ok();
  }

 private:
  struct Node {
    uint32_t parent;                 // kNoNode: it is all of `rule`
    uint32_t rule;                   // that it is a part of
    uint32_t not_ending, not_empty;  // children of a sequence
    uint8_t facts;
  };
  struct Learned {
    uint32_t node;
    Fact fact;
  };

  Status Prepare() {
    TARN_GROW_OR_RETURN(nodes_.Resize(syntax_.node_count()));
    TARN_GROW_OR_RETURN(open_uses_.Resize(facts_.size()));
    for (uint32_t rule = 0; rule < facts_.size(); ++rule) TARN_RETURN_IF_ERROR(Visit(syntax_.rule(rule).node, kNoNode, rule));
    TARN_RETURN_IF_ERROR(uses_.Sort(facts_.size()));
    return users_.Sort(facts_.size());
  }

  Status Visit(uint32_t index, uint32_t parent, uint32_t rule) {
    const SyntaxNode& node = syntax_.node(index);
    uint32_t children = 0;
    for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) {
      ++children;
      TARN_RETURN_IF_ERROR(Visit(child, index, rule));
    }
    nodes_[index] = {parent, rule, children, children, 0};
    ++work_;
    if (node.kind == NodeKind::kRule) {
      TARN_GROW_OR_RETURN(users_.Add(node.first, index) && uses_.Add(rule, node.first));
      ++open_uses_[rule];
    }
    const bool is_class = node.kind == NodeKind::kClass;
    const bool takes_nothing =
        (node.kind == NodeKind::kSequence && children == 0) || (node.kind == NodeKind::kRepeat && node.first == 0);
    if (is_class || takes_nothing) TARN_GROW_OR_RETURN(todo_.Push({index, kEnds}));
    if (is_class) TARN_GROW_OR_RETURN(todo_.Push({index, kNonempty}));
    if (takes_nothing) TARN_GROW_OR_RETURN(todo_.Push({index, kNullable}));
    return Ok();
  }

  Status FindTexts() {
    while (!todo_.empty()) {
      const Learned learned = todo_.back();
      todo_.Truncate(todo_.size() - 1);
      Node& node = nodes_[learned.node];
      if ((node.facts & learned.fact) != 0) continue;
      node.facts |= learned.fact;
      ++work_;
      if (node.parent != kNoNode) {
        TARN_RETURN_IF_ERROR(TellParent(node.parent, learned.fact));
        continue;
      }
      RuleFacts& rule = facts_[node.rule];
      (learned.fact == kEnds ? rule.ends : learned.fact == kNullable ? rule.nullable : rule.nonempty) = 1;
      for (const uint32_t user : users_.Of(node.rule)) TARN_GROW_OR_RETURN(todo_.Push({user, learned.fact}));
    }
    return Ok();
  }

  // A child of `index` has learned `fact`.
  Status TellParent(uint32_t index, Fact fact) {
    Node& node = nodes_[index];
    bool holds = true;
    if (syntax_.node(index).kind == NodeKind::kRepeat) holds = fact != kNonempty || syntax_.node(index).last != 0;
    if (syntax_.node(index).kind == NodeKind::kSequence) {
      if (fact == kNonempty) node.facts |= kPartIsNonempty;
      if (fact == kEnds) --node.not_ending;
      if (fact == kNullable) --node.not_empty;
      holds = fact == kNullable ? node.not_empty == 0 : fact == kEnds && node.not_ending == 0;
      if (node.not_ending == 0 && (node.facts & kPartIsNonempty) != 0) TARN_GROW_OR_RETURN(todo_.Push({index, kNonempty}));
    }
    if (holds) TARN_GROW_OR_RETURN(todo_.Push({index, fact}));
    return Ok();
  }

  // From rules that use none to those that use them; what is left uses itself.
  Status FindSizes() {
    for (uint32_t rule = 0; rule < facts_.size(); ++rule) {
      if (open_uses_[rule] == 0) TARN_GROW_OR_RETURN(ready_.Push(rule));
    }
    while (!ready_.empty()) {
      const uint32_t rule = ready_.back();
      ready_.Truncate(ready_.size() - 1);
      const Size size = Of(syntax_.rule(rule).node);
      // An alias counts as well: chains of them stay short.
      facts_[rule].size = Sum(size.states, 1);
      facts_[rule].has_loop = size.has_loop;
      for (const uint32_t user : users_.Of(rule)) {
        const uint32_t owner = nodes_[user].rule;
        if (--open_uses_[owner] == 0) TARN_GROW_OR_RETURN(ready_.Push(owner));
      }
    }
    return Ok();
  }

  Status FindUsed() {
    TARN_GROW_OR_RETURN(ready_.Push(syntax_.root()));
    facts_[syntax_.root()].used = 1;
    while (!ready_.empty()) {
      const uint32_t rule = ready_.back();
      ready_.Truncate(ready_.size() - 1);
      for (const uint32_t use : uses_.Of(rule)) {
        ++work_;
        if (facts_[use].used != 0) continue;
        facts_[use].used = 1;
        TARN_GROW_OR_RETURN(ready_.Push(use));
      }
    }
    return Ok();
  }

  struct Size {
    uint32_t states;
    uint8_t has_loop;
  };

  Size Of(uint32_t index) {
    ++work_;
    const SyntaxNode& node = syntax_.node(index);
    if (node.kind == NodeKind::kClass) return {1 + (syntax_.range(node.last - 1).high >= 0x80 ? 8u : 0u), 0};
    if (node.kind == NodeKind::kRule) {
      const RuleFacts& rule = facts_[node.first];
      // Of a rule that stays one the call alone counts.
      return IsInlined(rule) || rule.size == kRecursiveSize ? Size{rule.size, rule.has_loop} : Size{2, 0};
    }
    if (node.kind == NodeKind::kRepeat) return OfRepeat(node);
    Size all = {1, 0};
    for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) {
      const Size part = Of(child);
      all = {Sum(all.states, part.states), static_cast<uint8_t>(all.has_loop | part.has_loop)};
    }
    return all;
  }

  Size OfRepeat(const SyntaxNode& node) {
    const uint32_t least = node.first, most = node.last;
    const Size once = Of(node.child);
    const uint64_t copies = most == kNoLimit ? uint64_t{least} + 1 : std::max<uint32_t>(most, 1);
    const uint64_t states = once.states * copies + 1;
    const bool is_large = once.states == kRecursiveSize || states >= kRecursiveSize;
    return {is_large ? kRecursiveSize : static_cast<uint32_t>(states), static_cast<uint8_t>(most == kNoLimit ? 1 : once.has_loop)};
  }

  const Syntax& syntax_;
  Span<RuleFacts> facts_;
  Array<Node> nodes_;
  Relation uses_;              // rules that a rule uses
  Relation users_;             // nodes that use a rule
  Array<uint32_t> open_uses_;  // [rules]: uses whose size is not known
  Array<Learned> todo_;
  Array<uint32_t> ready_;
  uint64_t work_ = 0;
};

}  // namespace

Status FindFacts(const Syntax& syntax, const Allocator& allocator, Array<RuleFacts>* facts, uint64_t* work) {
  TARN_GROW_OR_RETURN(facts->Resize(syntax.rule_count()));
  TARN_RETURN_IF_ERROR(FactFinder(syntax, facts->span(), allocator).Find(work));
  for (uint32_t i = 0; i < facts->size(); ++i) {
    if ((*facts)[i].used == 0 || (*facts)[i].ends != 0) continue;
    return syntax.At(syntax.rule(i).where,
                     Error(TARN_BAD_FORMAT, "rule '%s' never comes to an end: each of its alternatives needs a rule without end",
                           syntax.Name(i).text));
  }
  return Ok();
}

}  // namespace tarn
