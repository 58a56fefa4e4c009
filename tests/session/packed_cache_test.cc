// A cache file of packed weights changes how a model starts, never what it says; and whatever is wrong with one, it is replaced.
#include "runtime/session/packed_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
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

const Bytes& Int8Model() {
  static const Bytes file = test::MakeModel(test::ConfigText(test::kRfa), convert::Precision::kInt8);
  return file;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* list = opendir(folder.c_str());
  if (list == nullptr) return names;
  while (const dirent* entry = readdir(list)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  closedir(list);
  return names;
}

LoadedModel Load(const Bytes& file, Verify verify = Verify::kOnce, bool portable = false) {
  const LoadOptions options{verify, nullptr, portable, DefaultAllocator()};
  Result<LoadedModel> loaded = LoadedModel::Open(FileMap(), {file.data(), file.size()}, options);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return std::move(loaded.value());
}

std::vector<float> Logits(const LoadedModel& model) {
  const Result<Session*> session = Session::Create(model, {1, 8, 1, 1}, {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  const int32_t tokens[] = {'c', 'a', 'c', 'h', 'e'};
  const Result<const float*> logits = session.value()->Prefill(tokens, 5);
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  const std::vector<float> copy(logits.value(), logits.value() + model.model().graph().vocab_size());
  Session::Destroy(session.value());
  return copy;
}

class PackedCacheTest : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(TARN_HAVE_XNNPACK)
    GTEST_SKIP() << "this build does not pack these models";
#endif
    char folder[] = "/tmp/tarn_packed_cache_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    folder_ = root_ + "/packed";
    LoadedModel plain = Load(Int8Model());
    ASSERT_TRUE(plain.Pack().ok());
    want_ = Logits(plain);
  }
  void TearDown() override {
    for (const std::string& folder : {folder_, root_}) {
      for (const std::string& name : NamesIn(folder)) std::remove((folder + "/" + name).c_str());
      rmdir(folder.c_str());
    }
  }

  std::string OnlyFile() const {
    const std::vector<std::string> names = NamesIn(folder_);
    EXPECT_EQ(names.size(), 1u);
    return names.empty() ? "" : folder_ + "/" + names[0];
  }

  // Packs with the cache, and holds what is foretold and said against the plain model.
  PackedIn Open(const std::string& folder, Verify verify = Verify::kOnce, const Bytes& file = Int8Model()) {
    LoadedModel model = Load(file, verify);
    const Result<PackedIn> foretold = model.Foretell(folder.c_str());
    EXPECT_TRUE(foretold.ok()) << foretold.status().message();
    const Status packed = model.Pack(folder.c_str());
    EXPECT_TRUE(packed.ok()) << packed.message();
    // Without reading the packed weights nobody can know that they are damaged: a file it is all the same.
    EXPECT_EQ(foretold.value() == PackedIn::kMemory, model.packed_in() == PackedIn::kMemory);
    if (!body_is_damaged_) {
      EXPECT_EQ(foretold.value(), model.packed_in());
    }
    logits_ = Logits(model);
    return model.packed_in();
  }
  PackedIn Open(Verify verify = Verify::kOnce) { return Open(folder_, verify); }

  bool body_is_damaged_ = false;
  std::string root_;
  std::string folder_;
  std::vector<float> want_;
  std::vector<float> logits_;
};

TEST_F(PackedCacheTest, TheSecondStartFindsWhatTheFirstPacked) {
  EXPECT_EQ(Open(), PackedIn::kNewFile);
  EXPECT_EQ(logits_, want_);  // bit for bit
  struct stat info;
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  ASSERT_EQ(stat(OnlyFile().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), Load(Int8Model()).packed_file_bytes());
  EXPECT_EQ(Open(), PackedIn::kFoundFile);
  EXPECT_EQ(logits_, want_);
  EXPECT_EQ(Open(Verify::kEveryTime), PackedIn::kFoundFile);
  EXPECT_EQ(logits_, want_);
}

TEST_F(PackedCacheTest, EveryPrecisionComesBackAsItWas) {
  for (const convert::Precision precision : {convert::Precision::kF32, convert::Precision::kInt8, convert::Precision::kInt4,
                                             convert::Precision::kInt3, convert::Precision::kInt2}) {
    const Bytes file = test::MakeModel(test::ConfigText(test::kSoftmax), precision);
    EXPECT_EQ(Open(folder_, Verify::kOnce, file), PackedIn::kNewFile);
    const std::vector<float> first = logits_;
    EXPECT_EQ(Open(folder_, Verify::kOnce, file), PackedIn::kFoundFile);
    EXPECT_EQ(logits_, first);
  }
  EXPECT_EQ(NamesIn(folder_).size(), 5u);
}

TEST_F(PackedCacheTest, EveryFlippedByteOfHeaderAndTableIsNoticed) {
  ASSERT_EQ(Open(), PackedIn::kNewFile);
  const std::string path = OnlyFile();
  const Bytes good = ReadAll(path);
  const LoadedModel model = Load(Int8Model());
  const size_t table_end = 112 + model.packed_bytes().table;  // no two layers of this model are the same
  ASSERT_LT(table_end, 4096u);
  for (size_t i = 0; i < table_end; ++i) {
    Bytes bad = good;
    bad[i] ^= 0x10;
    WriteAll(path, bad);
    ASSERT_EQ(model.Foretell(folder_.c_str()).value(), PackedIn::kNewFile) << i;
    if (i % 50 != 0) continue;  // a new file waits for the disk
    ASSERT_EQ(Open(), PackedIn::kNewFile) << i;
    ASSERT_EQ(logits_, want_);
    ASSERT_EQ(ReadAll(OnlyFile()), good) << i;
  }
  Open();
  EXPECT_EQ(Open(), PackedIn::kFoundFile);
  EXPECT_EQ(logits_, want_);
}

TEST_F(PackedCacheTest, ADamagedBodyIsReplacedUnlessNobodyIsToLook) {
  ASSERT_EQ(Open(), PackedIn::kNewFile);
  const std::string path = OnlyFile();
  const Bytes good = ReadAll(path);
  for (const size_t from_end : {size_t{1}, size_t{1000}}) {
    Bytes bad = good;
    bad[bad.size() - from_end] ^= 1;
    WriteAll(path, bad);
    body_is_damaged_ = false;                               // nobody looks
    EXPECT_EQ(Open(Verify::kNever), PackedIn::kFoundFile);  // as documented
    body_is_damaged_ = true;
    for (const Verify verify : {Verify::kOnce, Verify::kEveryTime}) {
      WriteAll(path, bad);
      EXPECT_EQ(Open(verify), PackedIn::kNewFile);
      EXPECT_EQ(logits_, want_);
      EXPECT_EQ(ReadAll(OnlyFile()), good);
    }
  }
}

TEST_F(PackedCacheTest, FilesOfOtherSizesAndModelsAreReplaced) {
  ASSERT_EQ(Open(), PackedIn::kNewFile);
  const std::string path = OnlyFile();
  const Bytes good = ReadAll(path);
  Bytes longer = good;
  longer.push_back(0);
  for (const Bytes& bad : {Bytes(), Bytes(1, 'T'), Bytes(good.begin(), good.begin() + 112), Bytes(good.begin(), good.end() - 1),
                           longer, Bytes(good.size(), 0), Bytes(good.size(), 0xFF)}) {
    WriteAll(path, bad);
    EXPECT_EQ(Open(), PackedIn::kNewFile) << bad.size();
    EXPECT_EQ(logits_, want_);
    EXPECT_EQ(ReadAll(OnlyFile()), good);
  }
  // The same shapes with other weights, under this model's name.
  Bytes other = Int8Model();
  std::swap(other[other.size() - 1], other[other.size() - 2]);
  other[other.size() - 1] ^= 1;
  const size_t weights = static_cast<size_t>(test::LoadU64(other, 16));
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(other.data() + weights, other.size() - weights));
  std::memcpy(other.data() + 48, hash.digest, sizeof(hash.digest));
  const std::string elsewhere = root_ + "/elsewhere";
  ASSERT_EQ(Open(elsewhere, Verify::kOnce, other), PackedIn::kNewFile);
  const std::string name = elsewhere + "/" + NamesIn(elsewhere).at(0);
  const Bytes foreign = ReadAll(name);
  std::remove(name.c_str());
  rmdir(elsewhere.c_str());
  ASSERT_EQ(foreign.size(), good.size());
  WriteAll(path, foreign);
  EXPECT_EQ(Open(), PackedIn::kNewFile);
  EXPECT_EQ(logits_, want_);
}

