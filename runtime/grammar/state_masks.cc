#include "runtime/grammar/state_masks.h"

#include <algorithm>

#include "core/bump.h"
#include "runtime/grammar/follow.h"
#include "runtime/grammar/state_classes.h"
#include "runtime/grammar/walk.h"

namespace tarn {
namespace {

// A walk over fewer nodes takes no longer than to look a mask up and to walk the rest: some microseconds.
constexpr uint32_t kFewNodes = 256;
constexpr uint32_t kSomeLevels = 3;  // besides those of the bytes of a token
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kStepsOfRest = 64;  // to sort it among others

void ForbidTokens(Span<const int32_t> tokens, uint64_t* words) {
  for (const int32_t token : tokens) words[token / 64] &= ~(uint64_t{1} << (token % 64));
}

}  // namespace

// Makes the masks of all states. Where one is like another for some bytes, its mask is made of the other's: of the tree of tokens
// only the part is walked that is high enough to tell them apart. So the many states of a repetition {m,n} take about as long as a
// few.
class MaskBuilder {
 public:
  MaskBuilder(const Automaton& automaton, const TokenTexts& texts, const TextTree& vocabulary, const MaskLimits& limits,
              const Allocator& allocator, Effort* effort, StateMasks* out)
      : automaton_(automaton),
        texts_(texts),
        vocabulary_(vocabulary),
        limits_(limits),
        effort_(*effort),
        out_(*out),
        classes_(allocator),
        follow_(allocator),
        latest_(allocator),
        resumes_(allocator),
        resumes_of_(allocator),
        firsts_(allocator),
        rests_(allocator),
        stacks_(automaton, limits.stacks, 2 * (vocabulary.max_depth() + kSomeLevels), effort) {}

  Status Build(const Allocator& allocator) {
    Bump measure;
    stacks_.TakeArrays(&measure);
    TARN_ASSIGN_OR_RETURN(const Block block, Block::Allocate(allocator, measure.used(), "masks of the grammar"));
    Bump bump(block.bytes());
    stacks_.TakeArrays(&bump);
    TARN_RETURN_IF_ERROR(classes_.Build(automaton_, &effort_));
    TARN_RETURN_IF_ERROR(follow_.Build(automaton_, &effort_));
    TARN_GROW_OR_RETURN(latest_.Resize(size_t{StateClasses::kLevels + 1} * automaton_.state_count()));
    std::fill(latest_.begin(), latest_.end(), kNone);
    TARN_RETURN_IF_ERROR(resumes_.Begin());
    TARN_RETURN_IF_ERROR(firsts_.Begin());
    for (uint32_t state = 0; state < automaton_.state_count() && !is_full_; ++state) {
      if (automaton_.EdgesOf(state).empty()) continue;
      TARN_RETURN_IF_ERROR(AddState(state));
      for (uint32_t level = 1; level <= StateClasses::kLevels; ++level) *Latest(level, state) = state;
    }
    return Ok();
  }

 private:
  uint32_t* Latest(uint32_t level, uint32_t state) {
    return &latest_[size_t{level} * automaton_.state_count() + classes_.ClassOf(level, state)];
  }

  // What may follow the rule of `state`.
  const ByteSet& FollowOf(uint32_t state) const { return follow_.Of(automaton_.RuleOf(state)); }

  // Of the arrays that grow by the states. Those of the builder alone, which go when it does, count as those that stay.
  uint64_t used_bytes() const { return out_.used_bytes() + resumes_.used_bytes() + firsts_.used_bytes(); }

  Span<const uint32_t> ResumesOf(const StateMask& mask) const {
    return resumes_.Of(resumes_of_[static_cast<size_t>(&mask - out_.masks_.data())]);
  }

  // Whether one of the bytes may come behind `node`.
  bool GoesOn(uint32_t node, const ByteSet& bytes) const {
    for (uint32_t below = node + 1; below < vocabulary_.node(node).behind; below = vocabulary_.node(below).behind) {
      if (bytes.Has(vocabulary_.node(below).byte)) return true;
    }
    return false;
  }

  Status AddState(uint32_t state) {
    uint32_t level = StateClasses::kLevels;
    while (level > 0 && *Latest(level, state) == kNone) --level;
    uint32_t like = level == 0 ? kNone : *Latest(level, state);
    // Their masks go on at other nodes where other bytes follow their rules.
    if (like != kNone && !(FollowOf(like) == FollowOf(state))) like = kNone;
    const StateMask* mask = like == kNone ? nullptr : out_.Find(like);
    // What few nodes behind some bytes are read from the one is so of the other, too.
    const bool has_none = like != kNone && mask == nullptr;
    if (like != kNone && level == StateClasses::kLevels && (has_none || vocabulary_.max_depth() < level)) {
      out_.index_[state] = out_.index_[like];
      return Ok();
    }
    const size_t words_before = out_.words_.elements().size(), nodes_before = resumes_.elements().size();
    TARN_GROW_OR_RETURN(out_.words_.elements().Resize(words_before + limits_.words));
    uint32_t deepest = 0;
    bool keeps = false;
    if (mask != nullptr) {
      TARN_ASSIGN_OR_RETURN(keeps, Change(*mask, state, like, words_before, &deepest));
    }
    if (!keeps) {
      resumes_.elements().Truncate(nodes_before);
      TARN_ASSIGN_OR_RETURN(keeps, Make(state, words_before, &deepest));
    }
    const size_t copied = limits_.words + resumes_.elements().size() - nodes_before;
    if (!effort_.Spend(copied)) return effort_.LimitError();
    is_full_ = used_bytes() > limits_.mask_bytes;
    if (keeps && !is_full_) return Keep(state, words_before, nodes_before, deepest);
    out_.words_.elements().Truncate(words_before);
    resumes_.elements().Truncate(nodes_before);
    return Ok();
  }

