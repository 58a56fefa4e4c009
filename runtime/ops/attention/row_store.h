// Rows of keys and values of one key/value head, kept in f32, f16 or int8 with a scale per row: what cache attention remembers.
#ifndef TARN_RUNTIME_OPS_ATTENTION_ROW_STORE_H_
#define TARN_RUNTIME_OPS_ATTENTION_ROW_STORE_H_

#include "runtime/ops/attention/attention.h"

namespace tarn {

// The kernels' name of a dtype that rows are stored in.
RowType RowTypeOf(DType dtype);

// A row of n floats as states of this dtype store it, and back; `scale` is that of the row, with I8 only.
void StoreRow(const Kernels& kernels, DType dtype, size_t n, const float* x, uint8_t* to, float* scale);
void LoadRow(const Kernels& kernels, DType dtype, size_t n, const uint8_t* from, const float* scale, float* x);

// The states of a store, as a CacheAttention op declares them: keys [Hkv, rows, d], values [Hkv, rows, dv], and with I8 scales
// [Hkv, 2, rows].
struct RowStates {
  uint64_t rows = 0;
  DType dtype = DType::kF32;
  uint32_t first = 0;  // index of the keys among the op's states

  uint32_t count() const { return dtype == DType::kI8 ? 3 : 2; }

  // Checks the states from index `first` on. `f32_only`: rows that are computed with, not only read. Errors: TARN_BAD_FORMAT.
  static Result<RowStates> Read(const PrepareContext& context, const Heads& heads, uint32_t first, uint64_t rows,
                                bool f32_only = false);
  // The same for the states of a source, as a NoncausalCache op declares them: `rows` tokens of the longest.
  static Result<RowStates> ReadOfSource(const PrepareContext& context, const Heads& heads, uint64_t rows);
};

// Of one row of one key/value head, in all states of a store.
uint64_t RowBytes(const RowStates& states, const Heads& heads);
// Row `row` of all key/value heads.
void AddRowWrites(const RowStates& states, const Heads& heads, uint64_t row, StateWrites* writes);

class RowStore {
 public:
  RowStore(const RunContext& context, const Heads& heads, const RowStates& states, size_t sequence, size_t kv_head);

  // Rows [begin, begin + rows) as a store of their own: one ring of several.
  RowStore Part(uint64_t begin, uint64_t rows) const;

  uint64_t rows() const { return rows_; }
  void Store(uint64_t row, const float* k, const float* v) const;
  void Load(uint64_t row, float* k, float* v) const;
  // What a row becomes by being stored: a token sees its own row as later ones will. `work`: max(d, dv) floats.
  void RoundTrip(const float* k, const float* v, float* k_out, float* v_out, float* work) const;

  // Rows [begin, begin + count) for the kernel, without visibility.
  CacheBlock Block(uint64_t begin, uint64_t count) const;

 private:
  const Kernels* kernels_;
  DType dtype_;
  size_t element_bytes_;
  size_t d_;
  size_t dv_;
  uint64_t rows_;
  uint8_t* keys_;
  uint8_t* values_;
  float* key_scales_ = nullptr;
  float* value_scales_ = nullptr;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_ROW_STORE_H_
