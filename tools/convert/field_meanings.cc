// What every field of config.json means: the one place where that is written by hand. Which fields there are, their values and
// defaults come from the parsers (field_list.cc), and a test wants a line here for each.
#include "tools/convert/attention/attention.h"
#include "tools/convert/field_list.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

struct Meaning {
  const char* key;
  const char* text;
  const char* system = "";  // or kConfig, kLinear; "": of every attention system that has no line of its own
};

constexpr char kConfig[] = "config";
constexpr char kLinear[] = "linear state";  // the family

constexpr Meaning kMeanings[] = {
    // config.json
    {"task", "what the model does", kConfig},
    {"vocab_size", "number of tokens; with seq2seq: of the target", kConfig},
    {"source_vocab_size", "number of tokens of the source", kConfig},
    {"hidden_size", "width of the rows that go from layer to layer", kConfig},
    {"num_heads", "query heads; a multiple of num_kv_heads", kConfig},
    {"num_key_heads",
     "heads of q and k; if fewer than num_heads, each serves several heads of v, which needs num_kv_heads = num_heads, and q_proj, "
     "k_proj and their convolutions have head_dim * num_key_heads rows",
     kConfig},
    {"num_kv_heads", "key and value heads: each serves num_heads / num_kv_heads query heads", kConfig},
    {"head_dim", "width of a head of q and k; with rope an even number", kConfig},
    {"value_head_dim", "width of a head of v", kConfig},
    {"intermediate_size", "inner width of the MLP; 0: layers without an MLP", kConfig},
    {"hidden_act",
     "the MLP: swiglu is down(silu(gate x) * up x), geglu and geglu_tanh the same with gelu, the others are down(f(up x)); gelu is "
     "exact (erf); relu_squared is max(x, 0)^2",
     kConfig},
    {"norm", "rmsnorm: x * rsqrt(mean(x^2) + eps) * weight; layernorm: biased variance, weight and bias", kConfig},
    {"norm_eps", "eps of the norm, inside the root", kConfig},
    {"norm_position",
     "pre: x + f(norm(x)); post: norm(x + f(x)); output: x + norm(f(x)); both: x + norm(f(norm(x))), the outer one named "
     "attn_output_norm, mlp_output_norm",
     kConfig},
    {"parallel", "attention and MLP read the same rows: x + attn(norm(x)) + mlp(norm(x)); each has its norm. Only with pre",
     kConfig},
    {"qk_norm", "a norm of q and k before rope: head: of each head, with weights that all heads share; full: of all heads at once",
     kConfig},
    {"qk_norm_eps", "eps of the norm of q and k", kConfig},
    {"final_norm", "a norm after the last layer", kConfig},
    {"first_norm", "the attention of the first layer has a norm; false: it has none, which needs pre and no parallel parts",
     kConfig},
    {"embedding_norm", "a norm after the embeddings and positions", kConfig},
    {"attention_bias", "q_proj, k_proj, v_proj and o_proj have a bias; a list: only those", kConfig},
    {"output_projection",
     "o_proj is applied after attention; false: there is no o_proj, and all heads of v together are hidden_size wide", kConfig},
    {"mlp_bias", "the projections of the MLP have a bias", kConfig},
    {"tie_word_embeddings", "lm_head.weight is the embedding table (of seq2seq the decoder's); no effect on classification",
     kConfig},
    {"lm_head_bias", "the head has a bias", kConfig},
    {"position_embedding",
     "sinusoidal: added, sines then cosines; learned: a table, added; rope: q and k rotated; column i of a head is a pair with "
     "column i + head_dim / 2; a list, such as "
     "[\"learned\", \"rope\"]: rope and one of the others",
     kConfig},
    {"max_positions", "rows of the learned table: a later position is an error", kConfig},
    {"rope_theta", "base of the angles of rope", kConfig},
    {"sinusoid_frequencies",
     "angle of each pair of sine and cosine per position, in place of exp(-i ln(10000) / (hidden_size / 2 - 1))", kConfig},
    {"layer_rope", "rope of each layer: null: that of the model; false: none; a number: the base of its angles. Not of seq2seq",
     kConfig},
    {"rope_frequencies", "angle of each pair per position, in place of those that follow from rope_theta; 0: not rotated", kConfig},
    {"first_position", "position of the first token after a reset; below max_positions if positions are learned", kConfig},
    {"scale_embeddings", "embeddings times sqrt(hidden_size), before positions are added", kConfig},
    {"embedding_scale", "factor of the embeddings, in place of scale_embeddings", kConfig},
    {"logits_soft_cap", "logits become cap * tanh(logit / cap); 0: they stay", kConfig},
    {"tokenizer",
     "bytes: a token is a byte, which needs vocab_size = 256; tokenizer.json: the tokenizer files beside config.json; rwkv: "
     "rwkv_vocab.txt beside it; characters: characters.json beside it; none: the model reads and writes token ids",
     kConfig},
    {"num_layers", "number of layers", kConfig},
    {"attention", "the attention of every layer, or of each one (a hybrid model)", kConfig},
    {"attention_conv", "q, k and v are convolved over the last tokens, every column with its own taps, before all else", kConfig},
    {"conv_taps", "tokens that the convolution reads, including the token itself", kConfig},
    {"conv_bias", "the convolution has a bias", kConfig},
    {"conv_activation", "activation after the convolution", kConfig},
    {"conv_logits",
     "the convolution also reads the logits of the gate, which g_conv convolves; only for variants whose gate logits come from the "
     "dense layer of q, k and v",
     kConfig},
    {"q_activation", "activation of q alone, right before the attention variant", kConfig},
    {"qk_activation", "activation of q and k, before rope and the attention variant", kConfig},
    {"v_activation", "activation of v", kConfig},
    {"output_activation", "activation of the output of the attention variant, before its norm", kConfig},
    {"output_norm",
     "an RMSNorm of the output, before the gate; head: of each head, with weights that all heads share; full: of the row; groups: "
     "a layer norm of each head, with a weight and a bias for every column of the row",
     kConfig},
    {"output_norm_eps", "eps of the norm of the output", kConfig},
    {"output_norm_groups", "equal parts of the row that are normed by themselves, with a weight for every column", kConfig},
    {"output_gate",
     "the output is multiplied by a function of a projection of the layer input, before o_proj; linear: by the projection itself",
     kConfig},
    {"output_gate_first", "the gate is before the norm of the output", kConfig},
    {"output_gate_low_rank", "the projection of the gate has two matrices, with a row of output_gate_rank numbers between them",
     kConfig},
    {"output_gate_rank", "width of the row between the two matrices of the output gate", kConfig},
    {"output_gate_hidden_act", "activation of the row between the two matrices of the output gate", kConfig},
    {"output_gate_bias", "the projection of the gate has a bias; with output_gate_low_rank its second matrix has it", kConfig},
    {"output_skip",
     "a part of v skips the attention variant; head: o + c v, c a weight of the head, before the norm; products: c = sum_i w_i q_i "
     "k_i of each head, after the norm. The weights are attn.skip. Needs num_kv_heads = num_heads; products also num_key_heads = "
     "num_heads",
     kConfig},
    {"token_shift",
     "each projection of attention and MLP reads x_t + mu (x_(t-1) - x_t), with its own mu; not supported with "
     "attention_conv, qk_norm or rope",
     kConfig},
    {"value_residual",
     "v of every layer but the first is v + sigmoid(logits) (v of the first layer - v); the logits are the projection v_gate_proj "
     "of the layer input",
     kConfig},
    {"value_residual_low_rank", "v_gate_proj has two matrices, with a row of value_residual_rank numbers between them", kConfig},
    {"value_residual_rank", "width of the row between the two matrices of v_gate_proj", kConfig},
    {"layer_blocks",
     "layers that differ from the others: null, or an object with fields of heads, projections and block (see Hybrid models) for "
     "that layer alone",
     kConfig},
    {"decoder_block", "self attention of the decoder: an object with the fields of layer_blocks; without it, as the encoder's",
     kConfig},
    {"second_attention",
     "a second attention of every layer, or one for each layer: x + attn(norm(x)) + second_attn(norm(x)). It has no rope; its "
     "tensors are those of the variant with second_attn in place of attn",
     kConfig},
    {"second_block",
     "heads, projections and block of the second attention: an object with the fields of layer_blocks, without value_residual; "
     "without it, those of the layer",
     kConfig},
    {"encoder_layers", "number of layers of the encoder", kConfig},
    {"decoder_layers", "number of layers of the decoder", kConfig},
    {"encoder_attention", "attention of the encoder, noncausal", kConfig},
    {"decoder_attention", "self attention of the decoder, causal", kConfig},
    {"cross_attention", "attention of the decoder to the source, one for each layer of the decoder", kConfig},
    {"share_embeddings", "one embedding table for source and target", kConfig},
    {"bos_token_id", "the token that a text begins with if the prompt is empty; with seq2seq: the first token of a target",
     kConfig},
    {"eos_token_id", "the token that ends a text; with seq2seq: that ends a target", kConfig},
    {"pad_token_id", "not used: nothing is padded", kConfig},
    {"num_labels", "number of classes", kConfig},
    {"pooling", "the row that is classified: the first, or mean or maximum over all rows", kConfig},
    {"classifier_transform", "a dense layer and head_act before the classifier", kConfig},
    {"classifier_norm", "a norm after classifier_transform", kConfig},
    {"head_act", "the activation of classifier_transform or lm_head_transform", kConfig},
    {"lm_head_transform", "a dense layer, head_act and a norm before the head", kConfig},
    {"mask_token_id", "the token that stands for a masked one", kConfig},

    // Linear states
    {"system", "the attention variant"},
    {"feature_map", "the features phi of q and k"},
    {"num_features", "rows of the projection of the feature map"},
    {"num_features", "number of features", "delta_rule"},
    {"gate",
     "forget: S <- g S + (1 - g) phi(k) v^T, g of the token and head; vector: a decay for each feature; constant: for each head; "
     "softplus: exp(-exp(A_log) softplus(logit)) of the token and head; softplus_vector: for each feature; tied: S <- g S + (1 - "
     "g) v^T, g = sigmoid(k); step: exp(-exp(A_log) t), and t phi(k) v^T is written, t = softplus(logit); sigmoid_vector: exp("
     "gate_clamp_min sigmoid(logit)) for each feature"},
    {"gate", "softplus: a decay exp(-exp(A_log) softplus(logit)) of the token and head; softplus_vector: for each channel of k",
     "gated_deltanet"},
    {"gate", "forget: S <- g S + (1 - g) phi(k) v^T, g of the token and head; none: S <- S + phi(k) v^T", "rfa"},
    {"rule",
     "delta: the value stored for the key is removed before the new one is written; replace: the value stored for a separate "
     "removal key is removed, each channel by a factor sigmoid(logit) of a projection b_proj"},
    {"lower_bounds", "g of a tied gate is b + (1 - b) sigmoid(k), b from model.lower_bounds, one tensor for all layers"},
    {"step_min", "least step t of gate step"},
    {"step_max", "largest step t of gate step"},
    {"removal_norm",
     "how removal keys, k_removal times k, are divided by their l2 norm; outside: |x| + eps; inside: sqrt(|x|^2 + eps)"},
    {"removal_norm_eps", "eps of removal_norm"},
    {"beta_low_rank", "b_proj has two matrices, with a row of beta_rank numbers between them"},
    {"beta_rank", "width of the row between the two matrices of b_proj"},
    {"beta_bias", "b_proj has a bias; with beta_low_rank its second matrix has it"},
    {"beta_bias", "b_proj has a bias", "delta_rule"},
    {"beta_bias", "b_proj has a bias", "deltanet"},
    {"beta_bias", "b_proj has a bias", "gated_deltanet"},
    {"key_blend", "k is written times 1 - k_blend (1 - sigmoid(logit)), the logits being those of b_proj"},
    {"normalize_qk", "q and k are divided by their l2 norm before the feature map"},
    {"norm_eps_mode", "place of eps in normalize_qk; outside: x / (|x| + eps); inside: x / sqrt(|x|^2 + eps)"},
    {"norm_eps", "eps of normalize_qk; the norm of layers has its own in config.json"},
    {"q_norm_eps", "eps of normalize_qk for q, in place of norm_eps"},
    {"den_mode",
     "the denominator s = phi(q) . z; add: s + eps; clamp_min: max(s, eps); abs_clamp_min: max(|s|, eps); none: no division"},
    {"den_eps", "eps of den_mode; may be 0 with add, which then divides by the plain sum"},
    {"den_eps", "eps of the division by phi(k) . z", "delta_rule"},
    {"input_scale", "factor of q and k before the feature map"},
    {"q_input_scale", "factor of q before the feature map"},
    {"key_norm_weight", "keys have the weight exp(|sigma k|^2 / 2)"},
    {"key_norm_sigma", "sigma of key_norm_weight is a tensor; else 1"},
    {"projection", "the features are of W x; else of x itself"},
    {"own_q_map", "q has a feature map with weights of its own"},
    {"ratio", "the features are relu(ratio * x) + feature_eps"},
    {"feature_eps", "added to features; the causal form of feature_map \"positive\" takes none"},
    {"nu", "nu of DPFP, less than 2 * head_dim; there are 2 * head_dim * nu features"},
    {"dpfp_variant", "the rectified halves: paper: relu(x), relu(-x); fla: relu(x), -relu(x)"},
    {"negate_second", "the second half of the features of DPFP is -relu(x)"},
    {"feature_norm", "features are divided by their sum"},
    {"sum_norm", "features are divided by (their sum + sum_norm_eps)"},
    {"sum_norm_eps", "added to the sum that features are divided by"},
    {"beta_scale", "write strength beta = beta_scale * sigmoid(logit)"},
    {"attention_normalized", "the value read with k is divided by phi(k) . z"},
    {"gate_normalizer", "the logarithm of a gate is logsigmoid(logit) / gate_normalizer"},
    {"gate_low_rank", "the gate is projected by two matrices, with a row of gate_rank numbers between them"},
    {"gate_rank", "width of the row between the two matrices of the gate"},
    {"gate_hidden_act", "activation of the row between the two matrices of the gate"},
    {"gate_bias", "the projection of the gate has a bias; with gate_low_rank its second matrix has it"},
    {"gate_bias", "the projection of the gate has a bias", "rfa"},
    {"gate_bias", "the projection of the gate has a bias", "mamba2"},
    {"gate_bias", "the projection of the gate has a bias", "gsa"},
    {"gate_clamp_min", "least logarithm of a gate"},
    {"gate_clamp_min", "least logarithm of a gate; the gate is exp(gate_clamp_min sigmoid(logit))", "rwkv7"},
    {"decay", "factor of the state of a head at every token"},
    {"scale", "factor of the output", kLinear},
    {"soft_cap", "logits become soft_cap * tanh(logit / soft_cap); 0: they stay"},
    {"distance_bias",
     "a learned number for each head and distance between token and key is added to logits; one table for each layer, or one for "
     "all layers of a model, encoder or decoder"},
    {"distance_buckets", "distances fall into this many buckets, as T5 has them; noncausal: half of them for each side"},
    {"distance_max", "all distances from this one on are in the last bucket of distance_buckets"},
    {"distance_slopes",
     "a number for each head: this number times the distance between token and key is subtracted from a logit (ALiBi)"},
    {"scale", "factor of q . k before the softmax"},

    // Slot memories
    {"num_slots", "number of slots of a key/value head"},
    {"num_slots", "rows of the pack", "luna_encoder"},
    {"pack_norm_position",
     "the norm of the pack in a layer; post: norm(pack + packed), which is what the next layer reads; pre: pack + packed, and the "
     "layer reads norm(pack)"},
    {"control", "how tokens are written into slots"},
    {"activation", "the function that turns a control logit into a write strength"},
    {"normalization",
     "a slot holds the mean of the tokens written to it, weighted by their strengths; frozen: their sum, each token with its "
     "weight "
     "at the time of the write"},
    {"logit_clamp", "control logits are clamped to this range"},
    {"mask_empty", "slots and rows that were never written are left out; false: they count as rows of zeros"},
    {"control_bias", "control_proj has a bias, and value_control_proj, if there is one"},
    {"control_sharing", "one control_proj (and value_control_proj) for each layer, or one for the model"},
    {"control_input",
     "layer: control_proj reads the layer input; heads: it reads k of each head [num_slots, head_dim], and value_control_proj v of "
     "each head [num_slots, value_head_dim]"},
    {"own_value_control", "values are written into slots by weights of their own; false: by those of the keys"},
    {"max_len", "tokens of a sequence: one more is an error; at least num_slots"},
    {"seed", "seed of the random slot of every token, layer and head"},
    {"global_positions",
     "positions of the global tokens: they are kept, and all later tokens see them, in encoders all tokens; counted from 0 at the "
     "reset"},
    {"global_full",
     "causal form: the tokens at global_positions see all tokens before them, and every token up to the last of these positions is "
     "kept; false: they see what another token would see there. In encoders they see all tokens"},
    {"global_projections",
     "encoders: the attention of the tokens at global_positions has projections of its own, q of these tokens, k and v of all "
     "tokens; with attention_bias they have biases"},
    {"init", "first_n: each of the first tokens opens a slot; evenly_spaced: the first centroids are keys at equal distances"},
    {"iterations", "iterations of k-means"},
    {"mass_bias", "log(members) is added to the logit of a slot"},

    // Caches
    {"max_context", "tokens of a sequence: one more is an error"},
    {"policy", "which rows the cache keeps"},
    {"window", "number of tokens that are read, including the token itself; noncausal forms: on both sides together"},
    {"dilation", "every dilation-th token is read"},
    {"stride", "every stride-th token before the window is read"},
    {"num_strided", "number of tokens that are read before the window"},
    {"segment_len", "tokens of a segment"},
    {"mem_len", "tokens before the segment that are kept uncompressed"},
    {"cmem_len", "compressed rows that are kept"},
    {"compression_ratio", "tokens that one compressed row is made of; at most segment_len"},
    {"compression", "a compressed row is the mean of its tokens, or a convolution of them (k_compress_proj, v_compress_proj)"},
    {"pad", "what fills an incomplete block", "memory_compressed"},
    {"pad",
     "rows of zeros before the e tokens that leave the memory; left_zero: as many as fill blocks; left_remainder: e modulo "
     "compression_ratio, and tokens behind the last full block are lost"},
    {"compression_factor", "tokens of a block, from which a convolution makes one row; at least 2, at most max_context"},
    {"null_kv", "a learned row of keys and values that is always visible"},
    {"scale_dim", "the width whose power -1/2 is the default of scale: that of the model or of a head"},

    // Short convolutions and recurrences
    {"taps", "tokens that the convolution reads, including the token itself"},
    {"bias", "the convolution has a bias"},
    {"decay",
     "decay a from a gate logit g; sigmoid: a = floor + (1 - floor) sigmoid(g); exponential: a = exp(-rate sigmoid(g)), rate = "
     "rate_scale * "
     "softplus(rate_logit)",
     "diagonal_recurrence"},
    {"input", "factor of v before it is added; whole: 1; complement: 1 - a; root: sqrt(1 - a^2), and 1 for the first token"},
    {"lower_bounds", "the least decay of each column is that of model.lower_bounds, one tensor for all layers",
     "diagonal_recurrence"},
    {"gate_floor", "the tensor floor, 0 to 1, is the least decay of each column; false: it is 0"},
    {"gate_bias", "the projection of the gate has a bias", "diagonal_recurrence"},
    {"rate_scale", "factor of the rates of the decay"},
    {"gate_blocks",
     "number of square blocks on the diagonals of i_proj and g_proj, which read v; the columns of a block are outputs"},

    // Noncausal variants
    {"num_clusters", "number of clusters of queries"},
    {"bits", "number of hyperplanes of the hash"},
    {"topk", "keys of a cluster to which every query attends by itself"},
    {"empty_cluster", "treatment of a cluster without members"},
    {"hash_bias", "hyperplanes have thresholds (the last column of hash_planes); false: they are 0"},
    {"factor", "factor * ceil(ln T) of T queries attend"},
    {"sampling", "keys by which the queries that attend are chosen"},
    {"masked", "queries read no later keys"},
    {"masked_fill",
     "output of the other queries if masked: a running mean of V, or a running sum; without masked it is the mean of V"},
    {"window1", "width of the first window"},
    {"window2", "width of the second window, of pooled keys"},
    {"pool_kernel", "tokens of a pool"},
    {"pool_stride", "distance of two pools; at most pool_kernel"},
    {"pooling", "how a pool is made"},
    {"tail", "treatment of tokens that do not fill a pool"},
    {"num_pack_heads", "heads of the attention that packs; divides hidden_size"},
    {"tie_kv", "one projection for keys and values"},
    {"pack_scale", "factor of the logits of the attention that packs"},
};

// The line of a key for `system`, or nullptr.
const char* Find(const std::string& system, const std::string& key) {
  for (const Meaning& meaning : kMeanings) {
    if (key == meaning.key && system == meaning.system) return meaning.text;
  }
  return nullptr;
}

}  // namespace

const char* MeaningOf(const std::string& system, const std::string& key) {
  const char* text = Find(system, key);
  const std::optional<AttentionFamily> family = FamilyOf(system);
  if (text == nullptr && family && family->name == std::string(kLinear)) text = Find(kLinear, key);
  if (text == nullptr && system != kConfig) text = Find("", key);
  if (text == nullptr) Fail(system, ": nobody has written down what \"", key, "\" means: tools/convert/field_meanings.cc");
  return text;
}

}  // namespace tarn::convert
