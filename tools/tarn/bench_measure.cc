#include "tools/tarn/bench_measure.h"

#include <tarn/inspect.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "tools/common/printable.h"
#include "tools/tarn/error.h"
#include "tools/tarn/process_memory.h"

namespace tarn_cli {

std::vector<int32_t> RandomIds(size_t count, uint32_t vocab_size) {
  std::vector<int32_t> ids(count);
  uint32_t random = 1;
  for (int32_t& id : ids) {
    random = random * 1664525u + 1013904223u;
    id = static_cast<int32_t>((random >> 8) % vocab_size);
  }
  return ids;
}

void PeakMemory::Sample(uint64_t ours) {
  const std::optional<uint64_t> pages = AnonymousPages();
  if (!pages) return;
  const uint64_t bytes = *pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  bytes_ = std::max(bytes_.value_or(0), bytes - std::min(bytes, ours));
}

BenchRow ModelRow(const BenchOptions& options, const Model& model, const tarn_memory& memory) {
  const tarn_model_info& info = model.info();
  BenchRow row = {};
  row.path = options.model.path;
  row.model = info.name;
  row.precision = info.precision;
  row.file_bytes = memory.mapped_bytes;
  row.parameters = info.parameters;
  row.dense = info.dense;
  row.isa = info.isa;
  row.bounded = info.max_context != UINT64_MAX;
  row.state_bytes = memory.state_bytes;
  row.session_bytes = memory.session_bytes;
  return row;
}

bool Fits(const BenchRow& row, uint64_t needed, uint64_t most) {
  if (needed <= most) return true;
  std::fprintf(stderr, "bench: %s: %s at depth %llu left out: it needs %llu tokens, the model takes %llu\n",
               tarn::tools::Printable(row.model).c_str(), row.Test().c_str(), static_cast<unsigned long long>(row.depth),
               static_cast<unsigned long long>(needed), static_cast<unsigned long long>(most));
  return false;
}

void Profile(tarn_session* session, const std::function<double()>& time, BenchRow* row) {
  tarn_error error;
  Check(tarn_session_profile(session, 1, &error), error);
  row->profiled_ns = static_cast<uint64_t>(1e9 * time());
  Check(tarn_session_profile(session, 0, &error), error);
  std::map<std::string, KindTime> kinds;
  for (size_t i = 0;; ++i) {
    tarn_op_time op = {};
    op.struct_size = sizeof(op);
    const tarn_status status = tarn_session_op_time(session, i, &op, &error);
    if (status == TARN_NOT_FOUND) break;
    Check(status, error);
    KindTime& kind = kinds[op.kind];
    kind.kind = op.kind;
    kind.runs += op.runs;
    kind.ns += op.ns;
  }
  for (const auto& [name, total] : kinds) row->profile.push_back(total);
  std::sort(row->profile.begin(), row->profile.end(), [](const KindTime& a, const KindTime& b) { return a.ns > b.ns; });
}

}  // namespace tarn_cli