TEST_F(PackedCacheTest, WhatIsNoFileOfThisUsersIsLeftAlone) {
  ASSERT_EQ(Open(), PackedIn::kNewFile);
  const std::string path = OnlyFile();
  const std::string target = root_ + "/target";
  std::rename(path.c_str(), target.c_str());
  ASSERT_EQ(symlink(target.c_str(), path.c_str()), 0);
  EXPECT_EQ(Open(), PackedIn::kNewFile);  // a link is not followed, but replaced
  std::remove(path.c_str());
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  EXPECT_EQ(Load(Int8Model()).Foretell(folder_.c_str()).value(), PackedIn::kNewFile);
  LoadedModel model = Load(Int8Model());  // the file cannot get its name, and serves without
  ASSERT_TRUE(model.Pack(folder_.c_str()).ok());
  EXPECT_EQ(model.packed_in(), PackedIn::kNewFile);
  EXPECT_EQ(Logits(model), want_);
  EXPECT_EQ(OnlyFile(), path);
  rmdir(path.c_str());
  if (geteuid() == 0) {
    ASSERT_EQ(Open(), PackedIn::kNewFile);
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(Open(), PackedIn::kNewFile);
  }
}

TEST_F(PackedCacheTest, WhereNoFileCanBeWrittenWeightsAreAnonymous) {
  const std::string file = root_ + "/file";
  WriteAll(file, {1});
  for (const std::string& folder : {file, file + "/below", root_ + "/no/parent", std::string("/proc/self"),
                                    std::string("/proc/self/no"), std::string(""), std::string(10000, 'x')}) {
    EXPECT_EQ(Open(folder), PackedIn::kMemory) << folder;
    EXPECT_EQ(logits_, want_);
  }
  // A limit on the size of files: writing past it would end the process with SIGXFSZ.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit little = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const PackedIn limited = Open();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(limited, PackedIn::kMemory);
  EXPECT_EQ(logits_, want_);
}

