// Adds values, tensors and ops to a Graph, and remembers which checkpoint tensors it took.
//
// Precision is decided here: what goes in as a matrix of a dense layer or an embedding gets the dtype that the rules say; norms,
// biases and constants of attention ops stay F32.
#ifndef TARN_TOOLS_CONVERT_BUILD_GRAPH_BUILDER_H_
#define TARN_TOOLS_CONVERT_BUILD_GRAPH_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/attention/attention.h"
#include "tools/convert/graph/graph.h"
#include "tools/convert/graph/precision.h"
#include "variants/limits.h"

namespace tarn::convert {

constexpr uint32_t kMaxWidth = 1u << 24;  // of a value

// One of the projections that a dense layer holds: rows of its weight and, with a bias, of its bias.
struct DenseRows {
  std::string name;  // in the checkpoint, without ".weight"
  uint32_t rows;
  bool bias;
  Init weight_init = Init::kLinear;
  Init bias_init = Init::kZero;
};

// A tensor that the rules had a say about.
struct Matrix {
  std::string name;  // in the file
  Precision precision;
  Precision wanted;  // what was asked for; `precision` is int8 instead where rows do not fill its blocks
};

class GraphBuilder {
 public:
  explicit GraphBuilder(PrecisionRules rules) : rules_(std::move(rules)) {}

  Graph& graph() { return graph_; }
  // What readers must understand: a name of required_features.
  void Need(const char* feature) { graph_.features.insert(feature); }
  // A new program, to which values and ops are added from now on. There has to be one before them.
  void BeginProgram(const std::string& name) { graph_.programs.push_back({name, {}, {}, 0, {}}); }
  GraphProgram& program() { return graph_.programs.back(); }
  // Every checkpoint tensor that the graph is made of, once.
  const std::vector<WeightSpec>& weights() const { return weights_; }
  // Checkpoint tensors that the graph has no use for, and that may be there if they equal another one.
  const std::vector<TiedWeight>& tied() const { return tied_; }
  void AddTied(TiedWeight tied) { tied_.push_back(std::move(tied)); }
  // When all matrices are there. Errors: a rule that no matrix has matched.
  void CheckRules() const;
  const std::vector<Matrix>& matrices() const { return matrices_; }

  // A new value of the program, whole. `rows`: of time Fixed.
  format::Slice AddValue(const std::string& name, uint32_t width, format::Time time = format::Time::Tokens,
                         format::DType dtype = format::DType::F32, uint32_t rows = 0);

  // A tensor of the file from checkpoint tensors; the index of the tensor. The same name gives the same tensor again, so that
  // layers may share it. Errors: the same name with another shape.
  // A matrix [rows, columns] is stored as the rules say. int4, int3 and int2 go in blocks of columns: where they do not fill their
  // blocks they become int8. Errors: a rule asks for one of them there.
  // `narrowest`: what it is stored as at most, unless a rule names it.
  uint32_t AddMatrix(const std::string& name, std::vector<WeightSpec> rows, Precision narrowest = Precision::kInt2);
  // A constant is F32, or I32 without a fold.
  uint32_t AddConstant(const std::string& name, const std::vector<uint32_t>& shape, std::vector<WeightSpec> parts,
                       Fold fold = nullptr, format::DType dtype = format::DType::F32);
  // I32 [values], which no checkpoint has.
  uint32_t AddIntegers(const std::string& name, std::vector<int32_t> values);
  // weight and, for layer norms, bias
  std::vector<uint32_t> AddNormTensors(const std::string& name, format::NormKind kind, uint32_t width);

  // A state of a sequence; its index. States stand in the order of the ops that own them.
  uint32_t AddState(GraphState state);

  void AddOp(GraphOp op) { program().ops.push_back(std::move(op)); }
  // An op with a new value of its name as its only output, which is returned. It has as many rows as the first input.
  format::Slice AddOp(const std::string& name, format::OpAttributes type, AttributeWriter attributes,
                      std::vector<format::Slice> inputs, uint32_t width, std::vector<uint32_t> tensors = {});

  // y = x W^T + b with the rows of several projections. `tensor` is the name of the result in the file, without ".weight".
  // `narrowest`: as in AddMatrix.
  format::Slice AddDense(const std::string& name, const std::string& tensor, const std::vector<DenseRows>& parts, format::Slice x,
                         Precision narrowest = Precision::kInt2);

  // The op that draws an input of the attention op `name`.
  format::Slice AddDrawn(const std::string& name, const DrawnInput& drawn);
  // Attention of a sequence to itself. `inputs`: q, k, v, the op's logits and what is drawn. `prefix` ("model.layers.0.attn.")
  // stands before its tensors in checkpoint and file, `shared_prefix` before those that layers share.
  format::Slice AddAttention(const std::string& name, const std::string& prefix, const AttentionOp& op, const format::Heads& heads,
                             std::vector<format::Slice> inputs, const std::string& shared_prefix = "");
  // Cross attention, in two programs. The part that writes has the inputs without q, and returns the states that it owns; the part
  // that reads has q and those states.
  std::vector<uint32_t> AddAttentionWrite(const std::string& name, const std::string& prefix, const AttentionOp& op,
                                          std::vector<format::Slice> inputs);
  format::Slice AddAttentionRead(const std::string& name, const std::string& prefix, const AttentionOp& op,
                                 const format::Heads& heads, format::Slice q, std::vector<uint32_t> states);

 private:
  // A new value with as many rows as another one.
  format::Slice AddValueLike(format::Slice model, const std::string& name, uint32_t width);
  uint32_t AddTensor(GraphTensor tensor);
  Matrix ChoosePrecision(const GraphTensor& tensor, Precision narrowest);
  void Use(const std::vector<WeightSpec>& specs);
  std::vector<uint32_t> AddAttentionTensors(const std::string& prefix, const AttentionOp& op,
                                            const std::string& shared_prefix = "");
  std::vector<uint32_t> AddAttentionStates(const std::string& name, const AttentionOp& op);
  uint32_t AddDenseBias(const std::string& name, const std::vector<DenseRows>& parts);

  PrecisionRules rules_;
  Graph graph_;
  std::vector<WeightSpec> weights_;
  std::vector<TiedWeight> tied_;
  std::map<std::string, std::vector<uint32_t>> used_;  // checkpoint tensor -> shape
  std::map<std::string, uint32_t> tensor_of_;          // file tensor -> index
  std::vector<Matrix> matrices_;
};

// The attributes of an op that has none.
template <typename Create>
AttributeWriter NoAttributes(Create create) {
  return [create](flatbuffers::FlatBufferBuilder& builder) { return create(builder).Union(); };
}

// Columns [begin, begin + width) of a slice.
inline format::Slice Columns(format::Slice slice, uint32_t begin, uint32_t width) {
  return format::Slice(slice.value(), slice.begin() + begin, width);
}

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_GRAPH_BUILDER_H_
