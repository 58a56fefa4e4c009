#include "tools/common/suggestion.h"

#include <gtest/gtest.h>

namespace tarn::tools {
namespace {

const std::vector<std::string> kOptions = {"--temp", "--top-k", "--top-p", "--tokens", "--json-stats", "-n"};

TEST(Suggestion, FindsTheNearestName) {
  EXPECT_EQ(Nearest("--tmp", kOptions), "--temp");
  EXPECT_EQ(Nearest("--temperature", kOptions), "--temp");
  EXPECT_EQ(Nearest("--TOKENS", kOptions), "--tokens");
  EXPECT_EQ(Nearest("--top_k", kOptions), "--top-k");
  EXPECT_EQ(Nearest("--json-stast", kOptions), "--json-stats");  // two letters exchanged
  EXPECT_EQ(Nearest("tokns", kOptions), "--tokens");
  EXPECT_EQ(Nearest("norm_epss", {"norm", "norm_eps"}), "norm_eps");  // both begin it
}

TEST(Suggestion, SaysNothingWhereNoNameIsNear) {
  for (const char* name : {"", "-", "--", "-x", "--gpu", "--n-gpu-layers", "0.8"}) EXPECT_EQ(Nearest(name, kOptions), "") << name;
  EXPECT_EQ(Nearest(std::string(1 << 20, 't'), kOptions), "");
  EXPECT_EQ(DidYouMean("--gpu", kOptions), "");
}

TEST(Suggestion, ListsWhatIsKnown) {
  EXPECT_EQ(Alternatives({}), "");
  EXPECT_EQ(Alternatives({"md"}), "md");
  EXPECT_EQ(UnknownName("jsn", {"md", "csv", "json"}), "is 'jsn', expected md, csv or json (did you mean json?)");
  EXPECT_EQ(UnknownName("xml", {"md", "csv", "json"}), "is 'xml', expected md, csv or json");
}

}  // namespace
}  // namespace tarn::tools
