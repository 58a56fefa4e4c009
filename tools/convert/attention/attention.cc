#include "tools/convert/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "tools/common/suggestion.h"
#include "tools/convert/json/error.h"
#include "variants/cache_policies.h"

namespace tarn::convert {
namespace {

constexpr AttentionFamily kLinear = {"linear state", "LinearState", "NoncausalLinear"};
constexpr AttentionFamily kSlots = {"slot memory", "SlotMemory", "NoncausalSlots"};
constexpr AttentionFamily kCache = {"cache", "CacheAttention", "NoncausalCache"};
constexpr AttentionFamily kComposed = {"noncausal", "", "NoncausalCache"};  // graphs of several ops
constexpr AttentionFamily kShortConv = {"short convolution", "CausalConv", ""};
constexpr AttentionFamily kRecurrence = {"recurrence", "DiagonalRecurrence", ""};
constexpr AttentionFamily kClustered = {"noncausal", "", "ClusteredAttention"};
constexpr AttentionFamily kProbSparse = {"noncausal", "", "ProbSparse"};
constexpr uint32_t FormsOf(CachePolicy policy) { return InfoOf(policy).forms; }
constexpr uint32_t kAllForms = kCausalForm | kNoncausalForm | kCrossForm;
// Prompts are read in chunks where MATH 0.2 has a chunked form.
constexpr const char* kChunks = nullptr;
constexpr char kTokenLoop[] = "";

// Every system of the checkpoint format.
constexpr AttentionSystem kSystems[] = {
    {"rfa", kLinear, kAllForms, ParseRfa, kChunks, ""},
    {"rfa_normfree", kLinear, kAllForms, ParseRfaNormfree, kChunks, ""},
    {"linear_transformer", kLinear, kAllForms, ParseLinearTransformer, kChunks, ""},
    {"performer_trig", kLinear, kAllForms, ParsePerformerTrig, kChunks, ""},
    {"performer_positive", kLinear, kAllForms, ParsePerformerPositive, kChunks, ""},
    {"performer_relu", kLinear, kAllForms, ParsePerformerRelu, kChunks, ""},
    {"dpfp", kLinear, kAllForms, ParseDpfp, kChunks, ""},
    {"delta_rule", kLinear, kCausalForm, ParseDeltaRule, "attention_normalized", ""},
    {"deltanet", kLinear, kCausalForm, ParseDeltaNet, kChunks, ""},
    {"gated_deltanet", kLinear, kCausalForm, ParseGatedDeltaNet, "gate \"softplus_vector\"", ""},
    {"t2r", kLinear, kAllForms, ParseT2r, kChunks, ""},
    {"gla", kLinear, kCausalForm, ParseGla, kTokenLoop, ""},
    {"retnet", kLinear, kCausalForm, ParseRetNet, kChunks, ""},
    {"hgrn2", kLinear, kCausalForm, ParseHgrn2, kTokenLoop, ""},
    {"mamba2", kLinear, kCausalForm, ParseMamba2, kChunks, ""},
    {"rwkv7", kLinear, kCausalForm, ParseRwkv7, kTokenLoop, ""},
    {"linear_attention", kLinear, kAllForms, ParseLinearAttention, "a gate of features or rule \"replace\"", ""},
    {"abc_mlp", kSlots, kAllForms, ParseAbcMlp, kChunks, ""},
    {"linformer", kSlots, kAllForms, ParseLinformer, kChunks, "max_len"},
    {"compressive_mean", kSlots, kAllForms, ParseCompressiveMean, kChunks, "max_len"},
    {"abc_rd", kSlots, kAllForms, ParseAbcRd, kChunks, ""},
    {"l2g_global", kSlots, kCausalForm, ParseL2gGlobal, kChunks, ""},
    {"gsa", kSlots, kCausalForm, ParseGsa, kChunks, ""},
    {"luna_causal", kSlots, kCausalForm, ParseLunaCausal, kChunks, ""},
    {"clustering_online", kSlots, kCausalForm, ParseClusteringOnline, kTokenLoop, ""},
    {"kv_clustering", kSlots, kNoncausalForm | kCrossForm, ParseKvClustering, kChunks, ""},
    {"slot_attention", kSlots, kAllForms, ParseSlotAttention, "clustering_online", "max_len if the control reads it"},
    {"softmax", kCache, FormsOf(CachePolicy::kFull), ParseSoftmax, kChunks, "max_context"},
    {"sliding_window", kCache, FormsOf(CachePolicy::kWindow), ParseSlidingWindow, kChunks, ""},
    {"dilated_window", kCache, kCausalForm, ParseDilatedWindow, kChunks, ""},
    {"strided_window", kCache, FormsOf(CachePolicy::kStrided), ParseStridedWindow, kChunks, ""},
    {"l2g_window", kCache, FormsOf(CachePolicy::kL2g), ParseL2gWindow, kChunks, ""},
    {"compressive_transformer", kCache, FormsOf(CachePolicy::kCompressive), ParseCompressiveTransformer, kChunks, ""},
    {"memory_compressed", kCache, FormsOf(CachePolicy::kMemoryCompressed), ParseMemoryCompressed, kChunks, "max_context"},
    {"cache_attention", kCache, kAllForms, ParseCacheAttention, kChunks, "max_context if the policy reads it"},
    {"short_conv", kShortConv, kCausalForm, ParseShortConv, kChunks, ""},
    {"diagonal_recurrence", kRecurrence, kCausalForm, ParseDiagonalRecurrence, kChunks, ""},
    {"rg_lru", kRecurrence, kCausalForm, ParseRgLru, kChunks, ""},
    {"clustered", kClustered, kNoncausalForm, ParseClustered, kChunks, "max_context"},
    {"improved_clustered", kClustered, kNoncausalForm, ParseImprovedClustered, kChunks, "max_context"},
    {"probsparse", kProbSparse, kNoncausalForm, ParseProbSparse, kChunks, "max_context"},
    {"poolingformer", kComposed, kNoncausalForm, ParsePoolingformer, kChunks, ""},
    {"luna_encoder", kComposed, kNoncausalForm, ParseLunaEncoder, kChunks, "max_context"},
};

constexpr struct {
  uint32_t form;
  const char* name;
} kForms[] = {{kCausalForm, "causal"}, {kNoncausalForm, "noncausal"}, {kCrossForm, "cross"}};

}  // namespace

Span<const AttentionSystem> AttentionSystems() { return {kSystems, std::size(kSystems)}; }

namespace {

const AttentionSystem* FindSystem(const std::string& name) {
  const auto found =
      std::find_if(std::begin(kSystems), std::end(kSystems), [&](const AttentionSystem& system) { return name == system.name; });
  return found == std::end(kSystems) ? nullptr : found;
}

// What to say of a field that the parser of `name` did not ask for: which value of another field would make it, or which systems
// have it.
std::string UnknownFieldHint(const std::string& name, AttentionForm form, const std::string& key) {
  const std::vector<FieldRun> runs = ExploreAttention(name, SampleContext(form));
  if (IsRead(runs, key)) return ": it is read where " + WhereRead(runs, key);
  const std::vector<std::string> others = SystemsWithField(key);
  return (others.empty() ? "" : ": it is a field of " + QuotedNames(others)) + "; tarn-convert --list-fields " + name +
         " prints the fields of this system";
}

}  // namespace

std::string FormsText(uint32_t forms) {
  std::string text;
  for (const auto& form : kForms) {
    if ((forms & form.form) != 0) text += (text.empty() ? "" : ", ") + std::string(form.name);
  }
  return text;
}

AttentionOp ParseAttention(const Json& object, const std::string& where, const AttentionContext& context) {
  if (object.is_string())
    Fail(where, ": ", ValueText(object), " is not an object, expected {\"system\": ", ValueText(object), ", ...}");
  Fields fields(object, where, context.log);
  const std::string name = fields.Text("system");
  const AttentionSystem* system = FindSystem(name);
  if (system == nullptr) {
    fields.FailAt("system", ValueText(name) + " is unknown" + tools::DidYouMean(name, SystemNames()) +
                                " (tarn-convert --systems prints the known ones)");
  }
  const uint32_t form = FormBit(context.form);
  if ((system->forms & form) == 0) {
    fields.FailAt("system", ValueText(name) + " has no " + FormsText(form) + " form, only: " + FormsText(system->forms));
  }
  fields.SetNames([&] { return FieldNames(ExploreAttention(name, SampleContext(context.form))); });
  AttentionOp op = system->parse(&fields, context);
  if (context.key_heads > 0 && op.type != format::OpAttributes::LinearState) {
    fields.FailAt("system", ValueText(name) + " has q and k for every head: num_key_heads must be num_heads");
  }
  op.system = name;
  fields.Finish([&](const std::string& key) { return UnknownFieldHint(name, context.form, key); });
  return op;
}

bool HasForm(const std::string& system, AttentionForm form) { return (FormsOf(system) & FormBit(form)) != 0; }

std::vector<std::string> SystemNames() {
  std::vector<std::string> names;
  for (const AttentionSystem& system : kSystems) names.emplace_back(system.name);
  return names;
}

std::vector<std::string> SystemsWithField(const std::string& key) {
  std::vector<std::string> names;
  for (const std::string& system : SystemNames()) {
    for (const AttentionForm form : kAttentionForms) {
      if (!HasForm(system, form) || !IsRead(ExploreAttention(system, SampleContext(form)), key)) continue;
      names.push_back(system);
      break;
    }
  }
  return names;
}

std::string QuotedNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6, kFirst = 3;  // all of them, or the first of many
  const size_t shown = names.size() <= kMost ? names.size() : kFirst;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size() && i > 0;
    text += (last ? " and \"" : i == 0 ? "\"" : ", \"") + names[i] + "\"";
  }
  return text + (shown < names.size() ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

uint32_t FormsOf(const std::string& system) {
  const AttentionSystem* found = FindSystem(system);
  return found == nullptr ? 0 : found->forms;
}

std::optional<AttentionFamily> FamilyOf(const std::string& system) {
  const AttentionSystem* found = FindSystem(system);
  return found == nullptr ? std::nullopt : std::optional(found->family);
}

AttentionContext SampleContext(AttentionForm form) {
  const format::Heads heads(kSampleHeads, kSampleHeads, kSampleHeadDim, kSampleHeadDim);
  return {heads, 0, kSampleHidden, /*kv_bias=*/false, /*rope=*/false, form};
}

std::vector<FieldRun> ExploreAttention(const std::string& system, const AttentionContext& context) {
  return ExploreFields({{"system", system}}, [&](const Json& object, FieldLog* log) {
    AttentionContext recorded = context;
    recorded.log = log;
    ParseAttention(object, "", recorded);
  });
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
