// A picture of the programs of a model, as SVG: readable on light and on dark pages.
#ifndef TARN_TOOLS_TARN_GRAPH_DRAWING_H_
#define TARN_TOOLS_TARN_GRAPH_DRAWING_H_

#include <string>

#include "tools/tarn/program_graph.h"

namespace tarn_cli {

// Programs stand side by side, their ops below each other in the order in which they run. `about` is a line below the title.
std::string DrawGraph(const std::string& title, const std::string& about, const ModelGraph& graph);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_GRAPH_DRAWING_H_
