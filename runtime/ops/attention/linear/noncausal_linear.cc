// Linear attention over whole sequences (RFA eq. 5; MATH 1.2.2): S = sum_j phi(k_j) x v_j, z = sum_j phi(k_j), then every query
// reads o = scale * phi(q)^T S / den. The feature maps are those of LinearState, and Performer's with its epsilon (MATH 1.4).
#include <algorithm>
#include <cmath>

#include "runtime/ops/attention/linear/linear_features.h"
#include "runtime/ops/attention/noncausal_attention.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

class NoncausalLinearOp final : public NoncausalAttentionOp {
 public:
  Status Prepare(PrepareContext& context) override;

 private:
  // Features of a block of rows, in scratch.
  struct Block {
    float* x;           // [rows, d] q or k, normalised and scaled
    float* phi;         // [rows, M]
    float* log_weight;  // [rows] of keys, and of positive features
    float* half_norm;   // [rows] |x|^2 / 2 of features with an epsilon
  };

  struct WritePieces {
    Block keys;       // [block_keys()]
    float* weights;   // [block_keys()]
    float* weighted;  // [block_keys(), dv]
  };

  Status Check() const;
  Block LayBlock(Scratch* scratch, uint64_t rows) const;
  WritePieces LayWrite(Scratch* scratch) const;
  // Positive features with an epsilon: they do not cancel the maximum that they are relative to, so it has to be the publication's.
  bool has_feature_eps() const { return a_.map().log_weights && a_.feature_eps > 0; }
  float feature_offset() const { return a_.feature_eps / std::sqrt(static_cast<float>(a_.projections())); }

  void Write(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory, Scratch work) const override;
  void Read(const RunContext& context, const NoncausalQueries& queries, const StoredMemory& memory, Scratch work) const override;
  // Features of keys [first, first + rows).
  void MapKeys(const Kernels& kernels, const NoncausalKeys& keys, size_t first, size_t rows, const Block& block) const;
  // The largest w.k of all keys and rows w of the projection.
  float LargestProjection(const Kernels& kernels, const NoncausalKeys& keys, const Block& block) const;

  LinearAttributes a_;
  LinearFeatures map_;
};

Status NoncausalLinearOp::Prepare(PrepareContext& context) {
  const format::NoncausalLinear& op = *context.op().attributes_as_NoncausalLinear();
  const format::LinearState& table = *op.linear();
  TARN_ASSIGN_OR_RETURN(a_, ReadLinearAttributes(table));
  TARN_RETURN_IF_ERROR(Check());
  TARN_RETURN_IF_ERROR(PrepareOperands(context, op.part(), *table.heads(), /*more_inputs=*/0));
  TARN_ASSIGN_OR_RETURN(map_, LinearFeatures::Read(context, a_, heads()));
  NoncausalMemoryShape shape;
  shape.AddMatrix("S", map_.size(), heads().value_dim());
  if (a_.has_denominator()) shape.SetVector("z", map_.size());
  const uint64_t write_bytes = CountScratch([&](Scratch* scratch) { LayWrite(scratch); });
  const uint64_t read_bytes =
      CountScratch([&](Scratch* scratch) { LayBlock(scratch, uint64_t{block_queries()} * heads().group()); });
  return PrepareMemory(context, shape, LinearFeatures::TensorCount(a_), write_bytes, read_bytes);
}

// What has no form without an order of the tokens.
Status NoncausalLinearOp::Check() const {
  if (!a_.has_noncausal_form()) {
    return Error(TARN_BAD_FORMAT, "gate %s, rule %s: only a causal op has them", InfoOf(a_.gate).name, InfoOf(a_.rule).name);
  }
  if (a_.map().log_weights && a_.feature_eps < 0) {
    return Error(TARN_BAD_FORMAT, "feature_eps is %g, at least 0 expected", static_cast<double>(a_.feature_eps));
  }
  return Ok();
}

NoncausalLinearOp::Block NoncausalLinearOp::LayBlock(Scratch* scratch, uint64_t rows) const {
  Block block;
  block.x = scratch->Take(rows * heads().key_dim());
  block.phi = scratch->Take(rows * map_.size());
  block.log_weight = scratch->Take(rows);
  block.half_norm = scratch->Take(rows);
  return block;
}

NoncausalLinearOp::WritePieces NoncausalLinearOp::LayWrite(Scratch* scratch) const {
  WritePieces pieces;
  pieces.keys = LayBlock(scratch, block_keys());
  pieces.weights = scratch->Take(block_keys());
  pieces.weighted = scratch->Take(uint64_t{block_keys()} * heads().value_dim());
  return pieces;
}

