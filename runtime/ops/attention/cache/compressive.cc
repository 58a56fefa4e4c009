// Compressive transformer (Rae et al. 2020; MATH 1.8.7 b): a token sees compressed memory, memory, and its segment up to itself.
// When a segment is complete, memory becomes the last `mem_len` tokens; what falls out is compressed, `compression_ratio` tokens to
// their mean, with zero rows before them where their number is no multiple; compressed memory keeps its last `cmem_len` rows.
//
// Keys and values of memories are kept instead of hidden rows: they are linear in them, so that the mean of keys is the key of the
// mean.
#include <algorithm>

#include "runtime/ops/attention/cache/cache_policy.h"

namespace tarn {
namespace {

enum Store : uint32_t { kSegment = 0, kMemory = 1, kCompressed = 2 };

// [2, d + dv]: a sum of rows and one row, each a key and its value side by side.
float* LayRows(const Heads& heads, Scratch* scratch) { return scratch->Take(2 * (uint64_t{heads.key_dim()} + heads.value_dim())); }

void Prepare(CacheConfig* config) {
  config->max_blocks = 2 * kRingBlocks + /*segment=*/1 + kOwnBlocks;
  config->scratch_bytes = CountScratch([&](Scratch* scratch) { LayRows(config->variant.heads, scratch); });
}

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where everything stands before segment `segment`, which begins at token segment * length.
struct Memories {
  Memories(const CacheAttributes& a, int64_t segment)
      : length(a.segment_len), memory(a.mem_len), ratio(a.compression_ratio), begin(segment * length) {
    kept_from = begin > memory ? begin - memory : 0;
    // The first segment after which something falls out may let fewer go than a whole one.
    const int64_t first_full = memory / length;
    if (segment > first_full) {
      const int64_t first_evicted = (first_full + 1) * length - memory;
      compressed = CeilDivide(first_evicted, ratio) + (segment - first_full - 1) * CeilDivide(length, ratio);
    }
  }
  int64_t length;
  int64_t memory;
  int64_t ratio;
  int64_t begin;           // first token of the segment
  int64_t kept_from;       // memory holds tokens [kept_from, begin)
  int64_t compressed = 0;  // rows that were ever compressed
};

// Compresses tokens [now.kept_from, next.kept_from), which memory and segment hold, and moves the segment into memory.
void EndSegment(const CacheTask& task, const Memories& now, const Memories& next) {
  const RowStore segment = task.store(kSegment);
  const RowStore memory = task.store(kMemory);
  const RowStore compressed = task.store(kCompressed);
  const size_t width = task.heads().key_dim() + task.heads().value_dim();
  const size_t d = task.heads().key_dim();
  Scratch scratch = task.policy_scratch();
  float* const sum = LayRows(task.heads(), &scratch);
  float* const row = sum + width;
  const auto load = [&](int64_t position, float* to) {
    if (position < now.begin) {
      memory.Load(static_cast<uint64_t>(position % now.memory), to, to + d);
    } else {
      segment.Load(static_cast<uint64_t>(position - now.begin), to, to + d);
    }
  };
  for (int64_t group = now.compressed; group < next.compressed; ++group) {
    // Groups end with the last evicted token; the first one is filled up with zero rows.
    const int64_t end = next.kept_from - (next.compressed - 1 - group) * now.ratio;
    for (size_t i = 0; i < width; ++i) sum[i] = 0;
    // Rows before the first evicted one are zeros.
    for (int64_t position = std::max(end - now.ratio, now.kept_from); position < end; ++position) {
      load(position, row);
      for (size_t i = 0; i < width; ++i) sum[i] += row[i];
    }
    for (size_t i = 0; i < width; ++i) sum[i] /= static_cast<float>(now.ratio);
    compressed.Store(static_cast<uint64_t>(group % static_cast<int64_t>(compressed.rows())), sum, sum + d);
  }
  const int64_t first_kept = next.kept_from > now.begin ? next.kept_from : now.begin;
  for (int64_t position = first_kept; position < next.begin; ++position) {
    segment.Load(static_cast<uint64_t>(position - now.begin), row, row + d);
    memory.Store(static_cast<uint64_t>(position % now.memory), row, row + d);
  }
}

void Run(CacheTask& task) {
  const CacheAttributes& a = task.attributes();
  const CacheTokens all = task.tokens();
  const RowStore segment = task.store(kSegment);
  const int64_t kept_rows = a.cmem_len;
  for (size_t done = 0; done < all.count;) {
    const int64_t seen = static_cast<int64_t>(all.seen + done);
    const Memories now(a, seen / a.segment_len);
    const int64_t offset = seen - now.begin;
    const size_t left = static_cast<size_t>(now.length - offset);
    CacheTokens tokens = all.Every(1, done, all.count - done < left ? all.count - done : left);

    task.AddRing(task.store(kCompressed), now.compressed > kept_rows ? now.compressed - kept_rows : 0, now.compressed, -kAlways,
                 kAlways, 0);
    task.AddRing(task.store(kMemory), now.kept_from, now.begin, -kAlways, kAlways, 0);
    task.Add(segment.Block(0, static_cast<uint64_t>(offset)), -kAlways, kAlways, 0);
    task.AddOwn(tokens, 0, tokens.count, 1, 0, kAlways, 1);
    task.Attend(tokens);

    for (size_t t = 0; t < tokens.count; ++t) {
      segment.Store(static_cast<uint64_t>(offset) + t, tokens.k + t * tokens.k_stride, tokens.v + t * tokens.v_stride);
    }
    if (tokens.count == left) EndSegment(task, now, Memories(a, seen / a.segment_len + 1));
    done += tokens.count;
  }
}

}  // namespace

const CachePolicyKind kCompressiveCache = {Prepare, Run, nullptr};

}  // namespace tarn
