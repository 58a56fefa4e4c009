// golden_test FILE_OR_DIR... [--target reference|NAME|all]
//
// Runs the attention op of every golden file, token by token and in every prefill chunk length that the file lists, and compares
// the outputs of all tokens and the state after the last one.
//
//   PASS|FAIL|SKIP name max_abs max_rel [target]
//   N passed, N failed, N skipped
//
// max_abs and max_rel are the largest errors found; relative errors are those of elements above the absolute tolerance. A skipped
// file has its reason at the end of the line, a failed one says more on stderr. Exit status 0: at least one passed, none failed,
// and every path exists.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "kernels/dense/dense.h"
#include "kernels/kernels.h"
#include "runtime/interpreter/instance.h"
#include "runtime/interpreter/packed_weights.h"
#include "runtime/model/model.h"
#include "tests/golden/golden_case.h"
#include "tools/convert/error.h"

namespace tarn::golden {
namespace {

using convert::Fail;

struct Errors {
  double max_abs = 0;
  double max_rel = 0;
  std::string first_failure;
};

void Check(const Status& status) {
  if (!status.ok()) Fail(status.message());
}

template <typename T>
T Take(Result<T> result) {
  Check(result.status());
  return std::move(result.value());
}

void Compare(const float* got, const float* want, size_t count, size_t first, const GoldenTensor& tensor,
             const Tolerance& tolerance, const std::string& mode, Errors* errors) {
  for (size_t i = 0; i < count; ++i) {
    const double error =
        std::isfinite(got[i]) ? std::fabs(static_cast<double>(got[i]) - want[i]) : std::numeric_limits<double>::infinity();
    const double size = std::fabs(want[i]);
    errors->max_abs = std::max(errors->max_abs, error);
    if (size > tolerance.abs) errors->max_rel = std::max(errors->max_rel, error / size);
    if (error <= tolerance.abs + tolerance.rel * size || !errors->first_failure.empty()) continue;
    char text[160];
    std::snprintf(text, sizeof(text), "%s element %zu is %.9g, %.9g wanted (%s)", tensor.name.c_str(), first + i,
                  static_cast<double>(got[i]), static_cast<double>(want[i]), mode.c_str());
    errors->first_failure = text;
  }
}

// An instance in memory of its own, prepared for chunks of a length.
class Runner {
 public:
  Runner(const Environment& environment, uint32_t max_tokens) {
    const Limits limits{/*batch=*/1, max_tokens, /*max_output_rows=*/1, /*threads=*/1};
    const ProgramBytes bytes = Take(Instance::Measure(environment, limits));
    block_ = Take(Block::Allocate(environment.allocator, bytes.total, "golden case"));
    instance_ = Take(Instance::Create(environment, limits, block_.bytes()));
  }
  ~Runner() { instance_->Destroy(); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  Instance& instance() const { return *instance_; }

 private:
  Block block_;
  Instance* instance_ = nullptr;
};

void RunInChunks(const GoldenCase& golden, const Environment& environment, uint64_t length, Errors* errors) {
  const std::string mode = "chunks of " + std::to_string(length);
  const Runner runner(environment, static_cast<uint32_t>(length));
  Instance& instance = runner.instance();
  const ThreadPool threads;
  const size_t width = golden.output.values.size() / golden.tokens;
  for (uint64_t begin = 0; begin < golden.tokens; begin += length) {
    const size_t count = static_cast<size_t>(std::min(length, golden.tokens - begin));
    for (uint32_t i = 0; i < golden.inputs.size(); ++i) {
      const GoldenInput& input = golden.inputs[i];
      std::memcpy(instance.input(Stage::kDecode, i), input.rows.data() + begin * input.row_bytes, count * input.row_bytes);
    }
    Check(instance.Decode(count, 1, threads));
    const float* got = reinterpret_cast<const float*>(instance.output(Stage::kDecode, 0));
    Compare(got, golden.output.values.data() + begin * width, count * width, begin * width, golden.output, golden.output_tolerance,
            mode, errors);
  }
  for (const GoldenState& state : golden.states) {
    Compare(instance.state(state.index).f32(0), state.want.values.data(), state.want.values.size(), 0, state.want,
            golden.state_tolerance, mode, errors);
  }
}

Errors RunCase(const GoldenCase& golden, const Kernels& kernels) {
  const Allocator allocator = DefaultAllocator();
  const Model model = Take(Model::Open(FileMap(), {golden.model.data(), golden.model.size()}, /*verify_weights=*/true, allocator));
  Environment environment{&model, &kernels, &PortableDense(), nullptr, allocator};
  const PackedWeights packed = Take(PackedWeights::Create(environment));
  environment.packed = &packed;
  std::vector<uint64_t> lengths = {1};  // the token loop
  for (const uint64_t chunk : golden.chunks) {
    if (chunk > 1) lengths.push_back(std::min(chunk, golden.tokens));
  }
  Errors errors;
  for (const uint64_t length : lengths) RunInChunks(golden, environment, length, &errors);
  return errors;
}

class GoldenTest {
 public:
  explicit GoldenTest(std::vector<const Kernels*> targets) : targets_(std::move(targets)) {}

