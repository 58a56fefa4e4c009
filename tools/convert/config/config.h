// config.json of a checkpoint.
#ifndef TARN_TOOLS_CONVERT_CONFIG_CONFIG_H_
#define TARN_TOOLS_CONVERT_CONFIG_CONFIG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schema/tarn_generated.h"
#include "tools/convert/attention/attention.h"
#include "tools/convert/checkpoint/shortlist_file.h"
#include "tools/convert/tokenizer/files.h"

namespace tarn::convert {

enum class HiddenAct : uint8_t { kSwiglu, kRelu, kGelu, kGeluTanh, kGeglu, kGegluTanh, kSilu, kReluSquared };
// Where a part f of a layer has its norm: x + f(norm x); norm(x + f x); x + norm(f x); x + norm(f(norm x)).
enum class NormPosition : uint8_t { kPre, kPost, kOutput, kBoth };
enum class QkNorm : uint8_t { kNone, kHead, kFull };
// What is added to embeddings. Rope, which turns q and k, goes with any of them.
enum class PositionEmbedding : uint8_t { kNone, kSinusoidal, kLearned };

// Angles of rope: of `theta`, or those given.
struct Rope {
  float theta = 0;
  std::vector<double> frequencies;  // in place of theta; empty: none
};

enum class ElementFunction : uint8_t { kNone, kRelu, kSilu };
enum class OutputNorm : uint8_t { kNone, kHead, kFull, kGroups };
enum class OutputGate : uint8_t { kNone, kSilu, kSigmoid, kGelu, kGeluTanh, kLinear };
// What of v passes by the attention op: a part by a weight of the head, or by its products of q and k.
enum class OutputSkip : uint8_t { kNone, kHead, kProducts };

// What stands around the attention op of a layer: build/attention_block.h.
struct AttentionBlock {
  uint32_t conv_taps = 0;  // of a causal convolution of q, k and v; 0: none
  bool conv_bias = false, conv_silu = false;
  bool conv_logits = false;                               // of the logits that are projected with q, k and v, too
  ElementFunction q_activation = ElementFunction::kNone;  // of q alone
  ElementFunction qk_activation = ElementFunction::kNone, v_activation = ElementFunction::kNone;
  ElementFunction output_activation = ElementFunction::kNone;
  OutputNorm output_norm = OutputNorm::kNone;
  float output_norm_eps = 0;
  uint32_t output_norm_groups = 1;             // of the columns of a row (kFull), each normed by itself
  OutputGate output_gate = OutputGate::kNone;  // by a function of a projection
  uint32_t output_gate_rank = 0;               // of its two dense layers; 0: one
  bool output_gate_bias = false;
  bool output_gate_first = false;           // before the norm
  bool output_gate_hidden_sigmoid = false;  // of the narrow row between its two layers
  OutputSkip output_skip = OutputSkip::kNone;
  bool token_shift = false;          // every projection of attention and MLP reads a mix of a token and the one before
  bool value_residual = false;       // v of the layers behind the first one are mixed with v of that
  uint32_t value_residual_rank = 0;  // of the two dense layers that say how; 0: one
};

// Which projections of a layer's attention have a bias.
struct ProjectionBias {
  bool q = false, k = false, v = false, o = false;
};

// The attention of a layer but for its op.
struct AttentionLayer {
  format::Heads heads;
  uint32_t key_heads = 0;  // of q and k, each for a group of heads; 0: every head has its own
  QkNorm qk_norm = QkNorm::kNone;
  float qk_norm_eps = 0;
  ProjectionBias bias;
  bool output_projection = true;
  AttentionBlock block;  // of a causal language model, or the decoder's self attention

  // Columns of q, k and v.
  uint32_t q_width() const { return (key_heads > 0 ? key_heads : heads.heads()) * heads.head_dim(); }
  uint32_t k_width() const { return (key_heads > 0 ? key_heads : heads.kv_heads()) * heads.head_dim(); }
  uint32_t v_width() const { return heads.kv_heads() * heads.value_dim(); }
};

// Tokens that can follow each token of a source, and then those that can follow any source: list i is targets[offsets[i]] to
// targets[offsets[i + 1] - 1].
struct Shortlist {
  std::vector<int32_t> offsets, targets;
};

// As an AttentionLayer: what stands in every layer that has none of its own.
struct ModelConfig : AttentionLayer {
  format::Task task;
  uint32_t vocab_size, hidden_size;
  uint32_t intermediate_size;  // 0: layers without an MLP
  HiddenAct hidden_act;
  format::NormKind norm;
  float norm_eps;
  NormPosition norm_position;
  bool parallel;  // x + attn(norm x) + mlp(norm x)
  bool final_norm, embedding_norm;
  bool first_norm;  // of the first layer's attention
  bool mlp_bias, lm_head_bias;
  PositionEmbedding position_embedding;
  bool has_rope;
  uint32_t max_positions;  // learned only
  Rope rope;
  std::vector<std::optional<Rope>> layer_rope;  // of each layer, nullopt: none; empty: all as `rope`
  std::vector<double> sinusoid_frequencies;     // empty: those of the format
  uint64_t first_position;
  float embedding_scale;
  float logits_soft_cap;  // 0: none
  bool tie_word_embeddings;
  TokenizerFiles tokenizer;
  int32_t bos_token, eos_token, mask_token;  // -1: none

  std::vector<AttentionLayer> layers;  // of a causal language model, one for each layer; empty: all as this one
  // Of a causal language model: what stands beside the attention of every layer and reads the same rows. Empty: nothing.
  std::vector<AttentionOp> second;
  std::optional<AttentionLayer> second_block;  // nullopt: as the layer itself

  // Seq2seq.
  uint32_t source_vocab_size;
  bool share_embeddings;                        // one table for source and target
  std::optional<AttentionLayer> decoder_block;  // self attention of the decoder; nullopt: as this one
  std::shared_ptr<const Shortlist> shortlist;   // not a field: SetShortlist(); nullptr: every token can follow a source
  // Classification.
  uint32_t num_labels;
  format::PoolKind pooling;
  format::ActivationKind head_act;  // of head_transform
  bool head_transform;              // classification, masked LM: a dense layer and its activation before the head
  bool head_norm;                   // behind these, classification; a masked LM always has it

  // One op per layer. Causal LM: decoder; classification, masked LM: encoder; seq2seq: all three, cross as many as decoder.
  std::vector<AttentionOp> encoder, decoder, cross;
  std::string text;  // the file as it was

  const AttentionLayer& layer(size_t i) const { return layers.empty() ? *this : layers[i]; }
  const AttentionLayer& decoder_layer(size_t i) const { return decoder_block ? *decoder_block : layer(i); }
  const AttentionLayer& second_layer(size_t i) const { return second_block ? *second_block : layer(i); }
};

// `where` (the file's name) begins every message.
// Errors: not JSON; an unknown field, or one of another task; a missing field, a wrong type, a value out of range or unknown; a
// tokenizer or attention system that this version does not support.
ModelConfig ParseConfig(const std::string& text, const std::string& where);

// The lists of `file`; where source and target have one table of embeddings, each token can also follow itself, as in Marian.
// Errors: another task than seq2seq; logits with a soft cap; a shortlist for vocabularies of other sizes.
void SetShortlist(const ShortlistFile& file, ModelConfig* config);

std::vector<std::string> TaskNames();

// The fields that are read of a config.json, with every task, or one, and every value of other choices; not those of attention
// objects.
std::vector<FieldRun> ExploreConfig(const std::string& task = "");

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CONFIG_CONFIG_H_
