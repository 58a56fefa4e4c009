// ProbSparse attention (Zhou et al. 2021; MATH 1.9.2), measured over all keys: the queries whose scores stand out most attend, all
// others get the mean of the values, or a running one. The measure sees unscaled scores and, also where attention is masked, later
// keys.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/ops/attention/attributes.h"
#include "runtime/ops/attention/cache/top_indices.h"
#include "runtime/ops/attention/row_blocks.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

using format::ProbSparseFill;

class ProbSparseOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    attributes_ = context.op().attributes_as_ProbSparse();
    const format::ProbSparse& a = *attributes_;
    TARN_RETURN_IF_ERROR(context.ExpectStage(Stage::kEncode));
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/3, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    if (a.fill() > ProbSparseFill::MAX) return Error(TARN_BAD_FORMAT, "unknown fill %u", static_cast<unsigned>(a.fill()));
    TARN_RETURN_IF_ERROR(ExpectNumber("scale", a.scale(), Bounds::kFinite));
    TARN_RETURN_IF_ERROR(ExpectAtLeast("factor", a.factor(), 1));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Of(*a.heads()));
    TARN_RETURN_IF_ERROR(heads_.ExpectQueries(context, &query_axis_));
    TARN_RETURN_IF_ERROR(heads_.ExpectKeys(context, 1, &key_axis_));
    if ((a.masked() || a.fill() != ProbSparseFill::Mean) && !(query_axis_ == key_axis_)) {
      return Error(TARN_BAD_FORMAT, "queries and keys have different numbers of rows, but an order of both is asked for");
    }
    TARN_RETURN_IF_ERROR(BoundRows(context, query_axis_, a.capacity()));
    TARN_RETURN_IF_ERROR(BoundRows(context, key_axis_, a.capacity()));
    RequestScratch(context);
    const uint64_t queries = context.limits().MaxRows(query_axis_), keys = context.limits().MaxRows(key_axis_);
    context.AddWork({heads_.heads(), queries, keys, heads_.key_dim()});
    context.AddWork({heads_.heads(), Top(static_cast<size_t>(queries)), keys, heads_.key_dim() + heads_.value_dim()});
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const size_t queries = context.sequence_rows(query_axis_), keys = context.sequence_rows(key_axis_);
    const size_t top = Top(queries);
    Scratch scratch(context.scratch);
    const Pieces pieces = Lay(&scratch, queries);
    Measure(context, pieces, queries, keys);
    Choose(context, pieces, queries, top);
    Fill(context, pieces, queries, keys);
    Attend(context, pieces, queries, keys, top);
    return Ok();
  }

 private:
  struct Pieces {
    ScratchParts threads;
    float* measure;    // [H, queries]
    uint32_t* chosen;  // [H, queries]
  };

  void RequestScratch(PrepareContext& context) {
    const auto count = [&](float* (ProbSparseOp::*lay)(Scratch*) const) {
      return CountScratch([&](Scratch* scratch) { (this->*lay)(scratch); });
    };
    threads_ = context.limits().threads;
    thread_bytes_ = std::max({count(&ProbSparseOp::LayScores), count(&ProbSparseOp::LaySum), count(&ProbSparseOp::LayAttend)});
    context.RequestScratch(CountScratch([&](Scratch* scratch) { Lay(scratch, context.limits().MaxRows(query_axis_)); }));
  }

  Pieces Lay(Scratch* scratch, uint64_t queries) const {
    Pieces pieces;
    pieces.threads = scratch->TakeParts(threads_, thread_bytes_);
    pieces.measure = scratch->Take(heads_.heads() * queries);
    pieces.chosen = scratch->Take<uint32_t>(heads_.heads() * queries);
    return pieces;
  }

  // What a thread works in, one after the other.
  float* LayScores(Scratch* scratch) const { return scratch->Take(ScoreScratch(kQueryBlock, heads_.key_dim())); }
  float* LaySum(Scratch* scratch) const { return scratch->Take(heads_.value_dim()); }
  float* LayAttend(Scratch* scratch) const { return scratch->Take(CacheScratch(1, 1, heads_.key_dim(), heads_.value_dim())); }

  // factor * ceil(ln T) queries.
  size_t Top(size_t queries) const {
    const double top = attributes_->factor() * std::ceil(std::log(static_cast<double>(queries)));
    return top < static_cast<double>(queries) ? static_cast<size_t>(top) : queries;
  }

  void Measure(const RunContext& context, const Pieces& pieces, size_t queries, size_t keys) const {
    const size_t d = heads_.key_dim();
    const Operand &q = context.inputs[0], &k = context.inputs[1];
    const uint64_t cost = uint64_t{queries} * keys * d * heads_.heads();
    ForEachRowBlock(context, heads_.heads(), queries, kQueryBlock, cost, [&](size_t head, RowRange rows, size_t thread) {
      Scratch scratch = pieces.threads[thread].Fresh();
      context.kernels->score_peak({rows.count, keys, d, HeadRows(q, rows.first, head, d), q.stride,
                                   HeadRows(k, 0, head / heads_.group(), d), k.stride, LayScores(&scratch)},
                                  pieces.measure + head * queries + rows.first);
    });
  }

  void Choose(const RunContext& context, const Pieces& pieces, size_t queries, size_t top) const {
    context.threads->ParallelFor(heads_.heads(), uint64_t{queries} * heads_.heads(), [&](size_t head, size_t) {
      TopIndices(pieces.measure + head * queries, queries, top, pieces.chosen + head * queries);
    });
  }

  // Every row of o, before the chosen ones are written over.
  void Fill(const RunContext& context, const Pieces& pieces, size_t queries, size_t keys) const {
    const uint64_t cost = uint64_t{queries + keys} * heads_.heads() * heads_.value_dim();
    context.threads->ParallelFor(heads_.kv_heads(), cost, [&](size_t kv_head, size_t thread) {
      const FlushDenormals flush;
      Scratch scratch = pieces.threads[thread].Fresh();
      float* sum = LaySum(&scratch);
      if (attributes_->fill() == ProbSparseFill::Mean) {
        SumValues(context, kv_head, {0, keys}, sum);
        for (size_t i = 0; i < queries; ++i) Put(context, kv_head, i, sum, 1.0f / static_cast<float>(keys));
        return;
      }
      const bool mean = attributes_->fill() == ProbSparseFill::CumulativeMean;
      for (size_t i = 0; i < queries; ++i) {
        SumValues(context, kv_head, {i, 1}, sum);
        Put(context, kv_head, i, sum, mean ? 1.0f / static_cast<float>(i + 1) : 1.0f);
      }
    });
  }

  // Adds rows of v to the sum, which begins with row 0.
  void SumValues(const RunContext& context, size_t kv_head, RowRange rows, float* sum) const {
    const size_t dv = heads_.value_dim();
    const Operand& v = context.inputs[2];
    for (size_t i = rows.first; i < rows.first + rows.count; ++i) {
      const float* row = HeadRows(v, i, kv_head, dv);
      if (i == 0) {
        std::memcpy(sum, row, dv * sizeof(float));
      } else {
        context.kernels->add(1, dv, sum, dv, row, dv, sum, dv);
      }
    }
  }

  void Put(const RunContext& context, size_t kv_head, size_t query, const float* sum, float factor) const {
    const size_t dv = heads_.value_dim();
    for (size_t g = 0; g < heads_.group(); ++g) {
      context.kernels->scale_f32(dv, sum, factor, HeadRows(context.outputs[0], query, kv_head * heads_.group() + g, dv));
    }
  }

  // The chosen queries stand anywhere and are few: each reads the keys for itself.
  void Attend(const RunContext& context, const Pieces& pieces, size_t queries, size_t keys, size_t top) const {
    const size_t d = heads_.key_dim(), dv = heads_.value_dim();
    const Operand &q = context.inputs[0], &k = context.inputs[1], &v = context.inputs[2], &o = context.outputs[0];
    const uint64_t cost = uint64_t{top} * keys * heads_.heads() * (d + dv);
    ForEachRowBlock(context, heads_.heads(), top, /*block=*/1, cost, [&](size_t head, RowRange one, size_t thread) {
      const size_t query = pieces.chosen[head * queries + one.first], kv_head = head / heads_.group();
      const CacheBlock block = FloatBlock(attributes_->masked() ? query + 1 : keys, HeadRows(k, 0, kv_head, d), k.stride,
                                          HeadRows(v, 0, kv_head, dv), v.stride);
      Scratch scratch = pieces.threads[thread].Fresh();
      context.kernels->cache_attend({/*tokens=*/1, /*queries=*/1, d, dv, HeadRows(q, query, head, d), q.stride, &block, 1,
                                     attributes_->scale(), HeadRows(o, query, head, dv), o.stride, LayAttend(&scratch)});
    });
  }

  const format::ProbSparse* attributes_;
  Heads heads_;
  Axis query_axis_, key_axis_;
  uint64_t thread_bytes_;
  uint32_t threads_;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::ProbSparse& a = *op.attributes_as_ProbSparse();
  Format(text, text_bytes, "%s: factor %u%s, heads %u/%u x %u/%u", a.system() == nullptr ? "unnamed" : a.system()->c_str(),
         a.factor(), a.masked() ? ", masked" : "", a.heads()->heads(), a.heads()->kv_heads(), a.heads()->head_dim(),
         a.heads()->value_dim());
}

}  // namespace

const OpKind kProbSparseOp = MakeOpKind<ProbSparseOp>("probsparse", Describe);

}  // namespace tarn
