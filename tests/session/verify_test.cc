// Damaged weights do not run: whatever byte of a model or of its packed weights is changed, opening says so or repairs it, and what
// was verified is not read again while nothing is touched.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/files.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

using Bytes = std::vector<uint8_t>;
using test::ReadAll;
using test::WriteAll;

// Flips a bit where the file is, and sets its modification time back, as a thorough forger would.
void FlipInPlace(const std::string& path, size_t at) {
  struct stat before;
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  uint8_t byte = 0;
  ASSERT_EQ(pread(fd, &byte, 1, static_cast<off_t>(at)), 1);
  byte ^= 4;
  ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
  const struct timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(futimens(fd, times), 0);
  close(fd);
}

// What opening a file did.
struct Opened {
  Status status;
  PackedIn packed_in = PackedIn::kMemory;
  Verified verified = Verified::kNot;
  std::vector<float> logits;
};

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/tarn_verify_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    cache_ = root_ + "/packed";
    path_ = root_ + "/model.tarn";
    good_ = test::MakeModel(test::ConfigText(test::kRfa), convert::Precision::kInt8);
    weights_ = static_cast<size_t>(test::LoadU64(good_, 16));
    WriteAll(path_, good_);
    const Opened plain = OpenFile(nullptr);
    ASSERT_TRUE(plain.status.ok()) << plain.status.message();
    ASSERT_EQ(plain.verified, Verified::kNow);
    want_ = plain.logits;
  }
  void TearDown() override { std::system(("rm -rf " + root_).c_str()); }

  static Opened OpenMap(Result<FileMap> map, const char* cache, Verify verify, bool portable) {
    Opened opened;
    opened.status = map.status();
    if (!map.ok()) return opened;
    const Span<const uint8_t> bytes = map.value().bytes();
    Result<LoadedModel> loaded = LoadedModel::Open(std::move(map.value()), bytes, {verify, nullptr, portable, DefaultAllocator()});
    opened.status = loaded.ok() ? loaded.value().Pack(cache) : loaded.status();
    if (!opened.status.ok()) return opened;
    const LoadedModel model = std::move(loaded.value());
    opened.packed_in = model.packed_in();
    opened.verified = model.verified();
    const Result<Session*> session = Session::Create(model, {1, 8, 1, 1}, {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    const int32_t tokens[] = {'b', 'y', 't', 'e'};
    const Result<const float*> logits = session.value()->Prefill(tokens, 4);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    opened.logits.assign(logits.value(), logits.value() + model.model().graph().vocab_size());
    Session::Destroy(session.value());
    return opened;
  }
  Opened OpenFile(const char* cache, Verify verify = Verify::kOnce, bool portable = false) const {
    return OpenMap(FileMap::Open(path_.c_str()), cache, verify, portable);
  }
  Opened OpenCached(Verify verify = Verify::kOnce) const { return OpenFile(cache_.c_str(), verify); }
  // The model, opened right, says what it said at first.
  void ExpectGood(const Opened& opened, Verified verified) const {
    EXPECT_TRUE(opened.status.ok()) << opened.status.message();
    EXPECT_EQ(opened.verified, verified);
    EXPECT_EQ(opened.logits, want_);
  }

  // The file in the cache folder whose name ends so; "": none.
  std::string Cached(const std::string& suffix) const {
    std::string found;
    DIR* list = opendir(cache_.c_str());
    if (list == nullptr) return found;
    while (const dirent* entry = readdir(list)) {
      const std::string name = entry->d_name;
      if (name[0] != '.' && name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
        found = cache_ + "/" + name;
    }
    closedir(list);
    return found;
  }
  static bool Packs() {
#if defined(TARN_HAVE_XNNPACK)
    return true;
#else
    return false;
#endif
  }

  std::string root_;
  std::string cache_;
  std::string path_;
  Bytes good_;
  size_t weights_ = 0;  // where the section begins
  std::vector<float> want_;
};

// A byte of the model, of every class.
struct Place {
  std::string what;
  size_t at;
  bool only_packed;  // packed weights do without it
};

std::vector<Place> PlacesIn(const Bytes& file, size_t weights) {
  std::vector<Place> places = {{"graph", 100, false}, {"hash of the weights", 50, false}};
  const Result<LoadedModel> loaded =
      LoadedModel::Open(FileMap(), {file.data(), file.size()}, {Verify::kOnce, nullptr, false, DefaultAllocator()});
  EXPECT_TRUE(loaded.ok());
  const Model& model = loaded.value().model();
  const Result<Instance::Draft> draft = Instance::Draft::Make(loaded.value().environment());
  Result<PackedWeights> plan = PackedWeights::Reserve(loaded.value().environment(), PackedWeights::Count(draft.value()).value());
  EXPECT_TRUE(plan.value().Plan(draft.value()).ok());
  size_t end = weights;
  for (uint32_t i = 0; i < model.graph().tensors()->size(); ++i) {
    const TensorView view = model.tensor(i);
    const size_t begin = static_cast<size_t>(view.data - file.data());
    if (begin > end) places.push_back({"padding before " + std::string(view.name), begin - 1, false});
    end = begin + static_cast<size_t>(view.data_bytes);
    const bool only_packed = plan.value().IsOnlyPacked(model, i);
    for (const size_t at : {begin, begin + (end - begin) / 2, end - 1}) places.push_back({view.name, at, only_packed});
  }
  return places;
}

TEST_F(VerifyTest, EveryClassOfByteIsNoticed) {
  for (const convert::Precision precision : {convert::Precision::kInt8, convert::Precision::kInt4, convert::Precision::kInt3,
                                             convert::Precision::kInt2, convert::Precision::kF16}) {
    good_ = test::MakeModel(test::ConfigText(test::kRfa), precision);
    const std::vector<Place> places = PlacesIn(good_, weights_ = static_cast<size_t>(test::LoadU64(good_, 16)));
    EXPECT_GT(places.size(), 30u);
    for (const Place& place : places) {
      Bytes bad = good_;
      bad[place.at] ^= 0x40;
      WriteAll(path_, bad);
      for (const char* cache : {static_cast<const char*>(nullptr), cache_.c_str()}) {
        for (const Verify verify : {Verify::kOnce, Verify::kEveryTime}) {
          const Status status = OpenFile(cache, verify).status;
          EXPECT_EQ(status.code(), TARN_CHECKSUM) << place.what << " " << place.at << ": " << status.message();
        }
      }
      EXPECT_EQ(Cached(""), "") << "nothing is published, nothing left behind";
      rmdir(cache_.c_str());
    }
  }
}

TEST_F(VerifyTest, TheMessageNamesThePartAndBothHashes) {
  good_[good_.size() - 1] ^= 1;
  WriteAll(path_, good_);
  const std::string message = OpenFile(nullptr).status.message();
  std::string expected;
  for (size_t i = 48; i < 64; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", good_[i]);
    expected += digits;
  }
  EXPECT_NE(message.find("weights: XXH3-128 is "), std::string::npos) << message;
  EXPECT_NE(message.find("expected " + expected), std::string::npos) << message;
}

TEST_F(VerifyTest, WhoKnowsBetterOpensIt) {
  good_[good_.size() - 1] ^= 1;
  WriteAll(path_, good_);
  for (const char* cache : {static_cast<const char*>(nullptr), cache_.c_str()}) {
    const Opened opened = OpenFile(cache, Verify::kNever);
    EXPECT_TRUE(opened.status.ok()) << opened.status.message();
    EXPECT_EQ(opened.verified, Verified::kNot);
  }
  EXPECT_EQ(Cached("packed"), "") << "it must not speak for the model of that name";
}

TEST_F(VerifyTest, WhatWasVerifiedIsNotReadAgainUntilItIsTouched) {
  ExpectGood(OpenCached(), Verified::kNow);
  ExpectGood(OpenCached(), Verified::kBefore);
  ExpectGood(OpenCached(Verify::kEveryTime), Verified::kNow);
  ExpectGood(OpenCached(Verify::kNever), Verified::kNot);
  std::vector<std::string> files = {path_};
  if (Packs()) files.push_back(Cached(".packed"));
  for (const std::string& file : files) {
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);  // touches it
    ExpectGood(OpenCached(), Verified::kNow);
    ExpectGood(OpenCached(), Verified::kBefore);
  }
}

TEST_F(VerifyTest, WithoutAFolderEveryOpenVerifies) {
  for (int i = 0; i < 2; ++i) ExpectGood(OpenFile(nullptr), Verified::kNow);
}

TEST_F(VerifyTest, PackedWeightsThatAreDamagedArePackedAnew) {
  if (!Packs()) GTEST_SKIP() << "this build packs nothing";
  ExpectGood(OpenCached(), Verified::kNow);
  const Bytes packed = ReadAll(Cached(".packed"));
  const size_t body = 65536;  // a table of this size ends before
  ASSERT_GT(packed.size(), body + 1000);
  for (const size_t at : {body, body + 777, packed.size() - 1}) {
    FlipInPlace(Cached(".packed"), at);
    const Opened opened = OpenCached();
    ExpectGood(opened, Verified::kNow);
    EXPECT_EQ(opened.packed_in, PackedIn::kNewFile);
    EXPECT_EQ(ReadAll(Cached(".packed")), packed);
    ExpectGood(OpenCached(), Verified::kBefore);
  }
}

// The packed weights are right still; what is read where the model has it is not.
TEST_F(VerifyTest, DamageInTheModelIsNoticedBehindPackedWeights) {
  ExpectGood(OpenCached(), Verified::kNow);
  for (const Place& place : PlacesIn(good_, weights_)) {
    WriteAll(path_, good_);
    FlipInPlace(path_, place.at);
    const Opened opened = OpenCached();
    if (place.only_packed) {
      ExpectGood(opened, Verified::kNow);
      EXPECT_EQ(opened.packed_in, PackedIn::kFoundFile);
      EXPECT_EQ(OpenCached(Verify::kEveryTime).status.code(), TARN_CHECKSUM);
    } else {
      EXPECT_EQ(opened.status.code(), TARN_CHECKSUM) << place.what << " " << place.at << ": " << opened.status.message();
    }
  }
}

TEST_F(VerifyTest, ANoteThatDoesNotFitIsNone) {
  ExpectGood(OpenCached(), Verified::kNow);
  const std::string path = Cached(".verified");
  const Bytes good = ReadAll(path);
  const std::string text(good.begin(), good.end());
  ASSERT_NE(text.find("\nboot "), std::string::npos) << text;
  Bytes other_boot = good, longer = good;
  uint8_t& digit = other_boot[text.find("\nboot ") + 6];
  digit = digit == '0' ? '1' : '0';
  longer.push_back('\n');
  for (const Bytes& bad : {other_boot, longer, Bytes(), Bytes(good.begin(), good.end() - 1), Bytes(good.size(), 0)}) {
    WriteAll(path, bad);
    ExpectGood(OpenCached(), Verified::kNow);
    EXPECT_EQ(ReadAll(path), good);
    ExpectGood(OpenCached(), Verified::kBefore);
  }
  std::remove(path.c_str());
  ASSERT_EQ(symlink("/dev/zero", path.c_str()), 0);
  ExpectGood(OpenCached(), Verified::kNow);  // replaced
  ExpectGood(OpenCached(), Verified::kBefore);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    ExpectGood(OpenCached(), Verified::kNow);
    ExpectGood(OpenCached(), Verified::kBefore);
  }
}

