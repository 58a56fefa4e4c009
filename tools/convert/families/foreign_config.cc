#include "tools/convert/families/foreign_config.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "tools/convert/families/rope_scaling.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// What a folder came from, how it was trained, how text is sampled or padded, and what else a forward pass does not read.
constexpr const char* kIgnored[] = {"_attn_implementation_autoset",
                                    "_name_or_path",
                                    "_num_labels",
                                    "activation_dropout",
                                    "architectures",
                                    "attention_dropout",
                                    "attention_probs_dropout_prob",
                                    "attn_implementation",
                                    "attn_pdrop",
                                    "auto_map",
                                    "bad_words_ids",
                                    "begin_suppress_tokens",
                                    "chunk_size_feed_forward",
                                    "classifier_dropout",
                                    "cross_attention_hidden_size",
                                    "decoder_start_token_id",
                                    "directionality",
                                    "diversity_penalty",
                                    "do_sample",
                                    "dropout",
                                    "dtype",
                                    "early_stopping",
                                    "embd_pdrop",
                                    "embed_dropout",
                                    "encoder_no_repeat_ngram_size",
                                    "exponential_decay_length_penalty",
                                    "extra_pos_embeddings",
                                    "finetuning_task",
                                    "force_bos_token_to_be_generated",
                                    "forced_bos_token_id",
                                    "forced_eos_token_id",
                                    "gradient_checkpointing",
                                    "hidden_dropout",
                                    "hidden_dropout_prob",
                                    "id2label",
                                    "init_std",
                                    "initializer_range",
                                    "is_decoder",
                                    "is_encoder_decoder",
                                    "is_llama_config",
                                    "is_qwen2_config",
                                    "label2id",
                                    "label_names",
                                    "layerdrop",
                                    "length_penalty",
                                    "max_length",
                                    "max_sequence_length",
                                    "min_length",
                                    "model_type",
                                    "n_special",
                                    "neftune_noise_alpha",
                                    "no_repeat_ngram_size",
                                    "num_beam_groups",
                                    "num_beams",
                                    "num_labels",
                                    "num_return_sequences",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_past",
                                    "output_scores",
                                    "pad_token_id",
                                    "pooler_fc_size",
                                    "pooler_num_attention_heads",
                                    "pooler_num_fc_layers",
                                    "pooler_size_per_head",
                                    "pooler_type",
                                    "predict_special_tokens",
                                    "prefix",
                                    "pretraining_tp",
                                    "problem_type",
                                    "remove_invalid_values",
                                    "repetition_penalty",
                                    "resid_dropout",
                                    "resid_pdrop",
                                    "return_dict",
                                    "return_dict_in_generate",
                                    "rope_interleaved",
                                    "sep_token_id",
                                    "static_position_embeddings",
                                    "summary_activation",
                                    "summary_first_dropout",
                                    "summary_proj_to_labels",
                                    "summary_type",
                                    "summary_use_proj",
                                    "suppress_tokens",
                                    "task_specific_params",
                                    "temperature",
                                    "tf_legacy_loss",
                                    "tie_encoder_decoder",
                                    "tokenizer_class",
                                    "top_k",
                                    "top_p",
                                    "torch_dtype",
                                    "torchscript",
                                    "transformers.js_config",
                                    "transformers_version",
                                    "typical_p",
                                    "unsloth_fixed",
                                    "unsloth_version",
                                    "use_bfloat16",
                                    "use_cache"};

constexpr std::pair<const char*, const char*> kActivations[] = {
    {"relu", "relu"},
    {"gelu", "gelu"},
    {"gelu_python", "gelu"},
    {"gelu_new", "gelu_tanh"},
    {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu_fast", "gelu_tanh"},
    {"silu", "silu"},
    {"swish", "silu"},
    {"relu2", "relu_squared"},
};

constexpr std::pair<const char*, const char*> kGatedActivations[] = {
    {"silu", "swiglu"},         {"swish", "swiglu"},         {"gelu", "geglu"}, {"gelu_pytorch_tanh", "geglu_tanh"},
    {"gelu_new", "geglu_tanh"}, {"gelu_fast", "geglu_tanh"},
};

}  // namespace

Json WithoutNulls(const Json& object, const std::string& where) {
  if (!object.is_object()) Fail(where, ": ", ValueText(object), " is not an object");
  Json present = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null()) present[key] = value;
  }
  return present;
}

ForeignConfig::ForeignConfig(const Json& object, const std::string& where, std::optional<uint32_t> context)
    : object_(object), present_(WithoutNulls(object, where)), fields_(present_, where), context_(context) {
  for (const char* key : kIgnored) fields_.Find(key);
  Require("add_cross_attention", false);
  Require("pruned_heads", Json::object());
  if (fields_.Has("quantization_config")) {
    fields_.FailAt("quantization_config", "the weights are quantized already; convert the checkpoint that they were made from");
  }
}

int ForeignConfig::MajorVersion() const {
  const Json version = present_.value("transformers_version", Json());
  return version.is_string() ? std::atoi(version.get_ref<const std::string&>().c_str()) : 0;
}

void ForeignConfig::Require(const char* key, const Json& value) {
  const Json* given = fields_.Find(key);
  if (given == nullptr || *given == value) return;
  fields_.FailAt(key, ValueText(*given) + " is not supported, expected " + ValueText(value));
}

