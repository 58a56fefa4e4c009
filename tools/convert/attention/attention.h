// Attention systems: what an attention object of config.json means as one op of the graph.
//
// The table of systems is in attention.cc, their parsers in <system>.cc; linear_state.h, slot_memory.h and
// cache_attention.h make the op of each family. The golden tests read their attributes through the same table, so that what is
// tested is what is converted.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_ATTENTION_H_
#define TARN_TOOLS_CONVERT_ATTENTION_ATTENTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/span.h"
#include "schema/tarn_generated.h"
#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/graph/graph.h"
#include "tools/convert/json/json.h"
#include "variants/form.h"
#include "variants/limits.h"
#include "variants/state.h"

namespace tarn::convert {

// What a query sees: the tokens up to its own; all tokens of its sequence; all tokens of a source, of which "encode" has left a
// state.
enum class AttentionForm : uint8_t { kCausal, kNoncausal, kCross };
constexpr AttentionForm kAttentionForms[] = {AttentionForm::kCausal, AttentionForm::kNoncausal, AttentionForm::kCross};

// The layer that an attention object stands in.
struct AttentionContext {
  format::Heads heads;
  uint32_t layer;
  uint32_t hidden_size;
  bool kv_bias;  // of k_proj or v_proj
  bool rope;
  AttentionForm form = AttentionForm::kCausal;
  FieldLog* log = nullptr;  // records the fields that the object's parser reads
  uint32_t key_heads = 0;   // of q and k, each for a group of heads; 0: every head has its own
  uint32_t layers = 1;      // of the stack
};

// What logits are projected from: the layer input; or k or v of every head as the op reads them, by one matrix for all heads.
enum class LogitRows : uint8_t { kLayer, kKeys, kValues };

// A projection that the op reads after q, k and v.
struct LogitInput {
  const char* name;        // in golden files: "gate_logit"
  const char* projection;  // in checkpoints: "g_proj"
  uint32_t width;
  bool bias;
  bool with_qkv;  // a few rows: computed by the dense layer of q, k and v
  bool shared;    // one projection for all layers of the model
  Init weight_init;
  Init bias_init;
  uint32_t rank = 0;  // of two dense layers, ".0" and ".1", of which the second has the bias; 0: one
  bool tanh = false;  // of the narrow row between these
  LogitRows rows = LogitRows::kLayer;
  uint32_t heads = 1;  // of k and v
};

// An I32 input of the op, after the logits, that an op without inputs draws for every token.
struct DrawnInput {
  const char* name;  // in golden files, where the values stand: "slot_index"
  format::OpAttributes type;
  AttributeWriter attributes;
  uint32_t width;
};

// A constant of the op. The names of its parts are those of the checkpoint without the layer's prefix ("random_matrix").
struct AttentionTensor {
  std::string name;
  std::vector<uint32_t> shape;
  std::vector<WeightSpec> parts;
  Fold fold;
  format::DType dtype = format::DType::F32;
  // By the layers of a stack: the tensor itself, or its parts, of which each layer has a fold of its own. Their names lack the
  // prefix of the stack alone.
  bool shared = false, shared_parts = false;
};

// How an op treats its states from token to token. It decides what they may be stored as: state_type.h.
enum class StateKind : uint8_t {
  kSum,       // adds, and forgets nothing
  kDelta,     // adds and removes, without decay
  kMean,      // running means: the later the token, the smaller its step
  kDecaying,  // forgets
  kLasting,   // forgets less at a token than half precision resolves
  kOnce,      // written once, in slots
  kRows,      // written once, as rows of a cache
  kSource,    // written once, when the whole source has been seen
};

// What a state needs if it is stored as I8: its scales, right behind states[after].
struct StateScales {
  uint32_t after;
  GraphState state;
};

class GraphBuilder;

// Attention that is a graph of several ops. Its op has neither type nor attributes.
struct ComposedAttention {
  // From q, k and v, which are projected as for other systems: the output. `prefix`: before its ops and tensors.
  using Heads = std::function<format::Slice(GraphBuilder* builder, const std::string& prefix, format::Slice q, format::Slice k,
                                            format::Slice v)>;
  // From the layer input and the rows of a pack, which goes from layer to layer: what the residual adds to either.
  struct Packed {
    format::Slice x, pack;
  };
  using Pack = std::function<Packed(GraphBuilder* builder, const std::string& prefix, format::Slice x, format::Slice pack)>;

