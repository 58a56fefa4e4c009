#include "tools/convert/calibrate/round.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tools/convert/calibrate/block_scale.h"
#include "tools/convert/calibrate/workers.h"
#include "tools/convert/graph/quantize.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr size_t kTileRows = 16;  // that share what is read of H and U
constexpr int kSweeps = 6;        // after which few steps are left, each of little use
constexpr Levels kInt8Levels = {-127, 127, 1, false};

// A row while it is rounded.
struct Row {
  const float* weights;         // [columns], as they were
  std::vector<float> rest;      // what each weight should be now, with the errors before it made good
  std::vector<float> rounded;   // scale * q
  std::vector<float> gradient;  // H (weights - rounded)
  std::vector<int8_t> q;
  std::vector<float> scales;  // of blocks; of int8 the only one
};

// row[j] -= factor * other[j]
void Subtract(float* row, float factor, const float* other, size_t begin, size_t end) {
  for (size_t j = begin; j < end; ++j) row[j] -= factor * other[j];
}

}  // namespace

// Rounds a tile of rows.
class Rounding::Tile {
 public:
  Tile(const Rounding& rounding, format::DType dtype, const float* weights, size_t rows)
      : r_(rounding),
        n_(rounding.moments_.size),
        blockwise_(IsBlockwise(dtype)),
        levels_(blockwise_ ? LevelsOf(dtype) : kInt8Levels),
        rows_(rows) {
    for (size_t i = 0; i < rows; ++i) {
      Row& row = rows_[i];
      row.weights = weights + i * n_;
      row.rest.assign(row.weights, row.weights + n_);
      row.rounded.resize(n_);
      row.gradient.assign(n_, 0.0f);
      row.q.resize(n_);
      if (!blockwise_) row.scales = {QuantizeRow(row.weights, n_, row.q.data())};
    }
  }

  void Run() {
    const size_t block = blockwise_ ? kScaleBlock : kCompensated;
    for (size_t begin = 0; begin < n_; begin += block) RoundBlock(begin, std::min(begin + block, n_));
    MakeGradients();
    for (Row& row : rows_) {
      for (int sweep = 0; sweep < kSweeps && Improve(&row); ++sweep) continue;
    }
  }

  void Store(size_t first_row, RoundedMatrix* out) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      if (!blockwise_) {
        out->Store(first_row + i, row.q.data(), row.scales[0]);
        continue;
      }
      std::vector<uint16_t> bits(row.scales.size());
      std::transform(row.scales.begin(), row.scales.end(), bits.begin(), Bf16OfScale);
      out->Store(first_row + i, row.q.data(), bits.data());
    }
  }

 private:
  static constexpr size_t kCompensated = 32;  // columns whose errors reach the rest of the row together

  int Nearest(float x) const { return LevelOf(levels_, x, 1); }

  void RoundBlock(size_t begin, size_t end) {
    std::vector<float> errors(rows_.size() * (end - begin));
    for (size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      if (blockwise_)
        row.scales.push_back(BestBlockScale(levels_, &row.rest[begin], &r_.factor_[begin * n_ + begin], n_, &r_.spread_[begin]));
      const float scale = row.scales.back();
      for (size_t j = begin; j < end; ++j) {
        row.q[j] = static_cast<int8_t>(blockwise_ ? LevelOf(levels_, row.rest[j], 1 / scale) : Nearest(row.rest[j] / scale));
        row.rounded[j] = scale * row.q[j];
        const float error = row.rest[j] - row.rounded[j];
        errors[i * (end - begin) + j - begin] = error;
        Subtract(row.rest.data(), error, &r_.factor_[j * n_], j + 1, end);
      }
    }
    for (size_t j = begin; j < end; ++j) {
      for (size_t i = 0; i < rows_.size(); ++i) {
        Subtract(rows_[i].rest.data(), errors[i * (end - begin) + j - begin], &r_.factor_[j * n_], end, n_);
      }
    }
  }

  void MakeGradients() {
    for (size_t j = 0; j < n_; ++j) {
      for (Row& row : rows_) Subtract(row.gradient.data(), row.rounded[j] - row.weights[j], &r_.hessian_[j * n_], 0, n_);
    }
  }

  // A step of every weight, and of every scale of a block, that lowers e^T H e. False: there was none.
  bool Improve(Row* row) const {
    bool improved = false;
    const size_t block = blockwise_ ? kScaleBlock : n_;
    for (size_t b = 0; b < row->scales.size(); ++b) {
      for (size_t j = b * block; j < (b + 1) * block; ++j) improved = MoveWeight(row, b, j) || improved;
      if (blockwise_) improved = MoveScale(row, b) || improved;
    }
    return improved;
  }

  bool MoveWeight(Row* row, size_t b, size_t j) const {
    const float scale = row->scales[b], curvature = r_.hessian_[j * n_ + j];
    const int q = Nearest(static_cast<float>(row->q[j]) + row->gradient[j] / curvature / scale);
    if (q == row->q[j]) return false;
    row->q[j] = static_cast<int8_t>(q);
    const float rounded = scale * static_cast<float>(q);
    Subtract(row->gradient.data(), rounded - row->rounded[j], &r_.hessian_[j * n_], 0, n_);
    row->rounded[j] = rounded;
    return true;
  }

  // Of the scale s' of block b, whose q stay, the sum is quadratic: less by 2 (s' - s) q.g - (s' - s)^2 q.Hq.
  bool MoveScale(Row* row, size_t b) const {
    const size_t begin = b * kScaleBlock;
    double slope = 0, curvature = 0;
    for (size_t i = 0; i < kScaleBlock; ++i) {
      const int8_t* const q = &row->q[begin];
      const float* const h = &r_.hessian_[(begin + i) * n_ + begin];
      slope += q[i] * static_cast<double>(row->gradient[begin + i]);
      for (size_t j = 0; j < kScaleBlock; ++j) curvature += q[i] * static_cast<double>(h[j]) * q[j];
    }
    if (!(curvature > 0)) return false;
    const float scale = row->scales[b];
    const float sign = std::copysign(1.0f, scale);  // which it keeps
    const float moved = sign * NearestScale(static_cast<double>(sign) * (scale + slope / curvature));
    const double step = static_cast<double>(moved) - scale;
    if (!(step * (2 * slope - step * curvature) > 1e-6 * std::fabs(step * slope))) return false;
    row->scales[b] = moved;
    for (size_t j = begin; j < begin + kScaleBlock; ++j) {
      const float rounded = moved * static_cast<float>(row->q[j]);
      if (rounded != row->rounded[j]) Subtract(row->gradient.data(), rounded - row->rounded[j], &r_.hessian_[j * n_], 0, n_);
      row->rounded[j] = rounded;
    }
    return true;
  }

  const Rounding& r_;
  const size_t n_;
  const bool blockwise_;
  const Levels levels_;
  std::vector<Row> rows_;
};

