#include "runtime/model/model.h"

#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/arith.h"
#include "runtime/model/chat_template.h"
#include "runtime/model/foreign_file.h"
#include "runtime/model/tokenizer.h"
#include "runtime/model/weight_check.h"

namespace tarn {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the model file is little-endian");

// schema/FORMAT.md, "Header".
constexpr size_t kHeaderBytes = 64;
static_assert(kHeaderBytes >= kForeignBytes, "a header is looked at");
constexpr size_t kHashedHeaderBytes = 32;
constexpr uint8_t kMagic[8] = {'T', 'A', 'R', 'N', '\r', '\n', 0x1A, '\n'};
constexpr uint16_t kMajorVersion = 1;
constexpr uint64_t kMaxGraphBytes = FLATBUFFERS_MAX_BUFFER_SIZE;
constexpr uint64_t kWeightSectionAlignment = 16384;
constexpr size_t kGraphAlignment = 8;   // of a FlatBuffer with 64-bit fields
constexpr size_t kWeightAlignment = 4;  // of the widest weight; kernels need no more

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

float FloatOfBf16(uint16_t upper_half) {
  const uint32_t bits = uint32_t{upper_half} << 16;
  return Load<float>(reinterpret_cast<const uint8_t*>(&bits));
}

bool IsAligned(const uint8_t* pointer, size_t alignment) { return reinterpret_cast<uintptr_t>(pointer) % alignment == 0; }

Status CopyIfMisaligned(const Allocator& allocator, size_t alignment, const char* what, Span<const uint8_t>* bytes, Block* copy) {
  if (bytes->empty() || IsAligned(bytes->data(), alignment)) return Ok();
  TARN_ASSIGN_OR_RETURN(*copy, Block::Allocate(allocator, bytes->size(), what));
  std::memcpy(copy->bytes().data(), bytes->data(), bytes->size());
  *bytes = copy->bytes();
  return Ok();
}

}  // namespace

bool Shape::Is(std::initializer_list<uint64_t> wanted) const {
  if (rank != wanted.size()) return false;
  const uint32_t* dim = dims;
  for (const uint64_t want : wanted) {
    if (*dim++ != want) return false;
  }
  return true;
}

Result<Shape> ReadShape(const flatbuffers::Vector<uint32_t>& dims) {
  if (dims.size() < 1 || dims.size() > kMaxRank) {
    return Error(TARN_BAD_FORMAT, "shape: %u dimensions found, 1 to %u expected", dims.size(), kMaxRank);
  }
  Shape shape;
  shape.rank = dims.size();
  shape.elements = 1;
  for (uint32_t i = 0; i < dims.size(); ++i) {
    shape.dims[i] = dims.Get(i);
    if (shape.dims[i] < 1 || shape.dims[i] > kMaxDimension) {
      return Error(TARN_BAD_FORMAT, "shape: dimension %u is %u, 1 to %u expected", i, shape.dims[i], kMaxDimension);
    }
    if (!CheckedMul(shape.elements, shape.dims[i], &shape.elements) || shape.elements > kMaxTensorBytes) {
      return Error(TARN_BAD_FORMAT, "shape: too many elements");
    }
  }
  return shape;
}

Result<Model> Model::Open(FileMap map, Span<const uint8_t> bytes, const Allocator& allocator) {
  Model model;
  model.map_ = std::move(map);
  TARN_RETURN_IF_ERROR(model.ReadHeader(bytes));
  TARN_RETURN_IF_ERROR(model.Align(allocator));

  flatbuffers::Verifier verifier(model.graph_bytes_.data(), model.graph_bytes_.size(), /*max_depth=*/16,
                                 /*max_tables=*/1u << 20);
  if (!format::VerifyModelBuffer(verifier)) return Error(TARN_BAD_FORMAT, "graph: not a valid FlatBuffer of a tarn model");
  model.graph_ = format::GetModel(model.graph_bytes_.data());
  TARN_RETURN_IF_ERROR(Validate(*model.graph_, model.weights_.size()));
  TARN_RETURN_IF_ERROR(model.OpenTokenizer(allocator));
  model.FindPrograms();
  return model;
}

Status Model::OpenTokenizer(const Allocator& allocator) {
  static_assert(std::is_trivially_destructible_v<TokenizerTables>, "the block goes without its destructor");
  TARN_ASSIGN_OR_RETURN(tokenizer_, Block::Allocate(allocator, sizeof(TokenizerTables), "tables of the tokenizer"));
  TARN_RETURN_IF_ERROR(ReadTokenizer(*graph_, new (tokenizer_.bytes().data()) TokenizerTables()));
  return CheckChatTemplate(*graph_);
}

