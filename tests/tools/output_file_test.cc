#include "tools/common/output_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tools/common/failure.h"

namespace tarn::tools {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string pattern = testing::TempDir() + "output_file.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Put(const std::string& name, const std::string& bytes) const { std::ofstream(Path(name)) << bytes; }
  std::string Get(const std::string& name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t Files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  // What the constructor says about `path`.
  static std::string Refusal(const std::string& path, const std::vector<std::string>& inputs = {}) {
    try {
      const OutputFile file(path, inputs);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  }

  std::string folder_;
};

TEST_F(OutputFileTest, AppearsWithCommitAndReplaces) {
  Put("m.tarn", "before");
  {
    OutputFile file(Path("m.tarn"), {});
    file.Write("xxxdef", 6);
    file.Rewrite(0, "abc", 3);
    file.Write("gh", 2);
    EXPECT_EQ(Get("m.tarn"), "before");
    file.Commit();
  }
  EXPECT_EQ(Get("m.tarn"), "abcdefgh");
  EXPECT_EQ(Files(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  { OutputFile(Path("m.tarn"), {}).Write("abc", 3); }
  EXPECT_EQ(Files(), 0);
}

TEST_F(OutputFileTest, CanBeReadBeforeItIsThere) {
  {
    OutputFile file(Path("m.tarn"), {});
    file.Write("abc", 3);
    std::ifstream early(file.Flush());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(early), {}), "abc");
    EXPECT_FALSE(fs::exists(Path("m.tarn")));
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(OutputFileTest, FollowsLinks) {
  fs::create_directory(Path("there"));
  Put("there/m.tarn", "before");
  fs::create_symlink("there/m.tarn", Path("link"));
  OutputFile file(Path("link"), {});
  file.Write("after", 5);
  file.Commit();
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Get("there/m.tarn"), "after");
}

TEST_F(OutputFileTest, KeepsWhoMayReadTheFile) {
  Put("private", "before");
  fs::permissions(Path("private"), fs::perms::owner_read | fs::perms::owner_write);
  OutputFile file(Path("private"), {});
  file.Write("after", 5);
  file.Commit();
  EXPECT_EQ(Get("private"), "after");
  EXPECT_EQ(fs::status(Path("private")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFileTest, RefusesALinkToNothing) {
  fs::create_symlink("nowhere", Path("link"));
  EXPECT_EQ(Refusal(Path("link")), Path("link") + ": is a link to a file that does not exist, expected a file or a new name");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
}

TEST_F(OutputFileTest, RefusesItsInputs) {
  Put("weights", "bytes");
  Put("other", "bytes");
  fs::create_symlink("weights", Path("symlink"));
  fs::create_hard_link(Path("weights"), Path("hardlink"));
  for (const char* name : {"weights", "symlink", "hardlink", "./weights"}) {
    EXPECT_EQ(Refusal(Path(name), {Path("nowhere"), Path("weights")}),
              Path(name) + ": is an input of this command, and would be overwritten");
  }
  EXPECT_EQ(Refusal(Path("other"), {Path("weights")}), "");
  EXPECT_EQ(Get("weights"), "bytes");
}

TEST_F(OutputFileTest, RefusesWhatIsNoFile) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder_, Path("fifo"), std::string("/dev/null")}) {
    EXPECT_EQ(Refusal(path), path + ": exists and is not a regular file");
  }
  EXPECT_EQ(Refusal(Path("no/m.tarn")), Path("no/m.tarn") + ": cannot be created: No such file or directory");
}

// A limit on the size of files stands for a full disk: write() fails in the same place.
TEST_F(OutputFileTest, SaysWhyItCannotWrite) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1 << 16, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<uint8_t> bytes(1 << 20);
  std::string message;
  try {
    OutputFile file(Path("m.tarn.scratch"), {}, Path("m.tarn"));
    file.Write(bytes.data(), bytes.size());
    file.Commit();
  } catch (const Failure& failure) {
    message = failure.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(message, Path("m.tarn") + ": cannot be written: File too large");
  EXPECT_EQ(Files(), 0);
}

}  // namespace
}  // namespace tarn::tools
