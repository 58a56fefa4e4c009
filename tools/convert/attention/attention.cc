#include "tools/convert/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr AttentionFamily kLinear = AttentionFamily::kLinearState;
constexpr AttentionFamily kSlots = AttentionFamily::kSlotMemory;
constexpr AttentionFamily kCache = AttentionFamily::kCache;
constexpr AttentionFamily kNoncausal = AttentionFamily::kNoncausal;
constexpr uint32_t kAllForms = kCausalForm | kNoncausalForm | kCrossForm;
// MATH 0.2 has the forms; where it has none, a prompt is a loop of tokens.
constexpr char kChunks[] = "yes";
constexpr char kLoop[] = "token loop";
constexpr char kNoPrefill[] = "-";  // no causal form

// Every system of the checkpoint format.
constexpr AttentionSystem kSystems[] = {
    {"rfa", kLinear, kAllForms, ParseRfa, kChunks, ""},
    {"rfa_normfree", kLinear, kAllForms, ParseRfaNormfree, kChunks, ""},
    {"linear_transformer", kLinear, kAllForms, ParseLinearTransformer, kChunks, ""},
    {"performer_trig", kLinear, kAllForms, ParsePerformerTrig, kChunks, ""},
    {"performer_positive", kLinear, kAllForms, ParsePerformerPositive, kChunks, ""},
    {"performer_relu", kLinear, kAllForms, ParsePerformerRelu, kChunks, ""},
    {"dpfp", kLinear, kAllForms, ParseDpfp, kChunks, ""},
    {"delta_rule", kLinear, kCausalForm, ParseDeltaRule, "yes; token loop if attention_normalized", ""},
    {"deltanet", kLinear, kCausalForm, ParseDeltaNet, kChunks, ""},
    {"t2r", kLinear, kAllForms, ParseT2r, kChunks, ""},
    {"gla", kLinear, kCausalForm, ParseGla, kLoop, ""},
    {"retnet", kLinear, kCausalForm, ParseRetNet, kChunks, ""},
    {"linear_attention", kLinear, kAllForms, ParseLinearAttention, "yes; token loop with a vector gate", ""},
    {"abc_mlp", kSlots, kAllForms, ParseAbcMlp, kChunks, ""},
    {"linformer", kSlots, kAllForms, ParseLinformer, kChunks, "max_len"},
    {"compressive_mean", kSlots, kAllForms, ParseCompressiveMean, kChunks, "max_len"},
    {"abc_rd", kSlots, kAllForms, ParseAbcRd, kChunks, ""},
    {"l2g_global", kSlots, kCausalForm, ParseL2gGlobal, kChunks, ""},
    {"gsa", kSlots, kCausalForm, ParseGsa, kChunks, ""},
    {"luna_causal", kSlots, kCausalForm, ParseLunaCausal, kChunks, ""},
    {"clustering_online", kSlots, kCausalForm, ParseClusteringOnline, kLoop, ""},
    {"kv_clustering", kSlots, kNoncausalForm | kCrossForm, ParseKvClustering, kNoPrefill, ""},
    {"softmax", kCache, kAllForms, ParseSoftmax, kChunks, "max_context"},
    {"sliding_window", kCache, kCausalForm | kNoncausalForm, ParseSlidingWindow, kChunks, ""},
    {"dilated_window", kCache, kCausalForm, ParseDilatedWindow, kChunks, ""},
    {"strided_window", kCache, kCausalForm, ParseStridedWindow, kChunks, ""},
    {"l2g_window", kCache, kCausalForm, ParseL2gWindow, kChunks, ""},
    {"compressive_transformer", kCache, kCausalForm, ParseCompressiveTransformer, kChunks, ""},
    {"memory_compressed", kCache, kCausalForm | kNoncausalForm, ParseMemoryCompressed, kChunks, "max_context"},
    {"clustered", kNoncausal, kNoncausalForm, ParseClustered, kNoPrefill, "max_context"},
    {"improved_clustered", kNoncausal, kNoncausalForm, ParseImprovedClustered, kNoPrefill, "max_context"},
    {"probsparse", kNoncausal, kNoncausalForm, ParseProbSparse, kNoPrefill, "max_context"},
    {"poolingformer", kNoncausal, kNoncausalForm, ParsePoolingformer, kNoPrefill, ""},
    {"luna_encoder", kNoncausal, kNoncausalForm, ParseLunaEncoder, kNoPrefill, "max_context"},
};

