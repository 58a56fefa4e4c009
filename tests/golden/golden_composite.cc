#include "tests/golden/golden_composite.h"

#include <vector>

#include "tools/convert/build/layers.h"
#include "tools/convert/build/luna.h"
#include "tools/convert/build/poolingformer.h"
#include "tools/convert/build/set_transformer.h"

namespace tarn::golden {
namespace {

using convert::Fields;
using format::Slice;

constexpr uint32_t kMaxRows = 1000;

convert::SetBlock ReadSetBlock(Fields* fields) {
  convert::SetBlock block{};
  block.width = fields->Size("model_dim");
  block.num_heads = fields->Size("num_heads");
  block.layer_norm = fields->Bool("layer_norm");
  block.ln_eps = fields->Number("ln_eps");
  block.max_rows = kMaxRows;
  return block;
}

void AddSetMab(Fields* fields, const File& file, ModelBuilder* model) {
  model->Begin(Stage::kEncode, file.Rows("y"));
  const Slice x = model->Input("x"), y = model->Input("y");
  model->Output(convert::AddMab(&model->graph(), "mab.", ReadSetBlock(fields), x, y), "o");
}

void AddSetIsab(Fields* fields, const File& file, ModelBuilder* model) {
  model->Begin(Stage::kEncode, file.Rows("x"));
  const Slice x = model->Input("x");
  Slice induced;
  model->Output(convert::AddIsab(&model->graph(), "", ReadSetBlock(fields), fields->Size("num_inducing"), x, &induced), "o");
  model->Output(induced, "o_induced");
}

void AddSetPma(Fields* fields, const File& file, ModelBuilder* model) {
  model->Begin(Stage::kEncode, file.Rows("x"));
  const Slice x = model->Input("x");
  model->Output(convert::AddPma(&model->graph(), "", ReadSetBlock(fields), fields->Size("num_seeds"), x), "o");
}

void AddLuna(Fields* fields, const File& file, ModelBuilder* model) {
  convert::LunaBlock block{};
  block.num_heads = fields->Size("num_heads");
  block.num_pack_heads = fields->Size("num_pack_heads");
  block.tie_kv = fields->Bool("tie_kv");
  block.scale = fields->Number("scale");
  block.pack_scale = fields->Number("pack_scale");
  block.max_rows = kMaxRows;
  const bool own_context = file.Has("context");
  model->Begin(Stage::kEncode, file.Rows(own_context ? "context" : "x"));
  const Slice x = model->Input("x");
  const Slice context = own_context ? model->Input("context") : x;
  const Slice pack = convert::AddRows(&model->graph(), "pack", "pack", fields->Size("pack_len"), x.width());
  Slice packed;
  model->Output(convert::AddLunaAttention(&model->graph(), "", block, x, pack, context, &packed), "o");
  model->Output(packed, "o_pack");
}

void AddPooling(Fields* fields, const File& file, ModelBuilder* model) {
  convert::PoolingLevels levels{};
  const uint32_t heads = fields->Size("num_heads"), kv_heads = fields->Size("num_kv_heads");
  levels.heads = format::Heads(heads, kv_heads, fields->Size("head_dim"), fields->Size("value_dim"));
  levels.scale = fields->Number("scale");
  levels.window1 = fields->Size("window1");
  levels.window2 = fields->Size("window2");
  levels.pool_kernel = fields->Size("pool_kernel");
  levels.pool_stride = fields->Size("pool_stride");
  model->Begin(Stage::kEncode, file.Rows("k"));
  const Slice q = model->Input("q"), k = model->Input("k"), v = model->Input("v");
  Slice level1;
  model->Output(convert::AddPoolingformer(&model->graph(), "", levels, q, k, v, &level1), "o");
  model->Output(level1, "o_level1");
}

void AddConvolution(Fields* fields, const File& file, ModelBuilder* model) {
  const convert::Convolution convolution = {fields->Size("taps"), fields->Bool("bias"), fields->Bool("silu")};
  model->Begin(Stage::kDecode, file.Rows("x"));
  const Slice x = model->Input("x");
  const std::vector<convert::ConvColumns> columns = {{"conv", x.width()}};
  model->Output(convert::AddCausalConv(&model->graph(), "conv", "conv", columns, convolution, x), "o");
  model->State(0, file.Tensor("state_rows"));
}

constexpr struct {
  const char* name;
  void (*add)(Fields* fields, const File& file, ModelBuilder* model);
} kSystems[] = {{"set_transformer_mab", AddSetMab}, {"set_transformer_isab", AddSetIsab}, {"set_transformer_pma", AddSetPma},
                {"luna_encoder", AddLuna},          {"poolingformer", AddPooling},        {"causal_conv", AddConvolution}};

}  // namespace

bool AddComposite(const File& file, ModelBuilder* model) {
  for (const auto& system : kSystems) {
    if (file.Text("system") != system.name) continue;
    const convert::Json attributes = file.Object("attributes");
    Fields fields(attributes, file.path() + ": attributes");
    system.add(&fields, file, model);
    return true;
  }
  return false;
}

}  // namespace tarn::golden
