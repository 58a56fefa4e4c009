#include "runtime/grammar/stacks.h"

#include <algorithm>

namespace tarn {
namespace {

constexpr uint32_t kRoomOfLevel = 4;  // times max_stacks: a level that is being made has calls on its list, too

}  // namespace

void Stacks::TakeArrays(Bump* bump) {
  const uint64_t stacks = limits_.max_stacks, nodes = 2 + stacks * limits_.max_depth;
  uint64_t buckets = 64;
  while (buckets < nodes) buckets *= 2;
  levels_ = TakeArray<Level>(*bump, most_levels_);
  items_ = TakeArray<Stack>(*bump, stacks * (most_levels_ + kRoomOfLevel));
  nodes_ = TakeArray<Node>(*bump, nodes);
  moved_ = TakeArray<uint32_t>(*bump, nodes);
  buckets_ = TakeArray<uint32_t>(*bump, buckets);
  std::fill(buckets_.begin(), buckets_.end(), UINT32_MAX);
}

bool Stacks::BeginText() {
  Return(0);
  Open();
  levels_[0].may_end = automaton_.takes_empty_text();
  return Close(Add(automaton_.start(), kBottom));
}

void Stacks::BeginUnknown(uint32_t state) {
  Return(0);
  Open();
  items_[levels_[0].items++] = {state, kUnknown};
  count_ = 1;
}

bool Stacks::StepFrom(uint32_t from_level, uint8_t byte) {
  const Span<const Stack> from = StacksOf(from_level);
  Open();
  for (const Stack& stack : from) {
    const Span<const ByteEdge> edges = automaton_.EdgesOf(stack.state);
    size_t i = 0;
    while (i < edges.size() && edges[i].high < byte) ++i;
    if (!Spend(i + 1)) return Close(false);
    if (i < edges.size() && edges[i].low <= byte && !Add(edges[i].to, stack.node)) return Close(false);
  }
  return Close(true);
}

ByteSet Stacks::NextBytes() const {
  ByteSet bytes;
  for (const Stack& stack : stacks()) {
    for (const ByteEdge& edge : automaton_.EdgesOf(stack.state)) bytes.Add(edge.low, edge.high);
  }
  return bytes;
}

bool Stacks::PushReturn(uint32_t node) {
  Open();
  return Close(AddReturn(node));
}

void Stacks::PushSome(Span<const Stack> from) {
  Open();
  for (const Stack& stack : from) items_[levels_[count_].items++] = stack;
  ++count_;
}

void Stacks::Return(uint32_t count) {
  if (count >= count_) return;
  count_ = count;
  DropNodes(NodesBefore());
}

// A new level behind the last one. Until Close() it is none.
void Stacks::Open() { levels_[count_] = {count_ == 0 ? 0 : levels_[count_ - 1].items, NodesBefore(), false, false}; }

bool Stacks::Close(bool complete) {
  if (complete && Follow()) {
    levels_[count_++].nodes = node_count_;
    return true;
  }
  DropNodes(NodesBefore());
  return false;
}

// Follows calls and ends of rules from the stacks of the new level, until it has all of them. Of these only those are kept that
// read a byte next.
bool Stacks::Follow() {
  Level& level = levels_[count_];
  const uint32_t begin = count_ == 0 ? 0 : levels_[count_ - 1].items;
  for (uint32_t i = begin; i < level.items; ++i) {
    const Stack stack = items_[i];
    if (!AddCalls(stack)) return false;
    if (automaton_.Ends(stack.state) && !AddReturn(stack.node)) return false;
  }
  uint32_t kept = begin;
  for (uint32_t i = begin; i < level.items; ++i) {
    if (!automaton_.EdgesOf(items_[i].state).empty()) items_[kept++] = items_[i];
  }
  level.items = kept;
  return kept - begin <= limits_.max_stacks || Fail(Limit::kStacks);
}

bool Stacks::AddCalls(const Stack& stack) {
  for (const CallEdge& call : automaton_.CallsOf(stack.state)) {
    uint32_t node = stack.node;
    if (call.to != Automaton::kTail && !FindNode(call.to, stack.node, &node)) return false;
    if (!Add(call.start, node)) return false;
  }
  return true;
}

// A rule has ended over `node`.
bool Stacks::AddReturn(uint32_t node) {
  if (node > kUnknown) return Add(nodes_[node].state, nodes_[node].below);
  Level& level = levels_[count_];
  (node == kBottom ? level.may_end : level.unknown) = true;
  return true;
}

bool Stacks::Add(uint32_t state, uint32_t node) {
  Level& level = levels_[count_];
  const uint32_t begin = count_ == 0 ? 0 : levels_[count_ - 1].items;
  if (!Spend(level.items - begin)) return false;
  for (uint32_t i = begin; i < level.items; ++i) {
    if (items_[i].state == state && items_[i].node == node) return true;
  }
  if (level.items - begin == kRoomOfLevel * limits_.max_stacks) return Fail(Limit::kFollowed);
  items_[level.items++] = {state, node};
  return true;
}

uint32_t* Stacks::BucketOf(const Node& node) const {
  const uint32_t hash = (node.state * 0x9E3779B1u) ^ (node.below * 0x85EBCA77u);
  return &buckets_[(hash ^ hash >> 15) & (buckets_.size() - 1)];
}

void Stacks::AddToBucket(uint32_t node) {
  uint32_t* bucket = BucketOf(nodes_[node]);
  nodes_[node].next_in_bucket = *bucket;
  *bucket = node;
}

// False: a limit is exceeded.
bool Stacks::FindNode(uint32_t state, uint32_t below, uint32_t* found) {
  const Node node = {state, below, nodes_[below].depth + 1, UINT32_MAX};
  deepest_ = std::max(deepest_, node.depth);
  for (*found = *BucketOf(node); *found != UINT32_MAX; *found = nodes_[*found].next_in_bucket) {
    if (nodes_[*found].state == state && nodes_[*found].below == below) return true;
  }
  if (node.depth > limits_.max_depth) return Fail(Limit::kDepth);
  if (node_count_ == nodes_.size()) return Fail(Limit::kNodes);
  nodes_[node_count_] = node;
  AddToBucket(node_count_);
  *found = node_count_++;
  return true;
}

// A bucket lists the newest node first: the one that goes is always the first.
void Stacks::DropNodes(uint32_t count) {
  while (node_count_ > count) {
    --node_count_;
    *BucketOf(nodes_[node_count_]) = nodes_[node_count_].next_in_bucket;
  }
}

void Stacks::KeepLast() {
  const Level last_level = last();
  const Span<const Stack> kept = stacks();
  std::copy(kept.begin(), kept.end(), items_.begin());
  const auto kept_count = static_cast<uint32_t>(kept.size());
  const uint32_t old_count = node_count_;
  DropNodes(kUnknown + 1);  // from their buckets; they are still there
  std::fill_n(moved_.begin(), old_count, 0);
  for (uint32_t i = 0; i < kept_count; ++i) {
    for (uint32_t node = items_[i].node; node > kUnknown && moved_[node] == 0; node = nodes_[node].below) moved_[node] = 1;
  }
  moved_[kBottom] = kBottom;
  // What lies below a node has a lower number.
  for (uint32_t node = kUnknown + 1; node < old_count; ++node) {
    if (moved_[node] == 0) continue;
    moved_[node] = node_count_;
    nodes_[node_count_] = {nodes_[node].state, moved_[nodes_[node].below], nodes_[node].depth, UINT32_MAX};
    AddToBucket(node_count_++);
  }
  for (uint32_t i = 0; i < kept_count; ++i) items_[i].node = moved_[items_[i].node];
  levels_[0] = {kept_count, node_count_, last_level.may_end, false};
  count_ = 1;
}

// No option of a command line raises these two.
#define TARN_RAISE(field) "make the grammar simpler, or raise " field " in tarn_grammar_config"

Status Stacks::LimitError() const {
  switch (limit_) {
    case Limit::kDepth:
      return Error(TARN_CONTEXT_FULL, "rules inside each other are deeper than max_depth %u: " TARN_RAISE("max_depth"),
                   limits_.max_depth);
    case Limit::kStacks:
      return Error(TARN_CONTEXT_FULL, "the text can be read in more than max_stacks %u ways: " TARN_RAISE("max_stacks"),
                   limits_.max_stacks);
    case Limit::kFollowed:
      return Error(TARN_CONTEXT_FULL,
                   "more than %u rules (%u times max_stacks %u) begin or end at one place: " TARN_RAISE("max_stacks"),
                   kRoomOfLevel * limits_.max_stacks, kRoomOfLevel, limits_.max_stacks);
    case Limit::kEffort:
      return effort_->LimitError();
    default:
      return Error(TARN_CONTEXT_FULL, "the stacks have more than max_stacks %u x max_depth %u entries: " TARN_RAISE("them"),
                   limits_.max_stacks, limits_.max_depth);
  }
}

}  // namespace tarn
