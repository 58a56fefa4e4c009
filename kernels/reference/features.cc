// Feature maps phi of the linear state.
#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

// w_j . x, with w_j the j-th column of the transposed projection.
double Project(const FeatureArgs& a, const float* x, size_t j) {
  double sum = 0.0;
  for (size_t i = 0; i < a.head_dim; ++i) sum += static_cast<double>(a.weight[i * a.projections + j]) * x[i];
  return sum;
}

double Relu(double x) { return x < 0.0 ? 0.0 : x; }  // a NaN stays one

}  // namespace

// sqrt(1/D) [sin(w_1 x) .. sin(w_D x), cos(w_1 x) .. cos(w_D x)] (RFA, Theorem 1; MATH 1.2.1).
void GaussianFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  const double scale = std::sqrt(1.0 / static_cast<double>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    float* phi = a.phi + r * 2 * count;
    for (size_t j = 0; j < count; ++j) {
      const double angle = Project(a, a.x + r * a.head_dim, j);
      phi[j] = static_cast<float>(scale * std::sin(angle));
      phi[count + j] = static_cast<float>(scale * std::cos(angle));
    }
  }
}

// sqrt(1/D) [relu(w_1 x) .. relu(w_D x)] (RFA, arc-cosine kernel of order 1; MATH 1.2.1).
void ArccosFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  const double scale = std::sqrt(1.0 / static_cast<double>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < count; ++j) {
      a.phi[r * count + j] = static_cast<float>(scale * Relu(Project(a, a.x + r * a.head_dim, j)));
    }
  }
}

// x > 0 ? x + 1 : exp(x) (Katharopoulos et al. 2020, without the cancellation of (exp(x) - 1) + 1; MATH 1.3).
void EluPlusOneFeatures(const FeatureArgs& a) {
  for (size_t i = 0; i < a.rows * a.head_dim; ++i) {
    const double x = a.x[i];
    a.phi[i] = static_cast<float>(x > 0.0 ? x + 1.0 : std::exp(x));
  }
}

// sqrt(1/D) exp(l_j - max_i l_i), l_j = w_j x - |x|^2/2 (Choromanski et al. 2021, FAVOR+; MATH 1.4).
void PositiveFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  const double scale = std::sqrt(1.0 / static_cast<double>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    double top = -HUGE_VAL;
    for (size_t j = 0; j < count; ++j) top = std::fmax(top, Project(a, x, j));
    for (size_t j = 0; j < count; ++j) a.phi[r * count + j] = static_cast<float>(scale * std::exp(Project(a, x, j) - top));
    double squares = 0.0;
    for (size_t i = 0; i < a.head_dim; ++i) squares += static_cast<double>(x[i]) * x[i];
    a.log_weight[r] = static_cast<float>(top - 0.5 * squares);
  }
}

// relu(ratio * w_j x) + eps; without a projection relu(ratio * x_j) + eps (ibid., generalized attention; MATH 1.4).
void ReluFeatures(const FeatureArgs& a) {
  const bool projects = a.weight != nullptr;
  const size_t count = projects ? a.projections : a.head_dim;
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    for (size_t j = 0; j < count; ++j) {
      const double l = projects ? Project(a, x, j) : static_cast<double>(x[j]);
      a.phi[r * count + j] = static_cast<float>(Relu(static_cast<double>(a.ratio) * l) + static_cast<double>(a.eps));
    }
  }
}

// r_i r_{(i+j) mod 2d} at i + 2d(j-1), j = 1 .. nu (Schlag, Irie, Schmidhuber 2021; MATH 1.5).
void DpfpFeatures(const FeatureArgs& a) {
  const size_t count = 2 * a.head_dim;
  for (size_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.head_dim;
    const auto r = [&](size_t i) {
      if (i < a.head_dim) return Relu(x[i]);
      return a.negate_second ? -Relu(x[i - a.head_dim]) : Relu(-x[i - a.head_dim]);
    };
    float* phi = a.phi + row * count * a.nu;
    for (size_t j = 1; j <= a.nu; ++j) {
      for (size_t i = 0; i < count; ++i) phi[i + count * (j - 1)] = static_cast<float>(r(i) * r((i + j) % count));
    }
  }
}

// relu(w_j x + b_j) (Kasai et al. 2021; MATH 1.7).
void MlpReluFeatures(const FeatureArgs& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.projections; ++j) {
      a.phi[r * a.projections + j] = static_cast<float>(Relu(Project(a, a.x + r * a.head_dim, j) + a.bias[j]));
    }
  }
}

void IdentityFeatures(const FeatureArgs& a) { std::copy_n(a.x, a.rows * a.head_dim, a.phi); }

// FAVOR+ as published adds an epsilon to each exponential, which then no longer cancels: sqrt(1/D) (exp(l_j - c) + eps) with c that
// of the publication is phi_j exp(max_i l_i - c) + sqrt(1/D) eps (MATH 1.4).
void DampFeatures(size_t rows, size_t m, const float* drop, float offset, float* phi) {
  for (size_t r = 0; r < rows; ++r, phi += m) {
    const double factor = std::exp(-static_cast<double>(drop[r]));
    for (size_t j = 0; j < m; ++j) phi[j] = static_cast<float>(factor * phi[j] + static_cast<double>(offset));
  }
}

}  // namespace tarn::reference
