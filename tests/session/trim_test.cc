// Memory that a session gives back: how much it is, and that nothing else changes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/loaded.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tarn {
namespace {

using Bits = std::vector<uint32_t>;  // of logits
using test::CausalCase;
using test::Loaded;
using test::SessionPointer;

constexpr size_t kVocab = 256;

Bits Feed(Session* session, size_t first, size_t count) {
  const size_t batch = session->instance().limits().batch;
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < batch * count; ++i) {
    tokens.push_back(static_cast<int32_t>(std::mt19937(static_cast<uint32_t>(100 * first + i))() % kVocab));
  }
  const Result<const float*> logits = session->Prefill(tokens.data(), count);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  Bits bits(batch * kVocab);
  if (logits.ok()) std::memcpy(bits.data(), logits.value(), bits.size() * sizeof(float));
  return bits;
}

std::vector<uint8_t> Save(const Session& session) {
  std::vector<uint8_t> snapshot(static_cast<size_t>(session.SnapshotBytes()));
  EXPECT_TRUE(session.Save({snapshot.data(), snapshot.size()}).ok());
  return snapshot;
}

class TrimTest : public testing::TestWithParam<CausalCase> {};

INSTANTIATE_TEST_SUITE_P(Families, TrimTest, testing::ValuesIn(test::CausalCases()),
                         [](const testing::TestParamInfo<CausalCase>& c) { return std::string(c.param.name); });

TEST_P(TrimTest, WhatFollowsIsTheSameBitForBit) {
  const Loaded model(test::ConfigText(GetParam().attention, "sinusoidal", GetParam().heads), GetParam().state);
  const SessionPointer plain = model.New({2, 16, 1, 1}), trimmed = model.New({2, 16, 1, 1});
  trimmed->Trim();
  size_t first = 0;
  for (const size_t count : {size_t{1}, size_t{13}, size_t{40}, size_t{1}, size_t{16}}) {
    ASSERT_EQ(Feed(trimmed.get(), first, count), Feed(plain.get(), first, count)) << first;
    trimmed->Trim();
    ASSERT_EQ(Save(*trimmed), Save(*plain)) << first;
    first += count;
  }
  trimmed->Reset();
  plain->Reset();
  trimmed->Trim();
  EXPECT_EQ(Feed(trimmed.get(), 0, 16), Feed(plain.get(), 0, 16));
}

#if defined(__linux__)

// A session in pages of this test, private and anonymous, or of a file.
class Mapped {
 public:
  Mapped(const Loaded& model, const Limits& limits, int descriptor = -1) {
    const LoadedModel& opened = model.New(limits)->model();
    const Result<ProgramBytes> bytes = Session::Measure(opened, limits);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    bytes_ = static_cast<size_t>(bytes.value().total);
    void* base =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, descriptor, 0);
    EXPECT_NE(base, MAP_FAILED);
    base_ = static_cast<uint8_t*>(base);
    madvise(base_, bytes_, MADV_NOHUGEPAGE);  // pages are counted one by one
    Result<Session*> session = Session::Create(opened, limits, {base_, bytes_});
    EXPECT_TRUE(session.ok()) << session.status().message();
    session_ = session.value();
  }
  ~Mapped() {
    Session::Destroy(session_);
    munmap(base_, bytes_);
  }
  Session* get() const { return session_; }
  size_t ResidentBytes() const {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages((bytes_ + page - 1) / page);
    EXPECT_EQ(mincore(base_, bytes_, pages.data()), 0);
    size_t resident = 0;
    for (const unsigned char one : pages) resident += one & 1;
    return resident * page;
  }

 private:
  size_t bytes_;
  uint8_t* base_;
  Session* session_;
};

// An emulator may take advice and do nothing, or say of every page that it is resident.
bool PagesCanGo() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* base = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return false;
  std::memset(base, 1, page);
  unsigned char before = 0, after = 1;
  const bool counts =
      mincore(base, page, &before) == 0 && madvise(base, page, MADV_DONTNEED) == 0 && mincore(base, page, &after) == 0;
  munmap(base, page);
  return counts && (before & 1) != 0 && (after & 1) == 0;
}

constexpr const char* kLargeCache = R"({"system": "softmax", "max_context": 4096})";

TEST(Trim, ArenaAndScratchGoAndComeBackAsNeeded) {
  if (!PagesCanGo()) GTEST_SKIP() << "pages stay here";
  const Loaded model(test::ConfigText(test::kRfa, "sinusoidal"));
  const Mapped session(model, {1, 512, 1, 1});
  Feed(session.get(), 0, 512);
  const ProgramBytes& bytes = session.get()->instance().bytes();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = session.ResidentBytes();
  ASSERT_GE(before, bytes.arena + bytes.scratch);
  const uint64_t released = session.get()->Trim();
  EXPECT_EQ(session.ResidentBytes(), before - released);
  EXPECT_LE(released, bytes.arena + bytes.scratch);
  EXPECT_GE(released + 2 * page, bytes.arena + bytes.scratch) << "all but the pages at both ends";
  EXPECT_EQ(session.get()->Trim(), 0u) << "nothing is left to give";
  Feed(session.get(), 512, 1);
  EXPECT_LT(session.ResidentBytes(), before - released / 2) << "a step needs little of what a chunk needs";
}

TEST(Trim, ACacheGivesTheRowsBackThatNobodyHasWritten) {
  if (!PagesCanGo()) GTEST_SKIP() << "pages stay here";
  const Loaded model(test::ConfigText(kLargeCache, "sinusoidal"));
  const Mapped session(model, {1, 16, 1, 1});
  const ProgramBytes& bytes = session.get()->instance().bytes();
  ASSERT_GT(bytes.state, 8 * (bytes.arena + bytes.scratch));
  const Bits wanted = Feed(session.get(), 0, 16);
  const size_t before = session.ResidentBytes();
  const uint64_t released = session.get()->Trim();
  EXPECT_EQ(session.ResidentBytes(), before - released);
  EXPECT_GT(released, bytes.state / 2);
  session.get()->Reset();
  EXPECT_EQ(Feed(session.get(), 0, 16), wanted);
}

// Pages of a file come back with what the file has: states that were zero are zero all the same.
TEST(Trim, PagesThatDoNotComeBackAsZero) {
  char path[] = "/tmp/tarn-trim-XXXXXX";
  const int descriptor = mkstemp(path);
  ASSERT_GE(descriptor, 0);
  unlink(path);
  const std::vector<uint8_t> ones(size_t{64} << 20, 0xA5);
  ASSERT_EQ(write(descriptor, ones.data(), ones.size()), static_cast<ssize_t>(ones.size()));
  const Loaded model(test::ConfigText(kLargeCache, "sinusoidal"));
  const Mapped session(model, {1, 16, 1, 1}, descriptor);
  const SessionPointer plain = model.New({1, 16, 1, 1});
  for (size_t first = 0; first < 64; first += 16) {
    ASSERT_EQ(Feed(session.get(), first, 16), Feed(plain.get(), first, 16)) << first;
    session.get()->Trim();
    ASSERT_EQ(Save(*session.get()), Save(*plain)) << first;
  }
  close(descriptor);
}

#endif  // __linux__

}  // namespace
}  // namespace tarn
