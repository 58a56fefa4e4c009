#include "tools/tarn/graph_drawing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "tools/tarn/report.h"
#include "tools/tarn/svg.h"

namespace tarn_cli {
namespace {

// In pixels.
constexpr double kMargin = 16, kHead = 84, kLine = 16, kPad = 7, kGap = 16, kFrame = 44;
constexpr double kOpWidth = 290, kBeside = 26, kArraysWidth = 410, kTypeAt = 150, kLane = 14, kBetween = 36;
// In characters, of which the font has some 7 pixels each.
constexpr size_t kOpCharacters = 40, kDetailLines = 4, kNameCharacters = 20, kTypeCharacters = 24, kTitleCharacters = 100;
constexpr size_t kMostShared = 40, kMostLanes = 24;

constexpr char kStyle[] = R"(<style>
  text { font: 12px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #3c4450; }
  .title { font-size: 16px; font-weight: 600; fill: #1c2128; }
  .name { font-weight: 600; fill: #1c2128; }
  .op { fill: #f2f4f7; stroke: #8a929c; }
  .state { fill: #fdebd9; stroke: #d1570a; }
  .tensor { fill: #e4f0fb; stroke: #0b6fc2; }
  .frame { fill: none; stroke: #8a929c; stroke-dasharray: 5 4; }
  .edge { fill: none; stroke: #5f6873; stroke-width: 1.25; }
  .tie { stroke: #b4bbc4; stroke-width: 1; }
  .head { fill: #5f6873; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b6bec8; }
    .title, .name { fill: #e8ecf0; }
    .op { fill: #262c34; stroke: #7d8590; }
    .state { fill: #41291a; stroke: #f2935a; }
    .tensor { fill: #17293a; stroke: #58aef5; }
    .frame { stroke: #7d8590; }
    .edge { stroke: #9aa3ad; }
    .tie { stroke: #4a525c; }
    .head { fill: #9aa3ad; }
  }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head"
 d="M0,0L8,4L0,8z"/></marker></defs>
)";

// At most `most` bytes, cut between characters.
std::string Clip(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Lines of words.
std::vector<std::string> Wrap(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size() && lines.size() < kDetailLines;) {
    size_t end = text.size();
    if (end - begin > kOpCharacters) {
      const size_t space = text.rfind(' ', begin + kOpCharacters);
      end = space == std::string::npos || space <= begin ? begin + kOpCharacters : space;
    }
    lines.push_back(Clip(text.substr(begin, end - begin), kOpCharacters));
    begin = std::min(text.find_first_not_of(' ', end), text.size());
  }
  return lines;
}

std::string Box(double x, double y, double width, double height, const char* style) {
  return Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" class=\"%s\"/>\n", x, y, width, height, style);
}

double HeightOf(size_t lines) { return lines == 0 ? 0 : static_cast<double>(lines) * kLine + 2 * kPad - 2; }

std::string DrawArrays(const std::vector<GraphArray>& arrays, double x, double y, double width, const char* style) {
  if (arrays.empty()) return "";
  std::string svg = Box(x, y, width, HeightOf(arrays.size()), style);
  const double type_at = x + (width - kArraysWidth) + kTypeAt;
  const auto name_characters = static_cast<size_t>((type_at - x) / kTypeAt * static_cast<double>(kNameCharacters));
  for (const GraphArray& array : arrays) {
    y += kLine;
    svg += SvgText(x + kPad, y, "start", Clip(array.name, name_characters));
    svg += SvgText(type_at, y, "start", Clip(array.type, kTypeCharacters));
    svg += SvgText(x + width - kPad, y, "end", FormatBytes(array.bytes));
  }
  return svg;
}

uint64_t Bytes(const std::vector<GraphArray>& arrays) {
  uint64_t bytes = 0;
  for (const GraphArray& array : arrays) bytes += array.bytes;
  return bytes;
}

// Where edges run beside the ops, those that do not meet.
class Lane {
 public:
  // Whether the way between two ops was free; it is not any longer.
  bool Take(size_t from, size_t to) {
    const auto next = taken_.lower_bound(from);
    if (next != taken_.end() && next->first < to) return false;
    if (next != taken_.begin() && std::prev(next)->second > from) return false;
    taken_[from] = to;
    return true;
  }

 private:
  std::map<size_t, size_t> taken_;
};

// One program, from its top left corner on.
class ProgramDrawing {
 public:
  ProgramDrawing(const ProgramGraph& graph, double x, double y) : graph_(graph), lanes_(LanesOf(graph)), x_(x), bottom_(y) {
    op_x_ = x_ + kPad + kLane * static_cast<double>(lanes_.count + 1);
    arrays_x_ = op_x_ + kOpWidth + kBeside;
    svg_ = SvgText(op_x_, bottom_, "start", "program " + graph.name, "name");
    bottom_ += kGap / 2;
    for (const GraphBlock& block : graph.blocks) DrawBlock(block);
    DrawEdges();
  }

  const std::string& svg() const { return svg_; }
  double right() const { return arrays_x_ + kArraysWidth + kPad; }
  double bottom() const { return bottom_; }

 private:
  // Beside the ops: where edges run that pass others.
  struct Lanes {
    std::vector<std::vector<size_t>> of;  // of each op, for each that it reads
    size_t count = 0;
  };

  static Lanes LanesOf(const ProgramGraph& graph) {
    struct Edge {
      size_t length, to, read;
    };
    std::vector<Edge> edges;
    Lanes lanes;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      lanes.of.emplace_back(graph.ops[i].reads.size());
      for (size_t read = 0; read < graph.ops[i].reads.size(); ++read) edges.push_back({i - graph.ops[i].reads[read], i, read});
    }
    // Short ones are nearest to the ops.
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return std::tie(a.length, a.to, a.read) < std::tie(b.length, b.to, b.read); });
    std::vector<Lane> taken;
    for (const Edge& edge : edges) {
      if (edge.length < 2) continue;
      size_t lane = 0;
      while (lane < taken.size() && !taken[lane].Take(edge.to - edge.length, edge.to)) ++lane;
      if (lane == taken.size() && lane < kMostLanes) {
        taken.emplace_back();
        taken.back().Take(edge.to - edge.length, edge.to);
      }
      lanes.of[edge.to][edge.read] = std::min(lane + 1, kMostLanes);  // more share the last one
    }
    lanes.count = taken.size();
    return lanes;
  }

  void DrawBlock(const GraphBlock& block) {
    const double top = bottom_ + kGap / 2;
    if (!block.title.empty()) bottom_ = top + kFrame - kGap / 2;
    for (size_t i = block.begin; i < block.end; ++i) DrawOp(graph_.ops[i]);
    if (block.title.empty()) return;
    uint64_t states = 0, tensors = 0;
    for (size_t i = block.begin; i < block.end; ++i) {
      states += Bytes(graph_.ops[i].states);
      tensors += Bytes(graph_.ops[i].tensors);
    }
    bottom_ += kGap * 0.75;
    const std::string times = block.repeats > 1 ? Format(": %zu times", block.repeats) : "";
    const std::string each = block.repeats > 1 ? " each time" : "";
    svg_ += Box(x_, top, right() - x_, bottom_ - top, "frame");
    svg_ += SvgText(arrays_x_, top + 18, "start", Clip(block.title, kOpCharacters) + times, "name");
    svg_ += SvgText(arrays_x_, top + 18 + kLine, "start",
                    "tensors " + FormatBytes(tensors) + (states > 0 ? ", states " + FormatBytes(states) : "") + each);
    bottom_ += kGap / 2;
  }

  void DrawOp(const GraphOp& op) {
    const double top = bottom_ + kGap;
    const std::vector<std::string> lines = Wrap(op.detail);
    const double states = HeightOf(op.states.size()), tensors = HeightOf(op.tensors.size());
    const double between = states > 0 && tensors > 0 ? 4 : 0;
    const double own = HeightOf(1 + lines.size());
    const double height = std::max(own, states + between + tensors);
    if (states + tensors > 0) svg_ += SvgLine(op_x_ + kOpWidth, top + 12, arrays_x_, top + 12, "tie");
    svg_ += Box(op_x_, top, kOpWidth, own, "op");
    svg_ += SvgText(op_x_ + kPad, top + kLine, "start", Clip(op.name, kOpCharacters - std::min(op.kind.size(), kOpCharacters / 2)),
                    "name");
    svg_ += SvgText(op_x_ + kOpWidth - kPad, top + kLine, "end", Clip(op.kind, kOpCharacters / 2));
    for (size_t i = 0; i < lines.size(); ++i) {
      svg_ += SvgText(op_x_ + kPad, top + kLine * static_cast<double>(i + 2), "start", lines[i]);
    }
    svg_ += DrawArrays(op.states, arrays_x_, top, kArraysWidth, "state");
    svg_ += DrawArrays(op.tensors, arrays_x_, top + states + between, kArraysWidth, "tensor");
    tops_.push_back(top);
    heights_.push_back(own);
    bottom_ = top + height;
  }

  void DrawEdges() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const GraphOp& op = graph_.ops[i];
      std::string outside;
      for (const std::string& value : op.outside) outside += (outside.empty() ? "" : ", ") + value;
      if (!outside.empty()) {
        svg_ += SvgText(op_x_ + kOpWidth - kPad, tops_[i] - 4, "end", "reads " + Clip(outside, kOpCharacters));
      }
      for (size_t read = 0; read < op.reads.size(); ++read) {
        const size_t from = op.reads[read], lane = lanes_.of[i][read];
        const double below = tops_[from] + heights_[from];
        if (lane == 0) {
          svg_ += Edge(Format("M%.1f,%.1fV%.1f", op_x_ + kOpWidth / 3, below, tops_[i]));
          continue;
        }
        const double x = op_x_ - kLane * static_cast<double>(lane), y = tops_[i] + 8;
        svg_ += Edge(Format("M%.1f,%.1fH%.1fQ%.1f,%.1f %.1f,%.1fV%.1fQ%.1f,%.1f %.1f,%.1fH%.1f", op_x_, below - 8, x + 5, x,
                            below - 8, x, below - 3, y - 5, x, y, x + 5, y, op_x_));
      }
    }
  }

  static std::string Edge(const std::string& path) {
    return "<path class=\"edge\" marker-end=\"url(#head)\" d=\"" + path + "\"/>\n";
  }

  const ProgramGraph& graph_;
  const Lanes lanes_;
  const double x_;
  double op_x_ = 0, arrays_x_ = 0, bottom_;
  std::vector<double> tops_, heights_;  // of the boxes of ops
  std::string svg_;
};

std::string Legend(double x, double y) {
  std::string svg;
  for (const auto& [style, text] :
       {std::pair("op", "op"), std::pair("state", "state of one sequence or source"), std::pair("tensor", "tensor")}) {
    svg += Box(x, y - 10, 14, 12, style) + SvgText(x + 20, y, "start", text);
    x += 60 + 6.2 * static_cast<double>(std::string(text).size());
  }
  return svg;
}

// Below the programs.
std::string DrawShared(std::vector<GraphArray> arrays, double* bottom, double width) {
  if (arrays.empty()) return "";
  const size_t left_out = arrays.size() > kMostShared ? arrays.size() - kMostShared : 0;
  arrays.resize(arrays.size() - left_out);
  std::string svg = SvgText(kMargin, *bottom + 2 * kGap, "start", "other tensors", "name");
  *bottom += 2 * kGap + kPad;
  svg += DrawArrays(arrays, kMargin, *bottom, std::min(width, kArraysWidth * 1.5), "tensor");
  *bottom += HeightOf(arrays.size());
  if (left_out > 0) svg += SvgText(kMargin, *bottom + kLine, "start", Format("and %zu more", left_out));
  *bottom += left_out > 0 ? kLine : 0;
  return svg;
}

}  // namespace

std::string DrawGraph(const std::string& title, const std::string& about, const ModelGraph& graph) {
  std::string body;
  double x = kMargin, right = kMargin, bottom = kHead;
  for (const ProgramGraph& program : graph.programs) {
    const ProgramDrawing drawing(program, x, kHead + kMargin);
    body += drawing.svg();
    right = drawing.right();
    bottom = std::max(bottom, drawing.bottom());
    x = right + kBetween;
  }
  body += DrawShared(graph.shared, &bottom, right - kMargin);
  std::string svg = SvgHead(right + kMargin, bottom + 2 * kMargin) + kStyle;
  svg += SvgText(kMargin, kMargin + 14, "start", Clip(title, kTitleCharacters), "title");
  svg += SvgText(kMargin, kMargin + 34, "start", about);
  svg += Legend(kMargin, kMargin + 56);
  return svg + body + "</svg>\n";
}

}  // namespace tarn_cli
