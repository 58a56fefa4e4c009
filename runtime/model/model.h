// bytes -> verified, immutable Model.
//
//   file:  [ header 64 B | graph (FlatBuffer) | padding | weight section ]      schema/FORMAT.md
//
// Open() checks the header, the hash over header and graph, and the FlatBuffer; Validate() (validate.cc) then every index, shape
// and range in it. After that the rest of the runtime reads the graph in place without checking again. Weights are not read: their
// hash is for whoever reads all of them (weight_check.h).
#ifndef TARN_RUNTIME_MODEL_MODEL_H_
#define TARN_RUNTIME_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/allocator.h"
#include "core/dtype.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/model/digest.h"
#include "runtime/platform/file_map.h"
#include "runtime/text/tokenizer_tables.h"
#include "schema/tarn_generated.h"

namespace tarn {

constexpr uint32_t kMaxRank = 4;

// Sizes that no real model reaches, and below which no product of two overflows 64 bits or any index of a kernel.
constexpr uint32_t kMaxDimension = 1u << 30;
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 46;

struct Shape {
  uint32_t rank = 0;
  uint32_t dims[kMaxRank] = {};
  uint64_t elements = 0;

  bool Is(std::initializer_list<uint64_t> wanted) const;
};

struct TensorView {
  const char* name;
  DType dtype;
  Shape shape;
  const uint8_t* data;  // naturally aligned
  uint64_t data_bytes;
  const float* scales;           // kI8: [dims[0]]; else nullptr
  const uint16_t* block_scales;  // of blockwise types: bf16 [dims[0], dims[1] / kScaleBlock]; else nullptr
};

struct StateView {
  const char* name;
  DType dtype;
  Shape shape;
  uint64_t data_bytes;  // of one sequence or source; with a source axis for each token of the source
  format::Owner owner;
  int source_axis;  // -1: none
};

// The programs of a model.
enum class Stage : uint8_t { kEncode, kDecode };
constexpr Stage kStages[] = {Stage::kEncode, Stage::kDecode};  // in the order in which they stand in a file
const char* StageName(Stage stage);
// As config.json has it: "seq2seq".
const char* TaskName(format::Task task);

class Model {
 public:
  Model() = default;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  // From a mapping, which the model keeps, or from the caller's bytes, which outlive it. `allocator` serves the tokenizer's tables,
  // and copies where a FlatBuffer or weights are not aligned. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED, TARN_CHECKSUM,
  // TARN_OUT_OF_MEMORY.
  static Result<Model> Open(FileMap map, Span<const uint8_t> bytes, const Allocator& allocator);

  const format::Model& graph() const { return *graph_; }
  // nullptr: the model has no such program.
  const format::Program* program(Stage stage) const { return programs_[static_cast<size_t>(stage)]; }
  format::Task task() const { return graph_->task(); }
  const TokenizerTables& tokenizer() const { return *reinterpret_cast<const TokenizerTables*>(tokenizer_.bytes().data()); }
  // Of the ids that a program reads.
  uint32_t vocab_size(Stage stage) const;

  // Indices were validated.
  TensorView tensor(uint32_t index) const;
  StateView state(uint32_t index) const;
  // An embedding op reads this tensor.
  bool IsEmbeddingTable(uint32_t tensor) const;
  // Fully connected ops read this tensor as their weight, and no op reads it otherwise.
  bool IsOnlyDenseWeight(uint32_t tensor) const;

  uint64_t file_bytes() const;
  uint64_t copied_bytes() const { return graph_copy_.bytes().size() + weights_copy_.bytes().size(); }
  // Of the allocator: copies, and the tables of the tokenizer.
  uint64_t allocated_bytes() const { return copied_bytes() + tokenizer_.bytes().size(); }
  const uint8_t (&fingerprint() const)[32] { return fingerprint_; }
  // The version of the file's format.
  uint32_t major_version() const { return major_version_; }
  uint32_t minor_version() const { return minor_version_; }
  Span<const uint8_t> weights() const { return weights_; }
  // What the header says that the weights hash to: the second half of the fingerprint.
  Digest weight_digest() const;
  // Of the file that the model is mapped from.
  const FileIdentity& identity() const { return map_.identity(); }

  // Reads the scales of all quantized tensors. Errors: TARN_BAD_FORMAT, which names the tensor and the scale that is not > 0.
  Status CheckScales() const;
  // Reads the whole weight section. Errors: TARN_CHECKSUM, where its hash is not the header's.
  Status CheckWeights() const;

  // The pages of `bytes` will not be read soon.
  void Forget(Span<const uint8_t> bytes) const { map_.Forget(bytes); }

 private:
  Status ReadHeader(Span<const uint8_t> bytes);
  Status Align(const Allocator& allocator);
  Status OpenTokenizer(const Allocator& allocator);
  void FindPrograms();

  FileMap map_;
  Block graph_copy_;
  Block weights_copy_;
  Block tokenizer_;  // a TokenizerTables: too large for the stack of a board, on which models are moved
  Span<const uint8_t> graph_bytes_;
  Span<const uint8_t> weights_;
  const format::Model* graph_ = nullptr;
  const format::Program* programs_[std::size(kStages)] = {};
  uint8_t fingerprint_[32] = {};
  uint16_t major_version_ = 0, minor_version_ = 0;
};

// Semantic validation of a graph whose FlatBuffer has been verified (validate.cc).
Status Validate(const format::Model& graph, uint64_t weight_bytes);

// Reads a shape of 1 to kMaxRank dimensions. Errors: TARN_BAD_FORMAT.
Result<Shape> ReadShape(const flatbuffers::Vector<uint32_t>& dims);

}  // namespace tarn

#endif  // TARN_RUNTIME_MODEL_MODEL_H_
