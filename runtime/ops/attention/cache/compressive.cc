// Compressive transformer (Rae et al. 2020; MATH 1.8.7 b): a token sees compressed memory, memory, and its segment up to itself.
// When a segment is complete, memory becomes the last `mem_len` tokens; what falls out is compressed, `compression_ratio` tokens to
// a row, with zero rows before them where their number is no multiple (`pad`); compressed memory keeps its last `cmem_len` rows.
//
// Keys and values of memories are kept instead of hidden rows: they are linear in them, so that the mean of keys is the key of the
// mean. The key of a convolution of hidden rows is a sum of other projections of these rows, one for each tap. The op reads all of
// them, and as a token's place among the rows that will leave with it is known, it adds the one that counts when the token comes:
// compressed rows are complete before they are seen, and wait in the ring behind those that are.
#include <algorithm>

#include "runtime/ops/attention/cache/cache_policy.h"

namespace tarn {
namespace {

enum Store : uint32_t { kSegment = 0, kMemory = 1, kCompressed = 2, kSum = 3 };
enum Input : uint32_t { kCompressK = 3, kCompressV = 4 };

// [2, d + dv]: a sum of rows and one row, each a key and its value side by side.
float* LayRows(const Heads& heads, Scratch* scratch) { return scratch->Take(2 * (uint64_t{heads.key_dim()} + heads.value_dim())); }

void Prepare(CacheConfig* config) {
  config->max_blocks = 2 * kRingBlocks + /*segment=*/1 + kOwnBlocks;
  config->scratch_bytes = CountScratch([&](Scratch* scratch) { LayRows(config->variant.heads, scratch); });
}

int64_t CompressedRows(const CacheAttributes& a, int64_t evicted) {
  return static_cast<int64_t>(tarn::CompressedRows(a, static_cast<uint64_t>(evicted)));
}

// Tokens leave the memory in runs: a segment at a time, but the first time only the part that there is no room for.
struct EvictedRun {
  EvictedRun(const CacheAttributes& a, int64_t number) {
    const int64_t length = a.segment_len, memory = a.mem_len;
    const int64_t first = (memory / length + 1) * length - memory;
    tokens = number == 0 ? first : length;
    if (number == 0) return;
    begin = first + (number - 1) * length;
    rows_before = CompressedRows(a, first) + (number - 1) * CompressedRows(a, length);
  }
  // The number of the run that a token is of.
  static int64_t Of(const CacheAttributes& a, int64_t position) {
    const int64_t first = EvictedRun(a, 0).tokens;
    return position < first ? 0 : 1 + (position - first) / a.segment_len;
  }
  int64_t begin = 0;  // its first token
  int64_t tokens;
  int64_t rows_before = 0;  // compressed rows of the runs before it
};

// Where everything stands before segment `segment`, which begins at token segment * length.
struct Memories {
  Memories(const CacheAttributes& a, int64_t segment)
      : length(a.segment_len), memory(a.mem_len), ratio(a.compression_ratio), begin(segment * length) {
    kept_from = begin > memory ? begin - memory : 0;
    // The first segment after which something falls out may let fewer go than a whole one.
    const int64_t first_full = memory / length;
    if (segment > first_full) compressed = EvictedRun(a, segment - first_full).rows_before;
  }
  int64_t length;
  int64_t memory;
  int64_t ratio;
  int64_t begin;           // first token of the segment
  int64_t kept_from;       // memory holds tokens [kept_from, begin)
  int64_t compressed = 0;  // rows that were ever compressed
};

// Makes means of tokens [now.kept_from, next.kept_from), which memory and segment hold.
void AddMeans(const CacheTask& task, const Memories& now, const Memories& next) {
  const RowStore segment = task.store(kSegment);
  const RowStore memory = task.store(kMemory);
  const RowStore compressed = task.store(kCompressed);
  const uint64_t evicted = static_cast<uint64_t>(next.kept_from - now.kept_from);
  const int64_t begin = now.kept_from - static_cast<int64_t>(PadOf(task.attributes(), evicted));
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
    const int64_t end = begin + (group - now.compressed + 1) * now.ratio;
    for (size_t i = 0; i < width; ++i) sum[i] = 0;
    // Rows before the first evicted one are zeros.
    for (int64_t position = std::max(end - now.ratio, now.kept_from); position < end; ++position) {
      load(position, row);
      for (size_t i = 0; i < width; ++i) sum[i] += row[i];
    }
    for (size_t i = 0; i < width; ++i) sum[i] /= static_cast<float>(now.ratio);
    compressed.Store(static_cast<uint64_t>(group % static_cast<int64_t>(compressed.rows())), sum, sum + d);
  }
}

// Compresses what has no room in memory, and moves the segment there.
void EndSegment(const CacheTask& task, const Memories& now, const Memories& next) {
  if (!task.attributes().has_conv()) AddMeans(task, now, next);
  const RowStore segment = task.store(kSegment);
  const RowStore memory = task.store(kMemory);
  const size_t d = task.heads().key_dim();
  Scratch scratch = task.policy_scratch();
  float* const row = LayRows(task.heads(), &scratch);
  const int64_t first_kept = next.kept_from > now.begin ? next.kept_from : now.begin;
  for (int64_t position = first_kept; position < next.begin; ++position) {
    segment.Load(static_cast<uint64_t>(position - now.begin), row, row + d);
    memory.Store(static_cast<uint64_t>(position % now.memory), row, row + d);
  }
}

// Adds what tokens of the chunk from number `first` on, of positions from `position` on, give to compressed rows.
void AddProjections(const CacheTask& task, int64_t position, size_t first, size_t count) {
  const CacheAttributes& a = task.attributes();
  const RowStore sums = task.store(kSum), compressed = task.store(kCompressed);
  const size_t d = task.heads().key_dim(), dv = task.heads().value_dim(), kv_heads = task.heads().kv_heads();
  const float* const* const biases = task.config().variant.tensors;
  Scratch scratch = task.policy_scratch();
  float *const k = LayRows(task.heads(), &scratch), *const v = k + d;
  sums.Load(0, k, v);
  for (size_t t = first; t < first + count; ++t, ++position) {
    const EvictedRun run(a, EvictedRun::Of(a, position));
    const int64_t pad = static_cast<int64_t>(PadOf(a, static_cast<uint64_t>(run.tokens)));
    const int64_t place = position - run.begin + pad, row = place / a.compression_ratio;
    const size_t tap = static_cast<size_t>(place % a.compression_ratio);
    if (row >= CompressedRows(a, run.tokens)) continue;  // fills no row
    if (position == run.begin || tap == 0) {
      std::copy_n(biases[0] + task.kv_head() * d, d, k);
      std::copy_n(biases[1] + task.kv_head() * dv, dv, v);
    }
    const size_t head = tap * kv_heads + task.kv_head();
    const float *const of_k = task.InputRow(kCompressK, t) + head * d, *const of_v = task.InputRow(kCompressV, t) + head * dv;
    for (size_t i = 0; i < d; ++i) k[i] += of_k[i];
    for (size_t i = 0; i < dv; ++i) v[i] += of_v[i];
    if (tap + 1 < a.compression_ratio) continue;
    compressed.Store(static_cast<uint64_t>((run.rows_before + row) % static_cast<int64_t>(compressed.rows())), k, v);
  }
  sums.Store(0, k, v);
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
    if (a.has_conv()) AddProjections(task, seen, done, tokens.count);
    if (tokens.count == left) EndSegment(task, now, Memories(a, seen / a.segment_len + 1));
    done += tokens.count;
  }
}

}  // namespace

const CachePolicyKind kCompressiveCache = {Prepare, Run, nullptr};

}  // namespace tarn