  // The mask of the bits from `words` on, with the stacks that go on at the nodes from `nodes` on.
  Status Keep(uint32_t state, size_t words, size_t nodes, uint32_t deepest) {
    StateMask made = {0, 0, deepest};
    TARN_ASSIGN_OR_RETURN(made.words, out_.words_.Keep(words));
    uint32_t resumes = 0;
    TARN_ASSIGN_OR_RETURN(resumes, resumes_.Keep(nodes));
    const size_t trees = out_.rests_.size();
    TARN_ASSIGN_OR_RETURN(made.rests, RestsBehind(resumes_.Of(resumes), FollowOf(state)));
    is_full_ = used_bytes() > limits_.mask_bytes;
    if (is_full_) {
      if (out_.rests_.size() > trees) out_.rests_.DropLast();
      return Ok();
    }
    TARN_GROW_OR_RETURN(out_.masks_.Push(made) && resumes_of_.Push(resumes));
    out_.index_[state] = static_cast<int32_t>(out_.masks_.size() - 1);
    return Ok();
  }

  // The tree of what tokens have behind the texts of `nodes`, where that begins with one of the bytes.
  Result<uint32_t> RestsBehind(Span<const uint32_t> nodes, const ByteSet& bytes) {
    const size_t before = firsts_.elements().size();
    for (const uint32_t node : nodes) {
      for (uint32_t below = node + 1; below < vocabulary_.node(node).behind; below = vocabulary_.node(below).behind) {
        if (bytes.Has(vocabulary_.node(below).byte)) TARN_GROW_OR_RETURN(firsts_.elements().Push(below));
      }
    }
    TARN_ASSIGN_OR_RETURN(const uint32_t list, firsts_.Keep(before));
    if (list < out_.rests_.size()) return list;
    rests_.Clear();
    for (const uint32_t node : firsts_.Of(list)) {
      for (const int32_t token : vocabulary_.TokensFrom(node)) {
        TARN_GROW_OR_RETURN(rests_.Push({token, vocabulary_.node(node).depth - 1u}));
      }
    }
    if (!effort_.Spend(kStepsOfRest * rests_.size())) return effort_.LimitError();
    TARN_RETURN_IF_ERROR(out_.rests_.Add(texts_, &rests_));
    return list;
  }

  // By a walk over all. False: there is to be no mask. A limit that is exceeded here is found again by the walk of a stack, which
  // has its place in a text for the message.
  Result<bool> Make(uint32_t state, size_t words, uint32_t* deepest) {
    uint64_t* const bits = out_.words_.elements().data() + words;
    std::fill_n(bits, limits_.words, 0);
    stacks_.BeginUnknown(state);
    stacks_.ResetDeepest();
    uint32_t visits = 0;
    bool fits = true;
    const ByteSet first = stacks_.NextBytes();
    const bool complete = Walk(vocabulary_, first, &stacks_, [&](uint32_t node) {
      ++visits;
      AllowTokens(vocabulary_.TokensOf(node), bits);
      if (stacks_.last().unknown && GoesOn(node, FollowOf(state))) fits = fits && resumes_.elements().Push(node);
    });
    if (!fits) return NoMemoryForGrammar();
    *deepest = stacks_.deepest();
    return complete && visits >= kFewNodes;
  }

  // By a walk over what may differ from `mask`, which is that of `like`. Of the levels of the stacks one is of `state`, the next of
  // `like`, by turns. False: it is not known how deep the stacks get, or a limit is exceeded.
  Result<bool> Change(const StateMask& mask, uint32_t state, uint32_t like, size_t words, uint32_t* deepest) {
    uint64_t* const bits = out_.words_.elements().data() + words;
    std::copy_n(out_.words_.Of(mask.words).begin(), limits_.words, bits);
    const Stack other = {like, Stacks::kUnknown};
    stacks_.BeginUnknown(state);
    stacks_.PushSome({&other, 1});
    uint32_t depth = 0, depth_of_other = 0, kept = 0;  // `kept`: nodes of mask.resumes that were looked at
    for (uint32_t i = 0; i < vocabulary_.node_count();) {
      const TextNode& node = vocabulary_.node(i);
      TARN_GROW_OR_RETURN(KeepResumes(mask, i, &kept));
      stacks_.Return(2u * node.depth);
      if (!StepBoth(node, &depth, &depth_of_other)) return false;
      i = AreAlike(node) ? node.behind : ChangeNode(mask, FollowOf(state), i, bits, &kept);
      if (i == kNone) return NoMemoryForGrammar();
    }
    TARN_GROW_OR_RETURN(KeepResumes(mask, vocabulary_.node_count(), &kept));
    *deepest = std::max(depth, mask.deepest);
    return depth >= mask.deepest || depth_of_other < mask.deepest;
  }

