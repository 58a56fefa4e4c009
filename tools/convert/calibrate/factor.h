// The second moments of a dense layer's input, and the factor that rounding with compensation takes of them.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_FACTOR_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_FACTOR_H_

#include <cstddef>
#include <vector>

namespace tarn::convert {

// Of the rows x of an input as it will be, after what was rounded before it, and the rows y of the same tokens in f32. What the
// dense layer makes of x may be added to rows r, which were rows s in f32.
struct SecondMoments {
  explicit SecondMoments(size_t n) : size(n), sums(n * n, 0.0) {}

  // Adds `count` rows x of `size` numbers, `stride` apart. Only the lower triangle is kept until Complete().
  void Add(const float* x, size_t count, size_t stride);
  // The same for the drift.
  void AddDrift(const float* y, const float* x, size_t count, size_t stride);
  // The same for rows r and s of `width` numbers.
  void AddResidual(const float* s, const float* r, size_t width, const float* x, size_t count, size_t stride);
  // Fills the upper triangle.
  void Complete();
  double Diagonal(size_t i) const { return sums[i * size + i]; }

  size_t size;
  std::vector<double> sums;      // H = sum of x x^T, [size, size]: what an error e of a row of weights costs is e^T H e
  std::vector<double> drift;     // sum of (y - x) x^T; empty: none
  std::vector<double> residual;  // sum of (s - r) x^T, [width, size]; empty: none
};

// Adds `damping` times the mean of the diagonal to the diagonal, with which H can be inverted whatever the text was. Inputs that
// were never active get the mean: their weights are then rounded alone. An H of zeros becomes the identity.
// Errors: a moment that is not finite.
void Damp(SecondMoments* moments, double damping);

// The upper triangular U with H^-1 = U^T U, of a damped H. Rounding the weights of a row from left to right, an error d of weight i
// is made good best by taking d U[i][j] / U[i][i] from every weight j > i, and then costs (d / U[i][i])^2 in all.
// Errors: an H that is not positive definite.
std::vector<double> CompensationFactor(const SecondMoments& moments);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_FACTOR_H_
