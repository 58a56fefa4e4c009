#include "tools/tarn/program_graph.h"

#include <tarn/inspect.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tools/common/shape_text.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr size_t kLongestPeriod = 8;  // layers that alternate

// An op of the model, before layers are folded.
struct RawOp {
  std::string name, kind, detail, program;
  std::string layers;  // "decoder.layers"; empty outside of layers
  std::string layer;   // "3"
  std::vector<std::string> inputs, outputs;
  std::vector<GraphArray> states, tensors;
};

// A range of raw ops: a layer, or ops outside of layers.
struct Range {
  size_t begin, end;
};

// "a[0:4], b" -> "a", "b". The list fills `room` where it was cut: its last name is not to be trusted then.
std::vector<std::string> Values(const std::string& list, size_t room) {
  std::vector<std::string> values;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(", ", begin), list.size());
    if (end == list.size() && list.size() + 1 >= room) break;
    const std::string value = list.substr(begin, std::min(list.find('[', begin), end) - begin);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    begin = end + 2;
  }
  return values;
}

// Cuts "decoder.layers.3.attn" into "decoder.layers" and "3".
void FindLayer(RawOp* op) {
  constexpr char kLayers[] = "layers.";
  constexpr size_t kSize = sizeof(kLayers) - 1;
  for (size_t at = op->name.find(kLayers); at != std::string::npos; at = op->name.find(kLayers, at + 1)) {
    const size_t end = op->name.find_first_not_of("0123456789", at + kSize);
    if ((at > 0 && op->name[at - 1] != '.') || end == at + kSize || end == std::string::npos || op->name[end] != '.') continue;
    op->layers = op->name.substr(0, at + kSize - 1);
    op->layer = op->name.substr(at + kSize, end - at - kSize);
    return;
  }
}

std::string InLayer(const RawOp& op) {
  return op.layers.empty() ? op.name : op.name.substr(op.layers.size() + op.layer.size() + 2);
}

using Ops = std::vector<RawOp*>;
using OpsByName = std::map<std::string, Ops>;
using OpsByArray = std::map<uint32_t, Ops>;  // those that read it

// The ops whose name begins `name`, longest first.
Ops OwnersByName(const OpsByName& ops, const std::string& name) {
  const size_t skipped = name.compare(0, 6, "model.") == 0 ? 6 : 0;
  for (size_t end = name.size(); end != std::string::npos && end > skipped; end = name.rfind('.', end - 1)) {
    const auto found = ops.find(name.substr(skipped, end - skipped));
    if (found != ops.end()) return found->second;
  }
  return {};
}

// Without the name of the op, or of its layer, where it begins with that.
std::string NameInOp(const std::string& name, const RawOp& op) {
  const std::string in_model = name.compare(0, 6, "model.") == 0 ? name.substr(6) : name;
  for (const std::string& own : {op.name + ".", op.layers + "." + op.layer + "."}) {
    if (in_model.compare(0, own.size(), own) == 0) return in_model.substr(own.size());
  }
  return in_model;
}

template <typename Info>
GraphArray ArrayOf(const Info& info) {
  const std::vector<uint32_t> shape(info.shape, info.shape + info.rank);
  return {info.name, std::string(info.dtype) + " " + tarn::tools::ShapeText(shape), info.data_bytes};
}

template <typename Info>
void Attach(const std::vector<Info>& infos, const OpsByArray& readers, const OpsByName& ops, std::vector<GraphArray> RawOp::*list,
            std::vector<GraphArray>* shared) {
  for (uint32_t i = 0; i < infos.size(); ++i) {
    const GraphArray array = ArrayOf(infos[i]);
    const auto found = readers.find(i);
    const Ops owners = found != readers.end() ? found->second : OwnersByName(ops, array.name);
    if (owners.empty()) shared->push_back(array);
    for (RawOp* owner : owners) (owner->*list).push_back({NameInOp(array.name, *owner), array.type, array.bytes});
  }
}

void AddReader(const uint32_t (&arrays)[TARN_MAX_OP_ARRAYS], uint32_t count, RawOp* op, OpsByArray* readers) {
  for (uint32_t i = 0; i < count && i < TARN_MAX_OP_ARRAYS; ++i) {
    Ops& ops = (*readers)[arrays[i]];
    if (ops.empty() || ops.back() != op) ops.push_back(op);
  }
}

std::vector<RawOp> RawOps(const Model& model, std::vector<GraphArray>* shared) {
  const std::vector<tarn_op_info> infos = List(model, tarn_model_op);
  std::vector<RawOp> ops;
  for (const tarn_op_info& info : infos) {
    RawOp op;
    op.name = info.name;
    op.kind = info.kind;
    op.detail = info.detail;
    op.program = info.program;
    op.inputs = Values(info.inputs, sizeof(info.inputs));
    op.outputs = Values(info.outputs, sizeof(info.outputs));
    FindLayer(&op);
    ops.push_back(std::move(op));
  }
  OpsByName by_name;
  OpsByArray by_state, by_tensor;
  for (size_t i = 0; i < ops.size(); ++i) {
    by_name[ops[i].name].push_back(&ops[i]);
    AddReader(infos[i].states, infos[i].state_count, &ops[i], &by_state);
    AddReader(infos[i].tensors, infos[i].tensor_count, &ops[i], &by_tensor);
  }
  Attach(List(model, tarn_model_state), by_state, by_name, &RawOp::states, shared);
  Attach(List(model, tarn_model_tensor), by_tensor, by_name, &RawOp::tensors, shared);
  return ops;
}

bool SameLayer(const RawOp& a, const RawOp& b) { return a.layers == b.layers && a.layer == b.layer; }

