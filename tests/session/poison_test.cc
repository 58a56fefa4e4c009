// AddressSanitizer sees the one block of a session as one object. What the runtime poisons in it makes an overrun by a single float
// a finding: kernels that do that, one for each kind of piece. Sizes here are multiples of a cache line, so that no padding helps.
#include "core/poison.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/ops/scratch.h"
#include "runtime/session/loaded_model.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

constexpr Limits kOneToken{1, 1, 1, 1};
constexpr const char* kCaught = "use-after-poison";

const Kernels* g_right = nullptr;
volatile float g_read;

// The last thing of its piece is at `end`.
void ReadAt(const void* end) {
  float value;
  std::memcpy(&value, end, sizeof(value));
  g_read = value;
}

class Poisoned : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kPoisons) GTEST_SKIP() << "memory is poisoned under AddressSanitizer alone: make asan";
    file_ = test::MakeModel(test::ConfigText(test::kRfa, "sinusoidal"));
    Result<LoadedModel> model =
        LoadedModel::Open(FileMap(), {file_.data(), file_.size()}, {Verify::kOnce, nullptr, true, DefaultAllocator(), UINT64_MAX});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model.value());
    ASSERT_TRUE(model_.Pack().ok());
    g_right = model_.environment().kernels;
    kernels_ = *g_right;
  }

  // An instance of one token, with kernels_.
  void Create() {
    Environment environment = model_.environment();
    environment.kernels = &kernels_;
    const Result<ProgramBytes> bytes = Instance::Measure(environment, kOneToken);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    Result<Block> block = Block::Allocate(DefaultAllocator(), bytes.value().total, "test");
    ASSERT_TRUE(block.ok());
    block_ = std::move(block.value());
    const Result<Instance*> instance = Instance::Create(environment, kOneToken, block_.bytes());
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    instance_ = instance.value();
  }
  void TearDown() override {
    if (instance_ != nullptr) instance_->Destroy();
  }

  void Step() {
    std::memset(instance_->input(Stage::kDecode, 0), 0, sizeof(int32_t));
    ASSERT_TRUE(instance_->Decode(1, 1, ThreadPool()).ok());
  }
  void CreateAndStep() {
    Create();
    Step();
  }

  std::vector<uint8_t> file_;
  LoadedModel model_;
  Kernels kernels_;
  Block block_;
  Instance* instance_ = nullptr;
};

TEST_F(Poisoned, RightKernelsTouchNothingElse) {
  CreateAndStep();
  Step();
  ReadAt(instance_->output(Stage::kDecode, 0));
  instance_->Reset();
  Step();
}

TEST_F(Poisoned, APieceOfScratchEnds) {
  kernels_.sinusoid = [](size_t n, double position, const double* frequency, float* sine, float* cosine) {
    g_right->sinusoid(n, position, frequency, sine, cosine);
    cosine[n] = 0;  // both halves are one piece
  };
  EXPECT_DEATH(CreateAndStep(), kCaught);
}

TEST_F(Poisoned, ScratchIsClosedBehindItsOp) {
  static const float* vector;
  kernels_.sinusoid = [](size_t n, double position, const double* frequency, float* sine, float* cosine) {
    g_right->sinusoid(n, position, frequency, sine, cosine);
    vector = sine;
  };
  CreateAndStep();
  EXPECT_DEATH(ReadAt(vector), kCaught);
}

TEST_F(Poisoned, ConstantsEnd) {
  kernels_.sinusoid = [](size_t n, double position, const double* frequency, float* sine, float* cosine) {
    g_right->sinusoid(n, position, frequency, sine, cosine);
    ReadAt(frequency + n);
  };
  EXPECT_DEATH(CreateAndStep(), kCaught);
}

TEST_F(Poisoned, AStateEnds) {
  kernels_.linear_steps = [](size_t count, const LinearStepArgs* steps) {
    g_right->linear_steps(count, steps);
    const_cast<float*>(steps->state.as<float>())[steps->features * steps->value_dim] = 0;  // of the last head
  };
  EXPECT_DEATH(CreateAndStep(), kCaught);
}

TEST_F(Poisoned, EveryStateEndsAndNoneBeginsBefore) {
  CreateAndStep();
  for (uint32_t i = 0; i < instance_->state_count(); ++i) {
    const Span<uint8_t> state = instance_->state_bytes(i);
    ReadAt(state.end() - sizeof(float));
    EXPECT_DEATH(ReadAt(state.end()), kCaught) << i;
    EXPECT_DEATH(ReadAt(state.data() - sizeof(float)), kCaught) << i;
  }
}

