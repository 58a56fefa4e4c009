// golden_test FILE_OR_DIR... [--target reference|NAME|all]
//
// Runs the attention of every golden file and compares its outputs and final states: a causal system token by token and in every
// prefill chunk length that the file lists; one over whole sequences at once, and as cross attention, where a source is read by
// several sequences.
//
//   PASS|FAIL name max_abs max_rel [target]
//   N passed, N failed, N skipped
//
// max_abs and max_rel are the largest errors found; relative errors are those of elements above the absolute tolerance. Of a failed
// file, stderr has a line for each tensor and mode with an element beyond the tolerance. Exit status 0: at least one passed, none
// failed, and every path exists.

#include <strings.h>

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
#include "tools/convert/json/error.h"

namespace tarn::golden {
namespace {

using convert::Fail;

// Elements of a tensor beyond its tolerance, in one mode.
struct Failure {
  std::string where;  // tensor and mode
  std::string first;
  size_t elements;
};

struct Errors {
  double max_abs = 0;
  double max_rel = 0;
  std::vector<Failure> failures;  // in the order in which they were found
};

void Check(const Status& status) {
  if (!status.ok()) Fail(status.message());
}

template <typename T>
T Take(Result<T> result) {
  Check(result.status());
  return std::move(result.value());
}

// Equal infinities are no error, anything else that is not finite is.
double ErrorOf(float got, float want) {
  if (got == want) return 0;
  return std::isfinite(got) ? std::fabs(static_cast<double>(got) - want) : std::numeric_limits<double>::infinity();
}

// `count` elements, of which the first is number `first` of the tensor.
void Compare(const float* got, size_t first, size_t count, const GoldenTensor& tensor, const Tolerance& tolerance,
             const std::string& mode, Errors* errors) {
  for (size_t i = 0; i < count; ++i) {
    const float want = tensor.values[first + i];
    const double error = ErrorOf(got[i], want), size = std::fabs(want);
    errors->max_abs = std::max(errors->max_abs, error);
    if (size > tolerance.abs && error > 0) errors->max_rel = std::max(errors->max_rel, error / size);
    if (error <= tolerance.abs + (std::isfinite(size) ? tolerance.rel * size : 0)) continue;
    const std::string where = tensor.name + ", " + mode;
    const auto found = std::find_if(errors->failures.begin(), errors->failures.end(),
                                    [&](const Failure& failure) { return failure.where == where; });
    if (found != errors->failures.end()) {
      ++found->elements;
      continue;
    }
    char text[160];
    std::snprintf(text, sizeof(text), "%s element %zu is %.9g, expected %.9g (%s)", tensor.name.c_str(), first + i,
                  static_cast<double>(got[i]), static_cast<double>(want), mode.c_str());
    errors->failures.push_back({where, text, 1});
  }
}

// An instance in memory of its own.
class Runner {
 public:
  Runner(const Environment& environment, const Limits& limits) {
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

// One way to run one model of a case.
class ModelRun {
 public:
  ModelRun(const GoldenCase& golden, const GoldenModel& model, const Environment& environment, uint64_t length, Errors* errors)
      : golden_(golden), model_(model), length_(static_cast<size_t>(length)), errors_(*errors), runner_(environment, LimitsFor()) {
    mode_ = decodes() ? "chunks of " + std::to_string(length) : "whole";
    if (decodes() && encodes()) mode_ += " over a source";
  }

  void Run() {
    if (encodes()) Encode();
    if (decodes()) Decode();
    for (const GoldenState& state : model_.states) {
      Compare(runner_.instance().state(state.index).f32(source()), 0, state.want.values.size(), state.want, golden_.state_tolerance,
              mode_, &errors_);
    }
  }

 private:
  static constexpr uint32_t kBeams = 2, kSources = 2;

  bool encodes() const { return model_.encode.tokens != 0; }
  bool decodes() const { return model_.decode.tokens != 0; }
  // The last one, where there are several.
  size_t source() const { return decodes() && encodes() ? kSources - 1 : 0; }

  // Sources are several, and longer ones would fit, so that each has to be found where it is.
  Limits LimitsFor() const {
    Limits limits{/*batch=*/1, static_cast<uint32_t>(length_), /*max_output_rows=*/1, /*threads=*/1};
    limits.max_source = static_cast<uint32_t>(model_.encode.tokens);
    if (encodes() && decodes()) {
      limits.batch = kBeams * kSources;
      limits.beams = kBeams;
      limits.max_source += 3;
    }
    return limits;
  }

  void Encode() {
    Instance& instance = runner_.instance();
    const GoldenProgram& program = model_.encode;
    const ThreadPool threads;
    // The other sources are the first token alone.
    for (size_t s = 0; s <= source(); ++s) {
      for (uint32_t i = 0; i < program.inputs.size(); ++i) {
        const std::vector<uint8_t>& rows = program.inputs[i].rows;
        std::memcpy(instance.input(Stage::kEncode, i), rows.data(), rows.size());
      }
      Check(instance.Encode(s, s == source() ? static_cast<size_t>(program.tokens) : 1, {}, threads));
    }
    for (uint32_t i = 0; i < program.outputs.size(); ++i) {
      const GoldenTensor& want = program.outputs[i];
      Compare(reinterpret_cast<const float*>(instance.output(Stage::kEncode, i)), 0, want.values.size(), want,
              golden_.output_tolerance, mode_, &errors_);
    }
  }

  // All sequences take the same tokens; those of the source are compared.
  void Decode() {
    Instance& instance = runner_.instance();
    const GoldenProgram& program = model_.decode;
    const GoldenTensor& want = program.outputs[0];
    const size_t batch = instance.limits().batch, first = source() * kBeams;
    const size_t width = want.values.size() / static_cast<size_t>(program.tokens);
    const ThreadPool threads;
    for (size_t begin = 0; begin < program.tokens; begin += length_) {
      const size_t count = std::min(length_, static_cast<size_t>(program.tokens) - begin);
      for (uint32_t i = 0; i < program.inputs.size(); ++i) {
        const GoldenInput& input = program.inputs[i];
        for (size_t sequence = 0; sequence < batch; ++sequence) {
          std::memcpy(instance.input(Stage::kDecode, i) + sequence * count * input.row_bytes,
                      input.rows.data() + begin * input.row_bytes, count * input.row_bytes);
        }
      }
      Check(instance.Decode(count, 1, threads));
      const float* got = reinterpret_cast<const float*>(instance.output(Stage::kDecode, 0));
      for (size_t sequence = first; sequence < batch; ++sequence) {
        Compare(got + sequence * count * width, begin * width, count * width, want, golden_.output_tolerance, mode_, &errors_);
      }
    }
  }

  const GoldenCase& golden_;
  const GoldenModel& model_;
  const size_t length_;  // of chunks
  Errors& errors_;
  const Runner runner_;
  std::string mode_;
};

// The token loop, the lengths that the file lists, and for what only reads a source any length and all at once.
std::vector<uint64_t> ChunkLengths(const GoldenCase& golden, const GoldenModel& model) {
  std::vector<uint64_t> lengths = {1};
  if (model.decode.tokens == 0) return lengths;
  std::vector<uint64_t> more = golden.chunks;
  if (model.encode.tokens != 0) more = {5, model.decode.tokens};
  for (const uint64_t chunk : more) {
    if (chunk > 1) lengths.push_back(std::min(chunk, model.decode.tokens));
  }
  return lengths;
}

Errors RunCase(const GoldenCase& golden, const Kernels& kernels) {
  const Allocator allocator = DefaultAllocator();
  Errors errors;
  for (const GoldenModel& way : golden.models) {
    const Model model = Take(Model::Open(FileMap(), {way.file.data(), way.file.size()}, allocator));
    Environment environment{&model, &kernels, &PortableDense(), nullptr, allocator};
    const PackedWeights packed = Take(PackedWeights::Create(environment));
    environment.packed = &packed;
    for (const uint64_t length : ChunkLengths(golden, way)) ModelRun(golden, way, environment, length, &errors).Run();
  }
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
      std::printf("  %s: %s\n", path.c_str(), error.what());
      ++failed_;
      return;
    }
    for (const Kernels* kernels : targets_) RunTarget(path, golden, *kernels);
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
    std::printf("%d passed, %d failed, 0 skipped\n", passed_, failed_);
    return passed_ > 0 && failed_ == 0;
  }

