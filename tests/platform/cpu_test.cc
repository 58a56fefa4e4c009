// What is made of /proc and /sys: of boards and phones, of sandboxes that hide or make up, of anything.
#include "runtime/platform/cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "runtime/platform/cpu_text.h"

namespace tarn {
namespace {

std::vector<uint32_t> Numbers(const ProcessorSet& set) {
  std::vector<uint32_t> numbers;
  for (uint32_t i = set.Next(0); i < kMaxProcessors; i = set.Next(i + 1)) numbers.push_back(i);
  return numbers;
}

std::vector<uint32_t> List(const std::string& text) { return Numbers(ParseProcessorList(text.data(), text.size())); }

TEST(ProcessorList, ReadsNumbersAndRanges) {
  EXPECT_EQ(List("0"), (std::vector<uint32_t>{0}));
  EXPECT_EQ(List("0-3\n"), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(List("0-1,5,8-9\n"), (std::vector<uint32_t>{0, 1, 5, 8, 9}));
  EXPECT_EQ(List("1022-4294967295"), (std::vector<uint32_t>{1022, 1023}));  // as far as anything is known
}

TEST(ProcessorList, WhatIsNoListIsEmpty) {
  for (const char* text :
       {"", "\n", "x", "-", "0-", "0,", ",0", "3-1", "0 1", "0-1-2", "0x3", "-1", "99999999999999999999", "0\n\n"}) {
    EXPECT_TRUE(List(text).empty()) << text;
  }
  EXPECT_TRUE(List(std::string("0\0", 2)).empty());
}

CoreKinds Kinds(const std::string& text, size_t piece) {
  CoreKinds kinds;
  for (size_t at = 0; at < text.size(); at += piece) kinds.Feed(text.data() + at, std::min(piece, text.size() - at));
  kinds.Finish();
  return kinds;
}

struct Cluster {
  uint32_t cores;
  uint32_t part;
};

struct Board {
  const char* name;
  std::vector<Cluster> clusters;
  uint32_t fast_cores;
};

const Board kBoards[] = {
    {"rpi2", {{4, 0xC07}}, 4},
    {"rpi3", {{4, 0xD03}}, 4},
    {"rpi4", {{4, 0xD08}}, 4},
    {"rpi5", {{4, 0xD0B}}, 4},
    {"exynos5422", {{4, 0xC07}, {4, 0xC0F}}, 4},
    {"octa_a53", {{4, 0xD03}, {4, 0xD03}}, 8},
    {"big_little", {{6, 0xD05}, {2, 0xD0B}}, 2},
    {"a76_a55", {{4, 0xD05}, {4, 0xD0B}}, 4},
    {"armv9", {{4, 0xD46}, {3, 0xD47}, {1, 0xD48}}, 4},
};

std::string Description(uint32_t processor, uint32_t part) {
  char text[256];
  std::snprintf(text, sizeof(text),
                "processor\t: %u\nBogoMIPS\t: 38.40\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
                "CPU variant\t: 0x1\nCPU part\t: %#x\nCPU revision\t: 0\n\n",
                processor, part);
  return text;
}

TEST(CoreKinds, IsTheSameInPiecesOfAnySize) {
  const std::string text = Description(0, 0xD05) + Description(1, 0xD0B) + "Hardware\t: x";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    const CoreKinds kinds = Kinds(text, piece);
    EXPECT_EQ(kinds.first(), 0u);
    EXPECT_TRUE(kinds.IsLittle(0));
    EXPECT_FALSE(kinds.IsLittle(1));
  }
}

TEST(CoreKinds, AnOfflineCoreIsWhatTheOneBeforeItIs) {
  const CoreKinds kinds = Kinds(Description(0, 0xD05) + Description(6, 0xD0B), 1024);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_TRUE(kinds.IsLittle(i)) << i;
  for (uint32_t i = 6; i < 8; ++i) EXPECT_FALSE(kinds.IsLittle(i)) << i;
}

TEST(CoreKinds, OneDescriptionAtTheEndIsThatOfAll) {
  const CoreKinds kinds = Kinds("processor : 0\nprocessor : 1\nCPU implementer : 0x41\nCPU part : 0xc07\n", 1024);
  EXPECT_TRUE(kinds.IsLittle(0));
  EXPECT_TRUE(kinds.IsLittle(1));
}

TEST(CoreKinds, TakesAnyBytes) {
  std::mt19937 random(1);
  const std::string words[] = {"processor",
                               "CPU part",
                               "CPU implementer",
                               ":",
                               " ",
                               "\t",
                               "\n",
                               "0x",
                               "0x41",
                               "0xd03",
                               "4294967295",
                               "1023",
                               "1024",
                               "99999999999999999999",
                               "0",
                               "-",
                               ",",
                               std::string(1, '\0'),
                               "\xFF",
                               std::string(200, 'x')};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto i = random() % 40; i > 0; --i) text += words[random() % std::size(words)];
    const CoreKinds kinds = Kinds(text, 1 + random() % 64);
    EXPECT_EQ(kinds.lists_any(), kinds.first() < kMaxProcessors);
    kinds.IsLittle(static_cast<uint32_t>(random() % 2048));
    const ProcessorSet set = ParseProcessorList(text.data(), text.size());
    EXPECT_EQ(set.empty(), Numbers(set).empty());
  }
}