  void RunFile(const std::string& path) {
    GoldenCase golden;
    try {
      golden = LoadGoldenCase(path);
    } catch (const std::exception& error) {
      Report("FAIL", std::filesystem::path(path).stem().string(), {}, "");
      std::fprintf(stderr, "  %s\n", error.what());
      ++failed_;
      return;
    }
    if (!golden.skip.empty()) {
      Report("SKIP", golden.name, {}, golden.skip);
      ++skipped_;
      return;
    }
    for (const Kernels* kernels : targets_) RunTarget(golden, *kernels);
  }

  // A file, or every golden file of a folder and its folders, in the order of their names.
  void RunPath(const std::string& path) {
    if (!std::filesystem::is_directory(path)) return RunFile(path);
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) RunFile(file);
  }

  bool Summary() const {
    std::printf("%d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
    return passed_ > 0 && failed_ == 0;
  }

 private:
  void RunTarget(const GoldenCase& golden, const Kernels& kernels) {
    Errors errors;
    try {
      errors = RunCase(golden, kernels);
    } catch (const std::exception& error) {
      errors.first_failure = error.what();
    }
    const bool pass = errors.first_failure.empty();
    Report(pass ? "PASS" : "FAIL", golden.name, errors, targets_.size() > 1 ? kernels.name : "");
    if (!pass) std::fprintf(stderr, "  %s\n", errors.first_failure.c_str());
    ++(pass ? passed_ : failed_);
  }

  static void Report(const char* verdict, const std::string& name, const Errors& errors, const std::string& more) {
    std::printf("%s %s %.3g %.3g%s%s\n", verdict, name.c_str(), errors.max_abs, errors.max_rel, more.empty() ? "" : " ",
                more.c_str());
    std::fflush(stdout);
  }

  const std::vector<const Kernels*> targets_;
  int passed_ = 0, failed_ = 0, skipped_ = 0;
};

constexpr int kUsage = 2;

// An empty list: no such target.
std::vector<const Kernels*> ChooseTargets(const std::string& name) {
  if (name == "all") {
    std::vector<const Kernels*> targets;
    for (const char* target : KernelNames()) targets.push_back(SelectKernels(target));
    return targets;
  }
  const Kernels* kernels = SelectKernels(name.empty() ? nullptr : name.c_str());
  if (kernels == nullptr) return {};
  return {kernels};
}

int Main(int argc, char** argv) {
  std::vector<std::string> paths;
  std::string target;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--target" && i + 1 < argc) {
      target = argv[++i];
    } else if (argument.rfind("--", 0) == 0) {
      paths.clear();
      break;
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: golden_test FILE_OR_DIR... [--target reference|NAME|all]\n");
    return kUsage;
  }
  const std::vector<const Kernels*> targets = ChooseTargets(target);
  if (targets.empty()) {
    std::fprintf(stderr, "golden_test: this machine has no target %s; it has:", target.c_str());
    for (const char* name : KernelNames()) std::fprintf(stderr, " %s", name);
    std::fprintf(stderr, "\n");
    return kUsage;
  }
  GoldenTest test(targets);
  bool all_exist = true;
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path)) {
      test.RunPath(path);
    } else {
      std::fprintf(stderr, "golden_test: %s: no such file or folder\n", path.c_str());
      all_exist = false;
    }
  }
  return test.Summary() && all_exist ? 0 : 1;
}

}  // namespace
}  // namespace tarn::golden

int main(int argc, char** argv) { return tarn::golden::Main(argc, argv); }