// Layers, and runs of ops outside of them.
std::vector<Range> Ranges(const std::vector<RawOp>& ops) {
  std::vector<Range> ranges;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (i == 0 || !SameLayer(ops[i - 1], ops[i])) ranges.push_back({i, i});
    ranges.back().end = i + 1;
  }
  return ranges;
}

using LastReaders = std::map<std::string, size_t>;  // of values: the last op that reads it

// What has to be equal of layers that are drawn once. Values of the layer are named without its number; "^" is one of the op before
// that no later layer reads.
std::string Signature(const std::vector<RawOp>& ops, const LastReaders& last_readers, const Range& range) {
  const RawOp& first = ops[range.begin];
  if (first.layers.empty()) return "";
  const std::string own = first.layers + "." + first.layer + ".";
  std::string text = first.layers;
  const auto add = [&text](const std::string& part) { text += '\n' + part; };
  for (size_t i = range.begin; i < range.end; ++i) {
    for (const std::string& part : {InLayer(ops[i]), ops[i].kind, ops[i].detail}) add(part);
    for (const std::string& value : ops[i].inputs) {
      const std::vector<std::string> before = range.begin > 0 ? ops[range.begin - 1].outputs : std::vector<std::string>();
      const bool from_before = last_readers.at(value) < range.end && std::find(before.begin(), before.end(), value) != before.end();
      add(from_before ? "^" : value.compare(0, own.size(), own) == 0 ? "." + value.substr(own.size()) : value);
    }
    for (const auto* arrays : {&ops[i].states, &ops[i].tensors}) {
      for (const GraphArray& array : *arrays) add(array.name + " " + array.type);
    }
  }
  return text;
}

// How often the `period` ranges from `first` on follow each other.
size_t Repeats(const std::vector<std::string>& signatures, size_t first, size_t period) {
  size_t repeats = 1;
  for (size_t next = first + period; next + period <= signatures.size(); next += period, ++repeats) {
    for (size_t i = 0; i < period; ++i) {
      if (signatures[first + i].empty() || signatures[first + i] != signatures[next + i]) return repeats;
    }
  }
  return repeats;
}

std::string Title(const RawOp& first, const RawOp& last) {
  if (first.layers.empty()) return "";
  if (SameLayer(first, last)) return first.layers.substr(0, first.layers.size() - 1) + " " + first.layer;
  return first.layers + " " + first.layer + " to " + last.layer;
}

// Draws a program: `ops` are its own.
class Folder {
 public:
  explicit Folder(const std::vector<RawOp>& ops) : ops_(ops) { graph_.name = ops.front().program; }

  ProgramGraph Fold() {
    const std::vector<Range> ranges = Ranges(ops_);
    LastReaders last_readers;
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (const std::string& value : ops_[i].inputs) last_readers[value] = i;
    }
    std::vector<std::string> signatures;
    for (const Range& range : ranges) signatures.push_back(Signature(ops_, last_readers, range));
    for (size_t first = 0; first < ranges.size();) {
      size_t period = 1, repeats = 1;
      for (size_t candidate = 1; candidate <= kLongestPeriod && first + 2 * candidate <= ranges.size(); ++candidate) {
        const size_t found = Repeats(signatures, first, candidate);
        if (found > 1 && found * candidate > repeats * period) std::tie(period, repeats) = std::pair(candidate, found);
      }
      Add(ranges, first, period, repeats);
      first += period * repeats;
    }
    return std::move(graph_);
  }

 private:
  void Add(const std::vector<Range>& ranges, size_t first, size_t period, size_t repeats) {
    const Range drawn = {ranges[first].begin, ranges[first + period - 1].end};
    const size_t size = drawn.end - drawn.begin, end = ranges[first + period * repeats - 1].end;
    GraphBlock block{Title(ops_[drawn.begin], ops_[end - 1]), repeats, graph_.ops.size(), 0};
    for (size_t i = drawn.begin; i < end; ++i) {
      // Layers that are not drawn stand where the drawn ones do.
      if (i < drawn.end) Draw(ops_[i], period > 1);
      for (const std::string& value : ops_[i].outputs) writers_[value] = block.begin + (i - drawn.begin) % size;
    }
    block.end = graph_.ops.size();
    graph_.blocks.push_back(std::move(block));
  }

  void Draw(const RawOp& op, bool with_layer) {
    GraphOp drawn{with_layer ? op.layer + ": " + InLayer(op) : InLayer(op), op.kind, op.detail, op.states, op.tensors, {}, {}};
    for (const std::string& value : op.inputs) {
      const auto writer = writers_.find(value);
      if (writer == writers_.end()) {
        drawn.outside.push_back(value);
      } else {
        drawn.reads.push_back(writer->second);
      }
    }
    graph_.ops.push_back(std::move(drawn));
  }

  const std::vector<RawOp>& ops_;
  std::map<std::string, size_t> writers_;  // of values, in the graph
  ProgramGraph graph_;
};

}  // namespace

ModelGraph BuildGraph(const Model& model) {
  ModelGraph graph;
  const std::vector<RawOp> ops = RawOps(model, &graph.shared);
  for (size_t begin = 0, end = 0; begin < ops.size(); begin = end) {
    while (end < ops.size() && ops[end].program == ops[begin].program) ++end;
    const std::vector<RawOp> own(ops.begin() + static_cast<std::ptrdiff_t>(begin), ops.begin() + static_cast<std::ptrdiff_t>(end));
    graph.programs.push_back(Folder(own).Fold());
  }
  return graph;
}

}  // namespace tarn_cli
