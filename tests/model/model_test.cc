// Files are untrusted: whatever is wrong with one, it is refused with words, before anything of it is used.
#include "runtime/model/model.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/models.h"

namespace tarn {
namespace {

using test::GraphBytes;
using test::kHeaderBytes;
using test::MakeModel;
using test::Rehash;

Status OpenStatus(const std::vector<uint8_t>& file, bool verify_weights = false) {
  const Result<Model> model = Model::Open(FileMap(), {file.data(), file.size()}, DefaultAllocator());
  return model.ok() && verify_weights ? model.value().CheckWeights() : model.status();
}

void ExpectRefused(const std::vector<uint8_t>& file, tarn_status code, const std::string& words) {
  const Status status = OpenStatus(file);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
}

const std::vector<uint8_t>& Good() {
  static const std::vector<uint8_t> file = MakeModel(test::ConfigText(test::kRfa), convert::Precision::kInt8);
  return file;
}

TEST(Model, OpensWhatTheConverterWrites) {
  const Result<Model> model = Model::Open(FileMap(), {Good().data(), Good().size()}, DefaultAllocator());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model.value().graph().vocab_size(), 256u);
  EXPECT_EQ(model.value().file_bytes(), Good().size());
  const TensorView table = model.value().tensor(0);
  EXPECT_EQ(table.dtype, DType::kI8);
  EXPECT_TRUE(table.shape.Is({256, 32}));
  EXPECT_NE(table.scales, nullptr);
}

TEST(Model, EveryFlippedBitOfHeaderAndGraphIsNoticed) {
  std::vector<uint8_t> file = Good();
  // The last 16 bytes of the header are the hash of the weights: a flip there shows when the weights are verified.
  const size_t end = kHeaderBytes + GraphBytes(file);
  for (size_t i = 0; i < end; ++i) {
    const bool in_weight_hash = i >= 48 && i < kHeaderBytes;
    for (int bit = 0; bit < 8; ++bit) {
      file[i] ^= static_cast<uint8_t>(1 << bit);
      EXPECT_FALSE(OpenStatus(file, in_weight_hash).ok()) << "byte " << i << " bit " << bit;
      file[i] ^= static_cast<uint8_t>(1 << bit);
    }
  }
  EXPECT_TRUE(OpenStatus(file).ok());
  file[12 + 8] ^= 1;  // of the place of the weights
  ExpectRefused(file, TARN_BAD_FORMAT, "the file is damaged; copy or convert it again");
  file[12 + 8] ^= 1;
  file[kHeaderBytes + GraphBytes(file) / 2] ^= 1;
  ExpectRefused(file, TARN_CHECKSUM, "the file is damaged; copy or convert it again");
}

TEST(Model, AFlippedWeightBitIsNoticedUnderVerify) {
  std::vector<uint8_t> file = Good();
  file[file.size() - 1000] ^= 4;
  EXPECT_TRUE(OpenStatus(file, false).ok());
  const Status status = OpenStatus(file, true);
  EXPECT_EQ(status.code(), TARN_CHECKSUM);
  EXPECT_NE(std::string(status.message()).find("weights"), std::string::npos) << status.message();
}

TEST(Model, EveryTruncationIsNoticed) {
  const std::vector<uint8_t>& good = Good();
  for (size_t size = 0; size < good.size(); size += size < 4096 ? 1 : 997) {
    const std::vector<uint8_t> file(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(OpenStatus(file).ok()) << size;
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  const std::string sizes = "file has " + std::to_string(longer.size()) + " bytes, expected " + std::to_string(good.size());
  ExpectRefused(longer, TARN_BAD_FORMAT, sizes + " (header): too long; copy it again");
  const std::vector<uint8_t> shorter(good.begin(), good.end() - 1);
  ExpectRefused(shorter, TARN_BAD_FORMAT, "expected " + std::to_string(good.size()) + " (header): truncated; copy it again");
}

TEST(Model, ForeignFilesAreNamedAsSuch) {
  std::vector<uint8_t> file(4096, 'x');
  ExpectRefused(file, TARN_BAD_FORMAT, "not a tarn model");
  for (const char* magic : {"TSNP a saved state", "GGUF a GGUF file", "PK\3\4 a ZIP archive", "TPAK a cache of packed weights"}) {
    file.assign(4096, 0);
    std::copy_n(magic, 4, file.begin());
    ExpectRefused(file, TARN_BAD_FORMAT, std::string("not a tarn model but ") + (magic + 5));
  }
  const char gzip[] = "\x1f\x8b\b";
  file.assign(4096, 0);
  std::copy_n(gzip, 3, file.begin());
  ExpectRefused(file, TARN_BAD_FORMAT, "not a tarn model but a gzip file: unpack it");
  file.assign(4096, 0);
  file[0] = 100;
  file[8] = '{';
  ExpectRefused(file, TARN_BAD_FORMAT, "not a tarn model but a safetensors file");
  ExpectRefused({}, TARN_BAD_FORMAT, "truncated");
  ExpectRefused({'N', 'o', 't', ' ', 'f', 'o', 'u', 'n', 'd', '\n'}, TARN_BAD_FORMAT, "not a tarn model but a text");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 1234\n";
  ExpectRefused({pointer.begin(), pointer.end()}, TARN_BAD_FORMAT, "not a tarn model but a Git LFS pointer: git lfs pull");
  std::vector<uint8_t> as_text = Good();
  as_text.erase(as_text.begin() + 4);  // CR LF became LF
  ExpectRefused(as_text, TARN_BAD_FORMAT, "magic ends in 0a 1a 0a 01, expected 0d 0a 1a 0a");
}

TEST(Model, AnotherMajorVersionIsRefusedANewerMinorIsRead) {
  std::vector<uint8_t> file = Good();
  file[8] = 2;
  Rehash(&file);
  ExpectRefused(file, TARN_UNSUPPORTED, "2.2");
  file[8] = 1;
  file[10] = 9;
  Rehash(&file);
  EXPECT_TRUE(OpenStatus(file).ok());
}

TEST(Model, AnyAlignmentIsAccepted) {
  for (size_t shift : {1, 2, 4, 8, 60}) {
    std::vector<uint8_t> memory(Good().size() + 64 + shift);
    uint8_t* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    std::memcpy(aligned + shift, Good().data(), Good().size());
    const Result<Model> model = Model::Open(FileMap(), {aligned + shift, Good().size()}, DefaultAllocator());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model.value().copied_bytes() > 0, shift % 8 != 0) << shift;
  }
}

// ---- Graphs that are sound FlatBuffers and still wrong ----

std::vector<uint8_t> Changed(const std::function<void(convert::Graph*)>& change) {
  const convert::ModelConfig config = convert::ParseConfig(test::ConfigText(test::kRfa), "test");
  convert::GraphBuilder builder(convert::Precision::kInt8);
  convert::BuildModel(config, &builder);
  change(&builder.graph());
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), convert::RandomWeights(1), &sink);
  return sink.bytes();
}