Status Model::ReadHeader(Span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) {
    return Error(TARN_BAD_FORMAT, "file has %zu bytes, a tarn header has %zu: %s", bytes.size(), kHeaderBytes,
                 ShortFileText(bytes));
  }
  const uint8_t* header = bytes.data();
  if (std::memcmp(header, kMagic, 4) != 0) {
    return Error(TARN_BAD_FORMAT, "magic is %02x %02x %02x %02x, expected 54 41 52 4e (\"TARN\"): not a tarn model%s", header[0],
                 header[1], header[2], header[3], ForeignFileText(header));
  }
  if (std::memcmp(header, kMagic, sizeof(kMagic)) != 0) {
    return Error(TARN_BAD_FORMAT,
                 "magic ends in %02x %02x %02x %02x, expected 0d 0a 1a 0a: damaged, as by a copy that changes line ends", header[4],
                 header[5], header[6], header[7]);
  }
  major_version_ = Load<uint16_t>(header + 8);
  minor_version_ = Load<uint16_t>(header + 10);
  if (major_version_ != kMajorVersion) {
    return Error(TARN_UNSUPPORTED, "format version is %u.%u, this library reads %u.x; convert the checkpoint again%s",
                 major_version_, minor_version_, kMajorVersion, major_version_ > kMajorVersion ? ", or use a newer library" : "");
  }
  const uint64_t graph_bytes = Load<uint32_t>(header + 12);
  const uint64_t weights_offset = Load<uint64_t>(header + 16);
  const uint64_t weights_bytes = Load<uint64_t>(header + 24);
  uint64_t file_bytes = 0;
  if (graph_bytes >= kMaxGraphBytes || graph_bytes > bytes.size() - kHeaderBytes) {
    return Error(TARN_BAD_FORMAT, "header: graph of %llu bytes does not fit into the file's %zu: truncated; copy it again",
                 static_cast<unsigned long long>(graph_bytes), bytes.size());
  }
  const uint64_t graph_end = kHeaderBytes + graph_bytes;
  if (weights_offset != AlignUp(graph_end, kWeightSectionAlignment) || !CheckedAdd(weights_offset, weights_bytes, &file_bytes)) {
    return Error(
        TARN_BAD_FORMAT,
        "header: weights at %llu + %llu bytes, expected at the first multiple of %llu after the graph: the file is damaged; "
        "copy or convert it again",
        static_cast<unsigned long long>(weights_offset), static_cast<unsigned long long>(weights_bytes),
        static_cast<unsigned long long>(kWeightSectionAlignment));
  }
  if (file_bytes != bytes.size()) {
    return Error(TARN_BAD_FORMAT, "file has %zu bytes, expected %llu (header): %s; copy it again", bytes.size(),
                 static_cast<unsigned long long>(file_bytes), bytes.size() < file_bytes ? "truncated" : "too long");
  }
  // No hash covers the padding: zeros are all that it can be.
  for (uint64_t i = graph_end; i < weights_offset; ++i) {
    if (bytes[static_cast<size_t>(i)] != 0) {
      return Error(TARN_BAD_FORMAT, "padding: byte %llu of the file is not zero", static_cast<unsigned long long>(i));
    }
  }
  graph_bytes_ = bytes.subspan(kHeaderBytes, static_cast<size_t>(graph_bytes));
  weights_ = bytes.subspan(static_cast<size_t>(weights_offset), static_cast<size_t>(weights_bytes));
  std::memcpy(fingerprint_, header + kHashedHeaderBytes, sizeof(fingerprint_));

  const Digest found = DigestOf({header, kHashedHeaderBytes}, graph_bytes_);
  if (std::memcmp(found.bytes, fingerprint_, sizeof(found.bytes)) != 0) {
    Digest expected;
    std::memcpy(expected.bytes, fingerprint_, sizeof(expected.bytes));
    char found_text[Digest::kTextBytes], expected_text[Digest::kTextBytes];
    return Error(TARN_CHECKSUM,
                 "header and graph: XXH3-128 is %s, expected %s (header): the file is damaged; copy or convert it again",
                 found.Text(found_text), expected.Text(expected_text));
  }
  return Ok();
}

uint64_t Model::file_bytes() const {
  return AlignUp(kHeaderBytes + graph_bytes_.size(), kWeightSectionAlignment) + weights_.size();
}

Digest Model::weight_digest() const {
  Digest digest;
  std::memcpy(digest.bytes, fingerprint_ + sizeof(digest.bytes), sizeof(digest.bytes));
  return digest;
}

Status Model::CheckWeights() const { return WeightCheck(*this).Finish(); }

