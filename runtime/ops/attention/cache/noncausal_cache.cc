// Softmax attention over whole sequences (MATH 1.1): every query sees all keys, or the policy's choice of them. Whole: queries and
// keys are there together. Write and Read: the rows of a source are kept for all sequences that decode from it.
#include <algorithm>

#include "runtime/ops/attention/cache/noncausal_policy.h"
#include "runtime/ops/attention/row_store.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

using format::NoncausalPart;

// nullptr: the policy has no noncausal form.
#define TARN_POLICY(id, ...) (InfoOf(CachePolicy::k##id).forms & kNoncausalForm) != 0 ? &kNoncausal##id : nullptr,
constexpr const NoncausalPolicyKind* kPolicies[] = {TARN_CACHE_POLICIES(TARN_POLICY)};
#undef TARN_POLICY

// What the queries of a range look at, of `rows` that everybody would see.
CacheBlock Seen(const RowSpans& spans, CacheBlock rows, RowRange queries) {
  const int64_t begin = static_cast<int64_t>(queries.first);
  rows.position = -begin;
  if (spans.reach == kAlways) return rows;
  const int64_t end = begin + static_cast<int64_t>(queries.count);
  const int64_t before = begin - spans.reach - spans.length + 1;  // row p begins here or later
  const int64_t low = before <= 0 ? 0 : (before + spans.stride - 1) / spans.stride;
  const int64_t past = (end - 1 + spans.reach) / spans.stride + 1;
  const int64_t high = past < static_cast<int64_t>(rows.rows) ? past : static_cast<int64_t>(rows.rows);
  const size_t skipped = static_cast<size_t>(low);
  rows.rows = low < high ? static_cast<size_t>(high - low) : 0;
  rows.keys = static_cast<const float*>(rows.keys) + skipped * rows.key_stride;
  rows.values = static_cast<const float*>(rows.values) + skipped * rows.value_stride;
  rows.from = low * spans.stride - spans.reach - begin;
  rows.until = low * spans.stride + spans.length + spans.reach - begin;
  rows.step = spans.stride;
  rows.position = low - begin;
  return rows;
}

uint32_t FormOf(NoncausalPart part) { return part == NoncausalPart::Whole ? kNoncausalForm : kCrossForm; }

class NoncausalCacheOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    const format::NoncausalCache& table = *context.op().attributes_as_NoncausalCache();
    part_ = table.part();
    config_ = NoncausalConfig();
    if (part_ > NoncausalPart::MAX) return Error(TARN_BAD_FORMAT, "unknown part %u", static_cast<unsigned>(part_));
    TARN_ASSIGN_OR_RETURN(config_.variant, CacheVariant::Read(*table.cache(), FormOf(part_)));
    policy_ = kPolicies[static_cast<size_t>(config_.variant.policy)];
    TARN_RETURN_IF_ERROR(context.ExpectStage(part_ == NoncausalPart::Read ? Stage::kDecode : Stage::kEncode));
    if (part_ == NoncausalPart::Whole) return PrepareWhole(context);
    TARN_ASSIGN_OR_RETURN(states_, RowStates::ReadOfSource(context, config_.variant.heads, context.limits().max_source));
    TARN_RETURN_IF_ERROR(context.ExpectOwned(0, 0, states_.count()));
    return part_ == NoncausalPart::Write ? PrepareWrite(context) : PrepareRead(context);
  }

  Status Run(const RunContext& context) override {
    if (part_ == NoncausalPart::Whole) RunWhole(context);
    if (part_ == NoncausalPart::Write) RunWrite(context);
    if (part_ == NoncausalPart::Read) RunRead(context);
    return Ok();
  }

 private:
  struct Layout {
    ScratchParts threads;
    float* keys;    // [Hkv, built rows, d]
    float* values;  // [Hkv, built rows, dv]
  };

  Layout Lay(Scratch* scratch, uint64_t built_rows) const {
    const Heads& heads = config_.variant.heads;
    Layout layout{};
    layout.threads = scratch->TakeParts(threads_, thread_bytes_);
    if (built_rows == 0) return layout;
    layout.keys = scratch->Take(built_rows * heads.kv_heads() * heads.key_dim());
    layout.values = scratch->Take(built_rows * heads.kv_heads() * heads.value_dim());
    return layout;
  }

  // A thread makes rows, then it attends.
  CacheBlock* LayBlocks(Scratch* scratch) const { return scratch->Take<CacheBlock>(config_.max_blocks); }
  float* LayBuild(Scratch* scratch) const { return scratch->Take(config_.build_floats); }
  float* LayAttend(Scratch* scratch, uint64_t queries) const {
    const Heads& heads = config_.variant.heads;
    return scratch->Take(CacheScratch(queries, heads.group(), heads.key_dim(), heads.value_dim()));
  }

  Status PrepareWhole(PrepareContext& context) {
    const Heads& heads = config_.variant.heads;
    ReadGlobals(context);
    TARN_RETURN_IF_ERROR(context.ExpectValues(global_input_ + 3, /*outputs=*/1));
    TARN_RETURN_IF_ERROR(heads.ExpectQueries(context, &query_axis_));
    TARN_RETURN_IF_ERROR(heads.ExpectKeys(context, 1, &config_.key_axis));
    if (global_input_ > 0) TARN_RETURN_IF_ERROR(ExpectGlobals(context));
    TARN_RETURN_IF_ERROR(config_.variant.ReadTensors(context));
    const uint32_t tensors = config_.variant.tensor_count;
    TARN_RETURN_IF_ERROR(context.ExpectOwned(tensors, tensors, /*states=*/0));
    TARN_RETURN_IF_ERROR(BoundKeys(context));
    if (policy_->prepare != nullptr) policy_->prepare(&config_);
    const bool measures = config_.spans.reach != kAlways || config_.variant.has_bias();
    if (measures && !(query_axis_ == config_.key_axis)) {
      return Error(TARN_BAD_FORMAT, "queries and keys have different numbers of rows, but a distance is asked for");
    }
    const uint64_t max_keys = context.limits().MaxRows(config_.key_axis);
    const uint64_t built = policy_->rows == nullptr ? 0 : policy_->rows(config_, static_cast<size_t>(max_keys));
    // A row that is made reads a span of the keys, with a matrix where they are compressed.
    const uint64_t width = heads.key_dim() + heads.value_dim();
    const uint64_t span = std::max<uint64_t>(static_cast<uint64_t>(config_.spans.length), config_.compression.factor);
    context.AddWork({heads.heads(), context.limits().MaxRows(query_axis_), policy_->rows == nullptr ? max_keys : built, width});
    context.AddWork({heads.kv_heads(), built, std::min(max_keys, span), width, config_.compression.dim + 1});
    if (globals_ != nullptr) context.AddWork({heads.heads(), std::min<uint64_t>(globals_->size(), max_keys), max_keys, width});
    RequestScratch(context, kQueryBlock, built);
    return Ok();
  }

  // Queries that see all tokens, and whether they have inputs of their own.
  void ReadGlobals(const PrepareContext& context) {
    globals_ = (config_.variant.info().attributes & reads::positions) != 0 ? config_.variant.positions : nullptr;
    const auto* inputs = context.op().inputs();
    global_input_ = globals_ != nullptr && inputs != nullptr && inputs->size() == 6 ? 3 : 0;
  }

  Status ExpectGlobals(const PrepareContext& context) const {
    Axis axis;
    TARN_RETURN_IF_ERROR(context.ExpectInput(global_input_, "q", config_.variant.heads.query_width()));
    TARN_RETURN_IF_ERROR(config_.variant.heads.ExpectKeys(context, global_input_ + 1, &axis));
    if (axis == config_.key_axis && context.input_axis(global_input_) == query_axis_) return Ok();
    return Error(TARN_BAD_FORMAT, "q, k and v of global tokens have other numbers of rows than q, k and v");
  }

  Status PrepareWrite(PrepareContext& context) {
    TARN_RETURN_IF_ERROR(context.ExpectValues(/*inputs=*/2, /*outputs=*/0));
    TARN_RETURN_IF_ERROR(config_.variant.heads.ExpectKeys(context, 0, &config_.key_axis));
    if (config_.key_axis.time != format::Time::Tokens) {
      return Error(TARN_BAD_FORMAT, "keeps a row of every token, but its values have other rows");
    }
    return BoundKeys(context);
  }

  Status BoundKeys(PrepareContext& context) const {
    const CacheVariant& variant = config_.variant;
    if ((variant.info().attributes & reads::capacity) == 0) return Ok();
    return BoundRows(context, config_.key_axis, variant.attributes.capacity);
  }

  Status PrepareRead(PrepareContext& context) {
    TARN_RETURN_IF_ERROR(context.ExpectValues(/*inputs=*/1, /*outputs=*/1));
    TARN_RETURN_IF_ERROR(config_.variant.heads.ExpectQueries(context, &query_axis_));
    const uint64_t rows = context.limits().MaxRows(query_axis_) / context.limits().sources();
    context.AddWork({config_.variant.heads.heads(), context.limits().MaxRows(query_axis_), context.limits().max_source,
                     config_.variant.heads.key_dim() + config_.variant.heads.value_dim()});
    RequestScratch(context, rows < kQueryBlock ? rows : kQueryBlock, /*built_rows=*/0);
    return Ok();
  }

  void RequestScratch(PrepareContext& context, uint64_t queries, uint64_t built_rows) {
    threads_ = context.limits().threads;
    thread_bytes_ = std::max(CountScratch([&](Scratch* scratch) {
                               LayBlocks(scratch);
                               LayAttend(scratch, queries);
                             }),
                             CountScratch([&](Scratch* scratch) { LayBuild(scratch); }));
    context.RequestScratch(CountScratch([&](Scratch* scratch) { Lay(scratch, built_rows); }));
  }

  void RunWhole(const RunContext& context) const {
    const Heads& heads = config_.variant.heads;
    const size_t tokens = context.sequence_rows(config_.key_axis), queries = context.sequence_rows(query_axis_);
    const size_t rows = policy_->rows == nullptr ? tokens : policy_->rows(config_, tokens);
    Scratch scratch(context.scratch);
    const Layout layout = Lay(&scratch, policy_->build == nullptr ? 0 : rows);
    if (policy_->build != nullptr) Build(context, tokens, rows, layout);
    ForEachRowBlock(context, heads.kv_heads(), queries, kQueryBlock, Cost(queries, rows),
                    [&](size_t head, RowRange range, size_t thread) {
                      const CacheBlock all = policy_->build == nullptr
                                                 ? TokenRows(context, 0, rows, head)
                                                 : FloatBlock(rows, layout.keys + head * rows * heads.key_dim(), heads.key_dim(),
                                                              layout.values + head * rows * heads.value_dim(), heads.value_dim());
                      Scratch work = layout.threads[thread].Fresh();
                      CacheBlock* const blocks = LayBlocks(&work);
                      blocks[0] = Seen(config_.spans, all, range);
                      size_t count = 1;
                      if (config_.compression.has_null_row()) blocks[count++] = config_.compression.NullRow(head);
                      if (policy_->add != nullptr) count += policy_->add(config_, all, range, blocks + count);
                      Attend(context, 0, head, range, blocks, count, work);
                      if (globals_ != nullptr) AttendGlobals(context, head, range, tokens, work);
                    });
  }

  // The queries at global positions see all tokens, in place of what Attend has found for them.
  void AttendGlobals(const RunContext& context, size_t head, RowRange range, size_t tokens, const Scratch& work) const {
    CacheBlock all = TokenRows(context, global_input_, tokens, head);
    ForEachRun(*globals_, range, [&](RowRange run) {
      all.position = -static_cast<int64_t>(run.first);
      Attend(context, global_input_, head, run, &all, 1, work);
    });
  }

  void Build(const RunContext& context, size_t tokens, size_t rows, const Layout& layout) const {
    const Heads& heads = config_.variant.heads;
    const size_t d = heads.key_dim(), dv = heads.value_dim();
    const uint64_t cost = uint64_t{tokens} * heads.kv_heads() * (d + dv) * (config_.compression.dim + 1);
    ForEachRowBlock(context, heads.kv_heads(), rows, kBuiltRows, cost, [&](size_t head, RowRange range, size_t thread) {
      const CacheBlock x = TokenRows(context, 0, tokens, head);
      const size_t at = head * rows + range.first;
      Scratch scratch = layout.threads[thread].Fresh();
      policy_->build({config_, *context.kernels, head, range, tokens, static_cast<const float*>(x.keys), x.key_stride,
                      static_cast<const float*>(x.values), x.value_stride, layout.keys + at * d, layout.values + at * dv,
                      LayBuild(&scratch)});
    });
  }

  void RunWrite(const RunContext& context) const {
    const Heads& heads = config_.variant.heads;
    const Operand &k = context.inputs[0], &v = context.inputs[1];
    const uint64_t cost = uint64_t{context.tokens} * heads.kv_heads() * (heads.key_dim() + heads.value_dim());
    ForEachRowBlock(context, heads.kv_heads(), context.tokens, kQueryBlock, cost, [&](size_t head, RowRange range, size_t) {
      const RowStore store(context, heads, states_, context.source, head);
      for (size_t t = range.first; t < range.first + range.count; ++t) {
        store.Store(t, HeadRows(k, t, head, heads.key_dim()), HeadRows(v, t, head, heads.value_dim()));
      }
    });
  }

  // The rows of all beams of a source stand one after the other: each key is read once for a block of them.
  void RunRead(const RunContext& context) const {
    const Heads& heads = config_.variant.heads;
    const size_t rows = context.beams * context.sequence_rows(query_axis_);
    uint64_t cost = 0;
    const size_t sources = context.batch / context.beams, kv_heads = heads.kv_heads();
    for (size_t i = 0; i < sources; ++i) cost += Cost(rows, context.source_tokens[context.source_of(i)]);
    const size_t tasks = sources * kv_heads;
    Scratch scratch(context.scratch);
    const Layout layout = Lay(&scratch, /*built_rows=*/0);
    ForEachRowBlock(context, tasks, rows, kQueryBlock, cost, [&](size_t task, RowRange range, size_t thread) {
      const size_t place = task / kv_heads, source = context.source_of(place), head = task % kv_heads;
      CacheBlock block = RowStore(context, heads, states_, source, head).Block(0, context.source_tokens[source]);
      block.from = -kAlways;
      block.until = kAlways;
      Attend(context, 0, head, {place * rows + range.first, range.count}, &block, 1, layout.threads[thread].Fresh());
    });
  }

  uint64_t Cost(uint64_t queries, uint64_t rows) const {
    return queries * rows * config_.variant.heads.heads() * (config_.variant.heads.key_dim() + config_.variant.heads.value_dim());
  }

  // Here and below, `input`: that of q, before those of k and v.
  CacheBlock TokenRows(const RunContext& context, uint32_t input, size_t tokens, size_t head) const {
    const Operand &k = context.inputs[input + 1], &v = context.inputs[input + 2];
    return FloatBlock(tokens, HeadRows(k, 0, head, config_.variant.heads.key_dim()), k.stride,
                      HeadRows(v, 0, head, config_.variant.heads.value_dim()), v.stride);
  }

  void Attend(const RunContext& context, uint32_t input, size_t head, RowRange rows, const CacheBlock* blocks, size_t count,
              Scratch scratch) const {
    const Heads& heads = config_.variant.heads;
    const size_t d = heads.key_dim(), dv = heads.value_dim();
    const Operand &q = context.inputs[input], &o = context.outputs[0];
    const DistanceBias bias = config_.variant.BiasOf(head);
    context.kernels->cache_attend({rows.count, heads.group(), d, dv, HeadRows(q, rows.first, head, heads.group() * d), q.stride,
                                   blocks, count, config_.variant.attributes.scale,
                                   HeadRows(o, rows.first, head, heads.group() * dv), o.stride, LayAttend(&scratch, rows.count),
                                   config_.variant.attributes.soft_cap, config_.variant.has_bias() ? &bias : nullptr});
  }

  NoncausalPart part_;
  const NoncausalPolicyKind* policy_;
  NoncausalConfig config_;
  RowStates states_;
  Axis query_axis_;
  const flatbuffers::Vector<uint32_t>* globals_ = nullptr;  // positions; nullptr: there are none
  uint32_t global_input_ = 0;                               // the first of their own
  uint64_t thread_bytes_ = 0;                               // of scratch
  uint32_t threads_ = 0;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::NoncausalCache& table = *op.attributes_as_NoncausalCache();
  DescribeCache(*table.cache(), FormOf(table.part()), format::EnumNameNoncausalPart(table.part()), text, text_bytes);
}

}  // namespace

const OpKind kNoncausalCacheOp = MakeOpKind<NoncausalCacheOp>("noncausal_cache", Describe);

}  // namespace tarn
