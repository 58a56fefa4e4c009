#include "tools/convert/calibrate/factor.h"

#include <algorithm>
#include <cmath>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr size_t kBlock = 64;  // columns
constexpr size_t kRows = 16;

// sum of a[i] b[i] in eight partial sums, of which the compiler makes vectors.
double Dot(const double* a, const double* b, size_t count) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  }
  double sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const double part : sums) sum += part;
  return sum;
}

// L with A = L L^T, in the lower triangle of `a`, block after block of its columns: those before a block are in the cache once for
// all its rows.
void Cholesky(size_t n, double* a) {
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, n);
    for (size_t row = begin; row < n; ++row) {
      double* const l = a + row * n;
      for (size_t column = begin; column < std::min(end, row + 1); ++column) {
        const double* const other = a + column * n;
        const double rest = l[column] - Dot(l, other, column);
        if (column < row) {
          l[column] = rest / other[column];
        } else if (rest > 0) {
          l[column] = std::sqrt(rest);
        } else {
          Fail("the second moments of an input are not positive definite at ", row, " of ", n);
        }
      }
    }
  }
}

// L^-1 in place of L, row after row: row i of it is -1 / L[i][i] times the sum of L[i][j] and row j over j < i, and 1 / L[i][i].
void InvertLower(size_t n, double* l) {
  std::vector<double> row(n);
  for (size_t i = 0; i < n; ++i) {
    std::fill(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(i), 0.0);
    for (size_t j = 0; j < i; ++j) {
      const double factor = l[i * n + j];
      const double* const other = l + j * n;
      for (size_t k = 0; k <= j; ++k) row[k] += factor * other[k];
    }
    const double inverse = 1 / l[i * n + i];
    for (size_t k = 0; k < i; ++k) l[i * n + k] = -inverse * row[k];
    l[i * n + i] = inverse;
  }
}

// Some rows.
struct Rows {
  const float* data;
  size_t stride, width;
};

// sums [a.width, b.width] += sum of a b^T over `rows` <= kRows rows, or of the lower triangle: of so few in f32, which has digits
// enough for them, and then in f64.
void AddProducts(const Rows& a, const Rows& b, size_t rows, bool lower, double* sums) {
  std::vector<float> products(b.width);
  for (size_t i = 0; i < a.width; ++i) {
    const size_t end = lower ? i + 1 : b.width;
    std::fill(products.begin(), products.begin() + static_cast<std::ptrdiff_t>(end), 0.0f);
    for (size_t row = 0; row < rows; ++row) {
      const float factor = a.data[row * a.stride + i];
      const float* const other = b.data + row * b.stride;
      if (factor == 0) continue;  // as behind a relu
      for (size_t j = 0; j < end; ++j) products[j] += factor * other[j];
    }
    double* const out = sums + i * b.width;
    for (size_t j = 0; j < end; ++j) out[j] += static_cast<double>(products[j]);
  }
}

// The same of a = y - x, `count` rows of both as those of y.
void AddDifferenceProducts(const Rows& y, const float* x, const Rows& b, size_t count, std::vector<double>* sums) {
  sums->resize(y.width * b.width);
  std::vector<float> difference(kRows * y.width);
  for (size_t begin = 0; begin < count; begin += kRows) {
    const size_t rows = std::min(kRows, count - begin);
    for (size_t row = 0; row < rows; ++row) {
      const size_t from = (begin + row) * y.stride;
      for (size_t i = 0; i < y.width; ++i) difference[row * y.width + i] = y.data[from + i] - x[from + i];
    }
    AddProducts({difference.data(), y.width, y.width}, {b.data + begin * b.stride, b.stride, b.width}, rows, /*lower=*/false,
                sums->data());
  }
}

}  // namespace

void SecondMoments::Add(const float* x, size_t count, size_t stride) {
  for (size_t begin = 0; begin < count; begin += kRows) {
    const Rows rows = {x + begin * stride, stride, size};
    AddProducts(rows, rows, std::min(kRows, count - begin), /*lower=*/true, sums.data());
  }
}

void SecondMoments::AddDrift(const float* y, const float* x, size_t count, size_t stride) {
  AddDifferenceProducts({y, stride, size}, x, {x, stride, size}, count, &drift);
}

void SecondMoments::AddResidual(const float* s, const float* r, size_t width, const float* x, size_t count, size_t stride) {
  AddDifferenceProducts({s, width, width}, r, {x, stride, size}, count, &residual);
}

void SecondMoments::Complete() {
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) sums[j * size + i] = sums[i * size + j];
  }
}

void Damp(SecondMoments* moments, double damping) {
  const size_t n = moments->size;
  double mean = 0;
  for (const std::vector<double>* sums : {&moments->sums, &moments->drift, &moments->residual}) {
    for (const double sum : *sums) {
      if (!std::isfinite(sum)) Fail("the second moments of an input have ", sum, ", expected finite numbers");
    }
  }
  for (size_t i = 0; i < n; ++i) mean += moments->Diagonal(i) / static_cast<double>(n);
  if (mean == 0) mean = 1;
  for (size_t i = 0; i < n; ++i) {
    double& diagonal = moments->sums[i * n + i];
    diagonal = diagonal == 0 ? mean : diagonal + damping * mean;
  }
}

std::vector<double> CompensationFactor(const SecondMoments& moments) {
  // With rows and columns in the other order H is L L^T, its inverse L^-T L^-1, and L^-1 turned back is U.
  const size_t n = moments.size;
  std::vector<double> factor(n * n);
  for (size_t i = 0; i < n * n; ++i) factor[i] = moments.sums[n * n - 1 - i];
  Cholesky(n, factor.data());
  InvertLower(n, factor.data());
  for (size_t i = 0; i < n; ++i) std::fill(&factor[i * n] + i + 1, &factor[i * n] + n, 0.0);
  std::reverse(factor.begin(), factor.end());
  return factor;
}

}  // namespace tarn::convert
