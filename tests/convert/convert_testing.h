// What the tests of the converter share: folders, files and checkpoints made on the spot.
#ifndef TARN_TESTS_CONVERT_CONVERT_TESTING_H_
#define TARN_TESTS_CONVERT_CONVERT_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {

// A folder that is gone when the test is over.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

struct TestTensor {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::string bytes;
};

TestTensor FloatTensor(const std::string& name, const std::vector<uint64_t>& shape, const std::vector<float>& values);

// A safetensors file around a header that is given as it is, or made for the tensors.
std::string SafetensorsBytes(const std::string& header, const std::string& data);
std::string SafetensorsBytes(const std::vector<TestTensor>& tensors, const Json& metadata = nullptr);

// config.json of a model with 2 layers of 8 x 12, 4 heads of 2 and 2 kv heads: rfa with a gate, swiglu, rmsnorm, biases, "none"
// tokens.
Json SmallConfig();

// The tensors that a config wants, filled from a seed.
std::vector<TestTensor> RandomCheckpoint(const Json& config, uint64_t seed);

// `f` throws a ConvertError whose message, or the lines below it, has every one of `parts`.
::testing::AssertionResult FailsWith(const std::function<void()>& f, const std::vector<std::string>& parts);

}  // namespace tarn::convert

#endif  // TARN_TESTS_CONVERT_CONVERT_TESTING_H_
