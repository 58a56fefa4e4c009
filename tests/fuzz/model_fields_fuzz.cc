// A model whose graph and weights were changed by somebody who makes all hashes right again: using it either works or is refused.
//
// The input says which good model is spoiled and how, so that nearly every one is a FlatBuffer that the verifier lets through:
//
//   [ model | { field: u16, what is done to it: u8, spare: u8, value: u32 } ... ]
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/fuzz/graph_fields.h"
#include "tests/fuzz/use_model.h"
#include "tests/support/models.h"

namespace {

using tarn::convert::Precision;
using tarn::format::DType;
using tarn::test::ConfigText;
using tarn::test::Field;

struct Base {
  std::vector<uint8_t> file;
  std::vector<Field> fields;
};

// Models that encode. "ENCODER" stands for an attention object.
constexpr char kBlocks[] =
    R"("hidden_size": 32, "vocab_size": 256, "num_heads": 4, "intermediate_size": 48, "hidden_act": "relu", "norm": "layernorm",
    "norm_eps": 1e-5, "tokenizer": "bytes", "position_embedding": "sinusoidal")";

std::string Classifier(const std::string& attention) {
  return std::string("{") + kBlocks + R"(, "task": "classification", "num_layers": 1, "num_labels": 3, "pooling": "mean",
    "attention": )" +
         attention + "}";
}

std::string MaskedLm(const std::string& attention) {
  return std::string("{") + kBlocks + R"(, "task": "masked_lm", "num_layers": 1, "mask_token_id": 0, "attention": )" + attention +
         "}";
}

std::string Seq2Seq(const std::string& attention) {
  return std::string("{") + kBlocks + R"(, "task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, "encoder_attention": )" +
         attention + R"(, "cross_attention": )" + attention + R"(, "decoder_attention": )" + tarn::test::kSoftmax + "}";
}

std::vector<Base> MakeBases() {
  std::vector<Base> bases;
  const auto add = [&](const std::string& config, Precision precision = Precision::kF32, DType state = DType::F32,
                       const tarn::convert::ShortlistFile* shortlist = nullptr) {
    std::vector<uint8_t> file = tarn::test::MakeModel(config, precision, state, shortlist);
    std::vector<Field> fields = tarn::test::GraphFields(file.data() + tarn::test::kHeaderBytes);
    bases.push_back({std::move(file), std::move(fields)});
  };
  add(ConfigText(tarn::test::kRfa, "learned").insert(1, R"("max_positions": 40, )"));
  add(ConfigText(tarn::test::kSoftmax), Precision::kInt8, DType::I8);
  add(ConfigText(tarn::test::kAbc), Precision::kInt4);
  add(ConfigText(tarn::test::kRfa), Precision::kInt3);
  add(ConfigText(tarn::test::kRfa), Precision::kInt2);
  add(ConfigText(tarn::test::kAbcRelu), Precision::kF16);
  add(Seq2Seq(tarn::test::kArccos), Precision::kInt8, DType::I8);
  add(Seq2Seq(tarn::test::kSoftmax), Precision::kInt8, DType::F16);
  add(Seq2Seq(tarn::test::kAbc), Precision::kInt8, DType::I8);
  add(Seq2Seq(R"({"system": "kv_clustering", "num_slots": 4, "iterations": 3})"));
  for (const char* attention :
       {R"({"system": "clustered", "num_clusters": 3, "bits": 8, "iterations": 2, "max_context": 64})",
        R"({"system": "improved_clustered", "num_clusters": 3, "bits": 8, "iterations": 2, "topk": 2, "max_context": 64})",
        R"({"system": "probsparse", "max_context": 64})",
        R"({"system": "poolingformer", "window1": 8, "window2": 16, "pool_kernel": 3, "pool_stride": 2})"}) {
    add(Classifier(attention));
    add(MaskedLm(attention), Precision::kInt8);
  }
  tarn::convert::ShortlistFile shortlist{"test", 3, {0}, {}};
  for (int32_t token = 0; token < 256; ++token) {
    shortlist.targets.push_back(255 - token);
    shortlist.offsets.push_back(token + 1);
  }
  add(Seq2Seq(tarn::test::kAbc), Precision::kInt8, DType::F32, &shortlist);
  // The files of the corpus name the models above by their number: what is new comes behind them.
  for (const tarn::test::SystemCase& system : tarn::test::kMoreSystems)
    add(ConfigText(system.attention, "sinusoidal", system.heads));
  for (
      const char* attention :
      {R"({"system": "l2g_window", "window": 6, "global_positions": [0, 2, 3, 40], "global_projections": true})",
       R"({"system": "l2g_window", "window": 6, "global_positions": [0, 2, 3, 40], "distance_bias": "layer"})",
       R"({"system": "abc_mlp", "num_slots": 5, "own_value_control": true, "control_input": "heads", "activation": "relu"})",
       R"({"system": "linformer", "num_slots": 5, "max_len": 100, "own_value_control": true})",
       R"({"system": "linear_attention", "feature_map": "hedgehog", "num_features": 4, "own_q_map": true, "normalize_qk": true})"}) {
    add(Classifier(attention));
    add(MaskedLm(attention), Precision::kInt8);
  }
  return bases;
}

