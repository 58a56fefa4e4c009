// The delta rule (MATH 1.6). The chunk is the WY form, written out: it does not call the step.
#include <cmath>

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

// Schlag, Irie, Schmidhuber 2021, and with a decay of S Yang, Kautz, Hatamizadeh 2025 (Gated DeltaNet): v_old = S^T k / d, S <- S +
// k x beta (v - v_old), o = scale * S^T q / den. Where phi_k . z is 0 nothing was stored, as before the first token, and d is 1
// too.
void DeltaStep(const DeltaStepArgs& a) {
  double stored = 1.0;  // d
  if (a.norm != nullptr && !a.first) stored = Dot(a.phi_k, a.norm, a.features);
  if (stored == 0.0) stored = 1.0;
  const auto decay = [&a](size_t r) { return static_cast<double>(a.row_decay == nullptr ? a.decay : a.row_decay[r]); };
  for (size_t e = 0; e < a.value_dim; ++e) {
    double old = 0.0;
    for (size_t r = 0; r < a.features; ++r) old += decay(r) * a.phi_k[r] * a.state[r * a.value_dim + e];
    const double written = static_cast<double>(a.beta) * (a.v[e] - old / stored);
    for (size_t r = 0; r < a.features; ++r) {
      float* cell = a.state + r * a.value_dim + e;
      *cell = static_cast<float>(decay(r) * *cell + a.phi_k[r] * written);
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

// Peng et al. 2025 (RWKV-7; MATH 1.6): S <- diag(w) S - (a o r) x (S^T r) + k x v, o = scale * S^T q.
void ReplaceStep(const ReplaceStepArgs& a) {
  for (size_t e = 0; e < a.value_dim; ++e) {
    const double old = Retrieve(a.removal, a.state, a.features, a.value_dim, e);
    for (size_t r = 0; r < a.features; ++r) {
      float* cell = a.state + r * a.value_dim + e;
      const double decay = static_cast<double>(a.row_decay == nullptr ? a.decay : a.row_decay[r]);
      *cell = static_cast<float>(decay * *cell - a.taken[r] * old + static_cast<double>(a.phi_k[r]) * a.v[e]);
    }
  }
  for (size_t g = 0; g < a.queries; ++g) {
    for (size_t e = 0; e < a.value_dim; ++e) {
      const double sum = Retrieve(a.phi_q + g * a.features, a.state, a.features, a.value_dim, e);
      a.o[g * a.value_dim + e] = static_cast<float>(static_cast<double>(a.scale) * sum);
    }
  }
}

// MATH 0.2 "F1 delta rule (WY)" (Yang et al. 2024): (I + A) U = diag(beta) (V - diag(exp c) K S), A = tril(diag(beta) (L o K K^T),
// -1), row by row.
void DeltaChunk(const DeltaChunkArgs& a) {
  float* u = a.scratch;                         // [C, dv]
  float* weights = u + a.tokens * a.value_dim;  // [C]: row i of K K^T, or of Q K^T
  // The logarithm of what tokens first to i - 1 leave of what was there before: c_(i-1) - c_(first-1).
  const auto log_left = [&](size_t first, size_t i) {
    double sum = 0.0;
    for (size_t t = first; a.log_decay != nullptr && t < i; ++t) sum += static_cast<double>(a.log_decay[t]);
    return sum;
  };
  // Column e of (exp(c_i) S + K^T diag(L_i) U)^T phi, with the first `count` rows of K and U; `weights` has L_i.
  const auto read = [&](const float* phi, size_t i, size_t count, size_t e) {
    double sum = std::exp(log_left(0, i + 1)) * Retrieve(phi, a.state, a.features, a.value_dim, e);
    for (size_t j = 0; j < count; ++j) sum += static_cast<double>(weights[j]) * u[j * a.value_dim + e];
    return sum;
  };
  const auto weigh = [&](const float* phi, size_t i, size_t count) {
    for (size_t j = 0; j < count; ++j) {
      weights[j] = static_cast<float>(std::exp(log_left(j + 1, i + 1)) * Dot(phi, a.phi_k + j * a.features, a.features));
    }
  };
  for (size_t i = 0; i < a.tokens; ++i) {
    const float* phi_k = a.phi_k + i * a.features;
    weigh(phi_k, i, i);
    for (size_t e = 0; e < a.value_dim; ++e) {
      const double difference = a.v[i * a.v_stride + e] - read(phi_k, i, i, e);
      u[i * a.value_dim + e] = static_cast<float>(static_cast<double>(a.beta[i]) * difference);
    }
  }
  for (size_t g = 0; g < a.queries; ++g) {
    for (size_t i = 0; i < a.tokens; ++i) {
      const float* phi_q = a.phi_q + (g * a.tokens + i) * a.features;
      weigh(phi_q, i, i + 1);
      float* o = a.o + i * a.o_token_stride + g * a.value_dim;
      for (size_t e = 0; e < a.value_dim; ++e) o[e] = static_cast<float>(static_cast<double>(a.scale) * read(phi_q, i, i + 1, e));
    }
  }
  for (size_t r = 0; r < a.features; ++r) {
    for (size_t e = 0; e < a.value_dim; ++e) {
      double sum = std::exp(log_left(0, a.tokens)) * a.state[r * a.value_dim + e];
      for (size_t j = 0; j < a.tokens; ++j) {
        sum += std::exp(log_left(j + 1, a.tokens)) * a.phi_k[j * a.features + r] * u[j * a.value_dim + e];
      }
      a.state[r * a.value_dim + e] = static_cast<float>(sum);
    }
  }
}

}  // namespace tarn::reference