Rounding::Rounding(const SecondMoments& moments, uint32_t threads) : moments_(moments), threads_(threads) {
  const size_t n = moments.size;
  const std::vector<double> factor = CompensationFactor(moments);
  for (size_t i = 0; i < n; ++i) mean_ += moments.Diagonal(i) / static_cast<double>(n);
  factor_.resize(n * n);
  hessian_.resize(n * n);
  spread_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const double diagonal = factor[i * n + i];
    spread_[i] = static_cast<float>(1 / (diagonal * std::sqrt(mean_)));
    for (size_t j = 0; j < n; ++j) {
      factor_[i * n + j] = static_cast<float>(factor[i * n + j] / diagonal);
      hessian_[i * n + j] = static_cast<float>(moments.sums[i * n + j] / mean_);
    }
  }
}

std::vector<float> Rounding::MakeGood(const std::vector<float>& weights, const RoundProgress& progress) const {
  const size_t n = moments_.size;
  std::vector<float> out = weights;
  if (moments_.drift.empty()) return out;
  // H^-1 is U^T U, and row i of U is factor_[i] / spread_[i] in units of the mean.
  const auto make_good = [&](size_t row) {
    float* const w = &out[row * n];
    std::vector<double> lost(n), gain(n);
    if (!moments_.residual.empty()) {
      for (size_t j = 0; j < n; ++j) lost[j] = moments_.residual[row * n + j] / mean_;
    }
    for (size_t i = 0; i < n; ++i) {
      const double weight = static_cast<double>(w[i]) / mean_;
      for (size_t j = 0; j < n; ++j) lost[j] += weight * moments_.drift[i * n + j];
    }
    for (size_t i = 0; i < n; ++i) {
      const float* const u = &factor_[i * n];
      double share = 0;
      for (size_t j = i; j < n; ++j) share += static_cast<double>(u[j]) * lost[j];
      share /= static_cast<double>(spread_[i]) * static_cast<double>(spread_[i]);
      for (size_t j = i; j < n; ++j) gain[j] += share * static_cast<double>(u[j]);
    }
    for (size_t i = 0; i < n; ++i) w[i] += static_cast<float>(gain[i]);
  };
  RunPieces(weights.size() / n, threads_, make_good, [&](size_t rows) {
    if (progress) progress(rows * n);
  });
  return out;
}

RoundedMatrix Rounding::Round(const std::vector<float>& weights, format::DType dtype, const RoundProgress& progress) const {
  const size_t n = moments_.size, rows = weights.size() / n;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) Fail("a weight to round is ", weight, ", expected a finite number");
  }
  RoundedMatrix out(dtype, rows, n);
  const auto round = [&](size_t tile) {
    const size_t first = tile * kTileRows;
    Tile work(*this, dtype, &weights[first * n], std::min(kTileRows, rows - first));
    work.Run();
    work.Store(first, &out);
  };
  const auto done = [&](size_t tiles) {
    if (progress) progress(tiles * kTileRows * n);
  };
  RunPieces((rows + kTileRows - 1) / kTileRows, threads_, round, done);
  return out;
}

double Rounding::Cost(const std::vector<float>& error) const {
  const size_t n = moments_.size;
  double cost = 0;
  for (size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += moments_.sums[i * n + j] * static_cast<double>(error[j]);
    cost += sum * static_cast<double>(error[i]);
  }
  return cost;
}

}  // namespace tarn::convert