void NoncausalLinearOp::MapKeys(const Kernels& kernels, const NoncausalKeys& keys, size_t first, size_t rows,
                                const Block& block) const {
  map_.NormalizeKeys(kernels, rows, keys.k + first * keys.k_stride, keys.k_stride, block.x);
  map_.Map(kernels, keys.kv_head, /*queries=*/0, rows, block.x, block.phi, block.log_weight);
  map_.WeighKeys(kernels, keys.kv_head, rows, block.x, block.log_weight);
  if (has_feature_eps()) kernels.half_squared_norm(rows, heads().key_dim(), block.x, nullptr, block.half_norm);
}

float NoncausalLinearOp::LargestProjection(const Kernels& kernels, const NoncausalKeys& keys, const Block& block) const {
  float largest = -HUGE_VALF;
  for (size_t first = 0; first < keys.count; first += block_keys()) {
    const size_t rows = std::min(block_keys(), keys.count - first);
    MapKeys(kernels, keys, first, rows, block);
    for (size_t r = 0; r < rows; ++r) largest = std::max(largest, block.log_weight[r] + block.half_norm[r]);
  }
  return largest;
}

void NoncausalLinearOp::Write(const RunContext& context, const NoncausalKeys& keys, const NoncausalMemory& memory,
                              Scratch work) const {
  const Kernels& kernels = *context.kernels;
  const WritePieces pieces = LayWrite(&work);
  const Block& block = pieces.keys;
  const float largest = has_feature_eps() ? LargestProjection(kernels, keys, block) : 0.0f;
  float running_max = 0;  // of the log weights so far
  for (size_t first = 0; first < keys.count; first += block_keys()) {
    const size_t rows = std::min(block_keys(), keys.count - first);
    MapKeys(kernels, keys, first, rows, block);
    float carry = 1;
    const float* write = nullptr;
    if (has_feature_eps()) {
      for (size_t r = 0; r < rows; ++r) block.log_weight[r] = largest - block.log_weight[r];
      kernels.damp_features(rows, map_.size(), block.log_weight, feature_offset(), block.phi);
    } else if (a_.has_running_max()) {
      kernels.block_max(rows, /*first=*/first == 0, block.log_weight, &running_max, &carry, pieces.weights);
      write = pieces.weights;
    }
    kernels.linear_write({rows, map_.size(), heads().value_dim(), block.phi, keys.v + first * keys.v_stride, keys.v_stride, carry,
                          write, memory.matrices[0], memory.vector, pieces.weighted});
  }
}

void NoncausalLinearOp::Read(const RunContext& context, const NoncausalQueries& queries, const StoredMemory& memory,
                             Scratch work) const {
  const Kernels& kernels = *context.kernels;
  const size_t group = heads().group(), d = heads().key_dim(), rows = queries.count * group;
  const Block block = LayBlock(&work, rows);
  for (size_t r = 0; r < queries.count; ++r) {
    map_.NormalizeQueries(kernels, group, queries.q + r * queries.q_stride, d, block.x + r * group * d);
  }
  map_.Map(kernels, queries.kv_head, rows, /*keys=*/0, block.x, block.phi, block.log_weight);
  if (has_feature_eps()) {
    kernels.half_squared_norm(rows, d, block.x, nullptr, block.half_norm);
    kernels.damp_features(rows, map_.size(), block.half_norm, feature_offset(), block.phi);
  }
  kernels.linear_read({queries.count, group, map_.size(), heads().value_dim(), block.phi, memory.matrices[0], memory.vector,
                       a_.den_mode, a_.den_eps, a_.scale, queries.o, queries.o_stride});
}

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::NoncausalLinear& a = *op.attributes_as_NoncausalLinear();
  const size_t used = Format(text, text_bytes, "%s ", format::EnumNameNoncausalPart(a.part()));
  DescribeLinear(*a.linear(), text + used, text_bytes - used);
}

const format::Heads* HeadsOf(const format::Op& op) {
  const format::NoncausalLinear& a = *op.attributes_as_NoncausalLinear();
  return a.part() == format::NoncausalPart::Whole ? nullptr : a.linear()->heads();  // which keeps nothing
}

}  // namespace

const OpKind kNoncausalLinearOp = MakeOpKind<NoncausalLinearOp>("noncausal_linear", Describe, HeadsOf);

}  // namespace tarn
