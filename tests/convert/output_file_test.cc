#include "tools/convert/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/mapped_file.h"

namespace tarn::convert {
namespace {

size_t FilesIn(const TestFolder& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) count += entry.exists() ? 1 : 0;
  return count;
}

TEST(OutputFile, AppearsWithCommitAndReplaces) {
  const TestFolder folder;
  folder.Write("m.tarn", "before");
  {
    OutputFile file(folder.File("m.tarn"), {});
    file.Write("xxxdef", 6);
    file.Rewrite(0, "abc", 3);
    file.Write("gh", 2);
    EXPECT_EQ(ReadFile(folder.File("m.tarn")), "before");
    file.Commit();
  }
  EXPECT_EQ(ReadFile(folder.File("m.tarn")), "abcdefgh");
  EXPECT_EQ(FilesIn(folder), 1u);
}

TEST(OutputFile, LeavesNothingWithoutCommit) {
  const TestFolder folder;
  { OutputFile(folder.File("m.tarn"), {}).Write("abc", 3); }
  EXPECT_EQ(FilesIn(folder), 0u);
}

TEST(OutputFile, RefusesItsInputs) {
  const TestFolder folder;
  folder.Write("model.safetensors", "weights");
  std::filesystem::create_symlink("model.safetensors", folder.File("link"));
  for (const char* name : {"model.safetensors", "link", "./model.safetensors"}) {
    EXPECT_TRUE(FailsWith([&] { OutputFile(folder.File(name), {folder.File("model.safetensors")}); }, {name, "input"}));
  }
  EXPECT_TRUE(FailsWith([&] { OutputFile(folder.path(), {}); }, {folder.path(), "not a regular file"}));
  EXPECT_TRUE(FailsWith([&] { OutputFile(folder.File("no/m.tarn"), {}); }, {"no/m.tarn", "No such file"}));
}

// A limit on the size of files stands for a full disk: write() fails in the same place.
TEST(OutputFile, SaysWhyItCannotWrite) {
  const TestFolder folder;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1 << 16, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<uint8_t> bytes(1 << 20);
  EXPECT_TRUE(FailsWith(
      [&] {
        OutputFile file(folder.File("m.tarn"), {});
        file.Write(bytes.data(), bytes.size());
        file.Commit();
      },
      {"m.tarn", "cannot be written", "File too large"}));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(FilesIn(folder), 0u);
}

}  // namespace
}  // namespace tarn::convert