convert::GraphOp& Dense(convert::Graph* graph) {
  for (convert::GraphOp& op : graph->programs[0].ops) {
    if (op.type == format::OpAttributes::FullyConnected) return op;
  }
  ADD_FAILURE() << "no dense layer";
  return graph->programs[0].ops[0];
}

TEST(Model, WrongIndicesAndOrdersAreNamed) {
  ExpectRefused(Changed([](convert::Graph* g) { Dense(g).tensors[0] = 10000; }), TARN_BAD_FORMAT, "tensor 10000");
  ExpectRefused(Changed([](convert::Graph* g) { Dense(g).inputs[0] = format::Slice(99999, 0, 1); }), TARN_BAD_FORMAT, "99999");
  ExpectRefused(Changed([](convert::Graph* g) { Dense(g).outputs[0] += 1; }), TARN_BAD_FORMAT, "next in order");
  ExpectRefused(Changed([](convert::Graph* g) {
                  const format::Slice slice = Dense(g).inputs[0];
                  Dense(g).inputs[0] = format::Slice(slice.value(), UINT32_MAX, slice.width());
                }),
                TARN_BAD_FORMAT, "columns 4294967295");
  ExpectRefused(Changed([](convert::Graph* g) { g->programs[0].values[1].width = 1u << 31; }), TARN_BAD_FORMAT, "width 2147483648");
  ExpectRefused(Changed([](convert::Graph* g) { g->programs[0].outputs[0] = 12345; }), TARN_BAD_FORMAT, "output value 12345");
  ExpectRefused(Changed([](convert::Graph* g) { g->programs[0].num_inputs = 0; }), TARN_BAD_FORMAT, "num_inputs");
  ExpectRefused(Changed([](convert::Graph* g) { g->vocab_size = 0; }), TARN_BAD_FORMAT, "vocab_size");
  ExpectRefused(Changed([](convert::Graph* g) { g->vocab_size = 300; }), TARN_BAD_FORMAT, "byte tokenizer");
}

// Two layers over one place in the file, of different shapes: what the one packs is not the other's.
TEST(Model, OverlappingTensorsAreRefused) {
  std::vector<uint8_t> file = Good();
  const format::Model* graph = format::GetModel(file.data() + kHeaderBytes);
  const auto* last = graph->tensors()->Get(graph->tensors()->size() - 1);
  const auto* offset = reinterpret_cast<const flatbuffers::Table*>(last)->GetAddressOf(format::Tensor::VT_OFFSET);
  ASSERT_NE(offset, nullptr);
  const uint64_t moved = 0;
  std::memcpy(const_cast<uint8_t*>(offset), &moved, sizeof(moved));
  Rehash(&file);
  ExpectRefused(file, TARN_BAD_FORMAT, "lies before the end of the tensor before it");
}