TEST_F(VerifyTest, WhereNoNoteCanBeWrittenEveryOpenVerifies) {
  ExpectGood(OpenCached(), Verified::kNow);
  const std::string path = Cached(".verified");
  std::remove(path.c_str());
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  for (int i = 0; i < 2; ++i) ExpectGood(OpenCached(), Verified::kNow);
  EXPECT_EQ(Cached(".tarn-tmp"), "");
  rmdir(path.c_str());
  if (geteuid() == 0) return;  // root writes everywhere
  ASSERT_EQ(chmod(cache_.c_str(), 0500), 0);
  for (int i = 0; i < 2; ++i) ExpectGood(OpenCached(), Verified::kNow);
  ASSERT_EQ(chmod(cache_.c_str(), 0700), 0);
}

TEST_F(VerifyTest, AnotherFileOfTheSameNameAndSizeIsVerified) {
  ExpectGood(OpenCached(), Verified::kNow);
  ExpectGood(OpenCached(), Verified::kBefore);
  const std::string next = root_ + "/next";
  Bytes damaged = good_;
  for (const Place& place : PlacesIn(good_, weights_)) {
    if (place.what != "graph" && !place.only_packed) damaged[place.at] ^= 1;
  }
  std::copy_n(good_.begin(), 64, damaged.begin());  // it claims to be the same model
  WriteAll(next, damaged);
  ASSERT_EQ(std::rename(next.c_str(), path_.c_str()), 0);
  EXPECT_EQ(OpenCached().status.code(), TARN_CHECKSUM);
  WriteAll(next, good_);
  ASSERT_EQ(std::rename(next.c_str(), path_.c_str()), 0);
  ExpectGood(OpenCached(), Verified::kNow);
  ExpectGood(OpenCached(), Verified::kBefore);
}

