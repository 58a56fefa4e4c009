// tarn-convert: a checkpoint folder, or a seed and a config, becomes one .tarn file.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/integer_option.h"
#include "tools/common/printable.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/convert/causal_lm.h"
#include "tools/convert/checkpoint.h"
#include "tools/convert/config.h"
#include "tools/convert/error.h"
#include "tools/convert/mapped_file.h"
#include "tools/convert/model_writer.h"
#include "tools/convert/random_weights.h"
#include "tools/convert/state_type.h"

namespace tarn::convert {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

constexpr char kExamples[] = R"(Examples:
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int8
      DIR holds config.json and model.safetensors, or shards with model.safetensors.index.json.
  tarn-convert --random-weights 1 config.json -o random.tarn --quant f32
      A model of that shape with weights drawn from seed 1: the same on every machine.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --state f16
      States in half the memory, where that has been measured to do no harm.
  tarn-convert --systems
      The attention systems that a config.json may name.
)";

struct Options {
  std::string input, output, quant = "int8", name, state = "f32";
  bool force = false;
  std::optional<uint64_t> seed;
};

Precision ParsePrecision(const std::string& quant) {
  if (quant == "f32") return Precision::kF32;
  if (quant == "int8") return Precision::kInt8;
  Fail("--quant ", quant, ": not supported by this version (f32 and int8 are)");
}

format::DType ParseStateType(const std::string& state) {
  if (state == "f32") return format::DType::F32;
  return state == "f16" ? format::DType::F16 : format::DType::I8;
}

// The last part of the path, without .json: what a model is called if nobody says.
std::string DefaultName(const std::string& input) {
  const auto path = std::filesystem::absolute(input).lexically_normal();
  return path.has_filename() ? path.stem().string() : path.parent_path().filename().string();
}

std::string BytesText(uint64_t bytes) {
  char text[32];
  if (bytes < 1'000'000) {
    std::snprintf(text, sizeof(text), "%.1f kB", static_cast<double>(bytes) * 1e-3);
  } else {
    std::snprintf(text, sizeof(text), "%.1f MB", static_cast<double>(bytes) * 1e-6);
  }
  return text;
}

// "rfa x 4", "rfa x 3, softmax x 1"
std::string SystemsText(const std::vector<AttentionOp>& layers) {
  std::vector<std::string> names;
  for (const AttentionOp& op : layers) {
    if (std::find(names.begin(), names.end(), op.system) == names.end()) names.push_back(op.system);
  }
  std::string text;
  for (const std::string& name : names) {
    const auto count = std::count_if(layers.begin(), layers.end(), [&](const AttentionOp& op) { return op.system == name; });
    text += (text.empty() ? "" : ", ") + name + " x " + std::to_string(count);
  }
  return text;
}

void Convert(const Options& options) {
  const Precision precision = ParsePrecision(options.quant);
  struct stat info;
  if (stat(options.input.c_str(), &info) != 0) Fail(options.input, ": no such file or folder");
  if (!options.seed && !S_ISDIR(info.st_mode)) {
    Fail(options.input, ": not a folder (--random-weights SEED makes a model from a config alone)");
  }
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<WeightReader> random;
  std::vector<std::string> inputs = {options.input};
  std::string text, where = options.input;
  if (options.seed) {
    random = std::make_unique<RandomWeights>(*options.seed);
    text = ReadFile(options.input);
  } else {
    checkpoint = std::make_unique<Checkpoint>(options.input);
    text = checkpoint->config_text();
    inputs = checkpoint->files();
    where = inputs[0];
  }

  ModelConfig config = ParseConfig(text, where);
  SetStateType(ParseStateType(options.state), options.force, &config.attention);
  GraphBuilder builder(precision);
  BuildCausalLm(config, &builder);
  builder.graph().name = options.name.empty() ? DefaultName(options.input) : options.name;
  builder.graph().precision = options.quant;
  if (checkpoint) checkpoint->Check(builder.weights());

  uint64_t parameters = 0;
  for (const WeightSpec& spec : builder.weights()) parameters += ElementCount(spec.shape);
  tools::CatchInterrupts();
  OutputFile file(options.output, inputs);
  const std::string output = tools::Printable(options.output);
  ModelSizes sizes;
  {
    tools::Progress progress(stderr, isatty(STDERR_FILENO) != 0, "writing " + output, parameters);
    const WeightReader& weights = checkpoint ? static_cast<const WeightReader&>(*checkpoint) : *random;
    sizes = WriteModel(builder.graph(), weights, &file, [&](uint64_t elements) {
      if (tools::Interrupted()) Fail("interrupted");
      progress.Advance(elements);
    });
    file.Commit();
  }
  std::printf("%s: %s (weights %s, graph %s), %.2f M parameters, %s, state %s, %s\n", output.c_str(),
              BytesText(sizes.file_bytes).c_str(), BytesText(sizes.weight_bytes).c_str(), BytesText(sizes.graph_bytes).c_str(),
              static_cast<double>(parameters) * 1e-6, options.quant.c_str(), options.state.c_str(),
              SystemsText(config.attention).c_str());
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Converts a checkpoint folder into a .tarn model file.", "tarn-convert");
  app.footer(kExamples);
  app.add_option("input", options.input, "checkpoint folder; with --random-weights a config.json")->required();
  app.add_option("-o,--output", options.output, "the file to write")->required();
  app.add_option("--quant", options.quant, "precision of the weights")
      ->check(CLI::IsMember({"f32", "f16", "int8", "int4"}))
      ->capture_default_str();
  app.add_option("--name", options.name, "name of the model (default: that of the input)");
  app.add_option("--state", options.state, "precision of the states")
      ->check(CLI::IsMember({"f32", "f16", "int8"}))
      ->capture_default_str();
  app.add_flag("--force", options.force, "with --state f16: also where it loses more than rounding");
  app.add_flag_callback(
      "--systems", [] { throw CLI::CallForVersion(SystemTable(), 0); }, "list the attention systems, as Markdown, and exit");
  tools::AddInteger<uint64_t>(&app, "--random-weights", &options.seed, "seed of random weights, instead of a checkpoint");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& systems) {
    std::fputs(systems.what(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "tarn-convert: error: %s (see tarn-convert --help)\n", tools::Printable(error.what()).c_str());
    return kUsage;
  }
  try {
    Convert(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tarn-convert: error: %s\n", tools::Printable(error.what()).c_str());
    return tools::Interrupted() ? tools::InterruptedExit() : kFailure;
  }
}

}  // namespace
}  // namespace tarn::convert

int main(int argc, char** argv) {
  tarn::tools::IgnoreWriteSignals();
  return tarn::convert::Main(argc, argv);
}
