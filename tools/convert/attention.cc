#include "tools/convert/attention.h"

#include <cmath>

#include "tools/convert/error.h"

namespace tarn::convert {
namespace {

constexpr AttentionFamily kLinear = AttentionFamily::kLinearState;
constexpr AttentionFamily kSlots = AttentionFamily::kSlotMemory;
constexpr AttentionFamily kCache = AttentionFamily::kCache;
// MATH 0.2 has the forms; where it has none, a prompt is a loop of tokens.
constexpr char kChunks[] = "yes";
constexpr char kLoop[] = "token loop";

// Every causal system of the checkpoint format.
constexpr AttentionSystem kSystems[] = {
    {"rfa", kLinear, ParseRfa, kChunks, ""},
    {"rfa_normfree", kLinear, ParseRfaNormfree, kChunks, ""},
    {"linear_transformer", kLinear, ParseLinearTransformer, kChunks, ""},
    {"performer_trig", kLinear, ParsePerformerTrig, kChunks, ""},
    {"performer_positive", kLinear, ParsePerformerPositive, kChunks, ""},
    {"performer_relu", kLinear, ParsePerformerRelu, kChunks, ""},
    {"dpfp", kLinear, ParseDpfp, kChunks, ""},
    {"delta_rule", kLinear, ParseDeltaRule, "yes; token loop if attention_normalized", ""},
    {"deltanet", kLinear, ParseDeltaNet, kChunks, ""},
    {"t2r", kLinear, ParseT2r, kChunks, ""},
    {"gla", kLinear, ParseGla, kLoop, ""},
    {"retnet", kLinear, ParseRetNet, kChunks, ""},
    {"abc_mlp", kSlots, ParseAbcMlp, kChunks, ""},
    {"linformer", kSlots, ParseLinformer, kChunks, "max_len"},
    {"compressive_mean", kSlots, ParseCompressiveMean, kChunks, "max_len"},
    {"abc_rd", kSlots, ParseAbcRd, kChunks, ""},
    {"l2g_global", kSlots, ParseL2gGlobal, kChunks, ""},
    {"gsa", kSlots, ParseGsa, kChunks, ""},
    {"luna_causal", kSlots, ParseLunaCausal, kChunks, ""},
    {"clustering_online", kSlots, ParseClusteringOnline, kLoop, ""},
    {"softmax", kCache, ParseSoftmax, kChunks, "max_context"},
    {"sliding_window", kCache, ParseSlidingWindow, kChunks, ""},
    {"dilated_window", kCache, ParseDilatedWindow, kChunks, ""},
    {"strided_window", kCache, ParseStridedWindow, kChunks, ""},
    {"l2g_window", kCache, ParseL2gWindow, kChunks, ""},
    {"compressive_transformer", kCache, ParseCompressiveTransformer, kChunks, ""},
    {"memory_compressed", kCache, ParseMemoryCompressed, kChunks, "max_context"},
};

const char* FamilyText(AttentionFamily family) {
  switch (family) {
    case AttentionFamily::kLinearState:
      return "linear state";
    case AttentionFamily::kSlotMemory:
      return "slot memory";
    case AttentionFamily::kCache:
      break;
  }
  return "cache";
}

}  // namespace

AttentionOp ParseAttention(const Json& object, const std::string& where, const AttentionContext& context) {
  Fields fields(object, where);
  const std::string name = fields.Text("system");
  for (const AttentionSystem& system : kSystems) {
    if (name != system.name) continue;
    AttentionOp op = system.parse(&fields, context);
    op.system = name;
    fields.Finish();
    return op;
  }
  fields.FailAt("system", ValueText(name) + " is unknown");
}

std::string SystemTable() {
  // What is in the table has kernels for a step in every instruction set, golden files, and a parser for checkpoints.
  std::string text =
      "| system | family | step | chunked prefill | SIMD | golden | from a checkpoint | sequence ends at |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const AttentionSystem& system : kSystems) {
    text += std::string("| `") + system.name + "` | " + FamilyText(system.family) + " | yes | " + system.chunked_prefill +
            " | yes | yes | yes | " + (system.bound[0] == '\0' ? "no end" : "`" + std::string(system.bound) + "`") + " |\n";
  }
  return text;
}

float DefaultScale(const format::Heads& heads) { return static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim()))); }

}  // namespace tarn::convert
