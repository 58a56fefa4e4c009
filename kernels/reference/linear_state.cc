// Linear state (MATH F1). The chunk is the quadratic form, written out: it does not call the step.
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

double Dot(const float* a, const float* b, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// The divisor from s = phi(q) . z (RFA eq. 6; the guards of MATH 1.2.6).
double Denominator(DenMode mode, double s, float eps) {
  const double e = static_cast<double>(eps);
  switch (mode) {
    case DenMode::kNone:
      return 1.0;
    case DenMode::kAdd:
      return s + e;
    case DenMode::kClampMin:
      return s < e ? e : s;  // a NaN stays one
    case DenMode::kAbsClampMin:
      return std::fabs(s) < e ? e : std::fabs(s);
  }
  return 1.0;
}

// o = scale * phi(q)^T S / den for one query; cell(r, e) is S.
template <typename F>
void ReadCells(const float* phi_q, size_t features, size_t value_dim, const F& cell, const float* norm, DenMode den_mode,
               float den_eps, float scale, float* o) {
  const double s = den_mode == DenMode::kNone ? 0.0 : Dot(phi_q, norm, features);
  const double divisor = Denominator(den_mode, s, den_eps);
  for (size_t e = 0; e < value_dim; ++e) {
    double sum = 0.0;
    for (size_t r = 0; r < features; ++r) sum += static_cast<double>(phi_q[r]) * cell(r, e);
    o[e] = static_cast<float>(static_cast<double>(scale) * sum / divisor);
  }
}

// c_t = log_decay_first + .. + log_decay_last, both included.
double SumOfLogs(const float* log_decay, size_t first, size_t last) {
  double sum = 0.0;
  for (size_t t = first; log_decay != nullptr && t <= last; ++t) sum += log_decay[t];
  return sum;
}

double Write(const LinearChunkArgs& a, size_t token) { return a.write == nullptr ? 1.0 : static_cast<double>(a.write[token]); }

// One row of the chunk: o for token i and query g. `weights` [C] receives A_i.
void ReadRow(const LinearChunkArgs& a, size_t g, size_t i, float* weights) {
  const float* phi_q = a.phi_q + (g * a.tokens + i) * a.features;
  const double carry = std::exp(SumOfLogs(a.log_decay, 0, i));  // of the state from before the chunk
  double s = a.den_mode == DenMode::kNone ? 0.0 : carry * Dot(phi_q, a.norm, a.features);
  for (size_t j = 0; j <= i; ++j) {
    const double decayed = std::exp(SumOfLogs(a.log_decay, j + 1, i)) * Write(a, j);
    const double weight = Dot(phi_q, a.phi_k + j * a.features, a.features) * decayed;
    weights[j] = static_cast<float>(weight);
    s += weight;
  }
  const double divisor = Denominator(a.den_mode, s, a.den_eps);
  float* o = a.o + i * a.o_token_stride + g * a.value_dim;
  for (size_t e = 0; e < a.value_dim; ++e) {
    double sum = 0.0;
    for (size_t r = 0; r < a.features; ++r) sum += carry * phi_q[r] * a.state[r * a.value_dim + e];
    for (size_t j = 0; j <= i; ++j) sum += static_cast<double>(weights[j]) * a.v[j * a.v_stride + e];
    o[e] = static_cast<float>(static_cast<double>(a.scale) * sum / divisor);
  }
}

// S <- decay*S + phi(k) x (write*v); z <- decay*z + write*phi(k); o = scale * phi(q)^T S / den (RFA eq. 6-7). The decay of row r
// may have a factor of its own (GLA; MATH 0.1).
void LinearStep(const LinearStepArgs& a) {
  const double write = static_cast<double>(a.write);
  const auto decay = [&](size_t r) {
    return static_cast<double>(a.decay) * (a.row_decay == nullptr ? 1.0 : static_cast<double>(a.row_decay[r]));
  };
  // What S becomes; a state in f16 rounds it once more, after it was read.
  const auto cell = [&](size_t r, size_t e) {
    return static_cast<float>(decay(r) * At(a.state, a.value_dim, r, e) + write * a.phi_k[r] * a.v[e]);
  };
  for (size_t r = 0; r < a.features && a.den_mode != DenMode::kNone; ++r) {
    a.norm[r] = static_cast<float>(decay(r) * a.norm[r] + write * a.phi_k[r]);
  }
  for (size_t g = 0; g < a.queries; ++g) {
    ReadCells(a.phi_q + g * a.features, a.features, a.value_dim, cell, a.norm, a.den_mode, a.den_eps, a.scale,
              a.o + g * a.value_dim);
  }
  for (size_t r = 0; r < a.features; ++r) {
    for (size_t e = 0; e < a.value_dim; ++e) Put(a.state, a.value_dim, r, e, cell(r, e));
  }
}

}  // namespace

