// Feature maps phi of the linear state.
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
      a.phi[r * count + j] = static_cast<float>(scale * std::fmax(Project(a, a.x + r * a.head_dim, j), 0.0));
    }
  }
}

}  // namespace tarn::reference
