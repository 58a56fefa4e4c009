// The graph of a model: the programs of its task.
#ifndef TARN_TOOLS_CONVERT_BUILD_MODEL_GRAPH_H_
#define TARN_TOOLS_CONVERT_BUILD_MODEL_GRAPH_H_

#include "tools/convert/build/graph_builder.h"
#include "tools/convert/config/config.h"

namespace tarn::convert {

// Adds the programs to an empty builder, with what the config says about the model as a whole.
// Errors: layers that disagree about the shape of a tensor that they share; a rule of precision that no matrix has matched.
void BuildModel(const ModelConfig& config, GraphBuilder* builder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_MODEL_GRAPH_H_
