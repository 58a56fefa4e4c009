// What a verified FlatBuffer can still get wrong: indices, ranges, the order of writes and reads. FORMAT.md, "What a reader
// checks".
#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/arith.h"
#include "runtime/model/model.h"

namespace tarn {
namespace {

using flatbuffers::Vector;

constexpr uint32_t kMaxValueWidth = 1u << 24;
constexpr uint32_t kMaxVocabulary = 1u << 24;
constexpr uint32_t kMaxFixedRows = 1u << 16;

// More than a model of five hundred layers has, and few enough for what is quadratic in them (planner).
constexpr uint32_t kMaxListed = 1u << 13;  // values, ops, tensors, states
constexpr uint32_t kMaxOperands = 16;      // of one op, of each kind; inputs and outputs of a program

// What this reader understands beyond version 1.0 (schema/tarn.fbs, required_features).
constexpr const char* kFeatures[] = {"int4",          "f16_weights",      "programs",
                                     "tokenizer",     "rope_frequencies", "activations",
                                     "grouped_norm",  "soft_cap",         "sinusoid_frequencies",
                                     "causal_conv",   "gated_delta",      "distance_bias",
                                     "products",      "recurrence",       "tied_gate",
                                     "skip",          "token_mix",        "int3",
                                     "int2",          "feature_maps",     "global_rows",
                                     "value_control", "compression",      "shortlist"};

bool HasProgram(format::Task task, Stage stage) {
  return task == format::Task::Seq2Seq || (stage == Stage::kDecode) == (task == format::Task::CausalLm);
}

template <typename T>
Status CheckCount(const Vector<T>* list, uint32_t least, uint32_t most, const char* what) {
  const uint32_t count = list == nullptr ? 0 : list->size();
  if (count >= least && count <= most) return Ok();
  return Error(TARN_BAD_FORMAT, "%s: %u found, %u to %u expected", what, count, least, most);
}

Status CheckFeatures(const format::Model& graph) {
  if (graph.required_features() == nullptr) return Ok();
  for (const flatbuffers::String* feature : *graph.required_features()) {
    const auto is_known = [feature](const char* name) { return std::strcmp(feature->c_str(), name) == 0; };
    if (std::any_of(std::begin(kFeatures), std::end(kFeatures), is_known)) continue;
    return Error(TARN_UNSUPPORTED, "the file needs feature '%s', which this version does not have; use a newer one",
                 feature->c_str());
  }
  return Ok();
}

// I8: f32, one scale per element of the first dimension. I4, I3 and I2: bf16, one per block of a row.
Status CheckScalesOf(const format::Model& graph, const format::Tensor& tensor, const Shape& shape) {
  const bool blockwise = IsBlockwise(static_cast<DType>(tensor.dtype()));
  const bool quantized = blockwise || tensor.dtype() == format::DType::I8;
  if (quantized != (tensor.scales() >= 0)) {
    return Error(TARN_BAD_FORMAT, "scales are %s", quantized ? "missing" : "given for a tensor that is neither i8, i4, i3 nor i2");
  }
  if (!quantized) return Ok();
  if (blockwise && (shape.rank != 2 || shape.dims[1] % kScaleBlock != 0)) {
    return Error(TARN_BAD_FORMAT, "%s of %u dimensions, the last of %u; 2 expected, the last a multiple of %u",
                 DTypeName(static_cast<DType>(tensor.dtype())), shape.rank, shape.dims[shape.rank - 1], kScaleBlock);
  }
  if (static_cast<uint32_t>(tensor.scales()) >= graph.tensors()->size()) {
    return Error(TARN_BAD_FORMAT, "scales: tensor %d of %u", tensor.scales(), graph.tensors()->size());
  }
  const format::Tensor& scales = *graph.tensors()->Get(static_cast<uint32_t>(tensor.scales()));
  TARN_ASSIGN_OR_RETURN(const Shape found, ReadShape(*scales.shape()));
  if (blockwise) {
    const uint32_t blocks = shape.dims[1] / kScaleBlock;
    if (scales.dtype() == format::DType::BF16 && found.Is({shape.dims[0], blocks})) return Ok();
    return Error(TARN_BAD_FORMAT, "scales '%s': bf16 [%u, %u] expected", scales.name()->c_str(), shape.dims[0], blocks);
  }
  if (scales.dtype() == format::DType::F32 && found.Is({shape.dims[0]})) return Ok();
  return Error(TARN_BAD_FORMAT, "scales '%s': f32 [%u] expected", scales.name()->c_str(), shape.dims[0]);
}

Status CheckTensor(const format::Model& graph, const format::Tensor& tensor, uint64_t weight_bytes) {
  if (!IsDType(static_cast<uint8_t>(tensor.dtype()))) {
    return Error(TARN_BAD_FORMAT, "unknown dtype %u", static_cast<unsigned>(tensor.dtype()));
  }
  TARN_ASSIGN_OR_RETURN(const Shape shape, ReadShape(*tensor.shape()));
  const uint64_t bytes = DataBytes(static_cast<DType>(tensor.dtype()), shape.elements);
  uint64_t end = 0;
  if (tensor.offset() % kAlignment != 0 || !CheckedAdd(tensor.offset(), bytes, &end) || end > weight_bytes) {
    return Error(TARN_BAD_FORMAT, "offset %llu and %llu bytes do not lie in the weight section of %llu bytes at a multiple of %zu",
                 static_cast<unsigned long long>(tensor.offset()), static_cast<unsigned long long>(bytes),
                 static_cast<unsigned long long>(weight_bytes), kAlignment);
  }
  return CheckScalesOf(graph, tensor, shape);
}

// Tensors lie one after the other: no byte means two things.
Status CheckOrder(const format::Model& graph) {
  uint64_t end = 0;
  for (const format::Tensor* tensor : *graph.tensors()) {
    if (tensor->offset() < end) {
      return Error(TARN_BAD_FORMAT, "tensor '%s': offset %llu lies before the end of the tensor before it, %llu",
                   tensor->name()->c_str(), static_cast<unsigned long long>(tensor->offset()),
                   static_cast<unsigned long long>(end));
    }
    end = tensor->offset() + DataBytes(static_cast<DType>(tensor->dtype()), ReadShape(*tensor->shape()).value().elements);
  }
  return Ok();
}

Status CheckState(const format::State& state) {
  if (!IsDType(static_cast<uint8_t>(state.dtype()))) {
    return Error(TARN_BAD_FORMAT, "unknown dtype %u", static_cast<unsigned>(state.dtype()));
  }
  if (state.owner() > format::Owner::MAX) {
    return Error(TARN_BAD_FORMAT, "unknown owner %u", static_cast<unsigned>(state.owner()));
  }
  TARN_ASSIGN_OR_RETURN(const Shape shape, ReadShape(*state.shape()));
  const int axis = state.source_axis();
  if (axis == -1) return Ok();
  const bool fits = state.owner() == format::Owner::Source && axis >= 0 && static_cast<uint32_t>(axis) < shape.rank;
  if (fits && shape.dims[axis] == 1) return Ok();
  return Error(TARN_BAD_FORMAT, "source_axis %d: a dimension of 1 of a source's state expected", axis);
}

Status CheckValue(const format::Value& value) {
  if (value.dtype() != format::DType::F32 && value.dtype() != format::DType::I32) {
    return Error(TARN_BAD_FORMAT, "dtype %u, f32 or i32 expected", static_cast<unsigned>(value.dtype()));
  }
  if (value.width() < 1 || value.width() > kMaxValueWidth) {
    return Error(TARN_BAD_FORMAT, "width %u, 1 to %u expected", value.width(), kMaxValueWidth);
  }
  if (value.time() > format::Time::MAX) {
    return Error(TARN_BAD_FORMAT, "unknown time %u", static_cast<unsigned>(value.time()));
  }
  const uint32_t least = value.time() == format::Time::Fixed ? 1 : 0;
  const uint32_t most = value.time() == format::Time::Fixed ? kMaxFixedRows : 0;
  if (value.rows() < least || value.rows() > most) {
    return Error(TARN_BAD_FORMAT, "rows %u, %u to %u expected", value.rows(), least, most);
  }
  return Ok();
}

Status CheckIndices(const Vector<uint32_t>* indices, uint32_t count, const char* what) {
  if (indices == nullptr) return Ok();
  for (const uint32_t index : *indices) {
    if (index >= count) return Error(TARN_BAD_FORMAT, "%s %u of %u", what, index, count);
  }
  return Ok();
}

Status CheckSlice(const format::Program& program, const format::Slice& slice) {
  if (slice.value() >= program.values()->size()) {
    return Error(TARN_BAD_FORMAT, "value %u of %u", slice.value(), program.values()->size());
  }
  const uint32_t width = program.values()->Get(slice.value())->width();
  if (slice.width() < 1 || uint64_t{slice.begin()} + slice.width() > width) {
    return Error(TARN_BAD_FORMAT, "columns %u + %u of a value of %u", slice.begin(), slice.width(), width);
  }
  return Ok();
}

// How far the numbering of values and states has come: the next one that an op may write or own.
struct Numbering {
  uint32_t value;
  uint32_t state;
};

Status CheckNext(const Vector<uint32_t>* indices, const char* what, uint32_t* next) {
  for (uint32_t i = 0; indices != nullptr && i < indices->size(); ++i) {
    if (indices->Get(i) != *next) {
      return Error(TARN_BAD_FORMAT, "%s %u is %u, %u is the next in order", what, i, indices->Get(i), *next);
    }
    ++*next;
  }
  return Ok();
}

// An op owns the next states, "encode" those of sources and "decode" those of sequences; or, in "decode", it names again successive
// states of sources.
Status CheckStates(const format::Model& graph, const Vector<uint32_t>* states, Stage stage, uint32_t* next) {
  if (states == nullptr || states->size() == 0) return Ok();
  const uint32_t first = states->Get(0);
  const bool owns = stage == Stage::kEncode || first == *next;
  uint32_t expected = first;
  TARN_RETURN_IF_ERROR(CheckNext(states, "state", owns ? next : &expected));
  const format::Owner owner = stage == Stage::kEncode || !owns ? format::Owner::Source : format::Owner::Sequence;
  for (const uint32_t index : *states) {
    if (index >= graph.states()->size()) return Error(TARN_BAD_FORMAT, "state %u of %u", index, graph.states()->size());
    const format::State& state = *graph.states()->Get(index);
    if (state.owner() == owner && (owns || index < *next)) continue;
    return Error(TARN_BAD_FORMAT, "state '%s' belongs to %s: program '%s' %s one", state.name()->c_str(),
                 state.owner() == format::Owner::Source ? "a source" : "a sequence", StageName(stage),
                 owns ? "cannot own such" : "cannot name again such");
  }
  return Ok();
}

Status CheckOp(const format::Model& graph, const format::Program& program, Stage stage, const format::Op& op, Numbering* next) {
  if (op.attributes_type() == format::OpAttributes::NONE || op.attributes_type() > format::OpAttributes::MAX) {
    return Error(TARN_UNSUPPORTED, "op kind %u is not known to this version", static_cast<unsigned>(op.attributes_type()));
  }
  TARN_RETURN_IF_ERROR(CheckCount(op.inputs(), 0, kMaxOperands, "inputs"));
  TARN_RETURN_IF_ERROR(CheckCount(op.outputs(), 0, kMaxOperands, "outputs"));
  TARN_RETURN_IF_ERROR(CheckCount(op.tensors(), 0, kMaxOperands, "tensors"));
  TARN_RETURN_IF_ERROR(CheckCount(op.states(), 0, kMaxOperands, "states"));
  TARN_RETURN_IF_ERROR(CheckIndices(op.tensors(), graph.tensors()->size(), "tensor"));
  for (uint32_t i = 0; op.inputs() != nullptr && i < op.inputs()->size(); ++i) {
    const format::Slice& slice = *op.inputs()->Get(i);
    TARN_RETURN_IF_ERROR(CheckSlice(program, slice).In("input %u", i));
    if (slice.value() >= next->value) return Error(TARN_BAD_FORMAT, "input %u is read before it is written", i);
  }
  TARN_RETURN_IF_ERROR(CheckNext(op.outputs(), "output", &next->value));
  return CheckStates(graph, op.states(), stage, &next->state);
}

Status CheckProgram(const format::Model& graph, const format::Program& program, Stage stage, uint32_t* next_state) {
  TARN_RETURN_IF_ERROR(CheckCount(program.values(), 1, kMaxListed, "values"));
  TARN_RETURN_IF_ERROR(CheckCount(program.ops(), 1, kMaxListed, "ops"));
  TARN_RETURN_IF_ERROR(CheckCount(program.outputs(), 1, kMaxOperands, "outputs"));
  TARN_RETURN_IF_ERROR(CheckIndices(program.outputs(), program.values()->size(), "output value"));
  if (program.num_inputs() < 1 || program.num_inputs() > kMaxOperands || program.num_inputs() > program.values()->size()) {
    return Error(TARN_BAD_FORMAT, "num_inputs is %u of %u values", program.num_inputs(), program.values()->size());
  }
  const bool has_outputs = stage == Stage::kDecode || graph.task() == format::Task::MaskedLm;
  for (const format::Value* value : *program.values()) {
    TARN_RETURN_IF_ERROR(CheckValue(*value).In("value '%s'", value->name()->c_str()));
    if (value->time() != format::Time::Outputs || has_outputs) continue;
    return Error(TARN_BAD_FORMAT, "value '%s' has a row per output, but nobody asks for any", value->name()->c_str());
  }
  Numbering next{program.num_inputs(), *next_state};
  for (const format::Op* op : *program.ops()) {
    TARN_RETURN_IF_ERROR(CheckOp(graph, program, stage, *op, &next).In("op '%s'", op->name()->c_str()));
  }
  *next_state = next.state;
  if (next.value == program.values()->size()) return Ok();
  return Error(TARN_BAD_FORMAT, "%u of %u values are written", next.value, program.values()->size());
}

Status CheckPrograms(const format::Model& graph) {
  if (graph.task() > format::Task::MAX) {
    return Error(TARN_UNSUPPORTED, "task %u is not known to this version", static_cast<unsigned>(graph.task()));
  }
  uint32_t next_program = 0, next_state = 0;
  for (const Stage stage : kStages) {
    if (!HasProgram(graph.task(), stage)) continue;
    if (next_program >= graph.programs()->size() ||
        graph.programs()->Get(next_program)->name()->string_view() != StageName(stage)) {
      return Error(TARN_BAD_FORMAT, "program %u: '%s' expected, task %s has it", next_program, StageName(stage),
                   TaskName(graph.task()));
    }
    const format::Program& program = *graph.programs()->Get(next_program++);
    TARN_RETURN_IF_ERROR(CheckProgram(graph, program, stage, &next_state).In("program '%s'", program.name()->c_str()));
  }
  if (next_program != graph.programs()->size()) {
    return Error(TARN_UNSUPPORTED, "%u programs found, task %s has %u", graph.programs()->size(), TaskName(graph.task()),
                 next_program);
  }
  if (next_state == graph.states()->size()) return Ok();
  return Error(TARN_BAD_FORMAT, "%u of %u states belong to an op", next_state, graph.states()->size());
}

Status CheckVocabulary(const char* what, uint32_t size, const format::Tokenizer& tokenizer) {
  if (size < 1 || size > kMaxVocabulary) return Error(TARN_BAD_FORMAT, "%s is %u, 1 to %u expected", what, size, kMaxVocabulary);
  if (tokenizer.kind() == format::TokenizerKind::Bytes && size != 256) {
    return Error(TARN_BAD_FORMAT, "a byte tokenizer needs %s 256, found %u", what, size);
  }
  return Ok();
}

Status CheckTokenId(const char* what, int32_t id, uint32_t vocab_size) {
  if (id >= -1 && id < static_cast<int64_t>(vocab_size)) return Ok();
  return Error(TARN_BAD_FORMAT, "%s is %d, -1 to %u expected", what, id, vocab_size - 1);
}

Status CheckTokens(const format::Model& graph) {
  if (graph.tokenizer()->kind() > format::TokenizerKind::MAX) {
    return Error(TARN_UNSUPPORTED, "tokenizer kind %u is not known to this version",
                 static_cast<unsigned>(graph.tokenizer()->kind()));
  }
  TARN_RETURN_IF_ERROR(CheckVocabulary("vocab_size", graph.vocab_size(), *graph.tokenizer()));
  if (graph.source_vocab_size() != 0) {
    TARN_RETURN_IF_ERROR(CheckVocabulary("source_vocab_size", graph.source_vocab_size(), *graph.tokenizer()));
  }
  TARN_RETURN_IF_ERROR(CheckTokenId("bos_token", graph.bos_token(), graph.vocab_size()));
  TARN_RETURN_IF_ERROR(CheckTokenId("eos_token", graph.eos_token(), graph.vocab_size()));
  return CheckTokenId("mask_token", graph.mask_token(), graph.vocab_size());
}

}  // namespace

Status Validate(const format::Model& graph, uint64_t weight_bytes) {
  TARN_RETURN_IF_ERROR(CheckFeatures(graph));
  TARN_RETURN_IF_ERROR(CheckTokens(graph));
  TARN_RETURN_IF_ERROR(CheckCount(graph.tensors(), 0, kMaxListed, "tensors"));
  TARN_RETURN_IF_ERROR(CheckCount(graph.states(), 0, kMaxListed, "states"));
  for (const format::Tensor* tensor : *graph.tensors()) {
    TARN_RETURN_IF_ERROR(CheckTensor(graph, *tensor, weight_bytes).In("tensor '%s'", tensor->name()->c_str()));
  }
  TARN_RETURN_IF_ERROR(CheckOrder(graph));
  for (const format::State* state : *graph.states()) {
    TARN_RETURN_IF_ERROR(CheckState(*state).In("state '%s'", state->name()->c_str()));
  }
  return CheckPrograms(graph);
}

}  // namespace tarn
