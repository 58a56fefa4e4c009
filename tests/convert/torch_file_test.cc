// Files that PyTorch wrote (tools/dev/oracle/torch_fixtures.py), and the same damaged.
#include "tools/convert/checkpoint/torch_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {
namespace {

constexpr char kFolder[] = "tests/data/torch/";

std::string Bytes(const std::string& file) { return ReadFile(kFolder + file); }

std::map<std::string, StoredTensor> Parse(const std::string& bytes, const std::string& name = "m.bin") {
  return ParseTorchFile(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), name);
}

std::vector<float> Values(const StoredTensor& tensor) {
  std::vector<float> values(tensor.elements);
  ReadAsF32(tensor, 0, tensor.elements, values.data());
  return values;
}

TEST(TorchFile, TensorsOfEveryKindAndContainer) {
  const std::string expected_bytes = Bytes("views.safetensors");
  const Safetensors expected =
      ParseSafetensors(reinterpret_cast<const uint8_t*>(expected_bytes.data()), expected_bytes.size(), "e");
  for (const char* file : {"views.pt", "views_old.pt", "views_4.pt", "views_5.pt", "views_inner.pt"}) {
    const std::string bytes = Bytes(file);
    const auto found = Parse(bytes, file);
    EXPECT_EQ(found.size(), expected.tensors.size() + 6) << file;
    for (const auto& [name, tensor] : expected.tensors) {
      ASSERT_EQ(found.count(name), 1u) << file << name;
      const StoredTensor& other = found.at(name);
      EXPECT_EQ(other.dtype, tensor.dtype) << file << name;
      EXPECT_EQ(other.shape, tensor.shape) << file << name;
      EXPECT_EQ(Values(other), Values(tensor)) << file << name;
      if (tensor.elements > 4) {  // a part of it
        std::vector<float> part(2);
        ReadAsF32(other, 3, 2, part.data());
        EXPECT_EQ(part, (std::vector<float>{Values(tensor)[3], Values(tensor)[4]})) << file << name;
      }
    }
    for (const auto& [name, type] : {std::pair{"double", StoredType::kF64},
                                     {"ids", StoredType::kI64},
                                     {"mask", StoredType::kBool},
                                     {"bytes", StoredType::kU8},
                                     {"words", StoredType::kU16},
                                     {"eight", StoredType::kF8E4M3}}) {
      EXPECT_EQ(found.at(name).dtype, type) << file << name;
    }
  }
}

TEST(TorchFile, ModulesShareStorages) {
  const std::string bytes = Bytes("module.pt");
  const auto tensors = Parse(bytes);
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors.at("second.weight").data, tensors.at("tied.weight").data);
}

TEST(TorchFile, WhatAFileNamesIsNotExecuted) {
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("attack.pt")); }, {"m.bin: data.pkl: ", "it names posix.system", "nothing was executed"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("attack_old.pt")); }, {"m.bin: the tensors: ", "it names posix.system"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("whole_module.pt")); }, {"it names __main__.Tiny"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("complex.pt")); }, {"it names torch.ComplexFloatStorage"}));
}

TEST(TorchFile, WhatIsNotAStateDict) {
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("list.pt")); }, {"tensor \"b\": found a list, expected a tensor"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("negative.pt")); }, {"tensor \"a\": a conjugated or negative view"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("expanded.pt")); },
                        {"tensor \"a\": F32 [4, 3] with strides [0, 1]", "does not fit its storage of 3 elements"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("script.pt")); }, {"a TorchScript archive, expected a state dict"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("compressed.pt")); }, {"is compressed, expected it stored"}));
  EXPECT_TRUE(FailsWith([] { Parse(Bytes("data.pickle")); }, {"a pickle, expected a checkpoint of torch.save()"}));
  EXPECT_TRUE(FailsWith([] { Parse(""); }, {"0 bytes that are no checkpoint of torch.save()"}));
  EXPECT_TRUE(FailsWith([] { Parse(std::string(257, '\0') + "ustar"); }, {"a tar archive, of PyTorch before"}));
}

// Every file that is cut anywhere is refused.
TEST(TorchFile, EveryTruncationFails) {
  for (const char* file : {"module.pt", "views_old.pt"}) {
    const std::string bytes = Bytes(file);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_TRUE(FailsWith([&] { Parse(bytes.substr(0, size)); }, {"m.bin"})) << file << " " << size;
    }
  }
}

// Where a byte is another one, the file is refused or has tensors that can be read.
TEST(TorchFile, EveryByteMayBeAnotherOne) {
  for (const char* file : {"module.pt", "attack_old.pt"}) {
    const std::string bytes = Bytes(file);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char change : {'\x01', '\x80', '\xFF'}) {
        std::string other = bytes;
        other[at] = static_cast<char>(other[at] ^ change);
        try {
          for (const auto& [name, tensor] : Parse(other)) {
            if (IsFloating(tensor.dtype)) Values(tensor);
          }
        } catch (const ConvertError&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace tarn::convert
