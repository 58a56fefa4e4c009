// Files of released format versions keep their meaning: they load, and give the logits that they gave then.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/session/session.h"

namespace tarn {
namespace {

struct Frozen {
  const char* path;
  // By the scalar reference and portable dense layers: of tokens 0 to 7 after "frozen"; of labels 0 to 7 of it; of tokens 0 to 7
  // after it, with it as the source.
  float logits[8];
};

// The files of a released version have layers of all attention families and weights of all types of its time.
constexpr Frozen kFrozen[] = {
    {"tests/data/v1.0.tarn", {-0.13172f, -0.41120f, -0.92404f, -0.01784f, 1.32536f, -1.64448f, -0.95867f, -0.85747f}},
    {"tests/data/v1.1.tarn", {-0.45975f, 0.12233f, 1.40255f, 0.67640f, 1.00752f, 0.33434f, 1.08054f, 0.88917f}},
    {"tests/data/v1.2.tarn", {-1.51947f, -1.14141f, -0.40253f, -1.53858f, 1.03243f, 0.17563f, 0.10896f, 0.75114f}},
    {"tests/data/v1.3.tarn", {1.0748f, 1.7126f, 0.49368f, 0.46841f, -0.35711f, -1.03748f, 0.77696f, 0.19914f}},
    {"tests/data/v1.2-classifier.tarn", {0.77009f, 0.99925f, -0.17014f, -0.19320f, -0.15418f, -0.81709f, 0.65591f, -0.93331f}},
};

Result<const float*> LogitsOf(Session* session, format::Task task) {
  const int32_t tokens[] = {'f', 'r', 'o', 'z', 'e', 'n'};
  const size_t count = std::size(tokens);
  if (task == format::Task::Classification) return session->Classify(tokens, count, &count);
  if (task == format::Task::Seq2Seq) TARN_RETURN_IF_ERROR(session->Encode(tokens, count, &count));
  return session->Prefill(tokens, count);
}

TEST(Frozen, FilesOfEveryReleasedVersionMeanWhatTheyMeant) {
  for (const Frozen& frozen : kFrozen) {
    Result<FileMap> map = FileMap::Open(frozen.path);
    ASSERT_TRUE(map.ok()) << map.status().message();
    const Span<const uint8_t> bytes = map.value().bytes();
    Result<LoadedModel> model =
        LoadedModel::Open(std::move(map.value()), bytes, {Verify::kEveryTime, "reference", /*portable=*/true, DefaultAllocator()});
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_TRUE(model.value().Pack().ok());
    Limits limits{1, 4, 1, 1};
    if (model.value().model().program(Stage::kEncode) != nullptr) limits.max_source = 8;
    Result<Session*> session = Session::Create(model.value(), limits, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Result<const float*> logits = LogitsOf(session.value(), model.value().model().task());
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    // The reference sums in f64 and rounds to f32: other compilers differ by rounding, and an activation that is quantized the
    // other way moves a logit by about 1/255 of its size.
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(logits.value()[i], frozen.logits[i], 0.01) << frozen.path << " token " << i;
    Session::Destroy(session.value());
  }
}

}  // namespace
}  // namespace tarn
