#include "runtime/grammar/automaton.h"

#include <algorithm>
#include <cstring>

#include "runtime/grammar/nfa.h"
#include "runtime/grammar/relation.h"
#include "runtime/grammar/rules.h"
#include "runtime/grammar/subsets.h"
#include "runtime/grammar/syntax.h"

namespace tarn {

// Makes the states of the rules, one rule after another (subset construction).
class RuleCompiler {
 public:
  RuleCompiler(const Syntax& syntax, Span<const RuleFacts> facts, uint32_t max_states, const Allocator& allocator, Effort* effort,
               Automaton* out)
      : syntax_(syntax),
        facts_(facts),
        max_states_(max_states),
        allocator_(allocator),
        effort_(*effort),
        out_(*out),
        nfa_(syntax, facts, max_states, allocator, effort),
        subsets_(nfa_, allocator, effort),
        starts_(allocator),
        targets_(allocator),
        calls_(allocator),
        sound_(allocator) {}

  Status Compile() {
    TARN_GROW_OR_RETURN(starts_.Resize(facts_.size()));
    for (uint32_t rule = 0; rule < facts_.size(); ++rule) {
      if (!HasStates(rule)) continue;
      starts_[rule] = static_cast<uint32_t>(out_.states_.size());
      TARN_GROW_OR_RETURN(out_.rules_.Push(starts_[rule]));
      Status status = nfa_.Build(rule);
      if (status.ok()) status = AddStates();
      if (status.code() == TARN_OUT_OF_MEMORY) return status;
      if (!status.ok()) return syntax_.At(syntax_.rule(rule).where, status.In("rule '%s'", syntax_.Name(rule).text));
    }
    TARN_GROW_OR_RETURN(out_.rules_.Push(static_cast<uint32_t>(out_.states_.size())));
    TARN_GROW_OR_RETURN(out_.states_.Push(Here(false)));
    TARN_RETURN_IF_ERROR(CheckLeftRecursion());
    for (CallEdge& call : out_.calls_) {
      call.start = starts_[call.start];
      const GrammarState &to = out_.states_[call.to], &behind = out_.states_[call.to + 1];
      const bool nothing_follows = to.first_edge == behind.first_edge && to.first_call == behind.first_call;
      if (to.ends && nothing_follows) call.to = Automaton::kTail;
    }
    out_.start_ = starts_[syntax_.root()];
    out_.takes_empty_text_ = facts_[syntax_.root()].nullable != 0;
    return Ok();
  }

 private:
  bool HasStates(uint32_t rule) const {
    return rule == syntax_.root() || (facts_[rule].used != 0 && facts_[rule].nonempty != 0 && !IsInlined(facts_[rule]));
  }

  GrammarState Here(bool ends) const {
    return {static_cast<uint32_t>(out_.edges_.size()), static_cast<uint32_t>(out_.calls_.size()), ends};
  }

  Status AddStates() {
    TARN_RETURN_IF_ERROR(subsets_.Begin());
    base_ = static_cast<uint32_t>(out_.states_.size());
    const uint32_t start = Nfa::kStart;
    TARN_ASSIGN_OR_RETURN(const uint32_t first, subsets_.Find({&start, 1}));
    for (size_t set = first; set < subsets_.size(); ++set) {
      const Span<const uint32_t> states = subsets_.Of(set);
      // A call of the rule reads something: the empty text is the caller's.
      const bool ends = set != first && std::binary_search(states.begin(), states.end(), Nfa::kFinal);
      TARN_GROW_OR_RETURN(out_.states_.Push(Here(ends)));
      TARN_RETURN_IF_ERROR(AddEdges(set));
      TARN_RETURN_IF_ERROR(AddCalls(set));
      if (base_ + subsets_.size() > max_states_) {
        return Error(TARN_UNSUPPORTED, "more than max_states %u states: shorten repetitions {m,n}, or raise max_states",
                     max_states_);
      }
    }
    return Ok();
  }

  // Where the bytes from one cut to the next lead.
  Status AddEdges(size_t set) {
    bool cuts[257] = {};
    for (const uint32_t state : subsets_.Of(set)) {
      for (const NfaEdge& edge : nfa_.EdgesOf(state)) {
        if (edge.kind != NfaEdge::Kind::kBytes) continue;
        cuts[edge.low] = cuts[edge.high + 1] = true;
      }
    }
    const size_t first = out_.edges_.size();
    for (uint32_t low = 0; low < 256;) {
      uint32_t end = low + 1;
      while (end < 256 && !cuts[end]) ++end;
      targets_.Clear();
      for (const uint32_t state : subsets_.Of(set)) {
        if (!effort_.Spend(nfa_.EdgesOf(state).size() + 1)) return effort_.LimitError();
        for (const NfaEdge& edge : nfa_.EdgesOf(state)) {
          if (edge.kind != NfaEdge::Kind::kBytes || edge.low > low || edge.high < low) continue;
          TARN_GROW_OR_RETURN(targets_.Push(edge.to));
        }
      }
      if (!targets_.empty()) TARN_RETURN_IF_ERROR(AddEdge(first, low, end - 1));
      low = end;
    }
    return Ok();
  }