constexpr struct {
  uint32_t form;
  const char* name;
} kForms[] = {{kCausalForm, "causal"}, {kNoncausalForm, "whole"}, {kCrossForm, "cross"}};

// "causal, cross"
std::string FormsText(uint32_t forms) {
  std::string text;
  for (const auto& form : kForms) {
    if ((forms & form.form) != 0) text += (text.empty() ? "" : ", ") + std::string(form.name);
  }
  return text;
}

const char* FamilyText(AttentionFamily family) {
  switch (family) {
    case AttentionFamily::kLinearState:
      return "linear state";
    case AttentionFamily::kSlotMemory:
      return "slot memory";
    case AttentionFamily::kCache:
      return "cache";
    case AttentionFamily::kNoncausal:
      break;
  }
  return "whole sequence";
}

}  // namespace

AttentionOp ParseAttention(const Json& object, const std::string& where, const AttentionContext& context) {
  if (object.is_string())
    Fail(where, ": ", ValueText(object), " is not an object, expected {\"system\": ", ValueText(object), ", ...}");
  Fields fields(object, where);
  const std::string name = fields.Text("system");
  for (const AttentionSystem& system : kSystems) {
    if (name != system.name) continue;
    const uint32_t form = FormBit(context.form);
    if ((system.forms & form) == 0) {
      fields.FailAt("system", ValueText(name) + " has no " + FormsText(form) + " form, only: " + FormsText(system.forms));
    }
    AttentionOp op = system.parse(&fields, context);
    op.system = name;
    fields.Finish();
    return op;
  }
  fields.FailAt("system", ValueText(name) + " is unknown (tarn-convert --systems prints the known ones)");
}

bool HasForm(const std::string& system, AttentionForm form) {
  return std::any_of(std::begin(kSystems), std::end(kSystems),
                     [&](const AttentionSystem& line) { return system == line.name && (line.forms & FormBit(form)) != 0; });
}

std::string SystemTable() {
  // What is in the table has kernels in every instruction set, golden files, and a parser for checkpoints.
  std::string text =
      "| system | family | forms | step | chunked prefill | SIMD | golden | from a checkpoint | sequence ends at |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const AttentionSystem& system : kSystems) {
    text += std::string("| `") + system.name + "` | " + FamilyText(system.family) + " | " + FormsText(system.forms) + " | " +
            ((system.forms & kCausalForm) != 0 ? "yes" : "-") + " | " + system.chunked_prefill + " | yes | yes | yes | " +
            (system.bound[0] == '\0' ? "no end" : "`" + std::string(system.bound) + "`") + " |\n";
  }
  return text;
}

void SetNoncausalOp(AttentionForm form, format::OpAttributes type, const PartWriter& part, AttentionOp* op) {
  op->type = type;
  if (form == AttentionForm::kCross) {
    op->attributes = part(format::NoncausalPart::Write);
    op->read_attributes = part(format::NoncausalPart::Read);
  } else {
    op->attributes = part(format::NoncausalPart::Whole);
  }
}

GraphState ToGraphState(const StateInfo& info) {
  GraphState state{info.name, {}};
  for (uint32_t i = 0; i < info.rank; ++i) state.shape.push_back(static_cast<uint32_t>(info.shape[i]));
  return state;
}

GraphState SourceState(const std::string& name, std::vector<uint32_t> shape, int8_t source_axis) {
  return {name, std::move(shape), format::DType::F32, format::Owner::Source, source_axis};
}

float DefaultScale(const format::Heads& heads) { return static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim()))); }

}  // namespace tarn::convert
