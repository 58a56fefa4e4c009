// Clustered attention: queries are clustered by the hash codes of random hyperplanes, and the mean query of a cluster attends for
// all its members; improved, every query weighs the keys that matter most to its cluster itself.
#include <string>

#include "tools/convert/attention/attention.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kMaxBits = 64;

struct Clustered {
  uint32_t num_clusters, bits, iterations, topk;
  float scale;
  uint32_t capacity;
};

// hash_planes [bits, d + 1], the thresholds in the last column. Without `bias` these are 0, whatever was stored.
AttentionTensor HashPlanes(uint32_t bits, uint32_t head_dim, bool bias) {
  Fold fold;
  if (!bias) {
    fold = [columns = size_t{head_dim} + 1](const std::vector<std::vector<float>>& parts) {
      std::vector<float> out = parts[0];
      for (size_t i = columns - 1; i < out.size(); i += columns) out[i] = 0;
      return out;
    };
  }
  const std::vector<uint32_t> shape = {bits, head_dim + 1};
  return {"hash_planes", shape, {{"hash_planes", shape, Init::kNormal}}, fold};
}

AttentionOp ParseClusters(Fields* fields, const AttentionContext& context, bool improved) {
  const format::Heads heads = context.heads;
  const std::string system = improved ? "improved_clustered" : "clustered";
  Clustered clustered{};
  clustered.num_clusters = fields->Size("num_clusters", std::nullopt, kMaxSlots);
  clustered.bits = fields->Size("bits", 63, kMaxBits);
  clustered.iterations = fields->Size("iterations", 10, kMaxClusterIterations);
  if (improved) clustered.topk = fields->Size("topk", 32);
  fields->Fix("empty_cluster", "keep");
  const bool hash_bias = fields->Bool("hash_bias", false);
  clustered.scale = fields->Number("scale", DefaultScale(heads));
  clustered.capacity = fields->Size("max_context");

  AttentionOp op;
  op.type = format::OpAttributes::ClusteredAttention;
  op.attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
    const auto name = builder.CreateString(system);
    return format::CreateClusteredAttention(builder, &heads, clustered.num_clusters, clustered.bits, clustered.iterations,
                                            clustered.topk, clustered.scale, clustered.capacity, name)
        .Union();
  };
  op.tensors.push_back(HashPlanes(clustered.bits, heads.head_dim(), hash_bias));
  return op;
}

}  // namespace

AttentionOp ParseClustered(Fields* fields, const AttentionContext& context) { return ParseClusters(fields, context, false); }

AttentionOp ParseImprovedClustered(Fields* fields, const AttentionContext& context) { return ParseClusters(fields, context, true); }

}  // namespace tarn::convert
