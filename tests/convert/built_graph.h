// Graphs that configs make, for tests of what reads what.
#ifndef TARN_TESTS_CONVERT_BUILT_GRAPH_H_
#define TARN_TESTS_CONVERT_BUILT_GRAPH_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/config/config.h"
#include "tools/convert/writer/graph_buffer.h"

namespace tarn::convert {

// The graph of a config, as a reader of the file sees it.
class BuiltGraph {
 public:
  explicit BuiltGraph(const Json& config, Precision precision = Precision::kF32) : builder_(precision) {
    BuildModel(ParseConfig(config.dump(), "config.json"), &builder_);
    buffer_ = BuildGraphBuffer(builder_.graph(), TensorOffsets(builder_.graph()));
  }

  const format::Model& model() const { return *format::GetModel(buffer_.data()); }
  const format::Program& program() const { return *model().programs()->Get(program_); }
  // The program that the functions below look at.
  void Look(uint32_t program) { program_ = program; }
  const std::vector<WeightSpec>& weights() const { return builder_.weights(); }

  const format::Op& op(const std::string& name) const {
    for (const format::Op* candidate : *program().ops()) {
      if (candidate->name()->str() == name) return *candidate;
    }
    ADD_FAILURE() << "no op " << name;
    return *program().ops()->Get(0);
  }
  bool has(const std::string& name) const {
    for (const format::Op* candidate : *program().ops()) {
      if (candidate->name()->str() == name) return true;
    }
    return false;
  }
  // "value[begin, width]" of every input
  std::vector<std::string> inputs(const std::string& name) const {
    std::vector<std::string> texts;
    for (const format::Slice* slice : *op(name).inputs()) {
      texts.push_back(program().values()->Get(slice->value())->name()->str() + "[" + std::to_string(slice->begin()) + ", " +
                      std::to_string(slice->width()) + "]");
    }
    return texts;
  }
  std::vector<std::string> tensors(const std::string& name) const {
    std::vector<std::string> texts;
    for (const uint32_t index : *op(name).tensors()) texts.push_back(model().tensors()->Get(index)->name()->str());
    return texts;
  }
  std::vector<std::string> op_names() const {
    std::vector<std::string> texts;
    for (const format::Op* candidate : *program().ops()) texts.push_back(candidate->name()->str());
    return texts;
  }

 private:
  GraphBuilder builder_;
  flatbuffers::DetachedBuffer buffer_;
  uint32_t program_ = 0;
};

using Texts = std::vector<std::string>;

inline Json With(Json config, const char* key, const Json& value) {
  config[key] = value;
  return config;
}

}  // namespace tarn::convert

#endif  // TARN_TESTS_CONVERT_BUILT_GRAPH_H_