TEST_F(VerifyTest, CopiesOfAModelHaveTheirOwnNotes) {
  const std::string copy = root_ + "/copy.tarn";
  int told_apart = 0;
  for (int i = 0; i < 8; ++i) {  // notes have sixteen names: some copies meet
    WriteAll(copy + std::to_string(i), good_);
    path_ = root_ + "/model.tarn";
    OpenCached();
    path_ = copy + std::to_string(i);
    ExpectGood(OpenCached(), Verified::kNow);
    path_ = root_ + "/model.tarn";
    if (OpenCached().verified == Verified::kBefore) ++told_apart;
  }
  EXPECT_GT(told_apart, 0);
}

TEST_F(VerifyTest, DamageRightAfterVerifyingIsSeen) {
  // Where times of files move with the system's clock alone, a change within one of its ticks leaves no trace.
  const std::string folder = root_ + "/coarse";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  if (mount("none", folder.c_str(), "ramfs", 0, nullptr) != 0) GTEST_SKIP() << "no file system may be mounted here";
  path_ = folder + "/model.tarn";
  const auto open = [&] { return OpenFile(cache_.c_str(), Verify::kOnce, /*portable=*/true); };
  for (int i = 0; i < 20; ++i) {
    WriteAll(path_, good_);
    EXPECT_EQ(open().verified, Verified::kNow);
    Bytes damaged = good_;
    damaged[weights_ + 1000] ^= 1;
    WriteAll(path_, damaged);
    EXPECT_EQ(open().status.code(), TARN_CHECKSUM);
  }
  EXPECT_EQ(umount(folder.c_str()), 0);
}

