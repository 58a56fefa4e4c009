// Models that are open, sessions of them, and a list of models that has every kind of state.
#ifndef TARN_TESTS_SUPPORT_LOADED_H_
#define TARN_TESTS_SUPPORT_LOADED_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn::test {

// Whether several rows of dense layers have the bits of single rows. XNNPACK's f32 kernels for ARM add one row in another order.
inline bool RowsHaveBitsOfOne(convert::Precision precision, bool portable) {
#if defined(__aarch64__) || defined(__arm__)
  return portable || precision != convert::Precision::kF32;
#else
  (void)precision, (void)portable;
  return true;
#endif
}

using SessionPointer = std::unique_ptr<Session, void (*)(Session*)>;

class Loaded {
 public:
  explicit Loaded(const std::string& config, format::DType state = format::DType::F32,
                  convert::Precision precision = convert::Precision::kF32, bool portable = true)
      : file_(MakeModel(config, precision, state)) {
    Result<LoadedModel> model =
        LoadedModel::Open(FileMap(), {file_.data(), file_.size()}, {Verify::kOnce, nullptr, portable, DefaultAllocator()});
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model.value());
    EXPECT_TRUE(model_.Pack().ok());
  }

  SessionPointer New(const Limits& limits) const {
    Result<Session*> session = Session::Create(model_, limits, {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return SessionPointer(session.value(), Session::Destroy);
  }

 private:
  const std::vector<uint8_t> file_;
  LoadedModel model_;
};

// One of every causal system, and of the types that states may have.
struct CausalCase {
  const char* name;
  std::string attention;
  const char* heads;
  format::DType state;
};

inline std::vector<CausalCase> CausalCases() {
  const std::string hybrid = std::string("[") + kRfa + ", " + kSoftmax + "]";
  std::vector<CausalCase> cases = {
      {"rfa", kRfa, kGroupedHeads, format::DType::F32},
      {"arccos", kArccos, kGroupedHeads, format::DType::F32},
      {"abc", kAbc, kGroupedHeads, format::DType::F32},
      {"abc_relu", kAbcRelu, kGroupedHeads, format::DType::F32},
      {"softmax", kSoftmax, kGroupedHeads, format::DType::F32},
      {"hybrid", hybrid, kGroupedHeads, format::DType::F32},
      {"rfa_f16", kRfa, kGroupedHeads, format::DType::F16},
      {"softmax_f16", kSoftmax, kGroupedHeads, format::DType::F16},
      {"softmax_i8", kSoftmax, kGroupedHeads, format::DType::I8},
      {"product", R"({"system": "linear_attention", "feature_map": "product", "num_features": 9, "own_q_map": true, "scale": 0.1})",
       kGroupedHeads, format::DType::F32},
      {"abc_f16", kAbc, kGroupedHeads, format::DType::F16},
      {"delta_f16", R"({"system": "gated_deltanet"})", kGroupedHeads, format::DType::F16},
  };
  for (const SystemCase& system : kMoreSystems) {
    cases.push_back({system.name, system.attention, system.heads, format::DType::F32});
  }
  return cases;
}

}  // namespace tarn::test

#endif  // TARN_TESTS_SUPPORT_LOADED_H_
