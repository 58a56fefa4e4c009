#include "runtime/grammar/rules.h"

#include <algorithm>

namespace tarn {
namespace {

uint32_t Sum(uint32_t a, uint32_t b) {
  const uint64_t sum = uint64_t{a} + b;
  return sum >= kRecursiveSize ? kRecursiveSize : static_cast<uint32_t>(sum);
}

class FactFinder {
 public:
  FactFinder(const Syntax& syntax, Span<RuleFacts> facts) : syntax_(syntax), facts_(facts) {}

  // All facts start as "no", sizes as recursive, and grow from rule to rule until nothing changes.
  void Find() {
    for (RuleFacts& rule : facts_) rule = {0, 0, 0, 0, 0, kRecursiveSize};
    facts_[syntax_.root()].used = 1;
    // To and fro: what a chain of rules hands on comes through in one pass.
    for (bool changed = true, back = true; changed; back = !back) {
      changed = false;
      for (size_t i = 0; i < facts_.size(); ++i) changed = Update(back ? facts_.size() - 1 - i : i) || changed;
    }
  }

 private:
  bool Update(size_t i) {
    const RuleFacts before = facts_[i];
    const uint32_t node = syntax_.rule(i).node;
    RuleFacts after = Of(node);
    after.used = before.used;
    // An alias counts as well: chains of them stay short.
    if (after.size != kRecursiveSize) after.size = Sum(after.size, 1);
    facts_[i] = after;
    const bool marked = before.used != 0 && MarkUsed(node);
    return marked || after.ends != before.ends || after.nullable != before.nullable || after.nonempty != before.nonempty ||
           after.has_loop != before.has_loop || after.size != before.size;
  }

  bool MarkUsed(uint32_t index) {
    const SyntaxNode& node = syntax_.node(index);
    bool changed = false;
    if (node.kind == NodeKind::kRule && facts_[node.first].used == 0) {
      facts_[node.first].used = 1;
      changed = true;
    }
    for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) changed = MarkUsed(child) || changed;
    return changed;
  }

  RuleFacts Of(uint32_t index) const {
    const SyntaxNode& node = syntax_.node(index);
    switch (node.kind) {
      case NodeKind::kClass:
        return {0, 1, 0, 1, 0, 1 + (syntax_.range(node.last - 1).high >= 0x80 ? 8u : 0u)};
      case NodeKind::kRule:
        return OfRule(node.first);
      case NodeKind::kSequence:
        return OfSequence(node);
      case NodeKind::kAlternatives:
        return OfAlternatives(node);
      case NodeKind::kRepeat:
        return OfRepeat(node);
    }
    return {};
  }

  // Of a rule that stays one the call alone counts.
  RuleFacts OfRule(uint32_t rule) const {
    RuleFacts facts = facts_[rule];
    if (facts.size == kRecursiveSize || IsInlined(facts)) return facts;
    facts.has_loop = 0;
    facts.size = 2;
    return facts;
  }

  RuleFacts OfSequence(const SyntaxNode& node) const {
    RuleFacts all = {0, 1, 1, 0, 0, 1};
    for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) {
      const RuleFacts part = Of(child);
      all.ends &= part.ends;
      all.nullable &= part.nullable;
      all.nonempty |= part.nonempty;
      all.has_loop |= part.has_loop;
      all.size = Sum(all.size, part.size);
    }
    all.nonempty &= all.ends;
    return all;
  }

  RuleFacts OfAlternatives(const SyntaxNode& node) const {
    RuleFacts all = {0, 0, 0, 0, 0, 1};
    for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) {
      const RuleFacts part = Of(child);
      all.ends |= part.ends;
      all.nullable |= part.nullable;
      all.nonempty |= part.nonempty;
      all.has_loop |= part.has_loop;
      all.size = Sum(all.size, part.size);
    }
    return all;
  }

  RuleFacts OfRepeat(const SyntaxNode& node) const {
    const uint32_t least = node.first, most = node.last;
    RuleFacts facts = Of(node.child);
    if (least == 0) facts.ends = facts.nullable = 1;
    if (most == 0) facts.nonempty = 0;
    const uint64_t copies = most == kNoLimit ? uint64_t{least} + 1 : std::max<uint32_t>(most, 1);
    const uint64_t size = facts.size * copies + 1;
    facts.size = facts.size == kRecursiveSize || size >= kRecursiveSize ? kRecursiveSize : static_cast<uint32_t>(size);
    if (most == kNoLimit) facts.has_loop = 1;
    return facts;
  }

  const Syntax& syntax_;
  Span<RuleFacts> facts_;
};

}  // namespace

Status FindFacts(const Syntax& syntax, Array<RuleFacts>* facts) {
  TARN_GROW_OR_RETURN(facts->Resize(syntax.rule_count()));
  FactFinder(syntax, facts->span()).Find();
  for (uint32_t i = 0; i < facts->size(); ++i) {
    if ((*facts)[i].used == 0 || (*facts)[i].ends != 0) continue;
    return syntax.At(syntax.rule(i).where,
                     Error(TARN_BAD_FORMAT, "rule '%s' never comes to an end: each of its alternatives needs a rule without end",
                           syntax.Name(i).text));
  }
  return Ok();
}

}  // namespace tarn