  // The nodes before `end` from which stacks of `mask` go on. False: out of memory.
  bool KeepResumes(const StateMask& mask, uint32_t end, uint32_t* kept) {
    for (; *kept < ResumesOf(mask).size(); ++*kept) {
      const uint32_t node = ResumesOf(mask)[*kept];  // a copy: the array may move
      if (node >= end) break;
      if (!resumes_.elements().Push(node)) return false;
    }
    return true;
  }
  void DropResumes(const StateMask& mask, uint32_t end, uint32_t* kept) const {
    while (*kept < ResumesOf(mask).size() && ResumesOf(mask)[*kept] < end) ++*kept;
  }

  bool StepBoth(const TextNode& node, uint32_t* depth, uint32_t* depth_of_other) {
    const uint32_t before = 2u * (node.depth - 1u);
    stacks_.ResetDeepest();
    if (!stacks_.StepFrom(before, node.byte)) return false;
    *depth = std::max(*depth, stacks_.deepest());
    stacks_.ResetDeepest();
    if (!stacks_.StepFrom(before + 1, node.byte)) return false;
    *depth_of_other = std::max(*depth_of_other, stacks_.deepest());
    return true;
  }

  // Whether the last two levels take the same of all that lies below `node`.
  bool AreAlike(const TextNode& node) const {
    const uint32_t count = stacks_.levels();
    const Stacks::Level &a = stacks_.level(count - 2), &b = stacks_.level(count - 1);
    const Span<const Stack> of_a = stacks_.StacksOf(count - 2), of_b = stacks_.StacksOf(count - 1);
    if (a.may_end != b.may_end || a.unknown != b.unknown || of_a.size() != of_b.size()) return false;
    const uint32_t level = node.height + 1u;
    for (size_t i = 0; i < of_a.size(); ++i) {
      if (of_a[i].node != of_b[i].node) return false;
      if (of_a[i].state == of_b[i].state) continue;
      if (level > StateClasses::kLevels) return false;
      if (classes_.ClassOf(level, of_a[i].state) != classes_.ClassOf(level, of_b[i].state)) return false;
    }
    return true;
  }

  // What the state takes at node `i`. The next node to look at; kNone: out of memory.
  uint32_t ChangeNode(const StateMask& mask, const ByteSet& follow, uint32_t i, uint64_t* bits, uint32_t* kept) {
    const TextNode& node = vocabulary_.node(i);
    const uint32_t own = stacks_.levels() - 2;
    const bool goes_on = !stacks_.StacksOf(own).empty(), is_unknown = stacks_.level(own).unknown;
    DropResumes(mask, i + 1, kept);
    if (goes_on || stacks_.level(own).may_end || is_unknown) {
      AllowTokens(vocabulary_.TokensOf(i), bits);
    } else {
      ForbidTokens(vocabulary_.TokensOf(i), bits);
    }
    if (is_unknown && GoesOn(i, follow) && !resumes_.elements().Push(i)) return kNone;
    if (goes_on) return i + 1;
    ForbidTokens(vocabulary_.TokensBelow(i), bits);
    DropResumes(mask, node.behind, kept);
    return node.behind;
  }

  const Automaton& automaton_;
  const TokenTexts& texts_;
  const TextTree& vocabulary_;
  const MaskLimits& limits_;
  Effort& effort_;
  StateMasks& out_;
  StateClasses classes_;
  FollowSets follow_;
  Array<uint32_t> latest_;         // [levels + 1, classes]: the last state of a class that was looked at
  SharedLists<uint32_t> resumes_;  // nodes from which stacks go on, in ascending order
  Array<uint32_t> resumes_of_;     // [masks]: a list
  SharedLists<uint32_t> firsts_;   // [out_.rests_]: the nodes with the first bytes of its texts
  Array<TokenRest> rests_;         // of the tree that is being made
  bool is_full_ = false;
  Stacks stacks_;
};

Status StateMasks::Build(const Automaton& automaton, const TokenTexts& texts, const TextTree& vocabulary, const MaskLimits& limits,
                         const Allocator& allocator, Effort* effort) {
  TARN_GROW_OR_RETURN(index_.Resize(automaton.state_count()));
  TARN_RETURN_IF_ERROR(words_.Begin());
  std::fill(index_.begin(), index_.end(), -1);
  return MaskBuilder(automaton, texts, vocabulary, limits, allocator, effort, this).Build(allocator);
}

}  // namespace tarn
