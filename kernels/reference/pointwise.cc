// Norms, activations, gates and the running maximum.
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double SumOfSquares(const float* x, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

// y = f(x), element by element.
template <typename F>
void Map(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride, F f) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; ++i) y[r * y_stride + i] = static_cast<float>(f(static_cast<double>(x[r * x_stride + i])));
  }
}

// x Phi(x), Phi(x) = erfc(-x/sqrt 2)/2 (Hendrycks, Gimpel 2016).
double GeluOf(double v) { return 0.5 * v * std::erfc(-v * std::sqrt(0.5)); }

// v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3)))/2 (ibid.). (1 + tanh u)/2 = sigmoid(2u) keeps the digits that 1 + tanh loses near -1.
double GeluTanhOf(double v) { return v * Sigmoid(2.0 * 0.79788456080286535588 * (v + 0.044715 * v * v * v)); }

double SiluOf(double v) { return v * Sigmoid(v); }

// y = f(gate) * up (Shazeer 2020).
template <typename F>
void GatedMap(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
              size_t y_stride, F f) {
  for (size_t r = 0; r < rows; ++r, gate += gate_stride, up += up_stride, y += y_stride) {
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(f(static_cast<double>(gate[i])) * up[i]);
  }
}

// log(sigmoid(x)) = -softplus(-x), with the exponential on the side where it is small.
double LogSigmoid(double x) { return std::fmin(x, 0.0) - std::log1p(std::exp(-std::fabs(x))); }

}  // namespace

// Ba, Kiros, Hinton 2016, eq. 3-4: biased variance, as PyTorch's LayerNorm.
void LayerNorm(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, const float* bias, float eps, float* y,
               size_t y_stride) {
  for (size_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) {
    double mean = 0.0;
    for (size_t i = 0; i < n; ++i) mean += x[i];
    mean /= static_cast<double>(n);
    double variance = 0.0;
    for (size_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
    variance /= static_cast<double>(n);
    const double scale = 1.0 / std::sqrt(variance + static_cast<double>(eps));
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>((x[i] - mean) * scale * weight[i] + bias[i]);
  }
}

// Zhang, Sennrich 2019, eq. 4.
void RmsNorm(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) {
    const double scale = 1.0 / std::sqrt(SumOfSquares(x, n) / static_cast<double>(n) + static_cast<double>(eps));
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] * scale * weight[i]);
  }
}

// MATH 1.2.6: x/(|x| + eps); `inside`: x/sqrt(|x|^2 + eps).
void L2Normalize(size_t rows, size_t d, const float* x, size_t x_stride, float scale, float eps, bool inside, float* y) {
  for (size_t r = 0; r < rows; ++r, x += x_stride, y += d) {
    const double squares = SumOfSquares(x, d);
    const double e = static_cast<double>(eps);
    const double norm = inside ? std::sqrt(squares + e) : std::sqrt(squares) + e;
    for (size_t i = 0; i < d; ++i) y[i] = static_cast<float>(static_cast<double>(scale) * x[i] / norm);
  }
}

void Relu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  Map(rows, n, x, x_stride, y, y_stride, [](double v) { return v < 0.0 ? 0.0 : v; });
}

void Gelu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  Map(rows, n, x, x_stride, y, y_stride, GeluOf);
}

void GeluTanh(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  Map(rows, n, x, x_stride, y, y_stride, GeluTanhOf);
}

void Tanh(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  Map(rows, n, x, x_stride, y, y_stride, [](double v) { return std::tanh(v); });
}

void Silu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  Map(rows, n, x, x_stride, y, y_stride, SiluOf);
}

// So et al. 2021 (Primer).
void ReluSquared(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  Map(rows, n, x, x_stride, y, y_stride, [](double v) { return v < 0.0 ? 0.0 : v * v; });
}

void SoftCap(size_t rows, size_t n, const float* x, size_t x_stride, float cap, float* y, size_t y_stride) {
  const double c = cap;
  Map(rows, n, x, x_stride, y, y_stride, [c](double v) { return c * std::tanh(v / c); });
}

void SiluMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
             size_t y_stride) {
  GatedMap(rows, n, gate, gate_stride, up, up_stride, y, y_stride, SiluOf);
}

void GeluMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
             size_t y_stride) {
  GatedMap(rows, n, gate, gate_stride, up, up_stride, y, y_stride, GeluOf);
}

void SigmoidMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                size_t y_stride) {
  GatedMap(rows, n, gate, gate_stride, up, up_stride, y, y_stride, Sigmoid);
}

void GeluTanhMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                 size_t y_stride) {
  GatedMap(rows, n, gate, gate_stride, up, up_stride, y, y_stride, GeluTanhOf);
}

void Mul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
         size_t y_stride) {
  GatedMap(rows, n, gate, gate_stride, up, up_stride, y, y_stride, [](double v) { return v; });
}

void Add(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r, a += a_stride, b += b_stride, y += y_stride) {
    for (size_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
  }
}

// MATH 1.2.4. sigmoid(-a) is formed directly: 1 - sigmoid(a) has no digits left for large a.
void ForgetGate(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay) {
  for (size_t i = 0; i < n; ++i) {
    const double x = a[i * a_stride];
    if (decay != nullptr) decay[i] = static_cast<float>(Sigmoid(x));
    if (write != nullptr) write[i] = static_cast<float>(Sigmoid(-x));
    if (log_decay != nullptr) log_decay[i] = static_cast<float>(LogSigmoid(x));
  }
}

