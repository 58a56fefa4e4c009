#include "tools/convert/calibrate/scratch_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/dense/dense.h"
#include "kernels/kernels.h"
#include "runtime/interpreter/instance.h"
#include "runtime/interpreter/packed_weights.h"
#include "runtime/model/model.h"
#include "runtime/platform/thread_pool.h"
#include "tools/common/signals.h"
#include "tools/convert/json/error.h"
#include "tools/convert/writer/model_writer.h"
#include "tools/convert/writer/output_file.h"

namespace tarn::convert {
namespace {

void Check(const Status& status) {
  if (!status.ok()) Fail("calibration: ", status.message());
}

template <typename T>
T Take(Result<T> result) {
  Check(result.status());
  return std::move(result.value());
}

// The graph up to the last op that writes one of `values`, with these as its outputs.
Graph UpTo(const Graph& graph, const std::vector<uint32_t>& values) {
  Graph out = graph;
  out.loss = {};
  out.chat_writer = nullptr;
  GraphProgram& program = out.programs[0];
  const uint32_t last = *std::max_element(values.begin(), values.end());
  size_t ops = 0, states = 0, tensors = 0, written = program.num_inputs;
  while (written <= last) {
    const GraphOp& op = program.ops[ops++];
    written += op.outputs.size();
    states += op.states.size();
    for (const uint32_t tensor : op.tensors) tensors = std::max<size_t>(tensors, tensor + 1);
  }
  program.ops.resize(std::max<size_t>(ops, 1));
  program.values.resize(std::max<size_t>(written, 1));
  program.outputs = values;
  out.states.resize(states);
  out.tensors.resize(tensors);
  return out;
}

}  // namespace

struct ScratchModel::Parts {
  Model model;
  PackedWeights packed;
  Block block, thread_block;
  ThreadPool threads;
  Instance* instance = nullptr;

  ~Parts() {
    if (instance != nullptr) instance->Destroy();
  }
};

ScratchModel::ScratchModel(const Graph& graph, const std::vector<uint32_t>& values, const WeightReader& weights,
                           const RoundedMatrices& rounded, const std::string& output, uint32_t threads)
    : parts_(std::make_unique<Parts>()) {
  OutputFile file(output + ".calibrate", {}, output);
  const auto advance = [](uint64_t) {
    if (tools::Interrupted()) Fail("interrupted");
  };
  WriteModel(UpTo(graph, values), weights, &file, advance, &rounded);
  const Allocator allocator = DefaultAllocator();
  FileMap map = Take(FileMap::Open(file.Flush().c_str()));
  const Span<const uint8_t> bytes_of_file = map.bytes();
  parts_->model = Take(Model::Open(std::move(map), bytes_of_file, allocator));
  Environment environment{&parts_->model, SelectKernels(nullptr), &PortableDense(), nullptr, allocator};
  parts_->packed = Take(PackedWeights::Create(environment));
  environment.packed = &parts_->packed;
  Limits limits{/*batch=*/1, /*max_chunk=*/kChunk, /*max_output_rows=*/kChunk, threads};
  const ProgramBytes bytes = Take(Instance::Measure(environment, limits));
  parts_->block = Take(Block::Allocate(allocator, bytes.total, "calibration"));
  parts_->instance = Take(Instance::Create(environment, limits, parts_->block.bytes()));
  if (threads > 1) parts_->thread_block = Take(Block::Allocate(allocator, ThreadPool::Bytes(threads), "threads"));
  parts_->threads = Take(ThreadPool::Create(threads, parts_->thread_block.bytes()));
}

ScratchModel::~ScratchModel() = default;

uint64_t ScratchModel::max_context() const { return parts_->instance->program(Stage::kDecode)->bound().tokens; }

void ScratchModel::Reset() { parts_->instance->Reset(); }

void ScratchModel::Run(const int32_t* tokens, size_t count) {
  std::memcpy(parts_->instance->input(Stage::kDecode, 0), tokens, count * sizeof(int32_t));
  Check(parts_->instance->Decode(count, count, parts_->threads));
}

const float* ScratchModel::rows(size_t i) const {
  return reinterpret_cast<const float*>(parts_->instance->output(Stage::kDecode, static_cast<uint32_t>(i)));
}

}  // namespace tarn::convert
