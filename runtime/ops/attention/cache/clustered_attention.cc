// Clustered attention (Vyas et al. 2020; MATH 1.9.1): queries of alike hash codes form clusters, whose mean query attends for all
// of them. Improved: every query weighs the `topk` keys of its cluster itself; the other keys keep the cluster's weights.
//   plain:     o_i = V^c, V^c = softmax(scale Q^c K^T) V
//   improved:  o_i = sum over other keys of A^c_j v_j + (sum of A^c over the top keys) softmax(scale q_i K_top^T) V_top
#include <algorithm>
#include <cstring>

#include "runtime/ops/attention/attributes.h"
#include "runtime/ops/attention/cache/query_clusters.h"
#include "runtime/ops/attention/cache/top_indices.h"
#include "runtime/ops/attention/row_blocks.h"
#include "runtime/ops/registry.h"
#include "variants/limits.h"

namespace tarn {
namespace {

constexpr size_t kClusterBlock = 16;  // clusters whose mean queries read the keys together

// Scratch of one thread while it attends.
struct Workspace {
  float* attend;
  float* q;  // [kQueryBlock, d]
  float* o;  // [kQueryBlock, dv]
  // Improved alone:
  float* scores;
  float* p;             // [kClusterBlock, keys]: scores, then A^c, without its top keys at last
  float* rest;          // [kClusterBlock, dv]: what the other keys give
  uint32_t* top_index;  // [kClusterBlock, top]
  float* top_k;         // [top, d]
  float* top_v;         // [top, dv]
};

Workspace LayWorkspace(const Heads& heads, uint64_t keys, uint64_t top, Scratch* scratch) {
  const uint64_t d = heads.key_dim(), dv = heads.value_dim();
  Workspace work{};
  work.attend = scratch->Take(CacheScratch(kQueryBlock, 1, d, dv));
  work.q = scratch->Take(kQueryBlock * d);
  work.o = scratch->Take(kQueryBlock * dv);
  if (top == 0) return work;
  work.scores = scratch->Take(ScoreScratch(kClusterBlock, d));
  work.p = scratch->Take(kClusterBlock * keys);
  work.rest = scratch->Take(kClusterBlock * dv);
  work.top_index = scratch->Take<uint32_t>(kClusterBlock * top);
  work.top_k = scratch->Take(top * d);
  work.top_v = scratch->Take(top * dv);
  return work;
}

class ClusteredAttentionOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    attributes_ = context.op().attributes_as_ClusteredAttention();
    const format::ClusteredAttention& a = *attributes_;
    TARN_RETURN_IF_ERROR(context.ExpectStage(Stage::kEncode));
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/3, /*outputs=*/1, /*tensors=*/1, 2, /*states=*/0));
    TARN_RETURN_IF_ERROR(ExpectNumber("scale", a.scale(), Bounds::kFinite));
    TARN_RETURN_IF_ERROR(ExpectAtLeast("num_clusters", a.num_clusters(), 1, kMaxSlots));
    TARN_RETURN_IF_ERROR(ExpectAtLeast("bits", a.bits(), 1, 64));
    TARN_RETURN_IF_ERROR(ExpectAtLeast("iterations", a.iterations(), 1, kMaxClusterIterations));
    TARN_ASSIGN_OR_RETURN(heads_, Heads::Of(*a.heads()));
    TARN_RETURN_IF_ERROR(heads_.ExpectQueries(context, &query_axis_));
    TARN_RETURN_IF_ERROR(heads_.ExpectKeys(context, 1, &key_axis_));
    TARN_RETURN_IF_ERROR(BoundRows(context, query_axis_, a.capacity()));
    TARN_RETURN_IF_ERROR(BoundRows(context, key_axis_, a.capacity()));
    TARN_ASSIGN_OR_RETURN(planes_, context.ExpectTensor(0, "hash_planes", {a.bits(), heads_.key_dim() + 1}));
    if (context.tensor_count() > 1) {
      TARN_ASSIGN_OR_RETURN(starts_, context.ExpectIntegers(1, "centroid_index", {heads_.heads(), a.num_clusters()}));
    }
    rules_ = {a.num_clusters(), a.bits(), a.iterations()};
    max_queries_ = context.limits().MaxRows(query_axis_);
    RequestScratch(context);
    AddWork(context);
    context.RequestConstants(rules_.bits * heads_.key_dim() * sizeof(float));
    return Ok();
  }

  // The normals of the planes without the thresholds between them, as a matrix.
  void FillConstants(uint8_t* memory) override {
    const size_t d = heads_.key_dim();
    float* normals = reinterpret_cast<float*>(memory);
    for (size_t b = 0; b < rules_.bits; ++b) std::memcpy(normals + b * d, planes_ + b * (d + 1), d * sizeof(float));
    normals_ = normals;
  }

  Status Run(const RunContext& context) override {
    const size_t queries = context.sequence_rows(query_axis_), keys = context.sequence_rows(key_axis_);
    Scratch scratch(context.scratch);
    const Parts parts = Lay(&scratch);
    Hash(context, parts, queries);
    Cluster(context, parts, queries);
    if (context.cancelled()) return Ok();  // lists of members may be missing
    Attend(context, parts, queries, keys);
    return Ok();
  }

 private:
  struct Parts {
    ScratchParts threads;
    ScratchParts heads;  // the clusters of each
  };
  struct HeadPieces {
    QueryClusters clusters;
    float* means;  // [C, d] the mean query of each
  };

  void RequestScratch(PrepareContext& context) {
    const uint64_t max_keys = context.limits().MaxRows(key_axis_);
    threads_ = context.limits().threads;
    thread_bytes_ = std::max(CountScratch([&](Scratch* scratch) { LayWorkspace(heads_, max_keys, TopOf(max_keys), scratch); }),
                             CountScratch([&](Scratch* scratch) { LayProjections(scratch); }));
    head_bytes_ = CountScratch([&](Scratch* scratch) { LayHead(scratch, max_queries_); });
    context.RequestScratch(CountScratch([&](Scratch* scratch) { Lay(scratch); }));
  }

  Parts Lay(Scratch* scratch) const {
    return {scratch->TakeParts(threads_, thread_bytes_), scratch->TakeParts(heads_.heads(), head_bytes_)};
  }

  float* LayProjections(Scratch* scratch) const { return scratch->Take(kQueryBlock * rules_.bits); }

  HeadPieces LayHead(Scratch* scratch, uint64_t queries) const {
    HeadPieces pieces;
    pieces.clusters.codes = scratch->Take<uint64_t>(queries);
    pieces.clusters.centers = scratch->Take<uint64_t>(rules_.clusters);
    pieces.clusters.nearest = scratch->Take<uint32_t>(queries);
    pieces.clusters.members = scratch->Take<uint32_t>(queries);
    pieces.clusters.begins = scratch->Take<uint32_t>(uint64_t{rules_.clusters} + 1);
    pieces.means = scratch->Take(uint64_t{rules_.clusters} * heads_.key_dim());
    return pieces;
  }

  HeadPieces HeadAt(const Parts& parts, size_t head, size_t queries) const {
    Scratch scratch = parts.heads[head];
    return LayHead(&scratch, queries);
  }

  void AddWork(PrepareContext& context) const {
    const uint64_t h = heads_.heads(), d = heads_.key_dim(), clusters = rules_.clusters, keys = context.limits().MaxRows(key_axis_);
    context.AddWork({h, max_queries_, rules_.bits, d});
    context.AddWork({h, rules_.iterations, max_queries_ + 1, clusters + rules_.bits});
    context.AddWork({h, clusters, keys + 1, d + heads_.value_dim()});
    context.AddWork({h, max_queries_, TopOf(keys), d + heads_.value_dim()});
  }

  uint64_t TopOf(uint64_t keys) const { return attributes_->topk() < keys ? attributes_->topk() : keys; }

  void Hash(const RunContext& context, const Parts& parts, size_t queries) const {
    const size_t d = heads_.key_dim(), bits = rules_.bits;
    const uint64_t cost = uint64_t{queries} * heads_.heads() * bits * d;
    ForEachRowBlock(context, heads_.heads(), queries, kQueryBlock, cost, [&](size_t head, RowRange rows, size_t thread) {
      Scratch scratch = parts.threads[thread].Fresh();
      float* projections = LayProjections(&scratch);
      const QueryClusters clusters = HeadAt(parts, head, queries).clusters;
      context.kernels->dense_f32(rows.count, d, bits, HeadRows(context.inputs[0], rows.first, head, d), context.inputs[0].stride,
                                 normals_, nullptr, projections, bits);
      for (size_t r = 0; r < rows.count; ++r) {
        clusters.codes[rows.first + r] = HashCode(bits, projections + r * bits, planes_ + d, d + 1);
      }
    });
  }

  void Cluster(const RunContext& context, const Parts& parts, size_t queries) const {
    const size_t d = heads_.key_dim();
    const uint64_t cost = uint64_t{queries} * heads_.heads() * (rules_.iterations * (rules_.clusters + rules_.bits) + d);
    context.threads->ParallelFor(heads_.heads(), cost, [&](size_t head, size_t) {
      const FlushDenormals flush;
      const auto [clusters, means] = HeadAt(parts, head, queries);
      FormClusters(*context.kernels, rules_, queries, starts_ == nullptr ? nullptr : starts_ + head * rules_.clusters, clusters,
                   context.cancellation);
      if (context.cancelled()) return;
      for (size_t c = 0; c < rules_.clusters; ++c) MeanQuery(context, head, clusters, c, means + c * d);
    });
  }

  // Zero for a cluster without members: nobody takes what it finds.
  void MeanQuery(const RunContext& context, size_t head, const QueryClusters& clusters, size_t c, float* mean) const {
    const size_t d = heads_.key_dim();
    std::memset(mean, 0, d * sizeof(float));
    for (size_t m = clusters.begins[c]; m < clusters.begins[c + 1]; ++m) {
      context.kernels->add(1, d, mean, d, HeadRows(context.inputs[0], clusters.members[m], head, d), d, mean, d);
    }
    if (clusters.size(c) > 0) context.kernels->scale_f32(d, mean, 1.0f / static_cast<float>(clusters.size(c)), mean);
  }

  void Attend(const RunContext& context, const Parts& parts, size_t queries, size_t keys) const {
    const size_t d = heads_.key_dim(), dv = heads_.value_dim();
    const size_t top = static_cast<size_t>(TopOf(keys));
    const uint64_t cost = (uint64_t{rules_.clusters} * keys + uint64_t{queries} * top) * heads_.heads() * (d + dv);
    ForEachRowBlock(context, heads_.heads(), rules_.clusters, kClusterBlock, cost, [&](size_t head, RowRange block, size_t thread) {
      Scratch scratch = parts.threads[thread].Fresh();
      const Workspace work = LayWorkspace(heads_, keys, top, &scratch);
      const auto [clusters, means] = HeadAt(parts, head, queries);
      const HeadRun run{*this, context, head, keys, top, clusters, work};
      if (top == 0) {
        run.AttendClusters(block, means);
      } else {
        run.AttendImproved(block, means);
      }
    });
  }

  // A head on one thread.
  struct HeadRun {
    const ClusteredAttentionOp& op;
    const RunContext& context;
    size_t head;
    size_t keys;
    size_t top;
    const QueryClusters& clusters;
    const Workspace& work;

    size_t d() const { return op.heads_.key_dim(); }
    size_t dv() const { return op.heads_.value_dim(); }
    const float* Key(size_t j) const { return HeadRows(context.inputs[1], j, head / op.heads_.group(), d()); }
    const float* Value(size_t j) const { return HeadRows(context.inputs[2], j, head / op.heads_.group(), dv()); }
    float* Output(size_t query) const { return HeadRows(context.outputs[0], query, head, dv()); }

    // work.o [count, dv] = softmax(scale q rows^T) values.
    void AttendRows(size_t count, const float* q, const CacheBlock& rows) const {
      context.kernels->cache_attend(
          {count, /*queries=*/1, d(), dv(), q, d(), &rows, 1, op.attributes_->scale(), work.o, dv(), work.attend});
    }

    void AttendClusters(RowRange block, const float* means) const {
      AttendRows(block.count, means + block.first * d(),
                 FloatBlock(keys, Key(0), context.inputs[1].stride, Value(0), context.inputs[2].stride));
      for (size_t i = 0; i < block.count; ++i) {
        const size_t c = block.first + i;
        for (size_t m = clusters.begins[c]; m < clusters.begins[c + 1]; ++m) {
          std::memcpy(Output(clusters.members[m]), work.o + i * dv(), dv() * sizeof(float));
        }
      }
    }

    void AttendImproved(RowRange block, const float* means) const {
      const Kernels& kernels = *context.kernels;
      float mass[kClusterBlock];
      kernels.score_rows({block.count, keys, d(), means + block.first * d(), d(), Key(0), context.inputs[1].stride, work.scores},
                         work.p);
      for (size_t i = 0; i < block.count; ++i) TopIndices(work.p + i * keys, keys, top, work.top_index + i * top);
      kernels.softmax_rows(block.count, keys, op.attributes_->scale(), work.p);
      for (size_t i = 0; i < block.count; ++i) mass[i] = TakeOut(work.p + i * keys, work.top_index + i * top);
      kernels.weigh_rows(block.count, keys, dv(), work.p, Value(0), context.inputs[2].stride, work.rest, dv());
      for (size_t i = 0; i < block.count; ++i) {
        AttendTop(block.first + i, work.top_index + i * top, mass[i], work.rest + i * dv());
      }
    }

    // The weights of the top keys together; they become 0.
    float TakeOut(float* p, const uint32_t* top_index) const {
      float mass = 0.0f;
      for (size_t j = 0; j < top; ++j) {
        mass += p[top_index[j]];
        p[top_index[j]] = 0.0f;
      }
      return mass;
    }

    // The members of a cluster, each over its top keys.
    void AttendTop(size_t cluster, const uint32_t* top_index, float mass, const float* rest) const {
      if (clusters.size(cluster) == 0) return;
      for (size_t j = 0; j < top; ++j) {
        std::memcpy(work.top_k + j * d(), Key(top_index[j]), d() * sizeof(float));
        std::memcpy(work.top_v + j * dv(), Value(top_index[j]), dv() * sizeof(float));
      }
      const CacheBlock rows = FloatBlock(top, work.top_k, d(), work.top_v, dv());
      const size_t end = clusters.begins[cluster + 1];
      for (size_t begin = clusters.begins[cluster]; begin < end; begin += kQueryBlock) {
        const uint32_t* members = clusters.members + begin;
        const size_t count = end - begin < kQueryBlock ? end - begin : kQueryBlock;
        for (size_t i = 0; i < count; ++i) {
          std::memcpy(work.q + i * d(), HeadRows(context.inputs[0], members[i], head, d()), d() * sizeof(float));
        }
        AttendRows(count, work.q, rows);
        for (size_t i = 0; i < count; ++i) {
          context.kernels->scale_f32(dv(), work.o + i * dv(), mass, work.o + i * dv());
          context.kernels->add(1, dv(), work.o + i * dv(), dv(), rest, dv(), Output(members[i]), dv());
        }
      }
    }
  };

  const format::ClusteredAttention* attributes_;
  Heads heads_;
  ClusterRules rules_;
  Axis query_axis_, key_axis_;
  const float* planes_ = nullptr;    // [bits, d + 1]
  const float* normals_ = nullptr;   // [bits, d]
  const int32_t* starts_ = nullptr;  // [H, C], or nullptr
  uint64_t max_queries_;
  uint64_t thread_bytes_;
  uint64_t head_bytes_;
  uint32_t threads_;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::ClusteredAttention& a = *op.attributes_as_ClusteredAttention();
  Format(text, text_bytes, "%s: %u clusters, %u bits, top %u, heads %u/%u x %u/%u",
         a.system() == nullptr ? "unnamed" : a.system()->c_str(), a.num_clusters(), a.bits(), a.topk(), a.heads()->heads(),
         a.heads()->kv_heads(), a.heads()->head_dim(), a.heads()->value_dim());
}

}  // namespace

const OpKind kClusteredAttentionOp = MakeOpKind<ClusteredAttentionOp>("clustered_attention", Describe);

}  // namespace tarn
