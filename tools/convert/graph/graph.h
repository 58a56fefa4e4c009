// The model that is to be written, in the terms of schema/tarn.fbs, before it has bytes.
#ifndef TARN_TOOLS_CONVERT_GRAPH_GRAPH_H_
#define TARN_TOOLS_CONVERT_GRAPH_GRAPH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "schema/tarn_generated.h"
#include "tools/convert/checkpoint/weights.h"

namespace tarn::convert {

// Computes a tensor from whole checkpoint tensors, one vector each.
using Fold = std::function<std::vector<float>(const std::vector<std::vector<float>>& parts)>;

// A tensor of the file. Its data: `integers`, or `fold` of the parts, or without a fold the rows of the parts, one after the other.
// The tensor right after an I8, I4, I3 or I2 tensor holds its scales; those come out of the quantization and have no parts.
struct GraphTensor {
  std::string name;
  format::DType dtype;
  std::vector<uint32_t> shape;
  std::vector<WeightSpec> parts;
  Fold fold;
  int32_t scales = -1;
  std::shared_ptr<const std::vector<int32_t>> integers = nullptr;  // of I32, without parts
};

struct GraphValue {
  std::string name;
  format::DType dtype;
  uint32_t width;
  format::Time time;
  uint32_t rows;  // of time Fixed; else 0
};

struct GraphState {
  std::string name;
  std::vector<uint32_t> shape;
  format::DType dtype = format::DType::F32;
  format::Owner owner = format::Owner::Sequence;
  int8_t source_axis = -1;
};

// Creates the attribute table of an op in a FlatBuffer.
using AttributeWriter = std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder&)>;

struct GraphOp {
  std::string name;
  format::OpAttributes type;
  AttributeWriter attributes;
  std::vector<format::Slice> inputs;
  std::vector<uint32_t> outputs;  // values
  std::vector<uint32_t> tensors, states;
};

struct GraphProgram {
  std::string name;  // "encode", "decode"
  // Values stand in the order in which they are written: first the inputs, then the outputs of every op.
  std::vector<GraphValue> values;
  std::vector<GraphOp> ops;
  uint32_t num_inputs = 0;
  std::vector<uint32_t> outputs;
};

// What the precision costs: mean losses over the same tokens. `scored` 0: not measured.
struct MeasuredLoss {
  uint64_t scored = 0;
  double nats_f32 = 0, nats = 0;
};

// Creates the table of a tokenizer in a FlatBuffer.
using TokenizerWriter = std::function<flatbuffers::Offset<format::Tokenizer>(flatbuffers::FlatBufferBuilder*)>;

// The same for a chat template.
using ChatWriter = std::function<flatbuffers::Offset<format::ChatTemplate>(flatbuffers::FlatBufferBuilder*)>;

struct Graph {
  format::Task task = format::Task::CausalLm;
  uint32_t vocab_size = 0;
  uint32_t source_vocab_size = 0;                           // Seq2Seq
  int32_t bos_token = -1, eos_token = -1, mask_token = -1;  // -1: none
  uint64_t first_position = 0;
  std::set<std::string> features;  // of ops and types, which older readers lack: names of required_features
  format::TokenizerKind tokenizer = format::TokenizerKind::None;
  TokenizerWriter tokenizer_writer;     // of a kind that has tables
  ChatWriter chat_writer;               // empty: no chat template
  std::string name, precision, source;  // metadata
  MeasuredLoss loss;

  std::vector<GraphTensor> tensors;
  std::vector<GraphState> states;  // in the order of the ops that own them, program after program
  std::vector<GraphProgram> programs;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_GRAPH_GRAPH_H_