  Status AddEdge(size_t first, uint32_t low, uint32_t high) {
    TARN_ASSIGN_OR_RETURN(const uint32_t target, subsets_.Find(targets_.span()));
    const uint32_t to = base_ + target;
    Array<ByteEdge>& edges = out_.edges_;
    if (edges.size() > first && edges.back().to == to && edges.back().high + 1u == low) {
      edges.back().high = static_cast<uint8_t>(high);
      return Ok();
    }
    TARN_GROW_OR_RETURN(edges.Push({static_cast<uint8_t>(low), static_cast<uint8_t>(high), to}));
    return Ok();
  }

  // CallEdge::start is the rule, until all rules have states.
  Status AddCalls(size_t set) {
    calls_.Clear();
    for (const uint32_t state : subsets_.Of(set)) {
      for (const NfaEdge& edge : nfa_.EdgesOf(state)) {
        if (edge.kind == NfaEdge::Kind::kCall) TARN_GROW_OR_RETURN(calls_.Push({edge.rule, edge.to}));
      }
    }
    std::sort(calls_.begin(), calls_.end(), [](const CallEdge& a, const CallEdge& b) { return a.start < b.start; });
    for (size_t i = 0; i < calls_.size();) {
      targets_.Clear();
      const uint32_t rule = calls_[i].start;
      for (; i < calls_.size() && calls_[i].start == rule; ++i) TARN_GROW_OR_RETURN(targets_.Push(calls_[i].to));
      TARN_ASSIGN_OR_RETURN(const uint32_t target, subsets_.Find(targets_.span()));
      TARN_GROW_OR_RETURN(out_.calls_.Push({rule, base_ + target}));
    }
    return Ok();
  }

  // A rule that calls itself before it has read anything has no end of calls. Rules whose calls at the start are all of sound rules
  // are sound; those that never become sound lead to a cycle.
  Status CheckLeftRecursion() {
    TARN_GROW_OR_RETURN(sound_.Resize(facts_.size()));
    Relation callers(allocator_);
    Array<uint32_t> open(allocator_), ready(allocator_);  // calls that are not known to be sound; rules that are
    TARN_GROW_OR_RETURN(open.Resize(facts_.size()));
    for (uint32_t rule = 0; rule < facts_.size(); ++rule) {
      for (const CallEdge& call : FirstCalls(rule)) {
        ++open[rule];
        TARN_GROW_OR_RETURN(callers.Add(call.start, rule));
      }
      if (open[rule] == 0) TARN_GROW_OR_RETURN(ready.Push(rule));
    }
    TARN_RETURN_IF_ERROR(callers.Sort(facts_.size()));
    while (!ready.empty()) {
      const uint32_t rule = ready.back();
      ready.Truncate(ready.size() - 1);
      sound_[rule] = 1;
      for (const uint32_t caller : callers.Of(rule)) {
        if (--open[caller] == 0) TARN_GROW_OR_RETURN(ready.Push(caller));
      }
    }
    for (uint32_t rule = 0; rule < facts_.size(); ++rule) {
      if (sound_[rule] == 0) return LeftRecursion(rule);
    }
    return Ok();
  }

  Span<const CallEdge> FirstCalls(uint32_t rule) const {
    return HasStates(rule) ? out_.CallsOf(starts_[rule]) : Span<const CallEdge>();
  }

  // A rule that `rule` may call first and that is not known to be sound, or UINT32_MAX.
  uint32_t UnsoundCall(uint32_t rule) const {
    for (const CallEdge& call : FirstCalls(rule)) {
      if (sound_[call.start] == 0) return call.start;
    }
    return UINT32_MAX;
  }

  Status LeftRecursion(uint32_t rule) {
    for (uint32_t steps = 0; steps < facts_.size(); ++steps) rule = UnsoundCall(rule);  // now on a cycle
    char cycle[160];
    size_t used = 0;
    uint32_t at = rule;
    do {
      const RuleName name = syntax_.Name(at);
      const size_t bytes = std::strlen(name.text);
      if (used + bytes + 8 > sizeof(cycle)) break;
      std::memcpy(cycle + used, name.text, bytes);
      std::memcpy(cycle + used + bytes, " -> ", 4);
      used += bytes + 4;
      at = UnsoundCall(at);
    } while (at != rule);
    cycle[used] = '\0';
    return syntax_.At(
        syntax_.rule(rule).where,
        Error(TARN_BAD_FORMAT, "rule '%s' begins with itself (%s%s): write the repetition as (...)*, or behind an element",
              syntax_.Name(rule).text, cycle, syntax_.Name(at).text));
  }

  const Syntax& syntax_;
  Span<const RuleFacts> facts_;
  uint32_t max_states_;
  Allocator allocator_;
  Effort& effort_;
  Automaton& out_;
  Nfa nfa_;
  Subsets subsets_;
  Array<uint32_t> starts_;   // [rules]: their first states
  Array<uint32_t> targets_;  // of the edge that is being made
  Array<CallEdge> calls_;    // of the set that is looked at
  Array<uint8_t> sound_;     // [rules]: calls at their starts come to an end
  uint32_t base_ = 0;
};

Status Automaton::Compile(Span<const char> text, uint32_t max_states, const Allocator& allocator, Effort* effort) {
  Syntax syntax(allocator, text);
  TARN_RETURN_IF_ERROR(syntax.Parse());
  Array<RuleFacts> facts(allocator);
  uint64_t work = 0;
  TARN_RETURN_IF_ERROR(FindFacts(syntax, allocator, &facts, &work));
  if (!effort->Spend(work)) return effort->LimitError();
  return RuleCompiler(syntax, facts.span(), max_states, allocator, effort, this).Compile();
}

}  // namespace tarn