TEST_F(PackedCacheTest, AReadOnlyFolderWithAFileServes) {
  ASSERT_EQ(Open(), PackedIn::kNewFile);
  ASSERT_EQ(chmod(folder_.c_str(), 0500), 0);
  EXPECT_EQ(Open(), PackedIn::kFoundFile);
  EXPECT_EQ(logits_, want_);
  WriteAll(OnlyFile(), {1, 2, 3});
  if (geteuid() != 0) {  // root writes everywhere
    EXPECT_EQ(Open(), PackedIn::kMemory);
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
}

TEST_F(PackedCacheTest, FoldersAreNamedInAnyWay) {
  EXPECT_EQ(Open(folder_ + "//"), PackedIn::kNewFile);
  EXPECT_EQ(Open(root_ + "/./packed"), PackedIn::kFoundFile);
  char* before = getcwd(nullptr, 0);
  ASSERT_EQ(chdir(root_.c_str()), 0);
  const PackedIn found = Open(std::string("packed"));
  TearDown();
  ASSERT_EQ(mkdir(root_.c_str(), 0700), 0);
  ASSERT_EQ(chdir(root_.c_str()), 0);
  const PackedIn made = Open(std::string("packed"));
  ASSERT_EQ(chdir(before), 0);
  std::free(before);
  EXPECT_EQ(found, PackedIn::kFoundFile);
  EXPECT_EQ(made, PackedIn::kNewFile);
}

TEST_F(PackedCacheTest, TemporaryFilesOfDeadProcessesGo) {
  ASSERT_EQ(mkdir(folder_.c_str(), 0700), 0);
  const std::string dead = folder_ + "/a.packed.1-0.tarn-tmp";
  const std::string alive = folder_ + "/b.packed.1-0.tarn-tmp";
  const std::string foreign = folder_ + "/c.tmp";
  for (const std::string& path : {dead, alive, foreign}) WriteAll(path, {1});
  const int lock = open(alive.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(Open(), PackedIn::kNewFile);
  EXPECT_NE(access(dead.c_str(), F_OK), 0);
  EXPECT_EQ(access(alive.c_str(), F_OK), 0);
  EXPECT_EQ(access(foreign.c_str(), F_OK), 0);
  EXPECT_EQ(NamesIn(folder_).size(), 3u);
  close(lock);
}

TEST_F(PackedCacheTest, StartsAtTheSameTimeDoNotDisturbEachOther) {
  for (int round = 0; round < 5; ++round) {
    std::vector<LoadedModel> models;
    for (int i = 0; i < 6; ++i) models.push_back(Load(Int8Model()));
    std::vector<std::thread> threads;
    for (LoadedModel& model : models) {
      threads.emplace_back([&] { EXPECT_TRUE(model.Pack(folder_.c_str()).ok()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const LoadedModel& model : models) {
      EXPECT_NE(model.packed_in(), PackedIn::kMemory);
      EXPECT_EQ(Logits(model), want_);
    }
    std::remove(OnlyFile().c_str());
  }
}

TEST_F(PackedCacheTest, AReplacedFileStaysWithThoseWhoMappedIt) {
  ASSERT_EQ(Open(), PackedIn::kNewFile);
  LoadedModel old = Load(Int8Model());
  ASSERT_TRUE(old.Pack(folder_.c_str()).ok());
  std::remove(OnlyFile().c_str());
  EXPECT_EQ(Open(), PackedIn::kNewFile);
  EXPECT_EQ(Logits(old), want_);
}

// Else a model that carries another's fingerprint could speak for it ever after. They are file-backed all the same, as foretold.
TEST_F(PackedCacheTest, WeightsThatDoNotMatchTheirHashAreNotKept) {
  Bytes damaged = Int8Model();
  damaged[static_cast<size_t>(test::LoadU64(damaged, 16))] ^= 1;
  EXPECT_EQ(Open(folder_, Verify::kNever, damaged), PackedIn::kNewFile);
  LoadedModel plain = Load(damaged, Verify::kNever);
  ASSERT_TRUE(plain.Pack().ok());
  EXPECT_EQ(logits_, Logits(plain));
  EXPECT_TRUE(NamesIn(folder_).empty());
  EXPECT_EQ(Open(), PackedIn::kNewFile);
}

TEST_F(PackedCacheTest, PortableDenseReadsInPlaceAndKeepsNothing) {
  LoadedModel model = Load(Int8Model(), Verify::kOnce, /*portable=*/true);
  EXPECT_EQ(model.Foretell(folder_.c_str()).value(), PackedIn::kMemory);
  ASSERT_TRUE(model.Pack(folder_.c_str()).ok());
  EXPECT_TRUE(NamesIn(root_).empty());
  EXPECT_EQ(model.packed_bytes().weights, 0u);
  uint64_t weights = 0;  // int8 matrices with their scales; the table of the embedding is one of them if a head reads it
  for (uint32_t i = 0; i < model.model().graph().tensors()->size(); ++i) {
    const TensorView view = model.model().tensor(i);
    if (view.scales != nullptr && !model.model().IsEmbeddingTable(i)) weights += view.data_bytes + 4 * view.shape.dims[0];
  }
  EXPECT_GE(model.packed_bytes().in_place, weights);
  EXPECT_LT(model.packed_bytes().in_place, model.model().file_bytes());
}

}  // namespace
}  // namespace tarn