void LinearSteps(size_t count, const LinearStepArgs* steps) {
  for (const LinearStepArgs* const end = steps + count; steps < end; ++steps) LinearStep(*steps);
}

// MATH 0.2 "F1 scalar gate".
void LinearChunk(const LinearChunkArgs& a) {
  for (size_t g = 0; g < a.queries; ++g) {
    for (size_t i = 0; i < a.tokens; ++i) ReadRow(a, g, i, a.scratch);
  }
  const size_t last = a.tokens - 1;
  const double carry = std::exp(SumOfLogs(a.log_decay, 0, last));
  float* to_end = a.scratch;  // [C]: what is left at the end of the chunk of what each token wrote
  for (size_t j = 0; j < a.tokens; ++j) {
    to_end[j] = static_cast<float>(std::exp(SumOfLogs(a.log_decay, j + 1, last)) * Write(a, j));
  }
  for (size_t r = 0; r < a.features; ++r) {
    for (size_t e = 0; e < a.value_dim; ++e) {
      double sum = carry * a.state[r * a.value_dim + e];
      for (size_t j = 0; j < a.tokens; ++j) {
        sum += static_cast<double>(to_end[j]) * a.phi_k[j * a.features + r] * a.v[j * a.v_stride + e];
      }
      a.state[r * a.value_dim + e] = static_cast<float>(sum);
    }
    if (a.den_mode == DenMode::kNone) continue;
    double sum = carry * a.norm[r];
    for (size_t j = 0; j < a.tokens; ++j) sum += static_cast<double>(to_end[j]) * a.phi_k[j * a.features + r];
    a.norm[r] = static_cast<float>(sum);
  }
}

// RFA eq. 5, its sums over the keys: S <- carry*S + sum_j write_j phi(k_j) x v_j, z likewise.
void LinearWrite(const LinearWriteArgs& a) {
  const double carry = static_cast<double>(a.carry);
  for (size_t r = 0; r < a.features; ++r) {
    const auto written = [&](size_t j) {
      return (a.write == nullptr ? 1.0 : static_cast<double>(a.write[j])) * a.phi_k[j * a.features + r];
    };
    for (size_t e = 0; e < a.value_dim; ++e) {
      float& cell = a.state[r * a.value_dim + e];
      double sum = carry * cell;
      for (size_t j = 0; j < a.tokens; ++j) sum += written(j) * a.v[j * a.v_stride + e];
      cell = static_cast<float>(sum);
    }
    if (a.norm == nullptr) continue;
    double sum = carry * a.norm[r];
    for (size_t j = 0; j < a.tokens; ++j) sum += written(j);
    a.norm[r] = static_cast<float>(sum);
  }
}

// RFA eq. 5: o = scale * phi(q)^T S / den.
void LinearRead(const LinearReadArgs& a) {
  for (size_t row = 0; row < a.rows; ++row) {
    for (size_t g = 0; g < a.queries; ++g) {
      ReadCells(
          a.phi_q + (row * a.queries + g) * a.features, a.features, a.value_dim,
          [&](size_t r, size_t e) { return At(a.state, a.value_dim, r, e); }, a.norm, a.den_mode, a.den_eps, a.scale,
          a.o + row * a.o_stride + g * a.value_dim);
    }
  }
}

}  // namespace tarn::reference
