#include "tools/convert/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/checkpoint/half.h"

namespace tarn::convert {
namespace {

Safetensors Parse(const std::string& bytes) {
  return ParseSafetensors(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "m.safetensors");
}

// A header with one tensor "w" whose entry is given, before `data_bytes` bytes.
std::string OneTensor(const std::string& entry, size_t data_bytes) {
  return SafetensorsBytes("{\"w\":" + entry + "}", std::string(data_bytes, '\0'));
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const std::string bytes = SafetensorsBytes(
      {FloatTensor("a", {2, 3}, {1, 2, 3, 4, 5, 6}), FloatTensor("b", {}, {7}), {"ids", "I32", {1}, std::string("\x05\0\0\0", 4)}},
      {{"case", "x"}});
  const Safetensors file = Parse(bytes);
  EXPECT_EQ(file.metadata.at("case"), "x");
  ASSERT_EQ(file.tensors.size(), 3u);
  const StoredTensor& a = file.tensors.at("a");
  EXPECT_EQ(a.shape, (std::vector<uint64_t>{2, 3}));
  std::vector<float> middle(3);
  ReadAsF32(a, 2, 3, middle.data());
  EXPECT_EQ(middle, (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(file.tensors.at("b").elements, 1u);
  EXPECT_EQ(file.tensors.at("ids").dtype, StoredType::kI32);
}

TEST(Safetensors, AcceptsPaddedHeader) { EXPECT_TRUE(Parse(SafetensorsBytes("{}   ", "")).tensors.empty()); }

TEST(Safetensors, ConvertsHalfFormatsExactly) {
  EXPECT_EQ(FloatOfF16(0x3C00), 1.0f);
  EXPECT_EQ(FloatOfF16(0xC500), -5.0f);
  EXPECT_EQ(FloatOfF16(0x7BFF), 65504.0f);
  EXPECT_EQ(FloatOfF16(0x0001), 0x1p-24f);
  EXPECT_EQ(FloatOfF16(0x83FF), -1023 * 0x1p-24f);
  EXPECT_EQ(FloatOfF16(0x0400), 0x1p-14f);
  EXPECT_TRUE(std::signbit(FloatOfF16(0x8000)));
  EXPECT_EQ(FloatOfF16(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(FloatOfF16(0x7C01)));
  EXPECT_EQ(FloatOfBf16(0x3FC0), 1.5f);
  EXPECT_EQ(FloatOfBf16(0xFF80), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(FloatOfBf16(0x7FC0)));

  const std::string bytes = SafetensorsBytes({{"h", "F16", {2}, std::string("\x00\x3C\x00\xC5", 4)},
                                              {"odd", "F16", {1}, std::string("\x00\x3C", 2)},
                                              {"b", "BF16", {2}, std::string("\xC0\x3F\x80\xBF", 4)}});
  const Safetensors file = Parse(bytes);
  float values[2];
  ReadAsF32(file.tensors.at("h"), 0, 2, values);
  EXPECT_EQ(values[1], -5.0f);
  ReadAsF32(file.tensors.at("b"), 0, 2, values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -1.0f);
}

TEST(Safetensors, EveryTruncationFails) {
  const std::string bytes = SafetensorsBytes({FloatTensor("a", {2}, {1, 2}), FloatTensor("b", {1}, {3})});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(FailsWith([&] { Parse(bytes.substr(0, size)); }, {"m.safetensors"})) << size;
  }
  EXPECT_TRUE(FailsWith([&] { Parse(bytes + "x"); },
                        {"bytes 12 .. 13 of the data belong to no tensor: the file was changed; copy it again"}));
}

TEST(Safetensors, HeaderErrors) {
  EXPECT_TRUE(FailsWith([] { Parse("abc"); }, {"3 bytes are too few"}));
  EXPECT_TRUE(FailsWith([] { Parse(std::string(8, '\xFF') + "{}"); }, {"18446744073709551615", "not a safetensors file"}));
  EXPECT_TRUE(FailsWith([] { Parse("<!DOCTYPE html>\n<html>"); }, {"not a safetensors file but a text"}));
  EXPECT_TRUE(FailsWith([] { Parse("\x1f\x8b\b 12345678"); }, {"not a safetensors file but a gzip file: unpack it"}));
  EXPECT_TRUE(FailsWith([] { Parse("PK\3\4 12345678"); }, {"not a safetensors file but a ZIP archive"}));
  EXPECT_TRUE(FailsWith([] { Parse("GGUF 12345678"); }, {"not a safetensors file but a GGUF file"}));
  EXPECT_TRUE(FailsWith([] { Parse("version https://git-lfs"); }, {"a Git LFS pointer: git lfs pull"}));
  EXPECT_TRUE(
      FailsWith([] { Parse(std::string("\x64\0\0\0\0\0\0\0{}", 10)); }, {"10 bytes, expected at least 108 (", "truncated"}));
  EXPECT_TRUE(FailsWith([] { Parse(std::string("PK\3\4\0\0\0\0\3\0", 10)); },
                        {"byte 8 is 0x03, expected '{', which begins a header: not a safetensors file"}));
  EXPECT_TRUE(FailsWith([] { Parse(SafetensorsBytes("{\"a\": ", "")); }, {"not valid JSON"}));
  EXPECT_TRUE(FailsWith([] { Parse(SafetensorsBytes("[]", "")); }, {"not an object"}));
  EXPECT_TRUE(FailsWith([] { Parse(SafetensorsBytes("{\"a\xFF\": 1}", "")); }, {"not valid JSON"}));
  EXPECT_TRUE(FailsWith([] { Parse(SafetensorsBytes(std::string(70, '[') + std::string(70, ']'), "")); }, {"64 levels"}));
  EXPECT_TRUE(FailsWith([] { Parse(SafetensorsBytes(R"({"__metadata__": 1})", "")); }, {"__metadata__", "1"}));
  EXPECT_TRUE(FailsWith([] { Parse(SafetensorsBytes(R"({"__metadata__": {"k": 1}})", "")); }, {"__metadata__", "k", "1"}));
}

TEST(Safetensors, DuplicateNamesFail) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_TRUE(FailsWith([&] { Parse(SafetensorsBytes("{\"w\":" + entry + ",\"w\":" + entry + "}", "0000")); }, {"\"w\"", "twice"}));
  EXPECT_TRUE(FailsWith([&] { Parse(OneTensor(R"({"dtype":"F32","dtype":"F32"})", 0)); }, {"\"dtype\"", "twice"}));
}

TEST(Safetensors, EntryErrors) {
  const struct {
    const char* entry;
    std::vector<std::string> parts;
  } cases[] = {
      {"3", {"\"w\"", "3 is not an object"}},
      {R"({"shape":[1],"data_offsets":[0,4]})", {"\"w\"", "\"dtype\" is missing"}},
      {R"({"dtype":"I128","shape":[1],"data_offsets":[0,4]})", {"\"w\"", "dtype", "I128"}},
      {R"({"dtype":"I64","shape":[1],"data_offsets":[0,4]})", {"\"w\"", "spans 4 bytes", "needs 8"}},
      {R"({"dtype":"BOOL","shape":[1],"data_offsets":[0,4]})", {"\"w\"", "spans 4 bytes", "needs 1"}},
      {R"({"dtype":5,"shape":[1],"data_offsets":[0,4]})", {"\"w\"", "dtype", "5"}},
      {R"({"dtype":"F32","data_offsets":[0,4]})", {"\"w\"", "shape"}},
      {R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", {"\"w\"", "shape", "-1"}},
      {R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", {"\"w\"", "shape", "1.0"}},
      {R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})", {"\"w\"", "too many dimensions"}},
      {R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})", {"\"w\"", "overflows"}},
      {R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]})", {"\"w\"", "overflows"}},
      {R"({"dtype":"F32","shape":[1]})", {"\"w\"", "data_offsets"}},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", {"\"w\"", "data_offsets"}},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", {"\"w\"", "data_offsets", "[4,0]"}},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
       {"m.safetensors: 66 bytes, expected 70 (header): truncated; copy it"}},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]})", {"\"w\"", "data_offsets"}},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", {"\"w\"", "spans 4 bytes", "needs 8"}},
      {R"({"dtype":"F16","shape":[1],"data_offsets":[0,4]})", {"\"w\"", "spans 4 bytes", "needs 2"}},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1})", {"\"w\"", "extra"}},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(FailsWith([&] { Parse(OneTensor(c.entry, 4)); }, c.parts)) << c.entry;
  }
}

