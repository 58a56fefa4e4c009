#include "tools/tarn/plot.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "tools/tarn/report.h"
#include "tools/tarn/svg.h"

namespace tarn_cli {
namespace {

// In pixels.
constexpr double kPanelWidth = 440, kPanelHeight = 300, kLeft = 64, kRight = 20, kAbove = 30, kBelow = 48;
constexpr double kTitleHeight = 30, kLegendLine = 20, kMargin = 12;
constexpr double kZeroGap = 0.5;  // decades between depth 0 and the first depth
constexpr size_t kColors = 6;

// The colours keep apart for those who see few of them, on white and on black.
constexpr char kStyle[] = R"(<style>
  text { font: 12px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #3c4450; }
  .title { font-size: 14px; font-weight: 600; fill: #1c2128; }
  .panel { font-weight: 600; }
  .grid { stroke: #d5d9de; stroke-width: 1; }
  .axis { stroke: #8a929c; stroke-width: 1; }
  .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
  .grows { stroke-dasharray: 7 5; }
  .c0 { stroke: #0b6fc2; } .c1 { stroke: #d1570a; } .c2 { stroke: #0a8f6a; }
  .c3 { stroke: #b0509b; } .c4 { stroke: #a07800; } .c5 { stroke: #6b7280; }
  .dot { stroke-width: 6; stroke-linecap: round; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b6bec8; }
    .title { fill: #e8ecf0; }
    .grid { stroke: #343b44; }
    .axis { stroke: #7d8590; }
    .c0 { stroke: #58aef5; } .c1 { stroke: #f2935a; } .c2 { stroke: #3fc79a; }
    .c3 { stroke: #dd8fc9; } .c4 { stroke: #d9b64a; } .c5 { stroke: #a0a8b3; }
  }
</style>
)";

// 8192 -> "8192", 1500000 -> "1.5M".
std::string Short(double value) {
  if (value >= 1e6) return Format("%.4gM", value / 1e6);
  if (value >= 1e5) return Format("%.4gk", value / 1e3);
  return Format("%.5g", value);
}

struct Tick {
  double at;
  std::string label;
};

// From values to pixels.
class Axis {
 public:
  Axis(double first, double last, double pixel_first, double pixel_last)
      : first_(first), last_(last), pixel_first_(pixel_first), pixel_last_(pixel_last) {}

  double Pixel(double place) const { return pixel_first_ + (place - first_) / (last_ - first_) * (pixel_last_ - pixel_first_); }
  std::vector<Tick> ticks;

 private:
  double first_, last_, pixel_first_, pixel_last_;
};

// The powers of ten of a span of decades, and 2 and 5 times them where it is short.
std::vector<Tick> LogTicks(double first, double last) {
  std::vector<Tick> ticks;
  const bool fine = last - first < 2.5;
  for (int decade = static_cast<int>(std::floor(first)); decade <= last; ++decade) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = decade + std::log10(factor);
      if (at < first - 1e-9 || at > last + 1e-9 || (factor > 1 && !fine)) continue;
      ticks.push_back({at, Short(factor * std::pow(10, decade))});
    }
  }
  return ticks;
}

// Where depths are: decades, depth 0 a little left of the smallest other.
class DepthAxis {
 public:
  explicit DepthAxis(const std::vector<PlotPanel>& panels) {
    std::set<double> depths;
    for (const PlotPanel& panel : panels) {
      for (const PlotLine& line : panel.lines) {
        for (const PlotPoint& point : line.points) depths.insert(point.depth);
      }
    }
    const bool has_zero = depths.erase(0) > 0;
    const double smallest = depths.empty() ? 1 : std::log10(*depths.begin());
    last_ = depths.empty() ? smallest : std::log10(*depths.rbegin());
    first_ = has_zero ? smallest - kZeroGap : smallest;
    if (last_ - first_ < 1e-9) last_ = first_ + 1;
    // The depths themselves where they fit, else decades.
    if (depths.size() <= 6) {
      for (const double depth : depths) ticks_.push_back({std::log10(depth), Short(depth)});
    } else {
      ticks_ = LogTicks(smallest, last_);
    }
    if (has_zero) ticks_.insert(ticks_.begin(), Tick{first_, "0"});
  }

  double Place(double depth) const { return depth > 0 ? std::log10(depth) : first_; }
  Axis ToPixels(double left, double right) const {
    Axis axis(first_, last_, left, right);
    axis.ticks = ticks_;
    return axis;
  }

 private:
  double first_, last_;
  std::vector<Tick> ticks_;
};

Axis ValueAxis(const PlotPanel& panel, double bottom, double top) {
  double least = 1e300, most = -1e300;
  for (const PlotLine& line : panel.lines) {
    for (const PlotPoint& point : line.points) {
      least = std::min(least, point.value);
      most = std::max(most, point.value);
    }
  }
  if (least > most) least = most = 1;
  if (panel.scale == PlotScale::kLog) {
    const double first = std::floor(std::log10(least)), last = std::max(std::ceil(std::log10(most)), first + 1);
    Axis axis(first, last, bottom, top);
    axis.ticks = LogTicks(first, last);
    return axis;
  }
  // 1, 2 or 5 times a power of ten, four to nine times.
  const double rough = most / 4;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double step = decade * (rough / decade >= 5 ? 5 : rough / decade >= 2 ? 2 : 1);
  const double last = std::ceil(most * 1.02 / step) * step;
  Axis axis(0, last, bottom, top);
  for (double value = 0; value <= last * (1 + 1e-9); value += step) axis.ticks.push_back({value, Short(value)});
  return axis;
}

std::string DrawLine(const PlotLine& line, size_t color, PlotScale scale, const DepthAxis& depths, const Axis& x, const Axis& y) {
  std::string path, dots;
  for (const PlotPoint& point : line.points) {
    const double px = x.Pixel(depths.Place(point.depth));
    const double py = y.Pixel(scale == PlotScale::kLog ? std::log10(point.value) : point.value);
    path += Format("%s%.1f,%.1f", path.empty() ? "" : " ", px, py);
    dots += Format("<path d=\"M%.1f,%.1fh0\" class=\"dot c%zu\"/>\n", px, py, color);
  }
  return Format("<polyline points=\"%s\" class=\"line c%zu%s\"/>\n", path.c_str(), color, line.grows ? " grows" : "") + dots;
}

std::string DrawPanel(const PlotPanel& panel, const DepthAxis& depths, double at_x, double at_y) {
  const double left = at_x + kLeft, right = at_x + kPanelWidth - kRight;
  const double top = at_y + kAbove, bottom = at_y + kPanelHeight - kBelow;
  const Axis x = depths.ToPixels(left, right);
  const Axis y = ValueAxis(panel, bottom, top);
  std::string svg = SvgText(left, at_y + 16, "start", panel.title, "panel");
  for (const Tick& tick : y.ticks) {
    svg += SvgLine(left, y.Pixel(tick.at), right, y.Pixel(tick.at), "grid");
    svg += SvgText(left - 8, y.Pixel(tick.at) + 4, "end", tick.label);
  }
  double last_label = -1e300;
  for (const Tick& tick : x.ticks) {
    svg += SvgLine(x.Pixel(tick.at), bottom, x.Pixel(tick.at), bottom + 5, "axis");
    if (x.Pixel(tick.at) - last_label < 36) continue;
    last_label = x.Pixel(tick.at);
    svg += SvgText(last_label, bottom + 20, "middle", tick.label);
  }
  svg += SvgLine(left, bottom, right, bottom, "axis");
  svg += SvgText((left + right) / 2, bottom + 40, "middle", "depth, tokens");
  for (size_t i = 0; i < panel.lines.size(); ++i) svg += DrawLine(panel.lines[i], i % kColors, panel.scale, depths, x, y);
  return svg;
}

}  // namespace

std::string DrawPlot(const std::string& title, const std::vector<PlotPanel>& panels) {
  const std::vector<PlotLine>& lines = panels.front().lines;
  const double width = 2 * kMargin + kPanelWidth * static_cast<double>(panels.size());
  const double legend = kMargin + kTitleHeight + kPanelHeight;
  const double height = legend + kLegendLine * static_cast<double>(lines.size()) + kMargin;
  std::string svg = SvgHead(width, height);
  svg += kStyle;
  svg += SvgText(kMargin + kLeft, kMargin + 14, "start", title, "title");
  const DepthAxis depths(panels);
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += DrawPanel(panels[i], depths, kMargin + kPanelWidth * static_cast<double>(i), kMargin + kTitleHeight);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const double y = legend + kLegendLine * (static_cast<double>(i) + 0.5), x = kMargin + kLeft;
    svg += SvgLine(x, y, x + 36, y, Format("line c%zu%s", i % kColors, lines[i].grows ? " grows" : "").c_str());
    svg += SvgText(x + 46, y + 4, "start", lines[i].name + (lines[i].grows ? " (grows: memory is that of the rows in use)" : ""));
  }
  return svg + "</svg>\n";
}

}  // namespace tarn_cli
