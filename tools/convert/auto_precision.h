// --quant auto: the smallest file whose measured loss stays within a bound.
#ifndef TARN_TOOLS_CONVERT_AUTO_PRECISION_H_
#define TARN_TOOLS_CONVERT_AUTO_PRECISION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/convert/build/graph_builder.h"
#include "tools/convert/graph/precision.h"

namespace tarn::convert {

// Matrices that have one type: those whose names differ in the number of the layer alone, which is "*" in the name of the group.
using GroupTypes = std::map<std::string, Precision>;

std::string GroupOf(const std::string& matrix);

// What a search needs of a model, so that tests can give another one.
struct AutoModel {
  // The graph with the groups that are named in these types, the others in `base`. Errors: as Conversion::Build.
  std::function<std::unique_ptr<GraphBuilder>(Precision base, const GroupTypes& types)> build;
  // The loss above f32, in nats, of a graph. `step` names it to the user.
  std::function<double(const Graph& graph, const std::string& step)> measure;
  // A line about a step.
  std::function<void(const std::string& line)> report;
};

struct AutoChoice {
  Precision base = Precision::kInt4;
  GroupTypes types;  // of groups that are not `base`
  double loss = 0;   // above f32
};

// All groups are int4. While the loss is within `max_loss`, the next smaller type is tried: int3, then int2; the search goes on
// from the first one whose loss is not. While the loss is above `max_loss`, the group whose next type (up to f32) wins most loss
// for its bytes gets that type. What a type wins is measured once, group by group, from the same beginning. Then groups that are
// not needed go back, the largest first. Groups that `build` does not let have a type keep what they have. Errors: as `build` and
// `measure`.
AutoChoice ChoosePrecision(const AutoModel& model, double max_loss);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_AUTO_PRECISION_H_
