#include "tools/tarn/bench_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tools/common/printable.h"
#include "tools/tarn/plot.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMebi = 1 << 20;
constexpr char kDense[] = "fully_connected";  // the kind of op whose speed is that of memory

struct Column {
  const char* name;
  size_t width;
  bool number;
};
// The first columns are llama-bench's.
constexpr Column kColumns[] = {
    {"model", 24, false},   {"size", 9, true},      {"params", 8, true},
    {"backend", 13, false}, {"threads", 7, true},   {"test", 16, true},
    {"t/s", 18, true},      {"GB/s", 6, true},      {"of read bandwidth", 17, true},
    {"anon MiB", 8, true},  {"state KiB", 9, true}, {"first token ms", 14, true},
};

std::string MarkdownLine(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (size_t i = 0; i < std::size(kColumns); ++i) {
    std::string cell = tarn::tools::Printable(cells[i]);
    for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
    // U+00B1 takes two bytes and one place.
    const auto places = static_cast<size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    const std::string padding(kColumns[i].width - std::min(kColumns[i].width, places), ' ');
    line += " " + (kColumns[i].number ? padding + cell : cell + padding) + " |";
  }
  return line + "\n";
}

std::string MarkdownHeader(const MemoryBandwidth& memory) {
  std::string text = "memory: " + FormatBytes(memory.size_bytes) + " are read at ";
  for (const auto& [threads, rate] : memory.by_threads) {
    text += Format("%s%.1f GB/s by %u thread%s", threads == memory.by_threads.begin()->first ? "" : ", ", rate / kGiga, threads,
                   threads == 1 ? "" : "s");
  }
  std::vector<std::string> names, rules;
  for (const Column& column : kColumns) {
    names.push_back(column.name);
    rules.push_back(std::string(column.width - 1, '-') + (column.number ? ":" : "-"));
  }
  return text + "\n\n" + MarkdownLine(names) + MarkdownLine(rules);
}

std::string MarkdownRow(const BenchRow& row) {
  const auto text = [](const char* format, const std::optional<double>& value, double unit) {
    return value ? Format(format, *value / unit) : "";
  };
  const std::string depth = row.depth == 0 ? "" : Format(" @ d%llu", static_cast<unsigned long long>(row.depth));
  const std::string batch = row.batch == 1 ? "" : Format(" x %u", row.batch);
  const std::optional<double> share = row.BandwidthShare();
  return MarkdownLine({row.model + " " + row.precision, FormatBytes(row.file_bytes),
                       Format("%.2f M", static_cast<double>(row.parameters) / 1e6), row.dense + "+" + row.isa,
                       std::to_string(row.threads), row.Test() + batch + depth,
                       Format("%.2f \u00b1 %.2f", Mean(row.rates), Deviation(row.rates)), text("%.2f", row.BytesPerSecond(), kGiga),
                       share ? Format("%.0f %%", 100 * *share) : "",
                       row.peak_anonymous ? Format("%.1f", static_cast<double>(*row.peak_anonymous) / kMebi) : "",
                       Format("%.1f", static_cast<double>(row.state_bytes) / 1024), text("%.2f", row.FirstTokenMs(), 1)});
}

Json ProfileJson(const BenchRow& row) {
  Json kinds = Json::Array();
  for (const KindTime& time : row.profile) kinds.Add({{"kind", time.kind}, {"runs", time.runs}, {"ns", time.ns}});
  return {{"total_ns", row.profiled_ns}, {"ops", kinds}};
}

Json RowJson(const BenchRow& row) {
  Json json = Json::Object();
  json.Add("model", row.model);
  json.Add("precision", row.precision);
  json.Add("file_bytes", row.file_bytes);
  json.Add("parameters", row.parameters);
  json.Add("dense", row.dense);
  json.Add("isa", row.isa);
  json.Add("threads", row.threads);
  json.Add("test", row.Test());
  json.Add("batch", row.batch);
  json.Add("depth", row.depth);
  json.Add("t_s_mean", Mean(row.rates));
  json.Add("t_s_stddev", Deviation(row.rates));
  json.Add("t_s_median", Median(row.rates));
  json.Add("t_s", row.rates);
  json.Add("first_token_ms", row.FirstTokenMs());
  json.Add("peak_anon_bytes", row.peak_anonymous);
  json.Add("session_bytes", row.session_bytes);
  json.Add("state_bytes", row.state_bytes);
  json.Add("used_state_bytes", row.used_state_bytes);
  json.Add("bytes_per_token", row.bytes_per_token);
  json.Add("bytes_per_s", row.BytesPerSecond());
  json.Add("bandwidth_bytes_per_s", row.bandwidths.empty() ? Json(nullptr) : Json(Median(row.bandwidths)));
  json.Add("bandwidth_share", row.BandwidthShare());
  json.Add("memory_bandwidth_bytes_per_s", row.memory_bandwidth);
  if (!row.profile.empty()) json.Add("profile", ProfileJson(row));
  return json;
}

