#include "tools/convert/families/mamba_mixer.h"

#include <memory>
#include <utility>

#include "tools/convert/json/error.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// Rows of a tensor, one behind the other.
struct Part {
  const char* to;  // nullptr: nothing
  uint32_t rows;
  float factor;
};
using Parts = std::vector<Part>;

// How it is computed and what fresh weights are made of.
constexpr const char* kUnread[] = {"mamba_chunk_size", "time_step_floor", "time_step_max", "time_step_min"};

// As newer versions of transformers write it, too.
bool IsInfinity(const Json& value) { return value == "Infinity" || value == Json::object({{"__float__", "Infinity"}}); }

class MixerRules {
 public:
  MixerRules(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  TensorRule& Add(const std::string& from, const std::string& to) {
    rules_.push_back({from_ + from, to_ + to});
    return rules_.back();
  }

  void AddParts(const std::string& from, const Parts& parts, const char* suffix, float factor, bool matrix = false) {
    uint32_t all = 0, first = 0;
    for (const Part& part : parts) all += part.rows;
    for (const Part& part : parts) {
      if (part.to != nullptr) {
        TensorRule& rule = Add(from, std::string(part.to) + suffix);
        rule.matrix = matrix;
        rule.first_row = first;
        rule.rows = part.rows;
        rule.all_rows = all;
        rule.scale = part.factor * factor;
      }
      first += part.rows;
    }
  }

  std::vector<TensorRule> Take() { return std::move(rules_); }

 private:
  const std::string from_, to_;
  std::vector<TensorRule> rules_;
};

}  // namespace

void ReadSteps(Fields* fields, const char* key, Json* attention) {
  const Json* limit = fields->Find(key);
  if (limit == nullptr) return;
  if (!limit->is_array() || limit->size() != 2 || !(*limit)[0].is_number() ||
      !((*limit)[1].is_number() || IsInfinity((*limit)[1]))) {
    fields->FailAt(key, ValueText(*limit) + " is not a list of a number and a number or Infinity");
  }
  (*attention)["step_min"] = (*limit)[0];
  if ((*limit)[1].is_number()) (*attention)["step_max"] = (*limit)[1];
}

MambaSizes ReadMambaFields(Fields* fields, uint32_t inner, const MambaDefaults& defaults) {
  MambaSizes sizes{};
  sizes.heads = fields->Size("mamba_n_heads", defaults.heads, kMaxHeads);
  if (inner % sizes.heads != 0) {
    fields->FailAt("mamba_n_heads",
                   std::to_string(sizes.heads) + " does not divide the " + std::to_string(inner) + " columns of all heads");
  }
  sizes.head_dim = inner / sizes.heads;
  const Json* given = fields->Find("mamba_d_head");
  if (given != nullptr && *given != "auto" && *given != sizes.head_dim) {
    fields->FailAt("mamba_d_head", ValueText(*given) + " times mamba_n_heads = " + std::to_string(sizes.heads) + " is not the " +
                                       std::to_string(inner) + " columns of all heads");
  }
  if (sizes.head_dim > kMaxHeads) fields->FailAt("mamba_n_heads", "heads of " + std::to_string(sizes.head_dim) + " are too large");
  sizes.groups = fields->Size("mamba_n_groups", 1, kMaxHeads);
  if (sizes.heads % sizes.groups != 0) {
    fields->FailAt("mamba_n_groups",
                   std::to_string(sizes.groups) + " does not divide the " + std::to_string(sizes.heads) + " heads");
  }
  sizes.state = fields->Size("mamba_d_state", defaults.state, kMaxHeads);
  sizes.taps = static_cast<uint32_t>(fields->Integer("mamba_d_conv", kMinConvTaps, kMaxConvTaps, 4));
  sizes.conv_bias = fields->Bool("mamba_conv_bias", true);
  sizes.in_bias = fields->Bool("mamba_proj_bias", false);
  for (const char* key : kUnread) fields->Find(key);
  Json steps = Json::object();
  ReadSteps(fields, "time_step_limit", &steps);
  if (steps.contains("step_max") || steps.value("step_min", 0.0) > 0) {
    fields->FailAt("time_step_limit", ValueText(*fields->Find("time_step_limit")) + " is not supported, expected 0 and Infinity");
  }
  return sizes;
}

Json MambaBlock(const MambaSizes& sizes, float eps) {
  Json biased = Json::array();
  if (sizes.in_bias) biased = {"q", "k", "v"};
  if (sizes.out_bias) biased.push_back("o");
  return {{"num_heads", sizes.heads},
          {"num_kv_heads", sizes.heads},
          {"num_key_heads", sizes.groups},
          {"head_dim", sizes.state},
          {"value_head_dim", sizes.head_dim},
          {"attention_bias", biased},
          {"attention_conv", true},
          {"conv_taps", sizes.taps},
          {"conv_bias", sizes.conv_bias},
          {"output_skip", "head"},
          {"output_gate", "silu"},
          {"output_gate_bias", sizes.in_bias},
          {"output_gate_first", true},
          {"output_norm", "full"},
          {"output_norm_groups", sizes.groups},
          {"output_norm_eps", eps}};
}

std::vector<TensorRule> MambaRules(const std::string& from, const std::string& to, const MambaSizes& sizes,
                                   const MambaFactors& factors) {
  MixerRules rules(from, to);
  rules.Add("norm.weight", "o_norm.weight");
  rules.Add("A_log", "A_log");
  rules.Add("D", "skip");
  const Parts in = {{"o_gate_proj", sizes.inner(), factors.z},
                    {"v_proj", sizes.inner(), factors.x},
                    {"k_proj", sizes.keys(), factors.b},
                    {"q_proj", sizes.keys(), factors.c},
                    {"g_proj", sizes.heads, factors.dt}};
  rules.AddParts("in_proj.weight", in, ".weight", factors.in);
  TensorRule& step = rules.Add("dt_bias", "g_proj.bias");
  if (sizes.in_bias) {
    // The bias of the projection is added to that of the step.
    TensorRule bias{from + "in_proj.bias", ""};
    bias.all_rows = 2 * sizes.inner() + 2 * sizes.keys() + sizes.heads;
    bias.first_row = bias.all_rows - sizes.heads;
    bias.rows = sizes.heads;
    bias.scale = factors.dt;
    step.plus = std::make_shared<const TensorRule>(bias);
    Parts without_step = in;
    without_step.back().to = nullptr;
    rules.AddParts("in_proj.bias", without_step, ".bias", 1);
  }
  const Parts conv = {{"v_conv", sizes.inner(), 1}, {"k_conv", sizes.keys(), 1}, {"q_conv", sizes.keys(), 1}};
  rules.AddParts("conv1d.weight", conv, ".weight", 1, /*matrix=*/true);
  rules.AddParts("conv1d.bias", conv, ".bias", 1);
  rules.Add("out_proj.weight", "o_proj.weight").scale = factors.out;
  if (sizes.out_bias) rules.Add("out_proj.bias", "o_proj.bias").scale = factors.out;
  return rules.Take();
}

}  // namespace tarn::convert
