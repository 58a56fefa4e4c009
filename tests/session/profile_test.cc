// Times per op: counted while profiling is on, kept when it is off, zeroed when it starts anew, without a byte of memory.
#include <gtest/gtest.h>
#include <tarn/inspect.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/models.h"

namespace tarn {
namespace {

class ProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = test::MakeModel(test::ConfigText(test::kRfa));
    tarn_source source = TARN_SOURCE_INIT;
    source.buffer = file_.data();
    source.length_bytes = file_.size();
    tarn_error error;
    ASSERT_EQ(tarn_model_open(&source, nullptr, &model_, &error), TARN_OK) << error.message;
    tarn_session_config config = TARN_SESSION_CONFIG_INIT;
    config.max_chunk = 4;
    ASSERT_EQ(tarn_session_create(model_, &config, &session_, &error), TARN_OK) << error.message;
  }
  void TearDown() override {
    tarn_session_destroy(session_);
    tarn_model_close(model_);
  }

  // Those of all ops, in order.
  std::vector<tarn_op_time> Times() const {
    std::vector<tarn_op_time> times;
    for (;;) {
      tarn_op_time time = {};
      time.struct_size = sizeof(time);
      tarn_error error;
      const tarn_status status = tarn_session_op_time(session_, times.size(), &time, &error);
      if (status == TARN_NOT_FOUND) return times;
      EXPECT_EQ(status, TARN_OK) << error.message;
      times.push_back(time);
    }
  }
  std::vector<uint64_t> Runs() const {
    std::vector<uint64_t> runs;
    for (const tarn_op_time& time : Times()) runs.push_back(time.runs);
    return runs;
  }
  uint64_t Total() const {
    uint64_t ns = 0;
    for (const tarn_op_time& time : Times()) ns += time.ns;
    return ns;
  }
  void Profile(bool on) { ASSERT_EQ(tarn_session_profile(session_, on ? 1 : 0, nullptr), TARN_OK); }
  void Feed(size_t count) {
    const std::vector<int32_t> tokens(count, 7);
    ASSERT_EQ(tarn_session_prefill(session_, tokens.data(), count, nullptr, nullptr), TARN_OK);
  }

  std::vector<uint8_t> file_;
  tarn_model* model_ = nullptr;
  tarn_session* session_ = nullptr;
};

TEST_F(ProfileTest, OffByDefault) {
  Feed(9);
  EXPECT_EQ(Total(), 0u);
  for (const uint64_t runs : Runs()) EXPECT_EQ(runs, 0u);
}

TEST_F(ProfileTest, NamesAreThoseOfTheModel) {
  const std::vector<tarn_op_time> times = Times();
  ASSERT_FALSE(times.empty());
  for (size_t i = 0; i < times.size(); ++i) {
    tarn_op_info op = {};
    op.struct_size = sizeof(op);
    ASSERT_EQ(tarn_model_op(model_, i, &op, nullptr), TARN_OK);
    EXPECT_STREQ(times[i].name, op.name);
    EXPECT_STREQ(times[i].kind, op.kind);
  }
}

TEST_F(ProfileTest, EveryRunCounts) {
  Profile(true);
  const auto start = std::chrono::steady_clock::now();
  Feed(1);
  const std::chrono::nanoseconds wall = std::chrono::steady_clock::now() - start;
  EXPECT_GT(Total(), 0u);
  EXPECT_LE(Total(), static_cast<uint64_t>(wall.count()));
  for (const uint64_t runs : Runs()) EXPECT_EQ(runs, 1u);
  // Three chunks; what serves only the logits runs for the last.
  Profile(true);
  Feed(9);
  const std::vector<uint64_t> runs = Runs();
  EXPECT_EQ(runs.front(), 3u);
  EXPECT_EQ(runs.back(), 1u);
}

TEST_F(ProfileTest, OffKeepsTheCounts) {
  Profile(true);
  Feed(1);
  Profile(false);
  const uint64_t total = Total();
  Feed(1);
  EXPECT_EQ(Total(), total);
  for (const uint64_t runs : Runs()) EXPECT_EQ(runs, 1u);
}

TEST_F(ProfileTest, ChangesNoLogits) {
  const auto logits = [&](bool profiled) {
    tarn_session_reset(session_);
    Profile(profiled);
    const std::vector<int32_t> tokens(9, 7);
    const float* last = nullptr;
    EXPECT_EQ(tarn_session_prefill(session_, tokens.data(), tokens.size(), &last, nullptr), TARN_OK);
    return std::vector<float>(last, last + 256);
  };
  EXPECT_EQ(logits(true), logits(false));
}

TEST_F(ProfileTest, Refusals) {
  tarn_error error;
  tarn_op_time time = {};
  EXPECT_EQ(tarn_session_profile(nullptr, 1, &error), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "session is NULL");
  EXPECT_EQ(tarn_session_op_time(session_, 0, nullptr, &error), TARN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "time is NULL");
  EXPECT_EQ(tarn_session_op_time(session_, 0, &time, &error), TARN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("struct_size is 0"), std::string::npos) << error.message;
  time.struct_size = sizeof(time);
  EXPECT_EQ(tarn_session_op_time(session_, Times().size(), &time, &error), TARN_NOT_FOUND);
}

}  // namespace
}  // namespace tarn