// An asset inside an APK is aligned to 4 bytes only, a caller's buffer to anything.
Status Model::Align(const Allocator& allocator) {
  TARN_RETURN_IF_ERROR(CopyIfMisaligned(allocator, kGraphAlignment, "copy of a misaligned graph", &graph_bytes_, &graph_copy_));
  return CopyIfMisaligned(allocator, kWeightAlignment, "copy of misaligned weights", &weights_, &weights_copy_);
}

Status Model::CheckScales() const {
  for (uint32_t i = 0; i < graph_->tensors()->size(); ++i) {
    const TensorView view = tensor(i);
    if (view.scales == nullptr && view.block_scales == nullptr) continue;
    const uint64_t blocks = IsBlockwise(view.dtype) ? view.shape.dims[1] / kScaleBlock : 1;  // of a row
    for (uint64_t j = 0; j < view.shape.dims[0] * blocks; ++j) {
      const float scale = view.scales == nullptr ? FloatOfBf16(view.block_scales[j]) : view.scales[j];
      const bool signed_scale = view.dtype == DType::kI3;
      if ((scale > 0 || signed_scale) && std::isnormal(scale)) continue;
      return Error(TARN_BAD_FORMAT, "tensor '%s': scale of row %llu is %g (block %llu of %llu), a normal number%s expected",
                   view.name, static_cast<unsigned long long>(j / blocks), static_cast<double>(scale),
                   static_cast<unsigned long long>(j % blocks), static_cast<unsigned long long>(blocks),
                   signed_scale ? "" : " > 0");
    }
  }
  return Ok();
}

const char* TaskName(format::Task task) {
  constexpr const char* kNames[] = {"causal_lm", "seq2seq", "classification", "masked_lm"};
  static_assert(std::size(kNames) == static_cast<size_t>(format::Task::MAX) + 1);
  return kNames[static_cast<size_t>(task)];
}

const char* StageName(Stage stage) { return stage == Stage::kEncode ? "encode" : "decode"; }

void Model::FindPrograms() {
  for (const format::Program* program : *graph_->programs()) {
    for (const Stage stage : kStages) {
      if (program->name()->string_view() == StageName(stage)) programs_[static_cast<size_t>(stage)] = program;
    }
  }
}

uint32_t Model::vocab_size(Stage stage) const {
  const bool own = stage == Stage::kEncode && task() == format::Task::Seq2Seq && graph_->source_vocab_size() != 0;
  return own ? graph_->source_vocab_size() : graph_->vocab_size();
}

bool Model::IsEmbeddingTable(uint32_t tensor) const {
  for (const format::Program* program : *graph_->programs()) {
    for (const format::Op* op : *program->ops()) {
      if (op->attributes_type() != format::OpAttributes::Embedding || op->tensors() == nullptr) continue;
      if (op->tensors()->size() > 0 && op->tensors()->Get(0) == tensor) return true;
    }
  }
  return false;
}

bool Model::IsOnlyDenseWeight(uint32_t tensor) const {
  for (const format::Program* program : *graph_->programs()) {
    for (const format::Op* op : *program->ops()) {
      const bool dense = op->attributes_type() == format::OpAttributes::FullyConnected;
      for (uint32_t i = 0; op->tensors() != nullptr && i < op->tensors()->size(); ++i) {
        if (op->tensors()->Get(i) == tensor && !(dense && i == 0)) return false;
      }
    }
  }
  return true;
}

TensorView Model::tensor(uint32_t index) const {
  const format::Tensor& tensor = *graph_->tensors()->Get(index);
  TensorView view;
  view.name = tensor.name()->c_str();
  view.dtype = static_cast<DType>(tensor.dtype());
  view.shape = ReadShape(*tensor.shape()).value();
  view.data = weights_.data() + tensor.offset();
  view.data_bytes = DataBytes(view.dtype, view.shape.elements);
  view.scales = nullptr;
  view.block_scales = nullptr;
  if (tensor.scales() >= 0) {
    const uint8_t* scales = weights_.data() + graph_->tensors()->Get(static_cast<uint32_t>(tensor.scales()))->offset();
    if (IsBlockwise(view.dtype)) {
      view.block_scales = reinterpret_cast<const uint16_t*>(scales);
    } else {
      view.scales = reinterpret_cast<const float*>(scales);
    }
  }
  return view;
}

StateView Model::state(uint32_t index) const {
  const format::State& state = *graph_->states()->Get(index);
  StateView view;
  view.name = state.name()->c_str();
  view.dtype = static_cast<DType>(state.dtype());
  view.shape = ReadShape(*state.shape()).value();
  view.data_bytes = DataBytes(view.dtype, view.shape.elements);
  view.owner = state.owner();
  view.source_axis = state.source_axis();
  return view;
}

}  // namespace tarn
