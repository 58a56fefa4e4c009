// A golden file: an attention system, its inputs, and the outputs and final state that a runtime has to reproduce.
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

// An input of a program, F32 or I32.
struct GoldenInput {
  size_t row_bytes;
  std::vector<uint8_t> rows;
};

// A state, and the golden tensor that it has to equal after the last token.
struct GoldenState {
  uint32_t index;
  GoldenTensor want;  // in the layout of the op
};

// A program: what goes in, and what has to come out.
struct GoldenProgram {
  uint64_t tokens = 0;  // 0: the model has no such program
  std::vector<GoldenInput> inputs;
  std::vector<GoldenTensor> outputs;
};

// One of the ways to run the system.
struct GoldenModel {
  std::vector<uint8_t> file;        // a .tarn file
  GoldenProgram encode;             // once, over all tokens
  GoldenProgram decode;             // in chunks
  std::vector<GoldenState> states;  // of the sequence, or of the source where there is an encoder
};

struct GoldenCase {
  std::string name;
  Tolerance output_tolerance{}, state_tolerance{};
  std::vector<uint64_t> chunks;  // of "decode", to try
  std::vector<GoldenModel> models;
};

// Reads a file and builds its models with the converter's own table of attention systems: a causal system in "decode"; one over
// whole sequences in "encode", and where it has such a form also as cross attention, written by "encode" and read by "decode".
// Throws convert::ConvertError: an unreadable file, a missing tensor, attributes that the system does not have, a state that the op
// does not have.
GoldenCase LoadGoldenCase(const std::string& path);

}  // namespace tarn::golden

#endif  // TARN_TESTS_GOLDEN_GOLDEN_CASE_H_