  Heads heads;  // one of the two
  Pack pack;
  uint32_t pack_rows = 0;
  bool pack_norm_first = false;  // the norm of the pack stands before the attention; else behind its residual
};

struct AttentionOp {
  std::string system;
  format::OpAttributes type = format::OpAttributes::NONE;
  AttributeWriter attributes;       // cross attention: of the part that writes the states
  AttributeWriter read_attributes;  // cross attention: of the part that reads them
  std::vector<LogitInput> logits;
  std::optional<DrawnInput> drawn;
  std::vector<AttentionTensor> tensors;
  std::vector<GraphState> states;
  StateKind state_kind = StateKind::kSource;
  uint32_t num_sized_states = 0;    // the first ones: those whose dtype is a choice
  std::vector<StateScales> scales;  // of these, in their order; none where there is no I8 form
  std::optional<ComposedAttention> composed;
  bool reads_qk = true;               // else v alone: the layer has no projections into q and k
  std::vector<const char*> features;  // that readers must understand for it: names of required_features
  // Rule "replace": behind its logits the op reads the keys once more, as removal keys. With `blends_keys` they write k (1 - c (1 -
  // sigmoid(its last logits))), c being the tensor "k_blend" of the layer.
  bool reads_removal = false, blends_keys = false;
  bool reads_global = false;  // behind v: q, k and v of the attention of global tokens, projections of their own
};

// Variants whose attention is made by the same ops: as in schema/tarn.fbs, "" where there is none of that form.
struct AttentionFamily {
  const char* name;
  const char* causal_op;
  const char* noncausal_op;  // of the cross form, too
};

// The forms that a system has, as bits.
constexpr uint32_t FormBit(AttentionForm form) { return 1u << static_cast<uint32_t>(form); }
static_assert(FormBit(AttentionForm::kCausal) == kCausalForm && FormBit(AttentionForm::kNoncausal) == kNoncausalForm &&
              FormBit(AttentionForm::kCross) == kCrossForm);

// One line of the table, and what people ask about the system.
struct AttentionSystem {
  const char* name;
  const AttentionFamily& family;
  uint32_t forms;
  AttentionOp (*parse)(Fields* fields, const AttentionContext& context);
  const char* token_loop;  // when a prompt is read token by token: nullptr never, "" always, else the condition
  const char* bound;       // the field that says where a sequence ends, and when; "" where none does
};

// Every system of the checkpoint format, in the order of the documentation.
Span<const AttentionSystem> AttentionSystems();

// "causal, cross"
std::string FormsText(uint32_t forms);

// Reads {"system": NAME, ...}; `where` begins every message.
// Errors: an unknown system, one without the form that the context wants, an unknown field, a missing one, a wrong type or value,
// a combination that makes no sense.
AttentionOp ParseAttention(const Json& object, const std::string& where, const AttentionContext& context);

// Whether the system has that form; false for an unknown one.
bool HasForm(const std::string& system, AttentionForm form);

// The names of all systems, in the order of the table; the forms of one: FormBit; 0 for an unknown one.
std::vector<std::string> SystemNames();
// Those whose attention objects may have that field, in any form and with any value of the others.
std::vector<std::string> SystemsWithField(const std::string& key);
// Names for a message: "\"gla\" and \"gsa\"", "\"rfa\", \"t2r\", \"dpfp\" and 9 more".
std::string QuotedNames(const std::vector<std::string>& names);
uint32_t FormsOf(const std::string& system);
std::optional<AttentionFamily> FamilyOf(const std::string& system);

// A model of no special shape, which every system takes; its sizes differ from all defaults.
inline constexpr uint32_t kSampleHidden = 84, kSampleHeads = 6, kSampleHeadDim = 14;
AttentionContext SampleContext(AttentionForm form);

// The fields that the parser of a system reads in that context, with every value of its choices.
std::vector<FieldRun> ExploreAttention(const std::string& system, const AttentionContext& context);

// An op over whole sequences: type and attributes as the form wants them. `part` writes those of one part.
using PartWriter = std::function<AttributeWriter(format::NoncausalPart part)>;
void SetNoncausalOp(AttentionForm form, format::OpAttributes type, const PartWriter& part, AttentionOp* op);

// A state of a sequence as a variant has it, F32.
GraphState ToGraphState(const StateInfo& info);

// A state of a source, F32.
GraphState SourceState(const std::string& name, std::vector<uint32_t> shape, int8_t source_axis = -1);

// The least decays of a gate in this layer as a tensor of that name and shape, of one [layers, elements] that all layers share
// (HGRN): the sum of its softmax over layers from the second to this one.
AttentionTensor LowerBounds(const std::string& name, std::vector<uint32_t> shape, const AttentionContext& context);

// d^-1/2, of q . k in most systems
float DefaultScale(const format::Heads& heads);

// One function per system.
AttentionOp ParseRfa(Fields* fields, const AttentionContext& context);
AttentionOp ParseRfaNormfree(Fields* fields, const AttentionContext& context);
AttentionOp ParseLinearTransformer(Fields* fields, const AttentionContext& context);
AttentionOp ParsePerformerTrig(Fields* fields, const AttentionContext& context);
AttentionOp ParsePerformerPositive(Fields* fields, const AttentionContext& context);
AttentionOp ParsePerformerRelu(Fields* fields, const AttentionContext& context);
AttentionOp ParseDpfp(Fields* fields, const AttentionContext& context);
AttentionOp ParseLinearAttention(Fields* fields, const AttentionContext& context);
AttentionOp ParseDeltaRule(Fields* fields, const AttentionContext& context);
AttentionOp ParseDeltaNet(Fields* fields, const AttentionContext& context);
AttentionOp ParseGatedDeltaNet(Fields* fields, const AttentionContext& context);
AttentionOp ParseT2r(Fields* fields, const AttentionContext& context);
AttentionOp ParseGla(Fields* fields, const AttentionContext& context);
AttentionOp ParseHgrn2(Fields* fields, const AttentionContext& context);
AttentionOp ParseMamba2(Fields* fields, const AttentionContext& context);
AttentionOp ParseRwkv7(Fields* fields, const AttentionContext& context);
AttentionOp ParseRetNet(Fields* fields, const AttentionContext& context);

AttentionOp ParseAbcMlp(Fields* fields, const AttentionContext& context);
AttentionOp ParseLinformer(Fields* fields, const AttentionContext& context);
AttentionOp ParseCompressiveMean(Fields* fields, const AttentionContext& context);
AttentionOp ParseAbcRd(Fields* fields, const AttentionContext& context);
AttentionOp ParseL2gGlobal(Fields* fields, const AttentionContext& context);
AttentionOp ParseGsa(Fields* fields, const AttentionContext& context);
AttentionOp ParseLunaCausal(Fields* fields, const AttentionContext& context);
AttentionOp ParseClusteringOnline(Fields* fields, const AttentionContext& context);
AttentionOp ParseKvClustering(Fields* fields, const AttentionContext& context);
AttentionOp ParseSlotAttention(Fields* fields, const AttentionContext& context);

AttentionOp ParseSoftmax(Fields* fields, const AttentionContext& context);
AttentionOp ParseSlidingWindow(Fields* fields, const AttentionContext& context);
AttentionOp ParseDilatedWindow(Fields* fields, const AttentionContext& context);
AttentionOp ParseStridedWindow(Fields* fields, const AttentionContext& context);
AttentionOp ParseL2gWindow(Fields* fields, const AttentionContext& context);
AttentionOp ParseCompressiveTransformer(Fields* fields, const AttentionContext& context);
AttentionOp ParseMemoryCompressed(Fields* fields, const AttentionContext& context);
AttentionOp ParseCacheAttention(Fields* fields, const AttentionContext& context);

AttentionOp ParseShortConv(Fields* fields, const AttentionContext& context);
AttentionOp ParseDiagonalRecurrence(Fields* fields, const AttentionContext& context);
AttentionOp ParseRgLru(Fields* fields, const AttentionContext& context);

AttentionOp ParseClustered(Fields* fields, const AttentionContext& context);
AttentionOp ParseImprovedClustered(Fields* fields, const AttentionContext& context);
AttentionOp ParsePoolingformer(Fields* fields, const AttentionContext& context);
AttentionOp ParseLunaEncoder(Fields* fields, const AttentionContext& context);
AttentionOp ParseProbSparse(Fields* fields, const AttentionContext& context);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_ATTENTION_H_
