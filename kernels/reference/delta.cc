// The delta rule (MATH 1.6). The chunk is the WY form, written out: it does not call the step.
#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

double Dot(const float* a, const float* b, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Column e of S^T phi.
double Retrieve(const float* phi, const float* state, size_t features, size_t value_dim, size_t e) {
  double sum = 0.0;
  for (size_t r = 0; r < features; ++r) sum += static_cast<double>(phi[r]) * state[r * value_dim + e];
  return sum;
}

}  // namespace

// Schlag, Irie, Schmidhuber 2021: v_old = S^T k / d, S <- S + k x beta (v - v_old), o = scale * S^T q / den. Where phi_k . z is 0
// nothing was stored, as before the first token, and d is 1 too.
void DeltaStep(const DeltaStepArgs& a) {
  double stored = 1.0;  // d
  if (a.norm != nullptr && !a.first) stored = Dot(a.phi_k, a.norm, a.features);
  if (stored == 0.0) stored = 1.0;
  for (size_t e = 0; e < a.value_dim; ++e) {
    const double old = Retrieve(a.phi_k, a.state, a.features, a.value_dim, e) / stored;
    const double written = static_cast<double>(a.beta) * (a.v[e] - old);
    for (size_t r = 0; r < a.features; ++r) {
      float* cell = a.state + r * a.value_dim + e;
      *cell = static_cast<float>(*cell + a.phi_k[r] * written);
    }
  }
  for (size_t r = 0; a.norm != nullptr && r < a.features; ++r) a.norm[r] += a.phi_k[r];
  for (size_t g = 0; g < a.queries; ++g) {
    const float* phi_q = a.phi_q + g * a.features;
    const double den = a.norm == nullptr ? 1.0 : Dot(phi_q, a.norm, a.features) + static_cast<double>(a.den_eps);
    for (size_t e = 0; e < a.value_dim; ++e) {
      const double sum = Retrieve(phi_q, a.state, a.features, a.value_dim, e);
      a.o[g * a.value_dim + e] = static_cast<float>(static_cast<double>(a.scale) * sum / den);
    }
  }
}

// MATH 0.2 "F1 delta rule (WY)" (Yang et al. 2024): (I + A) U = diag(beta) (V - K S), A = tril(diag(beta) K K^T, -1), row by row.
void DeltaChunk(const DeltaChunkArgs& a) {
  float* u = a.scratch;                         // [C, dv]
  float* weights = u + a.tokens * a.value_dim;  // [C]: row i of K K^T, or of Q K^T
  // Column e of (S + K^T U)^T phi, with the first `count` rows of K and U.
  const auto read = [&](const float* phi, size_t count, size_t e) {
    double sum = Retrieve(phi, a.state, a.features, a.value_dim, e);
    for (size_t j = 0; j < count; ++j) sum += static_cast<double>(weights[j]) * u[j * a.value_dim + e];
    return sum;
  };
  const auto weigh = [&](const float* phi, size_t count) {
    for (size_t j = 0; j < count; ++j) weights[j] = static_cast<float>(Dot(phi, a.phi_k + j * a.features, a.features));
  };
  for (size_t i = 0; i < a.tokens; ++i) {
    const float* phi_k = a.phi_k + i * a.features;
    weigh(phi_k, i);
    for (size_t e = 0; e < a.value_dim; ++e) {
      const double difference = a.v[i * a.v_stride + e] - read(phi_k, i, e);
      u[i * a.value_dim + e] = static_cast<float>(static_cast<double>(a.beta[i]) * difference);
    }
  }
  for (size_t g = 0; g < a.queries; ++g) {
    for (size_t i = 0; i < a.tokens; ++i) {
      const float* phi_q = a.phi_q + (g * a.tokens + i) * a.features;
      weigh(phi_q, i + 1);
      float* o = a.o + i * a.o_token_stride + g * a.value_dim;
      for (size_t e = 0; e < a.value_dim; ++e) o[e] = static_cast<float>(static_cast<double>(a.scale) * read(phi_q, i + 1, e));
    }
  }
  for (size_t r = 0; r < a.features; ++r) {
    for (size_t e = 0; e < a.value_dim; ++e) {
      double sum = a.state[r * a.value_dim + e];
      for (size_t j = 0; j < a.tokens; ++j) sum += static_cast<double>(a.phi_k[j * a.features + r]) * u[j * a.value_dim + e];
      a.state[r * a.value_dim + e] = static_cast<float>(sum);
    }
  }
}

}  // namespace tarn::reference
