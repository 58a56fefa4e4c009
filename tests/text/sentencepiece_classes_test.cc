// Models of SentencePiece beside a tokenizer_config.json that names a class of `transformers`: its ids for texts with special
// tokens.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/text/encode_text.h"
#include "tests/support/tokenizers.h"
#include "tests/text/text_cases.h"

namespace tarn {
namespace {

using nlohmann::json;

// What tools/dev/oracle/sentencepiece_classes.py wrote.
TEST(SentencePieceClasses, IdsAreThoseOfThePackage) {
  const std::filesystem::path folder = testing::TempDir() + "sentencepiece_classes_test";
  for (const json& one : TextCases("sentencepiece_classes.json")) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file("tests/data/tokenizers/" + one["fixture"].get<std::string>() + "/tokenizer.model",
                               folder / one["file"].get<std::string>());
    std::ofstream(folder / "tokenizer_config.json") << one["config"];
    convert::TokenizerData data = test::TokenizerGraph::ReadFolder(folder.string());
    data.prefix.clear();
    data.suffix.clear();
    const test::TokenizerGraph graph(data);
    const Result<TokenizerTables> tables = graph.Read();
    ASSERT_TRUE(tables.ok()) << tables.status().message();
    for (const json& answer : one["answers"]) {
      const auto text = answer["text"].get<std::string>();
      std::vector<int32_t> ids(64);
      size_t count = 0;
      ASSERT_TRUE(
          EncodeText(tables.value(), {text.data(), text.size()}, DefaultAllocator(), {ids.data(), ids.size()}, &count).ok());
      ids.resize(count);
      EXPECT_EQ(ids, answer["ids"].get<std::vector<int32_t>>()) << one["config"] << ": " << text;
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tarn
