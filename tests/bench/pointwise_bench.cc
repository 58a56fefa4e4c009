// Norms, activations, embedding rows, positions, gates and storage.
#include <limits>

#include "tests/bench/bench.h"

namespace tarn::bench {
namespace {

// The buffers that a kernel over [rows, n] may want.
struct Rows {
  size_t rows, n;
  Floats x, weight, y;
  std::vector<uint16_t> half;
  std::vector<int8_t> bytes;
  Rows(size_t rows_in, size_t n_in)
      : rows(rows_in), n(n_in), x(Numbers(rows * n)), weight(Numbers(rows * n)), y(rows * n), half(rows * n), bytes(rows * n) {}
};

using Run = void (*)(const Kernels& kernels, Rows& r);

void AddRows(const Kernels& kernels, const char* name, size_t rows, size_t n, size_t bytes_per_element, Run run) {
  Add(std::string(name) + "/n:" + std::to_string(n) + "/rows:" + std::to_string(rows),
      [&kernels, rows, n, bytes_per_element, run](benchmark::State& state) {
        Rows buffers(rows, n);
        Measure(state, rows, rows * n * bytes_per_element, [&](size_t) { run(kernels, buffers); });
      });
}

void AddLayerwise(const Kernels& kernels, const BenchModel& model, size_t rows) {
  const auto add = [&](const char* name, size_t n, size_t bytes, Run run) { AddRows(kernels, name, rows, n, bytes, run); };
  add("layer_norm", model.width, 8, [](const Kernels& k, Rows& r) {
    k.layer_norm(r.rows, r.n, r.x.data(), r.n, r.weight.data(), r.weight.data(), 1e-5f, r.y.data(), r.n);
  });
  add("rms_norm", model.width, 8,
      [](const Kernels& k, Rows& r) { k.rms_norm(r.rows, r.n, r.x.data(), r.n, r.weight.data(), 1e-5f, r.y.data(), r.n); });
  add("add", model.width, 12,
      [](const Kernels& k, Rows& r) { k.add(r.rows, r.n, r.x.data(), r.n, r.weight.data(), r.n, r.y.data(), r.n); });
  add("relu", model.inner, 8, [](const Kernels& k, Rows& r) { k.relu(r.rows, r.n, r.x.data(), r.n, r.y.data(), r.n); });
  add("gelu", model.inner, 8, [](const Kernels& k, Rows& r) { k.gelu(r.rows, r.n, r.x.data(), r.n, r.y.data(), r.n); });
  add("gelu_tanh", model.inner, 8, [](const Kernels& k, Rows& r) { k.gelu_tanh(r.rows, r.n, r.x.data(), r.n, r.y.data(), r.n); });
  add("silu_mul", model.inner, 12,
      [](const Kernels& k, Rows& r) { k.silu_mul(r.rows, r.n, r.x.data(), r.n, r.weight.data(), r.n, r.y.data(), r.n); });
  add("quantize_qdu8", model.width, 5, [](const Kernels& k, Rows& r) {
    Qdu8 parameters;
    for (size_t row = 0; row < r.rows; ++row) {
      uint8_t* quantized = reinterpret_cast<uint8_t*>(r.bytes.data()) + row * r.n;
      k.quantize_qdu8(r.n, r.x.data() + row * r.n, /*parts=*/1, quantized, &parameters);
    }
  });
}

void AddEmbedding(const Kernels& kernels, const BenchModel& model) {
  const auto add = [&](const char* name, size_t bytes, Run run) { AddRows(kernels, name, 1, model.width, bytes, run); };
  add("scale_f32", 8, [](const Kernels& k, Rows& r) { k.scale_f32(r.n, r.x.data(), 0.5f, r.y.data()); });
  add("scale_f16", 6, [](const Kernels& k, Rows& r) { k.scale_f16(r.n, r.half.data(), 0.5f, r.y.data()); });
  add("scale_i8", 5, [](const Kernels& k, Rows& r) { k.scale_i8(r.n, r.bytes.data(), 0.5f, r.y.data()); });
  add("sinusoid", 16, [](const Kernels& k, Rows& r) {
    const std::vector<double> frequency(r.n / 2, 0.1);
    k.sinusoid(r.n / 2, 12345.0, frequency.data(), r.y.data(), r.y.data() + r.n / 2);
  });
}

// Of one head.
void AddHeadwise(const Kernels& kernels, const BenchModel& model, size_t rows) {
  const auto add = [&](const char* name, size_t n, size_t bytes, Run run) { AddRows(kernels, name, rows, n, bytes, run); };
  add("rope", model.head_dim, 12,
      [](const Kernels& k, Rows& r) { k.rope(r.rows, 1, r.n, r.x.data(), r.n, r.weight.data(), r.y.data(), r.n); });
  add("l2_normalize", model.head_dim, 8,
      [](const Kernels& k, Rows& r) { k.l2_normalize(r.rows, r.n, r.x.data(), r.n, 1.0f, 1e-3f, false, r.y.data()); });
  add("half_squared_norm", model.head_dim, 4,
      [](const Kernels& k, Rows& r) { k.half_squared_norm(r.rows, r.n, r.x.data(), nullptr, r.y.data()); });
}

// Over the features of a row, or over the tokens of a chunk.
void AddGates(const Kernels& kernels) {
  const auto add = [&](const char* name, size_t n, size_t bytes, Run run) { AddRows(kernels, name, 1, n, bytes, run); };
  add("vector_gate", kFeatures, 8, [](const Kernels& k, Rows& r) {
    k.vector_gate(r.n, r.x.data(), 16.0f, -std::numeric_limits<float>::infinity(), r.y.data());
  });
  add("sum_normalize", kFeatures, 8, [](const Kernels& k, Rows& r) { k.sum_normalize(1, r.n, 1.0f, r.y.data()); });
  add("forget_gate", kChunk, 12,
      [](const Kernels& k, Rows& r) { k.forget_gate(r.n, r.x.data(), 1, nullptr, r.y.data(), r.weight.data()); });
  add("scaled_sigmoid", kChunk, 8, [](const Kernels& k, Rows& r) { k.scaled_sigmoid(r.n, r.x.data(), 1, 2.0f, r.y.data()); });
  add("running_max", kChunk, 12, [](const Kernels& k, Rows& r) {
    float m = 0.0f;
    k.running_max(r.n, false, r.x.data(), &m, r.y.data(), r.weight.data());
  });
}

// A head's state, and a row of a cache.
void AddStorage(const Kernels& kernels, const BenchModel& model) {
  AddRows(kernels, "f32_to_f16", 1, kFeatures * model.head_dim, 6,
          [](const Kernels& k, Rows& r) { k.f32_to_f16(r.n, r.x.data(), r.half.data()); });
  AddRows(kernels, "quantize_i8", 1, model.head_dim, 5, [](const Kernels& k, Rows& r) {
    float scale;
    k.quantize_i8(r.n, r.x.data(), r.bytes.data(), &scale);
  });
}

}  // namespace

void AddPointwise(const Kernels& kernels) {
  for (const BenchModel& model : kModels) {
    for (const size_t rows : {size_t{1}, kChunk}) {
      AddLayerwise(kernels, model, rows);
      AddHeadwise(kernels, model, rows);
    }
    AddEmbedding(kernels, model);
    AddStorage(kernels, model);
  }
  AddGates(kernels);
}

}  // namespace tarn::bench