// Where checks end and arithmetic begins to go wrong.
uint64_t Interesting(uint32_t value, uint32_t bytes) {
  const uint64_t most = bytes == 8 ? UINT64_MAX : (uint64_t{1} << 8 * bytes) - 1;
  const uint64_t values[] = {0,
                             1,
                             2,
                             3,
                             most,
                             most - 1,
                             most / 2,
                             most / 2 + 1,
                             64,
                             127,
                             255,
                             256,
                             1024,
                             65535,
                             65536,
                             uint64_t{1} << 20,
                             4096,
                             1u << 24,
                             1u << 28,
                             1u << 30,
                             1u << 31,
                             uint64_t{1} << 32,
                             uint64_t{1} << 40,
                             uint64_t{1} << 62};
  return values[value % (sizeof(values) / sizeof(*values))];
}

double Special(uint32_t value) {
  const double values[] = {
      0.0,  -0.0,  1.0,   -1.0,  NAN,    INFINITY, -INFINITY, std::numeric_limits<float>::max(),
      1e-5, 1e-38, 1e-45, 1e300, -1e300, 1u << 31, 3e9,       static_cast<double>(std::numeric_limits<float>::lowest())};
  return values[value % (sizeof(values) / sizeof(*values))];
}

void StoreFloat(double value, uint32_t bytes, uint8_t* at) {
  const float single = std::fabs(value) < 3.4e38 || std::isinf(value) || std::isnan(value) ? static_cast<float>(value) : INFINITY;
  if (bytes == 8) {
    std::memcpy(at, &value, 8);
  } else {
    std::memcpy(at, &single, 4);
  }
}

void SpoilField(const Base& base, const Field& field, uint8_t what, uint32_t value, uint8_t* graph) {
  uint8_t* const at = graph + field.at;
  uint64_t number = 0;
  std::memcpy(&number, at, field.bytes);
  if (field.kind == Field::Kind::kPresence) {
    number = 0;
  } else if (field.kind == Field::Kind::kReference && what % 4 != 0) {
    // Where another one of its type leads to: ops, tensors, lists and names change places. Offsets count forwards.
    for (size_t i = 0; i < base.fields.size(); ++i) {
      const Field& other = base.fields[(value + i) % base.fields.size()];
      if (other.kind != field.kind || other.type != field.type || &other == &field) continue;
      uint32_t offset;
      std::memcpy(&offset, graph + other.at, sizeof(offset));
      if (uint64_t{other.at} + offset <= field.at) continue;
      number = other.at + offset - field.at;
      break;
    }
  } else if (field.kind == Field::Kind::kFloat) {
    StoreFloat(what % 2 == 0 ? Special(value) : static_cast<double>(static_cast<int32_t>(value)) / 1024, field.bytes, at);
    return;
  } else {
    switch (what % 4) {
      case 0:
        number = Interesting(value, field.bytes);
        break;
      case 1:
        number += static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(value)));
        break;
      case 2:
        number = value % 64;
        break;
      default:
        number = value;
        break;
    }
  }
  std::memcpy(at, &number, field.bytes);
}

void Spoil(const Base& base, const uint8_t* instruction, std::vector<uint8_t>* file) {
  uint16_t which;
  uint32_t value;
  std::memcpy(&which, instruction, sizeof(which));
  std::memcpy(&value, instruction + 4, sizeof(value));
  const uint8_t what = instruction[2];
  if (what % 8 != 7) {
    SpoilField(base, base.fields[which % base.fields.size()], what, value, file->data() + tarn::test::kHeaderBytes);
    return;
  }
  const size_t begin = static_cast<size_t>(tarn::test::LoadU64(*file, 16));
  const size_t words = (file->size() - begin) / sizeof(float);
  uint8_t* const at = file->data() + begin + sizeof(float) * ((which + 65536 * size_t{instruction[3]}) % words);
  if (what % 16 == 7) {
    StoreFloat(Special(value), sizeof(float), at);
  } else {
    std::memcpy(at, &value, sizeof(value));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kInstructionBytes = 8;
  constexpr size_t kMostInstructions = 16;
  static const std::vector<Base> bases = MakeBases();
  if (size < 1) return 0;
  const Base& base = bases[data[0] % bases.size()];
  std::vector<uint8_t> file = base.file;
  for (size_t i = 0; i < kMostInstructions && 1 + (i + 1) * kInstructionBytes <= size; ++i) {
    Spoil(base, data + 1 + i * kInstructionBytes, &file);
  }
  tarn::test::RehashAll(&file);
  tarn::test::UseModel(file);
  return 0;
}