// The gate of GLA (Yang et al. 2024; MATH 0.1).
void VectorGate(size_t n, const float* a, float normalizer, float clamp_min, float* decay) {
  for (size_t i = 0; i < n; ++i) {
    const double log_decay = LogSigmoid(a[i]) / static_cast<double>(normalizer);
    const double least = static_cast<double>(clamp_min);
    decay[i] = static_cast<float>(std::exp(log_decay < least ? least : log_decay));
  }
}

// Gated DeltaNet and KDA (MATH 1.6): log_decay = -rate * softplus(a).
void SoftplusGate(size_t n, const float* a, size_t a_stride, float rate, float* decay, float* log_decay) {
  for (size_t i = 0; i < n; ++i) {
    const double log = static_cast<double>(rate) * LogSigmoid(-static_cast<double>(a[i * a_stride]));
    if (decay != nullptr) decay[i] = static_cast<float>(std::exp(log));
    if (log_decay != nullptr) log_decay[i] = static_cast<float>(log);
  }
}

// Dao, Gu 2024 (Mamba 2; MATH 0.1): t = softplus(a), clamped, log_decay = -rate t.
void StepGate(size_t n, const float* a, size_t a_stride, float rate, float least, float most, float* step, float* log_decay) {
  for (size_t i = 0; i < n; ++i) {
    double t = -LogSigmoid(-static_cast<double>(a[i * a_stride]));
    if (t < static_cast<double>(least)) t = static_cast<double>(least);
    if (t > static_cast<double>(most)) t = static_cast<double>(most);
    step[i] = static_cast<float>(t);
    log_decay[i] = static_cast<float>(-static_cast<double>(rate) * t);
  }
}

// Qin et al. 2024 (HGRN2; MATH 0.1): g = b + (1 - b) sigmoid(a), and the key 1 - g.
void TiedGate(size_t n, const float* a, const float* bound, float* decay, float* key) {
  for (size_t i = 0; i < n; ++i) {
    const double x = a[i], b = bound == nullptr ? 0.0 : static_cast<double>(bound[i]);
    decay[i] = static_cast<float>(b + (1.0 - b) * Sigmoid(x));
    key[i] = static_cast<float>((1.0 - b) * Sigmoid(-x));
  }
}

// Peng et al. 2025 (RWKV-7; MATH 1.6): log g = least * sigmoid(a).
void SigmoidGate(size_t n, const float* a, float least, float* decay) {
  for (size_t i = 0; i < n; ++i) decay[i] = static_cast<float>(std::exp(static_cast<double>(least) * Sigmoid(a[i])));
}

// MATH 1.6: beta = sigmoid(a), or twice that (fla's allow_neg_eigval).
void ScaledSigmoid(size_t n, const float* a, size_t a_stride, float scale, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(scale) * Sigmoid(a[i * a_stride]));
}

// Schlag, Irie, Schmidhuber 2021; MATH 1.6. DPFP of a row can be all zeros, and 0/0 would spoil the state for good.
void SumNormalize(size_t rows, size_t m, float eps, float* phi) {
  for (size_t r = 0; r < rows; ++r, phi += m) {
    double total = static_cast<double>(eps);
    for (size_t i = 0; i < m; ++i) total += phi[i];
    for (size_t i = 0; i < m && total != 0.0; ++i) phi[i] = static_cast<float>(phi[i] / total);
  }
}

// log C(x) of RFA's norm-free form (RFA eq. 12; MATH 1.2.3).
void HalfSquaredNorm(size_t rows, size_t d, const float* x, const float* sigma, float* log_weight) {
  for (size_t r = 0; r < rows; ++r, x += d) {
    double sum = 0.0;
    for (size_t i = 0; i < d; ++i) {
      const double scaled = (sigma == nullptr ? 1.0 : static_cast<double>(sigma[i])) * x[i];
      sum += scaled * scaled;
    }
    log_weight[r] = static_cast<float>(0.5 * sum);
  }
}

// The maximum in log-sum-exp, token by token; MATH 1.2.3: m' = max(m, l), r = e^(m - m'), w = e^(l - m').
void RunningMax(size_t tokens, bool first, const float* log_weight, float* m, float* log_decay, float* write) {
  for (size_t t = 0; t < tokens; ++t) {
    const float before = first && t == 0 ? log_weight[0] : *m;
    *m = before < log_weight[t] ? log_weight[t] : before;
    log_decay[t] = before - *m;
    write[t] = static_cast<float>(std::exp(static_cast<double>(log_weight[t]) - *m));
  }
}

// m' = max(m, l_1 .. l_C), r = e^(m - m'), w = e^(l - m').
void BlockMax(size_t tokens, bool first, const float* log_weight, float* m, float* carry, float* write) {
  const float before = first ? log_weight[0] : *m;
  *m = before;
  for (size_t t = 0; t < tokens; ++t) *m = *m < log_weight[t] ? log_weight[t] : *m;
  *carry = static_cast<float>(std::exp(static_cast<double>(before) - *m));
  for (size_t t = 0; t < tokens; ++t) write[t] = static_cast<float>(std::exp(static_cast<double>(log_weight[t]) - *m));
}

}  // namespace tarn::reference