TEST(Model, PaddingHasOneContent) {
  std::vector<uint8_t> file = Good();
  file[kHeaderBytes + GraphBytes(file)] = 1;
  ExpectRefused(file, TARN_BAD_FORMAT, "padding");
}

TEST(Model, ScalesAreChecked) {
  std::vector<uint8_t> file = Good();
  const format::Model* graph = format::GetModel(file.data() + kHeaderBytes);
  const auto* scales = graph->tensors()->Get(static_cast<uint32_t>(graph->tensors()->Get(0)->scales()));
  const float bad = -1;
  std::memcpy(file.data() + test::LoadU64(file, 16) + scales->offset() + 8, &bad, sizeof(bad));
  const Result<Model> model = Model::Open(FileMap(), {file.data(), file.size()}, DefaultAllocator());
  ASSERT_TRUE(model.ok());
  const Status status = model.value().CheckScales();
  EXPECT_NE(std::string(status.message()).find("scale of row 2 is -1"), std::string::npos) << status.message();
}

TEST(Model, ShapesOutOfRangeAreNamed) {
  ExpectRefused(Changed([](convert::Graph* g) {
                  g->states[0].shape = {1u << 30, 1u << 30, 4};
                }),
                TARN_BAD_FORMAT, "too many elements");
  ExpectRefused(Changed([](convert::Graph* g) { g->states[0].shape = {0, 3}; }), TARN_BAD_FORMAT, "dimension 0 is 0");
  ExpectRefused(Changed([](convert::Graph* g) { g->states[0].shape = {1, 1, 1, 1, 1}; }), TARN_BAD_FORMAT, "5 dimensions");
  ExpectRefused(Changed([](convert::Graph* g) { g->states.push_back({"orphan", {4}}); }), TARN_BAD_FORMAT, "states");
}

TEST(FileMap, ReasonsAreNamed) {
  EXPECT_EQ(FileMap::Open("no/such/file.tarn").status().code(), TARN_NOT_FOUND);
  EXPECT_EQ(FileMap::Open("tests").status().code(), TARN_IO);
  EXPECT_EQ(FileMap::Open("/dev/null").status().code(), TARN_IO);
  char fifo[] = "/tmp/tarn_fifo_XXXXXX";
  ASSERT_NE(mkdtemp(fifo), nullptr);
  const std::string path = std::string(fifo) + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(FileMap::Open(path.c_str()).status().code(), TARN_IO);  // and does not wait for a writer
  unlink(path.c_str());
  rmdir(fifo);
  EXPECT_EQ(FileMap::FromDescriptor(-1, 0, 0).status().code(), TARN_IO);
}

TEST(FileMap, AnyOffsetOfAFileCanBeMapped) {
  char path[] = "/tmp/tarn_map_XXXXXX";
  const int fd = mkstemp(path);
  std::vector<uint8_t> content(100000);
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<uint8_t>(i * 7);
  ASSERT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  for (const size_t offset : {0u, 1u, 4095u, 4096u, 65537u}) {
    const Result<FileMap> map = FileMap::FromDescriptor(fd, offset, 1000);
    ASSERT_TRUE(map.ok()) << map.status().message();
    ASSERT_EQ(map.value().bytes().size(), 1000u);
    EXPECT_EQ(std::memcmp(map.value().bytes().data(), content.data() + offset, 1000), 0);
  }
  EXPECT_EQ(FileMap::FromDescriptor(fd, 99999, 0).value().bytes().size(), 1u);
  EXPECT_EQ(FileMap::FromDescriptor(fd, 100000, 0).status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(FileMap::FromDescriptor(fd, 1, 100000).status().code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(FileMap::FromDescriptor(fd, UINT64_MAX, UINT64_MAX).status().code(), TARN_INVALID_ARGUMENT);
  close(fd);
  unlink(path);
}

// Memory that is no page of the file must not lose what it holds.
TEST(FileMap, ForgetsPagesOfTheFileAlone) {
  char path[] = "/tmp/tarn_map_XXXXXX";
  const int fd = mkstemp(path);
  const std::vector<uint8_t> content(size_t{1} << 18, 7);
  ASSERT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  const Result<FileMap> map = FileMap::FromDescriptor(fd, 0, 0);
  ASSERT_TRUE(map.ok());
  const std::vector<uint8_t> copy = content;
  map.value().Forget({copy.data(), copy.size()});
  EXPECT_EQ(copy, content);
  map.value().Forget(map.value().bytes());
  EXPECT_EQ(std::memcmp(map.value().bytes().data(), content.data(), content.size()), 0);
  close(fd);
  unlink(path);
}

}  // namespace
}  // namespace tarn
