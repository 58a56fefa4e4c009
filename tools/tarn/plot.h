// Pictures of measurements against depth, as SVG: panels side by side, readable on light and on dark pages.
#ifndef TARN_TOOLS_TARN_PLOT_H_
#define TARN_TOOLS_TARN_PLOT_H_

#include <string>
#include <vector>

namespace tarn_cli {

enum class PlotScale { kLinear, kLog };  // linear ones begin at 0; on logarithmic ones values are > 0

struct PlotPoint {
  double depth;  // tokens, >= 0
  double value;
};

struct PlotLine {
  std::string name;
  bool grows;  // of a system whose cost grows with the depth: drawn dashed
  std::vector<PlotPoint> points;
};

struct PlotPanel {
  std::string title;  // what the values are, with their unit
  PlotScale scale;
  std::vector<PlotLine> lines;  // the same names in the same order in all panels
};

// Depth is on a logarithmic axis, with a place for 0 at its left.
std::string DrawPlot(const std::string& title, const std::vector<PlotPanel>& panels);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_PLOT_H_
