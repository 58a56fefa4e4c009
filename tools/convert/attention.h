// Attention systems: what an attention object of config.json means as one op of the graph.
//
// The table of systems is in attention.cc, each system in a file of its own. The golden tests read their attributes through the
// same table, so that what is tested is what is converted.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_H_
#define TARN_TOOLS_CONVERT_ATTENTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schema/tarn_generated.h"
#include "tools/convert/graph.h"
#include "tools/convert/json.h"
#include "tools/convert/weights.h"

namespace tarn::convert {

// What the runtime's attention ops take at most.
constexpr uint32_t kMaxHeadSize = 1u << 16;  // heads, head sizes, slots
constexpr uint32_t kMaxFeatures = 1u << 20;

// The layer that an attention object stands in.
struct AttentionContext {
  format::Heads heads;
  uint32_t layer;
};

// A projection of the layer input that the op reads after q, k and v.
struct LogitInput {
  const char* name;        // in golden files: "gate_logit"
  const char* projection;  // in checkpoints: "g_proj"
  uint32_t width;
  bool bias;
  bool with_qkv;  // a few rows: computed by the dense layer of q, k and v
  bool shared;    // one projection for all layers of the model
  Init weight_init;
  Init bias_init;
};

// A constant of the op. The names of its parts are those of the checkpoint without the layer's prefix ("random_matrix").
struct AttentionTensor {
  const char* name;
  std::vector<uint32_t> shape;
  std::vector<WeightSpec> parts;
  Fold fold;
};

struct AttentionOp {
  std::string system;
  format::OpAttributes type;
  AttributeWriter attributes;
  std::vector<LogitInput> logits;
  std::vector<AttentionTensor> tensors;
  std::vector<GraphState> states;
};

struct AttentionSystem {
  const char* name;
  // nullptr: in CHECKPOINT.md, but not in this version.
  AttentionOp (*parse)(Fields* fields, const AttentionContext& context);
};

// Reads {"system": NAME, ...}; `where` begins every message.
// Errors: an unknown or unsupported system, an unknown field, a missing one, a wrong type or value.
AttentionOp ParseAttention(const Json& object, const std::string& where, const AttentionContext& context);

// Whether ParseAttention knows the system in this version.
bool IsSupportedSystem(const std::string& name);

// One function per system.
AttentionOp ParseRfa(Fields* fields, const AttentionContext& context);
AttentionOp ParseAbcMlp(Fields* fields, const AttentionContext& context);
AttentionOp ParseSoftmax(Fields* fields, const AttentionContext& context);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_H_
