// tarn-convert: a checkpoint directory, or a seed and a config, becomes one .tarn file.
#include <sys/stat.h>
#include <tarn/tarn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/printable.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/common/suggestion.h"
#include "tools/common/tool_main.h"
#include "tools/convert/attention/system_table.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/chat/chat_template.h"
#include "tools/convert/chat/known_templates.h"
#include "tools/convert/checkpoint/checkpoint.h"
#include "tools/convert/checkpoint/other_format.h"
#include "tools/convert/checkpoint/random_weights.h"
#include "tools/convert/config/config.h"
#include "tools/convert/config/state_type.h"
#include "tools/convert/field_list.h"
#include "tools/convert/graph/precision.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/measure.h"
#include "tools/convert/published.h"
#include "tools/convert/summary.h"
#include "tools/convert/tensor_list.h"
#include "tools/convert/tokenizer/tokenizer.h"
#include "tools/convert/writer/checkpoint_writer.h"
#include "tools/convert/writer/model_writer.h"

const char tarn::tools::kToolName[] = "tarn-convert";

namespace tarn::convert {
namespace {

constexpr char kExamples[] = R"(Examples:
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int8
      DIR holds config.json and model.safetensors, or shards with model.safetensors.index.json.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int4 --keep '*embeddings*=int8'
      int4, but int8 for matrices with such a name in the checkpoint. The last --keep that matches holds.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int4 --eval text.txt --eval-begin 1000000
      Prints the loss on the rest of that text, in f32 and as written, and keeps both in the file.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int4 --calibrate train.txt
      Rounds the weights so that the layers' results on that text change least: slower, and closer to f32.
  tarn-convert --random-weights 1 config.json -o random.tarn --quant f32
      A model of that shape with weights drawn from seed 1: the same on every machine.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --state f16
      States in half the memory, for the variants that lose nothing by it.
  tarn-convert SmolLM2-135M --write-checkpoint -o teacher
      The published checkpoint as a directory in tarn's own layout, F32, for programs that train.
  tarn-convert --list-tensors config.json
      The tensors that a checkpoint with that config.json needs, with their shapes.
  tarn-convert --list-fields rfa
      The fields of an attention object, with values, defaults and tensors; config: those of config.json; all: everything.
  tarn-convert --systems
      The attention variants that a config.json may name.
)";

struct Options {
  std::string input, output, quant = "int8", name, state = "f32", list_fields, chat_template;
  std::vector<std::string> keep;
  bool force = false, write_checkpoint = false, list_tensors = false, list_systems = false, list_families = false;
  std::optional<uint64_t> seed;
  FamilyOptions family;
  MeasureOptions eval{"", {0, UINT64_MAX, 256}, 0};
  CalibrationOptions calibration;
};

PrecisionRules Rules(const Options& options) {
  PrecisionRules rules(ParsePrecision(options.quant));
  for (const std::string& rule : options.keep) rules.Keep(rule);
  return rules;
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

// Where a config.json lies, or the folder itself.
std::string FolderOf(const std::string& input, bool is_folder) {
  if (is_folder) return input;
  const std::string parent = std::filesystem::path(input).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Name and shape of every tensor that a checkpoint with this config has to have, and what it is made from if it has another name.
void ListTensors(const Options& options) {
  struct stat info;
  const std::string& input = options.input;
  const bool folder = stat(input.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  const std::string path = folder ? input + "/config.json" : input;
  GraphBuilder builder(Precision::kF32);
  const OwnConfig own = ReadOwnConfig(ReadConfig(path), path, FolderOf(input, folder), options.family, nullptr);
  BuildModel(ParseConfig(own.text, own.where), &builder);
  for (const WeightSpec& spec : builder.weights()) {
    const std::string name = own.name_in_folder ? own.name_in_folder(spec.name) : spec.name;
    std::printf("%s %s%s\n", spec.name.c_str(), ShapeText(spec.shape).c_str(), name == spec.name ? "" : (" from " + name).c_str());
  }
}

void ListFields(const std::string& name) {
  const std::vector<std::string> names = name == "all" ? FieldListNames() : std::vector<std::string>{name};
  for (const std::string& one : names) std::printf("%s%s", &one == names.data() ? "" : "\n", FieldList(one).c_str());
}

void Note(const std::string& text) { std::fprintf(stderr, "tarn-convert: note: %s\n", tools::ErrorLine(text).c_str()); }

// The tokenizer files of `folder`, if the config asks for them. What it does not say of the begin and the end of a text, they may.
std::shared_ptr<const TokenizerData> AddTokenizer(const std::string& folder, TokenizerFiles files, Graph* graph) {
  if (files == TokenizerFiles::kNone || files == TokenizerFiles::kBytes) return nullptr;
  const uint32_t sources = graph->source_vocab_size != 0 ? graph->source_vocab_size : graph->vocab_size;
  const auto data = std::make_shared<TokenizerData>(ReadTokenizer(folder, std::min(graph->vocab_size, sources), files));
  if (!data->note.empty()) Note(data->note);
  graph->tokenizer = data->kind;
  graph->tokenizer_writer = [data](flatbuffers::FlatBufferBuilder* builder) { return WriteTokenizer(*data, builder); };
  if (graph->bos_token < 0) graph->bos_token = data->bos_token;
  if (graph->mask_token < 0 && graph->task == format::Task::MaskedLm) graph->mask_token = data->mask_token;
  if (graph->eos_token < 0) graph->eos_token = data->eos_token;
  return data;
}

// The chat template of `folder`, or the one that --chat-template names.
void AddChatTemplate(const std::string& folder, const std::string& name, const TokenizerData* tokenizer, Graph* graph) {
  const bool has_text = graph->task == format::Task::CausalLm && graph->tokenizer != format::TokenizerKind::None;
  if (!has_text && name.empty()) return;
  if (!has_text) Fail("--chat-template: a model of task \"causal_lm\" with a tokenizer expected");
  std::vector<std::string> notes;
  const std::optional<ChatData> chat = ReadChatTemplate({folder, name, tokenizer, graph->vocab_size, graph->eos_token}, &notes);
  for (const std::string& note : notes) Note(note);
  if (!chat) return;
  graph->chat_writer = [chat](flatbuffers::FlatBufferBuilder* builder) { return WriteChatTemplate(*chat, builder); };
}

// A bar while elements are written; Ctrl-C ends it.
class WriteProgress {
 public:
  WriteProgress(const std::string& output, uint64_t elements)
      : progress_(stderr, isatty(STDERR_FILENO) != 0, "writing " + tools::Printable(output), elements) {}
  void operator()(uint64_t elements) {
    if (tools::Interrupted()) Fail("interrupted");
    progress_.Advance(elements);
  }

 private:
  tools::Progress progress_;
};

void WriteOwnCheckpoint(const Options& options, const CheckpointSource& source, uint64_t parameters) {
  uint64_t bytes;
  {
    WriteProgress progress(options.output, parameters);
    bytes = WriteCheckpoint(source, options.output, std::ref(progress));
  }
  std::printf("%s: %zu tensors, %s, %.2f M parameters, F32\n", tools::Printable(options.output).c_str(), source.specs.size(),
              BytesText(bytes).c_str(), static_cast<double>(parameters) * 1e-6);
}

// Does what --calibrate and --eval ask for: matrices of `graph` that are rounded already, and its measured loss. `config`: its own,
// with states in f32.
RoundedMatrices RoundAndMeasure(const Options& options, const ModelConfig& config, const WeightReader& weights, Graph* graph) {
  RoundedMatrices rounded;
  const bool calibrates = !options.calibration.file.empty(), measures = !options.eval.file.empty();
  if (!calibrates && !measures) return rounded;
  GraphBuilder builder(Precision::kF32);
  BuildModel(config, &builder);
  Graph& f32 = builder.graph();
  f32.tokenizer = graph->tokenizer;
  f32.tokenizer_writer = graph->tokenizer_writer;
  if (calibrates) rounded = RoundForText(f32, *graph, weights, options.calibration, options.eval.threads, options.output);
  const std::string precision = options.quant + (options.state == "f32" ? "" : " with states in " + options.state);
  if (measures) graph->loss = MeasureLoss(f32, *graph, weights, rounded, options.eval, options.output, precision);
  return rounded;
}

void Convert(const Options& options) {
  struct stat info;
  if (stat(options.input.c_str(), &info) != 0) Fail(options.input, ": no such file or directory");
  if (!options.seed && !S_ISDIR(info.st_mode)) {
    const std::string other = OtherFormat(options.input);
    Fail(options.input, ": not a directory ",
         other.empty() ? "(--random-weights SEED makes a model from a config alone)" : "with config.json; " + other);
  }
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<WeightReader> random;
  std::vector<std::string> inputs = {options.input};
  std::string text, where = options.input;
  if (options.seed) {
    random = std::make_unique<RandomWeights>(*options.seed);
    text = ReadConfig(options.input);
  } else {
    checkpoint = std::make_unique<Checkpoint>(options.input);
    text = checkpoint->config_text();
    inputs = checkpoint->files();
    where = inputs[0];
  }

  const std::string folder = FolderOf(options.input, S_ISDIR(info.st_mode));
  const OwnConfig own = ReadOwnConfig(text, where, folder, options.family, checkpoint.get());
  ModelConfig config = ParseConfig(own.text, own.where);
  for (const auto& [option, file] : {std::pair{"--eval", options.eval.file}, {"--calibrate", options.calibration.file}}) {
    if (file.empty() || config.task == format::Task::CausalLm) continue;
    throw tools::UsageFailure(std::string(option) + ": a model of task \"causal_lm\" expected, which predicts next tokens");
  }
  const ModelConfig f32_config = config;
  SetStateTypes(ParseStateType(options.state), options.force, &config);
  GraphBuilder builder(Rules(options));
  BuildModel(config, &builder);
  const std::shared_ptr<const TokenizerData> tokenizer = AddTokenizer(folder, config.tokenizer, &builder.graph());
  AddChatTemplate(folder, options.chat_template, tokenizer.get(), &builder.graph());
  builder.graph().name = options.name.empty() ? DefaultName(options.input) : options.name;
  builder.graph().precision = options.quant;
  const auto hint = [&](const std::string& name) { return UnknownTensorHint(name, own.text); };
  if (checkpoint) checkpoint->Check(builder.weights(), builder.tied(), hint);
  std::vector<std::string> notes = own.notes;
  notes.push_back(NarrowText(builder.matrices()));
  for (const std::string& note : notes) {
    if (!note.empty()) Note(note);
  }

  uint64_t parameters = 0;
  for (const WeightSpec& spec : builder.weights()) parameters += ElementCount(spec.shape);
  tools::CatchInterrupts();
  const WeightReader& weights = checkpoint ? static_cast<const WeightReader&>(*checkpoint) : *random;
  if (options.write_checkpoint) {
    return WriteOwnCheckpoint(options, {own.text, builder.weights(), weights, folder, inputs}, parameters);
  }
  for (const std::string& text_file : {options.eval.file, options.calibration.file}) {
    if (!text_file.empty()) inputs.push_back(text_file);
  }
  OutputFile file(options.output, inputs);
  const RoundedMatrices rounded = RoundAndMeasure(options, f32_config, weights, &builder.graph());
  const std::string output = tools::Printable(options.output);
  ModelSizes sizes;
  {
    WriteProgress progress(options.output, parameters);
    sizes = WriteModel(builder.graph(), weights, &file, std::ref(progress), &rounded);
    file.Commit();
  }
  std::printf("%s: %s (weights %s, graph %s), %.2f M parameters, %s, state %s, %s\n", output.c_str(),
              BytesText(sizes.file_bytes).c_str(), BytesText(sizes.weight_bytes).c_str(), BytesText(sizes.graph_bytes).c_str(),
              static_cast<double>(parameters) * 1e-6, tools::Printable(PrecisionText(builder.matrices(), options.quant)).c_str(),
              StatesText(config).c_str(), SystemsText(config).c_str());
}

std::string CheckKeep(const std::string& rule) {
  try {
    PrecisionRules(Precision::kF32).Keep(rule);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

// An option whose value is one of `names`; `target` has the default.
void AddName(CLI::App* app, const std::string& option, std::string* target, const std::string& description,
             const std::vector<std::string>& names) {
  const auto parse = [=](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw CLI::ValidationError(option, tools::UnknownName(name, names));
    }
    *target = name;
  };
  std::string values;
  for (const std::string& name : names) values += (values.empty() ? "" : "|") + name;
  const std::string otherwise = target->empty() ? "" : " (default: " + *target + ")";
  app->add_option_function<std::string>(option, parse, description + otherwise)->type_name(values);
}

void AddEvalOptions(CLI::App* app, MeasureOptions* options) {
  CLI::Option* eval =
      app->add_option("--eval", options->file,
                      "Measure the loss on this text in f32 and as written (without tokenizer: a .npy file of int32 ids)")
          ->type_name("FILE");
  tools::AddInteger<uint64_t>(app, "--eval-begin", &options->range.begin, "Skip the first N tokens (default: 0)")->needs(eval);
  tools::AddInteger<uint64_t>(app, "--eval-tokens", &options->range.tokens, "Read at most N tokens (default: all)")->needs(eval);
  tools::AddInteger<uint64_t>(app, "--eval-block", &options->range.block, "Reset the model before every N tokens (default: 256)", 2)
      ->needs(eval);
  tools::AddInteger<uint32_t>(app, "-t,--threads", &options->threads,
                              "Threads of --eval and --calibrate (default: one per fast core that the process may use)", 1, 256);
}

void AddCalibrationOptions(CLI::App* app, CalibrationOptions* options) {
  CLI::Option* calibrate = app->add_option("--calibrate", options->file,
                                           "Round int8 and int4 weights for what the layers read on this text, which is like the "
                                           "texts that the model is for (without tokenizer: a .npy file of int32 ids)")
                               ->type_name("FILE");
  tools::AddInteger<uint64_t>(app, "--calibrate-tokens", &options->tokens,
                              "At most N tokens, in blocks from all over the text (default: 16384)", kLeastCalibration)
      ->needs(calibrate);
}

void AddFamilyOptions(CLI::App* app, FamilyOptions* options) {
  tools::AddInteger<uint32_t>(app, "--max-context", &options->max_context,
                              "Published checkpoint: tokens that full attention remembers (default: the config's longest context)",
                              1, Fields::kMaxSize);
  CLI::Option* window = tools::AddInteger<uint32_t>(
      app, "--window", &options->window, "Published checkpoint: full attention sees the last N tokens alone", 1, Fields::kMaxSize);
  tools::AddInteger<uint32_t>(app, "--sinks", &options->sinks, "With --window: the first N tokens, too (default: 0)", 0, 65536)
      ->needs(window);
}

int Run(int argc, char** argv) {
  Options options;
  CLI::App app("Converts a checkpoint directory into a .tarn model file.", "tarn-convert");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("tarn-convert ") + tarn_version() + "\n");
  app.add_option("input", options.input, "Checkpoint directory; with --random-weights or --list-tensors a config.json")
      ->type_name("PATH");
  app.add_option("-o,--output", options.output,
                 "Model file to write, or with --write-checkpoint a directory (required, but not with --list-tensors)")
      ->type_name("FILE");
  AddName(&app, "--quant", &options.quant, "Type of matrices", PrecisionNames());
  app.add_option("--keep", options.keep,
                 "Another type for matrices whose name matches, as PATTERN=TYPE; repeatable, the last match wins")
      ->check(CLI::Validator(CheckKeep, ""))
      ->type_name("RULE")
      ->allow_extra_args(false);
  app.add_option("--name", options.name, "Name of the model (default: the name of the input)")->type_name("NAME");
  AddName(&app, "--chat-template", &options.chat_template,
          "Text around the turns of a conversation, in place of the checkpoint's chat template", KnownTemplateNames());
  AddName(&app, "--state", &options.state, "Type of the states", {"f32", "f16", "int8"});
  AddEvalOptions(&app, &options.eval);
  AddCalibrationOptions(&app, &options.calibration);
  app.add_flag("--force", options.force, "Accept --state f16 where it loses more than rounding");
  AddFamilyOptions(&app, &options.family);
  CLI::Option* write = app.add_flag("--write-checkpoint", options.write_checkpoint,
                                    "Write a checkpoint directory in tarn's own layout, F32, in place of a model file");
  for (const char* other : {"--quant", "--keep", "--name", "--chat-template", "--state", "--eval", "--calibrate", "--force"}) {
    write->excludes(app.get_option(other));
  }
  app.add_flag("--list-tensors", options.list_tensors, "Print the tensors that a checkpoint with this config.json needs");
  app.add_option("--list-fields", options.list_fields,
                 "Print the fields of config.json (config), of a task, of an attention variant, or of all (default: config)")
      ->expected(0, 1)
      ->default_str("config")
      ->type_name("NAME");
  app.add_flag("--systems", options.list_systems, "Print the table of attention variants, as Markdown, and exit");
  app.add_flag("--families", options.list_families, "Print the table of published families, as Markdown, and exit");
  tools::AddInteger<uint64_t>(&app, "--random-weights", &options.seed,
                              "Write a model with random weights from seed N, without a checkpoint");
  try {
    app.parse(argc, argv);
    if (!options.list_systems && !options.list_families && options.list_fields.empty()) {
      if (options.input.empty()) throw CLI::RequiredError("input");
      if (options.output.empty() && !options.list_tensors) throw CLI::RequiredError("--output");
      if (options.eval.threads != 0 && options.eval.file.empty() && options.calibration.file.empty()) {
        throw CLI::RequiresError("--threads", "--eval or --calibrate");
      }
    }
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& text) {
    std::fputs(text.what(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string text = tools::ParseErrorText(app, error);
    std::fprintf(stderr, "tarn-convert: error: %s (see tarn-convert --help)\n", tools::ErrorLine(text).c_str());
    return tools::kUsageExit;
  }
  if (options.list_systems) {
    std::fputs(SystemTable(*SelectKernels(nullptr), Reference()).c_str(), stdout);
  } else if (options.list_families) {
    std::fputs(FamilyTable().c_str(), stdout);
  } else if (!options.list_fields.empty()) {
    ListFields(options.list_fields);
  } else if (options.list_tensors) {
    ListTensors(options);
  } else {
    Convert(options);
  }
  return 0;
}

}  // namespace
}  // namespace tarn::convert

int main(int argc, char** argv) { return tarn::tools::RunTool(tarn::convert::Run, argc, argv); }