 private:
  void RunTarget(const std::string& path, const GoldenCase& golden, const Kernels& kernels) {
    Errors errors;
    try {
      errors = RunCase(golden, kernels);
    } catch (const std::exception& error) {
      errors.failures.push_back({"", error.what(), 0});
    }
    const bool pass = errors.failures.empty();
    Report(pass ? "PASS" : "FAIL", golden.name, errors, targets_.size() > 1 ? kernels.name : "");
    for (const Failure& failure : errors.failures) {
      std::printf("  %s: %s", path.c_str(), failure.first.c_str());
      if (failure.elements > 1) std::printf(", and %zu more", failure.elements - 1);
      std::printf("%s%s\n", targets_.size() > 1 ? ", " : "", targets_.size() > 1 ? kernels.name : "");
    }
    ++(pass ? passed_ : failed_);
  }

  static void Report(const char* verdict, const std::string& name, const Errors& errors, const std::string& more) {
    std::printf("%s %s %.3g %.3g%s%s\n", verdict, name.c_str(), errors.max_abs, errors.max_rel, more.empty() ? "" : " ",
                more.c_str());
    std::fflush(stdout);
  }

  const std::vector<const Kernels*> targets_;
  int passed_ = 0, failed_ = 0;
};

constexpr int kUsage = 2;

// The targets of a name in any case: the best one for no name; an empty list if this machine has none of that name.
std::vector<const Kernels*> ChooseTargets(const std::string& name) {
  if (name.empty()) return {SelectKernels(nullptr)};
  std::vector<const Kernels*> targets;
  for (const char* target : KernelNames()) {
    if (name == "all" || strcasecmp(name.c_str(), target) == 0) targets.push_back(SelectKernels(target));
  }
  return targets;
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
      std::fprintf(stderr, "golden_test: %s: no such file or directory\n", path.c_str());
      all_exist = false;
    }
  }
  return test.Summary() && all_exist ? 0 : 1;
}

}  // namespace
}  // namespace tarn::golden

int main(int argc, char** argv) { return tarn::golden::Main(argc, argv); }