// The fields of the JSON that are one value.
std::string CsvRow(const BenchRow& row, bool first) {
  std::string names, values;
  const Json json = RowJson(row);
  for (const auto& [name, value] : json.fields()) {
    if (value.is_structured()) continue;
    const std::string comma = names.empty() ? "" : ",";
    names += comma + name;
    std::string cell = value.is_null() ? "" : tarn::tools::Printable(value.text());
    if (value.is_string()) {
      for (size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, "\"");
      cell = '"' + cell + '"';
    }
    values += comma + cell;
  }
  return (first ? names + "\n" : "") + values + "\n";
}

}  // namespace

std::string BenchHeader(BenchFormat format, const MemoryBandwidth& memory) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return MarkdownHeader(memory);
    case BenchFormat::kCsv:
    case BenchFormat::kJsonLines:
      return "";
    case BenchFormat::kJson:
      return "[";
  }
  return "";
}

std::string BenchRowText(BenchFormat format, const BenchRow& row, bool first) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return MarkdownRow(row);
    case BenchFormat::kCsv:
      return CsvRow(row, first);
    case BenchFormat::kJson: {
      std::string text = JsonText(RowJson(row));
      text.pop_back();
      return (first ? "\n" : ",\n") + text;
    }
    case BenchFormat::kJsonLines:
      return JsonLine(RowJson(row));
  }
  return "";
}

std::string BenchFooter(BenchFormat format, bool any) { return format == BenchFormat::kJson ? any ? "\n]\n" : "]\n" : ""; }

std::string ProfileText(const std::vector<BenchRow>& rows) {
  std::string text;
  for (const BenchRow& row : rows) {
    if (row.profile.empty()) continue;
    uint64_t dense = 0;
    Table table("lrrrr");
    table.Add({"op kind", "runs", "total ms", "us per token", "share"});
    const auto add = [&](const std::string& what, const std::string& runs, uint64_t ns) {
      const auto time = static_cast<double>(ns);
      table.Add({what, runs, Format("%.2f", time / 1e6), Format("%.2f", time / 1e3 / static_cast<double>(row.all_tokens())),
                 Format("%.1f %%", 100 * time / static_cast<double>(row.profiled_ns))});
    };
    uint64_t ops = 0;
    for (const KindTime& kind : row.profile) {
      add(kind.kind, std::to_string(kind.runs), kind.ns);
      if (kind.kind == kDense) dense += kind.ns;
      ops += kind.ns;
    }
    add("between ops", "", row.profiled_ns - std::min(ops, row.profiled_ns));
    text += Format("\n%s, %s at depth %llu, %u thread%s\n", tarn::tools::Printable(row.model + " " + row.precision).c_str(),
                   row.Test().c_str(), static_cast<unsigned long long>(row.depth), row.threads, row.threads == 1 ? "" : "s");
    text += table.Text("  ");
    text += Format("  everything outside dense layers: %.1f %%\n",
                   100 - 100 * static_cast<double>(dense) / static_cast<double>(row.profiled_ns));
  }
  return text;
}

std::string BenchPlot(const std::vector<BenchRow>& rows) {
  PlotPanel speed{"tokens/s", PlotScale::kLinear, {}};
  PlotPanel memory{"memory of a sequence, MiB", PlotScale::kLog, {}};
  if (rows.empty()) return DrawPlot("", {speed, memory});
  const auto decode = std::find_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.decode(); });
  const BenchRow& shown = decode == rows.end() ? rows.front() : *decode;
  // A line is a file; where two files have one name, the paths tell them apart.
  std::map<std::string, std::set<std::string>> paths_of;
  for (const BenchRow& row : rows) paths_of[row.model + " " + row.precision].insert(row.path);
  const auto line_of = [&paths_of](PlotPanel* panel, const BenchRow& row) {
    std::string name = row.model + " " + row.precision;
    if (paths_of[name].size() > 1) name += " (" + row.path + ")";
    for (PlotLine& line : panel->lines) {
      if (line.name == name) return &line;
    }
    panel->lines.push_back({name, row.bounded, {}});
    return &panel->lines.back();
  };
  for (const BenchRow& row : rows) {
    if (row.Test() != shown.Test() || row.threads != shown.threads) continue;
    const auto depth = static_cast<double>(row.depth);
    line_of(&speed, row)->points.push_back({depth, Median(row.rates)});
    line_of(&memory, row)->points.push_back({depth, static_cast<double>(row.used_state_bytes) / kMebi});
  }
  return DrawPlot(Format("%s, %u thread%s, %s+%s", shown.Test().c_str(), shown.threads, shown.threads == 1 ? "" : "s",
                         shown.dense.c_str(), shown.isa.c_str()),
                  {speed, memory});
}

}  // namespace tarn_cli