std::string ForeignConfig::Activation(const char* key, const char* fallback, bool gated) {
  const std::string name = fields_.Text(key, std::string(fallback));
  if (gated) {
    for (const auto& [theirs, ours] : kGatedActivations) {
      if (name == theirs) return ours;
    }
    fields_.FailAt(key, ValueText(name) + " is not supported in a gated MLP, expected \"silu\", \"gelu\" or \"gelu_pytorch_tanh\"");
  }
  std::string known;
  for (const auto& [theirs, ours] : kActivations) {
    if (name == theirs) return ours;
    known += (known.empty() ? "" : ", ") + std::string(theirs);
  }
  fields_.FailAt(key, ValueText(name) + " is not supported, expected one of " + known);
}

uint32_t ForeignConfig::RotaryColumns(const char* key, double fallback, uint32_t head_dim) {
  fields_.PositiveNumber(key, 1.0f);
  double factor = fields_.Has(key) ? present_[key].get<double>() : fallback;
  // transformers 5 writes it into rope_parameters, whatever it was called, and beside them a default that it does not read.
  const Json newer = present_.value("rope_parameters", Json::object());
  for (const char* name : {"partial_rotary_factor", key}) {
    if (newer.is_object() && newer.contains(name) && newer[name].is_number()) factor = newer[name].get<double>();
  }
  const double turned = factor <= 1 ? std::floor(head_dim * factor) : 0;
  const auto columns = static_cast<uint32_t>(turned);
  if (columns < 2 || columns % 2 != 0 || head_dim % 2 != 0) {
    fields_.FailAt(key, "it turns " + std::to_string(columns) + " of " + std::to_string(head_dim) +
                            " columns of a head, expected two even numbers");
  }
  return columns;
}

void ForeignConfig::SplitRopeOfKinds(const char* local_theta) {
  const Json kinds = present_.value("rope_parameters", Json());
  const std::string where = fields_.where() + ": rope_parameters";
  if (!kinds.is_object()) return;
  const Json present = WithoutNulls(kinds, where);
  if (!present.contains("full_attention")) return;
  Fields of_kinds(present, where);
  of_kinds.Find("rope_type");  // the library's default, which no layer reads
  const Json* full = of_kinds.Find("full_attention");
  if (const Json* sliding = of_kinds.Find("sliding_attention")) {
    const Json angles = WithoutNulls(*sliding, where + ": sliding_attention");
    Fields local(angles, where + ": sliding_attention");
    if (local.Text("rope_type", "default") != "default") local.FailAt("rope_type", "only \"default\" is supported");
    present_[local_theta] = local.PositiveNumber("rope_theta");
    local.Finish();
  }
  of_kinds.Finish();
  present_["rope_parameters"] = *full;
}

double ForeignConfig::Rope(const RotaryHeads& heads, uint32_t positions, Json* config, float default_theta) {
  RopeScaling scaling;
  scaling.theta = fields_.PositiveNumber("rope_theta", default_theta);
  scaling.pairs = heads.turned / 2;
  scaling.part = heads.turned < heads.head_dim ? static_cast<float>(heads.turned) / static_cast<float>(heads.head_dim) : 1;
  scaling.positions = positions;
  // transformers 5 writes rope_parameters, with the base of the angles inside.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* given = fields_.Find(key);
    if (given == nullptr) continue;
    scaling.context = context_.value_or(positions);
    if (fields_.Has("original_max_position_embeddings")) scaling.trained = fields_.Size("original_max_position_embeddings");
    const std::string where = fields_.where() + ": " + key;
    const Json present = WithoutNulls(*given, where);
    Fields rope(present, where);
    ReadRopeScaling(&rope, &scaling);
    rope.Finish();
  }
  if (heads.turned < heads.head_dim) {
    if (scaling.attention_factor != 1) fields_.FailAt("rope_scaling", "it is not supported where a part of a head turns");
    if (scaling.frequencies.empty()) scaling.frequencies = UnscaledFrequencies(scaling);
    scaling.frequencies.resize(heads.head_dim / 2, 0.0);  // pairs that do not turn
  } else if (fields_.Number("partial_rotary_factor", 1.0f) != 1.0f) {
    fields_.FailAt("partial_rotary_factor", "only 1 is supported");
  }
  (*config)["position_embedding"] = "rope";
  (*config)["rope_theta"] = scaling.theta;
  if (!scaling.frequencies.empty()) (*config)["rope_frequencies"] = scaling.frequencies;
  return scaling.attention_factor;
}

void ForeignConfig::EndTokens(uint32_t vocab_size, Json* config) {
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    const Json* id = fields_.Find(key);
    if (id == nullptr) continue;
    const std::string field = fields_.where() + ": " + key + ": ";
    if (id->is_array() && !id->empty()) {
      if (id->size() > 1) notes_.push_back(field + "only the first of " + ValueText(*id) + " is used");
      id = &id->front();
    }
    if (id->is_number_unsigned() && id->get<uint64_t>() < vocab_size) {
      (*config)[key] = *id;
    } else {
      notes_.push_back(field + ValueText(*id) + " is no token of the vocabulary of " + std::to_string(vocab_size) +
                       ", and ignored");
    }
  }
}

void ForeignConfig::Finish() const {
  fields_.Finish([](const std::string&) { return std::string(": what it changes is not known here"); });
}

}  // namespace tarn::convert
