// A golden file: one attention op, its inputs, and the outputs and final state that a runtime has to reproduce.
#ifndef TARN_TESTS_GOLDEN_GOLDEN_CASE_H_
#define TARN_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::golden {

// Passed if |got - want| <= abs + rel * |want|.
struct Tolerance {
  double abs;
  double rel;
};

struct GoldenTensor {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

// An input of the program, F32 or I32: one row of bytes per token.
struct GoldenInput {
  size_t row_bytes;
  std::vector<uint8_t> rows;
};

// A state of the op, and the golden tensor that it has to equal after the last token.
struct GoldenState {
  uint32_t index;
  GoldenTensor want;  // in the layout of the op
};

struct GoldenCase {
  std::string name;
  std::string skip;  // why this version cannot run it; nothing below is set then

  uint64_t tokens = 0;
  std::vector<uint64_t> chunks;
  Tolerance output_tolerance{}, state_tolerance{};
  std::vector<uint8_t> model;       // a .tarn file with this op alone
  std::vector<GoldenInput> inputs;  // of the program, in its order
  GoldenTensor output;
  std::vector<GoldenState> states;
};

// Reads a file and builds its model with the converter's own table of attention systems.
// Throws convert::ConvertError: an unreadable file, a missing tensor, attributes that the system does not have, a state that the op
// does not have.
GoldenCase LoadGoldenCase(const std::string& path);

}  // namespace tarn::golden

#endif  // TARN_TESTS_GOLDEN_GOLDEN_CASE_H_