TEST_F(Poisoned, AValueOfTheArenaEnds) {
  kernels_.add = [](size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y,
                    size_t y_stride) {
    g_right->add(rows, n, a, a_stride, b, b_stride, y, y_stride);
    y[n] = 0;
  };
  EXPECT_DEATH(CreateAndStep(), kCaught);
}

// Nothing reads what was added after the sum is there; the norm behind it may have its result in the place of one of the two.
TEST_F(Poisoned, AValueDiesWithItsLastReader) {
  static const float* added[2];
  kernels_.add = [](size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y,
                    size_t y_stride) {
    g_right->add(rows, n, a, a_stride, b, b_stride, y, y_stride);
    if (b_stride == 0) return;  // positions, which lie in scratch
    added[0] = a;
    added[1] = b;
  };
  kernels_.rms_norm = [](size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y,
                         size_t y_stride) {
    g_right->rms_norm(rows, n, x, x_stride, weight, eps, y, y_stride);
    for (const float* dead : added) {
      if (dead != nullptr && (dead + n <= y || y + n <= dead)) ReadAt(dead);
    }
  };
  EXPECT_DEATH(CreateAndStep(), kCaught);
}

TEST_F(Poisoned, TheCallersBlockIsGivenBackWhole) {
  Environment environment = model_.environment();
  const size_t bytes = static_cast<size_t>(Instance::Measure(environment, kOneToken).value().total);
  Block block = std::move(Block::Allocate(DefaultAllocator(), bytes, "test").value());
  EXPECT_FALSE(Instance::Create(environment, kOneToken, block.bytes().subspan(0, bytes - 1)).ok());
  std::memset(block.bytes().data(), 0, bytes);
  const Result<Instance*> instance = Instance::Create(environment, kOneToken, block.bytes());
  ASSERT_TRUE(instance.ok());
  instance.value()->Destroy();
  std::memset(block.bytes().data(), 0, bytes);
}

TEST(Scratch, HandsOutWhatItCounted) {
  const auto lay = [](Scratch* scratch, uint64_t tokens) {
    scratch->Take(3 * tokens);
    return scratch->Take<int32_t>(tokens);
  };
  const uint64_t bytes = CountScratch(/*max_chunk=*/40, lay);
  EXPECT_EQ(bytes, Bump::PieceBytes(3 * 40 * sizeof(float)) + Bump::PieceBytes(40 * sizeof(int32_t)));
  Block block = std::move(Block::Allocate(DefaultAllocator(), bytes, "test").value());
  for (const uint64_t tokens : {1, 7, 40}) {
    Scratch scratch(block.bytes());
    int32_t* last = lay(&scratch, tokens);
    ASSERT_NE(last, nullptr);
    EXPECT_LE(reinterpret_cast<uint8_t*>(last + tokens), block.bytes().end());
    EXPECT_LE(scratch.used(), bytes);
  }
}

TEST(Scratch, MoreThanWasCountedIsRefused) {
  Block block =
      std::move(Block::Allocate(DefaultAllocator(), CountScratch([](Scratch* scratch) { scratch->Take(16); }), "test").value());
  Scratch scratch(block.bytes());
  EXPECT_NE(scratch.Take(16), nullptr);
#if defined(NDEBUG)
  EXPECT_EQ(scratch.Take(1), nullptr);
#else
  EXPECT_DEATH(scratch.Take(1), "more than Prepare counted");
#endif
}

TEST(Scratch, LayoutsThatTakeTurnsKnowTheirOwnEnds) {
  Block block = std::move(Block::Allocate(DefaultAllocator(), 1024, "test").value());
  Scratch task(block.bytes());
  float* kept = task.Take(16);
  Scratch first = task.Fresh();
  EXPECT_NE(first.Take(64), nullptr);
  Scratch second = task.Fresh();
  float* piece = second.Take(16);
  kept[15] = piece[15] = 1;
  if (!kPoisons) GTEST_SKIP() << "memory is poisoned under AddressSanitizer alone: make asan";
  EXPECT_DEATH(piece[16] = 1, kCaught);
  EXPECT_DEATH(kept[16] = 1, kCaught);
}

}  // namespace
}  // namespace tarn