TEST(Safetensors, OverlapAndHolesFail) {
  const auto two = [](int a_begin, int a_end, int b_begin, int b_end, size_t bytes) {
    const Json header = {{"a", {{"dtype", "F32"}, {"shape", {(a_end - a_begin) / 4}}, {"data_offsets", {a_begin, a_end}}}},
                         {"b", {{"dtype", "F32"}, {"shape", {(b_end - b_begin) / 4}}, {"data_offsets", {b_begin, b_end}}}}};
    return SafetensorsBytes(header.dump(), std::string(bytes, '\0'));
  };
  EXPECT_EQ(Parse(two(4, 8, 0, 4, 8)).tensors.size(), 2u);  // any order
  EXPECT_EQ(Parse(two(4, 4, 0, 4, 4)).tensors.size(), 2u);  // an empty tensor
  EXPECT_TRUE(FailsWith([&] { Parse(two(0, 8, 4, 8, 8)); }, {"\"b\"", "begins at 4, inside tensor \"a\""}));
  EXPECT_TRUE(FailsWith([&] { Parse(two(0, 4, 8, 12, 12)); }, {"\"b\"", "bytes 4 .. 8 belong to no tensor"}));
  EXPECT_TRUE(FailsWith([&] { Parse(two(4, 8, 8, 12, 12)); }, {"\"a\"", "bytes 0 .. 4"}));
}

}  // namespace
}  // namespace tarn::convert