// A folder with the /proc and /sys of another system.
class FastCoresOf : public ::testing::Test {
 protected:
  FastCoresOf() { std::filesystem::create_directories(root_); }
  ~FastCoresOf() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  void WriteLists(const std::string& text) {
    for (const char* name : {"possible", "present", "online"}) Write(std::string(kCpu) + name, text);
  }
  uint32_t Arm() const { return FastCoresIn(root_.c_str(), /*arm=*/true); }
  uint32_t X86() const { return FastCoresIn(root_.c_str(), /*arm=*/false); }

  static constexpr char kCpu[] = "sys/devices/system/cpu/";
  const std::string root_ = testing::TempDir() + "tarn_cpu_test." + std::to_string(::getpid());
};

TEST_F(FastCoresOf, Boards) {
  for (const Board& board : kBoards) {
    std::string text;
    uint32_t cores = 0;
    for (const Cluster& cluster : board.clusters) {
      for (uint32_t i = 0; i < cluster.cores; ++i) text += Description(cores++, cluster.part);
    }
    Write("proc/cpuinfo", text);
    WriteLists("0-" + std::to_string(cores - 1) + "\n");
    EXPECT_EQ(Arm(), board.fast_cores) << board.name;
  }
}

TEST_F(FastCoresOf, ThreadsOfACoreCountOnce) {
  WriteLists("0-7\n");
  EXPECT_EQ(X86(), 8u);  // nothing tells of siblings
  for (int i = 0; i < 8; ++i) {
    Write(kCpu + ("cpu" + std::to_string(i)) + "/topology/thread_siblings_list",
          std::to_string(i % 4) + "," + std::to_string(i % 4 + 4) + "\n");
  }
  EXPECT_EQ(X86(), 4u);
}

TEST_F(FastCoresOf, ASystemThatHidesItTellsNothing) {
  EXPECT_EQ(X86(), 0u);  // no files
  EXPECT_EQ(Arm(), 0u);
  for (const std::string& text : std::vector<std::string>{"", "\n", "x", std::string(5000, '1'), std::string(4096, ',')}) {
    WriteLists(text);
    Write("proc/cpuinfo", Description(0, 0xD03));
    EXPECT_EQ(X86(), 0u) << text.substr(0, 9);
    EXPECT_EQ(Arm(), 0u) << text.substr(0, 9);
  }
  WriteLists("0-3\n");
  for (const std::string& text :
       std::vector<std::string>{"", "processor 0\n::\nprocessor\t: 4294967295\nHardware\t: " + std::string(5000, 'x')}) {
    Write("proc/cpuinfo", text);
    EXPECT_EQ(Arm(), 0u);
  }
  std::filesystem::remove(root_ + "/proc/cpuinfo");
  EXPECT_EQ(Arm(), 0u);
  std::filesystem::create_directories(root_ + "/proc/cpuinfo");  // can be opened, not read
  EXPECT_EQ(Arm(), 0u);
}

TEST_F(FastCoresOf, ImplausibleListsAreTakenAtTheirWord) {
  WriteLists("5\n");
  EXPECT_EQ(X86(), 1u);
  WriteLists("0-4294967295\n");
  EXPECT_EQ(X86(), kMaxProcessors);
}

TEST(FastCores, ThisMachine) {
  EXPECT_GE(FastCores(), 1u);
  EXPECT_GE(DefaultThreads(), 1u);
  EXPECT_LE(DefaultThreads(), FastCores());
}

}  // namespace
}  // namespace tarn
