// What a row of tarn bench says.
#include <algorithm>
#include <cmath>

#include "tools/tarn/bench.h"

namespace tarn_cli {

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string BenchRow::Test() const {
  std::string name;
  if (work.prompt > 0) name = (encodes ? "enc" : "pp") + std::to_string(work.prompt);
  if (work.generated > 0) name += (name.empty() ? "" : "+") + std::string(encodes ? "dec" : "tg") + std::to_string(work.generated);
  return name;
}

std::optional<double> BenchRow::FirstTokenMs() const {
  if (work.prompt == 0 || work.generated > 0) return std::nullopt;
  return 1000 * static_cast<double>(all_tokens()) / Median(rates);
}

std::optional<double> BenchRow::BytesPerSecond() const {
  if (!bytes_per_token) return std::nullopt;
  return static_cast<double>(*bytes_per_token) * Median(rates);
}

std::optional<double> BenchRow::BandwidthShare() const {
  if (!bytes_per_token) return std::nullopt;
  return *BytesPerSecond() / Median(bandwidths);
}

}  // namespace tarn_cli
