#include "tools/convert/attention.h"

#include "tools/convert/error.h"

namespace tarn::convert {
namespace {

// Every system of the checkpoint format. To add one: its function instead of nullptr.
constexpr AttentionSystem kSystems[] = {
    // linear state
    {"rfa", ParseRfa},
    {"rfa_normfree", nullptr},
    {"linear_transformer", nullptr},
    {"performer_trig", nullptr},
    {"performer_positive", nullptr},
    {"performer_relu", nullptr},
    {"dpfp", nullptr},
    {"delta_rule", nullptr},
    {"deltanet", nullptr},
    {"t2r", nullptr},
    {"gla", nullptr},
    {"retnet", nullptr},
    // slot memory
    {"abc_mlp", ParseAbcMlp},
    {"linformer", nullptr},
    {"compressive_mean", nullptr},
    {"abc_rd", nullptr},
    {"l2g_global", nullptr},
    {"gsa", nullptr},
    {"luna_causal", nullptr},
    {"clustering_online", nullptr},
    // cache
    {"softmax", ParseSoftmax},
    {"sliding_window", nullptr},
    {"dilated_window", nullptr},
    {"strided_window", nullptr},
    {"l2g_window", nullptr},
    {"compressive_transformer", nullptr},
    {"memory_compressed", nullptr},
};

}  // namespace

AttentionOp ParseAttention(const Json& object, const std::string& where, const AttentionContext& context) {
  Fields fields(object, where);
  const std::string name = fields.Text("system");
  for (const AttentionSystem& system : kSystems) {
    if (name != system.name) continue;
    if (system.parse == nullptr) fields.FailAt("system", ValueText(name) + " is not supported by this version");
    AttentionOp op = system.parse(&fields, context);
    op.system = name;
    fields.Finish();
    return op;
  }
  fields.FailAt("system", ValueText(name) + " is unknown");
}

bool IsSupportedSystem(const std::string& name) {
  for (const AttentionSystem& system : kSystems) {
    if (name == system.name) return system.parse != nullptr;
  }
  return false;
}

}  // namespace tarn::convert