TEST_F(VerifyTest, PartsOfOneFileAreToldApart) {
  Bytes both = good_;
  both.insert(both.end(), good_.begin(), good_.end());
  for (size_t at = good_.size() + weights_; at < both.size(); at += 97) both[at] ^= 1;
  WriteAll(path_, both);
  const auto part = [&](uint64_t offset) {
    const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const Opened opened =
        OpenMap(FileMap::FromDescriptor(fd, offset, good_.size()), cache_.c_str(), Verify::kOnce, /*portable=*/false);
    close(fd);
    return opened;
  };
  ExpectGood(part(0), Verified::kNow);
  ExpectGood(part(0), Verified::kBefore);
  EXPECT_EQ(part(good_.size()).status.code(), TARN_CHECKSUM);
}

TEST_F(VerifyTest, ABufferIsVerifiedAtEveryOpen) {
  for (int i = 0; i < 2; ++i) {
    Result<LoadedModel> model =
        LoadedModel::Open(FileMap(), {good_.data(), good_.size()}, {Verify::kOnce, nullptr, false, DefaultAllocator()});
    ASSERT_TRUE(model.ok());
    ASSERT_TRUE(model.value().Pack(cache_.c_str()).ok());
    EXPECT_EQ(model.value().verified(), Verified::kNow);
  }
  EXPECT_EQ(Cached(".verified"), "");
}

TEST_F(VerifyTest, WeightsThatAreAllReadInPlaceAreNotedToo) {
  const auto open = [&] { return OpenFile(cache_.c_str(), Verify::kOnce, /*portable=*/true); };
  EXPECT_EQ(open().verified, Verified::kNow);
  EXPECT_EQ(open().verified, Verified::kBefore);
  EXPECT_EQ(Cached(".packed"), "");
  FlipInPlace(path_, good_.size() - 1);
  EXPECT_EQ(open().status.code(), TARN_CHECKSUM);
}

TEST_F(VerifyTest, StartsAtTheSameTimeAgreeInTheEnd) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Opened opened = OpenCached();
        EXPECT_TRUE(opened.status.ok()) << opened.status.message();
        EXPECT_EQ(opened.logits, want_);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(OpenCached().status.ok());  // the last note may be of a file that lost
    ExpectGood(OpenCached(), Verified::kBefore);
    std::system(("rm -rf " + cache_).c_str());
  }
}

}  // namespace
}  // namespace tarn
