// Policies of cache attention in their causal form: which rows are kept, and who sees them. One file per policy; what it is called,
// reads and declares stands in variants/cache_policies.h.
#ifndef TARN_RUNTIME_OPS_ATTENTION_CACHE_CACHE_POLICY_H_
#define TARN_RUNTIME_OPS_ATTENTION_CACHE_CACHE_POLICY_H_

#include "runtime/ops/attention/cache/memory_compression.h"
#include "runtime/ops/attention/row_store.h"

namespace tarn {

// What was read and checked at preparation. Plain data of the op's.
struct CacheConfig {
  // The states of the policy's rows, after the variant. Errors: TARN_BAD_FORMAT.
  Status ReadStores(const PrepareContext& context);
  uint32_t state_count() const;

  CacheVariant variant;
  RowStates stores[kMaxCacheRows];
  uint32_t store_count = 0;
  // Set by the policy's Prepare, for one task:
  bool adds_own_rows = true;      // AddOwn is used, with tokens that will be stored
  uint64_t max_blocks = 0;        // that it attends to at a time: a sum of the constants below
  uint64_t scratch_bytes = 0;     // that its Run lays out in policy_scratch()
  MemoryCompression compression;  // of MemoryCompressed
};

// How many blocks an Add... of CacheTask adds at most. A ring's rows are two where they go past its end.
constexpr uint64_t kRingBlocks = 2;
constexpr uint64_t kOwnBlocks = 1;
constexpr uint64_t kWindowBlocks = kRingBlocks + kOwnBlocks;  // AddWindow

// Tokens of one key/value head of one sequence: some or all of a chunk.
struct CacheTokens {
  size_t count;
  uint64_t seen;  // tokens of the sequence before the first of them
  const float* q;
  size_t q_stride;
  const float* k;  // rows of keys and values; with `adds_own_rows` as they will be stored
  size_t k_stride;
  const float* v;
  size_t v_stride;
  float* o;
  size_t o_stride;

  // Every `step`-th of them from `first` on; `seen` is the caller's to set.
  CacheTokens Every(size_t step, size_t first, size_t new_count) const;
};

// One key/value head of one sequence while it runs.
class CacheTask {
 public:
  // Bytes of scratch that a task of at most `max_chunk` tokens lays out.
  static uint64_t CountScratch(const CacheConfig& config, uint64_t max_chunk);
  CacheTask(const CacheConfig& config, const RunContext& context, size_t sequence, size_t kv_head, Scratch scratch);

  const CacheConfig& config() const { return config_; }
  const CacheAttributes& attributes() const { return config_.variant.attributes; }
  const Heads& heads() const { return config_.variant.heads; }
  const RunContext& context() const { return context_; }
  size_t kv_head() const { return kv_head_; }
  RowStore store(uint32_t index) const;
  CacheTokens tokens() const { return tokens_; }
  // What an input behind q, k and v has for a token of the chunk.
  const float* InputRow(uint32_t input, size_t token) const {
    const Operand& rows = context_.inputs[input];
    return rows.f32() + (sequence_ * context_.tokens + token) * rows.stride;
  }
  Scratch policy_scratch() const { return pieces_.policy[0]; }

  // Collects the blocks that the next Attend looks at (with their `position`), at most max_blocks: a debug build stops at one more,
  // any other leaves it out.
  void Add(CacheBlock block, int64_t from, int64_t until, int64_t step);
  // Rows of a ring, of positions [low, high): position p stands in row p mod rows (also below 0). The visibility is that of the
  // first of them and moves by `step` with each. With a bias by distance, these are the positions of tokens.
  void AddRing(const RowStore& ring, int64_t low, int64_t high, int64_t from, int64_t until, int64_t step);
  // Own rows first, first + every, ... (`count` of them).
  void AddOwn(const CacheTokens& tokens, size_t first, size_t count, size_t every, int64_t from, int64_t until, int64_t step);
  // Attention of these tokens to the blocks collected; forgets the blocks.
  void Attend(const CacheTokens& tokens);

 private:
  struct Pieces {
    CacheBlock* blocks;   // [max_blocks]
    float* attend;        // of the kernel
    ScratchParts policy;  // one, of scratch_bytes
    // Where the tokens' own rows are rounded:
    float* keys;    // [C, d]
    float* values;  // [C, dv]
    float* row;     // [max(d, dv)]
  };

  static Pieces Lay(const CacheConfig& config, Scratch* scratch, uint64_t tokens);
  void RoundOwnRows();

  const CacheConfig& config_;
  const RunContext& context_;
  size_t sequence_;
  size_t kv_head_;
  CacheTokens tokens_;
  Pieces pieces_;
  size_t block_count_ = 0;
};

struct CachePolicyKind {
  // Sets what Run needs; attributes, tensors and states have been read.
  void (*prepare)(CacheConfig* config);
  void (*run)(CacheTask& task);
  // The row of each store that the token behind `tokens_seen` others writes: rows[store], kNoRow where it writes none. nullptr: a
  // token may write many.
  void (*find_rows)(const CacheConfig& config, uint64_t tokens_seen, uint64_t* rows);
};
constexpr uint64_t kNoRow = UINT64_MAX;

// k<Policy>Cache: of the policies that have a causal form.
#define TARN_DECLARE(id, ...) extern const CachePolicyKind k##id##Cache;
TARN_CACHE_POLICIES(TARN_DECLARE)
#undef TARN_DECLARE

// Sliding window over `ring` (window.cc): adds the rows that stay visible for `window` tokens, old ones and the tokens' own.
// Not `masked`: rows that were never written take part as zeros.
void AddWindow(CacheTask& task, const RowStore& ring, const CacheTokens& tokens, bool masked);
// Keeps the last rows.
void StoreWindow(const RowStore& ring, const CacheTokens& tokens);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_CACHE_POLICY_H_
