// The tensors and metadata of a golden file, and its constants as the converter reads those of a checkpoint.
#ifndef TARN_TESTS_GOLDEN_GOLDEN_FILE_H_
#define TARN_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <string>
#include <vector>

#include "tests/golden/golden_case.h"
#include "tools/convert/checkpoint/safetensors.h"
#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/json/json.h"
#include "tools/convert/json/mapped_file.h"

namespace tarn::golden {

// All throw convert::ConvertError where something is missing or has another type.
class File {
 public:
  explicit File(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& Text(const char* key) const;
  convert::Json Object(const char* key) const;

  bool Has(const std::string& name) const { return parsed_.tensors.count(name) != 0; }
  bool IsInteger(const std::string& name) const;
  GoldenTensor Tensor(const std::string& name) const;
  std::vector<int32_t> Integers(const std::string& name) const;
  // The first dimension of a tensor.
  uint64_t Rows(const std::string& name) const;
  std::vector<std::string> StateNames() const;

 private:
  const convert::StoredTensor& Stored(const std::string& name) const;

  const std::string path_;
  const convert::MappedFile map_;
  const convert::Safetensors parsed_;
};

// What the graph here calls sigma as a factor of the projection: golden files hold the product.
constexpr char kFoldedSigma[] = "folded sigma";

// The constants: "mab.fc_q.weight" of a checkpoint is mab_fc_q_weight here.
class GoldenWeights : public convert::WeightReader {
 public:
  explicit GoldenWeights(const File& file) : file_(file) {}
  void Read(const convert::WeightSpec& spec, uint64_t first, uint64_t count, float* out) const override;

 private:
  const File& file_;
};

}  // namespace tarn::golden

#endif  // TARN_TESTS_GOLDEN_GOLDEN_FILE_H_
