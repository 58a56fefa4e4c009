#include "tools/convert/attention/system_table.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/slot_memory.h"
#include "tests/support/models.h"
#include "tools/convert/attention/attention.h"
#include "variants/linear.h"

namespace tarn::convert {
namespace {

std::string LineOf(const std::string& table, const std::string& system) {
  const size_t begin = table.find("| `" + system + "`");
  EXPECT_NE(begin, std::string::npos) << system;
  return table.substr(begin, table.find('\n', begin) - begin);
}

TEST(SystemTable, ALineForEachSystem) {
  const std::string table = SystemTable(*SelectKernels(nullptr), Reference());
  for (const AttentionSystem& system : AttentionSystems()) EXPECT_FALSE(LineOf(table, system.name).empty());
}

TEST(SystemTable, AttentionOpsHaveVectorKernels) {
  const std::string table = SystemTable(*SelectKernels(nullptr), Reference());
  EXPECT_EQ(table.find(", not "), std::string::npos) << table;
}

TEST(SystemTable, NamesAKernelThatIsTheReferences) {
  Kernels kernels = *SelectKernels(nullptr);
  kernels.slot_control_step[0] = Reference().slot_control_step[0];
  kernels.score_peak = Reference().score_peak;
  const std::string table = SystemTable(kernels, Reference());
  EXPECT_NE(LineOf(table, "abc_mlp").find(", not `slot_control_step` |"), std::string::npos) << table;
  EXPECT_NE(LineOf(table, "probsparse").find("1 of 2, not `score_peak` |"), std::string::npos) << table;
  EXPECT_EQ(LineOf(table, "rfa").find(", not "), std::string::npos) << table;
  EXPECT_EQ(LineOf(table, "kv_clustering").find(", not "), std::string::npos) << table;
}

// What the table says about a variant, against the op that its parser makes.
TEST(SystemTable, OpsAndChunksAreThoseOfTheParsedVariant) {
  for (const test::SystemCase& example : test::kMoreSystems) {
    SCOPED_TRACE(example.attention);
    const Json object = Json::parse(example.attention);
    const AttentionOp op =
        ParseAttention(object, "attention", {format::Heads(4, 4, 8, 8), /*layer=*/0, /*hidden_size=*/32, false, false});
    for (const AttentionSystem& system : AttentionSystems()) {
      if (op.system != system.name || op.composed) continue;
      EXPECT_STREQ(format::EnumNameOpAttributes(op.type), system.family.causal_op);
      if (op.type != format::OpAttributes::LinearState) continue;
      flatbuffers::FlatBufferBuilder builder;
      builder.Finish(flatbuffers::Offset<format::LinearState>(op.attributes(builder).o));
      const auto* table = flatbuffers::GetRoot<format::LinearState>(builder.GetBufferPointer());
      LinearAttributes attributes;
      attributes.gate = static_cast<Gate>(table->gate());
      attributes.rule = static_cast<WriteRule>(table->rule());
      attributes.attention_normalized = table->attention_normalized();
      const bool may_chunk = system.token_loop == nullptr || *system.token_loop != '\0';
      const bool may_loop = system.token_loop != nullptr;
      EXPECT_TRUE(attributes.has_chunk_form() ? may_chunk : may_loop);
    }
  }
}

}  // namespace
}  // namespace tarn::convert
