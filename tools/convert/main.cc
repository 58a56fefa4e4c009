// tarn-convert: a checkpoint directory, or a seed and a config, becomes one .tarn file.
#include <tarn/tarn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/number_option.h"
#include "tools/common/printable.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/common/suggestion.h"
#include "tools/common/tool_main.h"
#include "tools/convert/attention/system_table.h"
#include "tools/convert/auto_precision.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/chat/known_templates.h"
#include "tools/convert/config/config.h"
#include "tools/convert/conversion.h"
#include "tools/convert/field_list.h"
#include "tools/convert/graph/precision.h"
#include "tools/convert/json/error.h"
#include "tools/convert/measure.h"
#include "tools/convert/published.h"
#include "tools/convert/summary.h"
#include "tools/convert/tokenizer/folder.h"
#include "tools/convert/writer/checkpoint_writer.h"
#include "tools/convert/writer/model_writer.h"

const char tarn::tools::kToolName[] = "tarn-convert";

namespace tarn::convert {
namespace {

constexpr char kExamples[] = R"(Examples:
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int8
      The directory holds config.json and model.safetensors or pytorch_model.bin, or shards of them with an index.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int4 --keep '*embeddings*=int8'
      int4, but int8 for matrices with such a name in the checkpoint. The last --keep that matches holds.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int4 --eval text.txt --eval-begin 1000000
      Prints the loss on the rest of that text, in f32 and as written, and keeps both in the file.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant int4 --calibrate train.txt
      Rounds the weights so that the layers' results on that text change least: slower, and closer to f32.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --quant auto --max-loss 0.003 --eval text.txt
      The smallest file that loses at most 0.003 nats per byte on that text: types of matrices are chosen by measuring.
  tarn-convert --random-weights 1 config.json -o random.tarn --quant f32
      A model of that shape with weights drawn from seed 1: the same on every machine.
  tarn-convert checkpoints/shakespeare -o shakespeare.tarn --state f16
      States in half the memory, for the variants that lose nothing by it.
  tarn-convert SmolLM2-135M --write-checkpoint -o teacher
      The published checkpoint as a directory in tarn's own layout, F32, for programs that train.
  tarn-convert --list-tensors config.json
      The tensors that a checkpoint with that config.json needs, with their shapes.
  tarn-convert --list-fields rfa
      The fields of an attention object, with values, defaults and tensors; config: those of config.json; all: all.
  tarn-convert --systems
      The attention variants that a config.json may name.
)";

struct Options {
  ConversionOptions conversion;
  std::string output, list_fields;
  bool write_checkpoint = false, list_tensors = false, list_systems = false, list_families = false;
  double max_loss = 0;  // of --quant auto
  MeasureOptions eval{"", {0, UINT64_MAX, 256}, 0};
  CalibrationOptions calibration;
};

// Name and shape of every tensor that a checkpoint with this config has to have, and what it is made from if it has another name.
void ListTensors(const ConversionOptions& options) {
  GraphBuilder builder(Precision::kF32);
  const OwnConfig own = Conversion::ReadConfigAlone(options.input, options.family);
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

// In nats per byte of text; per token, of a model without tokenizer.
double LossOf(const tools::Score& score) { return score.bytes > 0 ? score.nats / static_cast<double>(score.bytes) : score.Mean(); }

// Measures what the precision of `graph` costs, against the same model with weights and states in f32, whose score is `before`.
MeasuredLoss MeasureLoss(const Options& options, const Conversion& conversion, const Graph& graph, const RoundedMatrices& rounded,
                         const tools::Score& before) {
  const ConversionOptions& how = options.conversion;
  const std::string precision = how.quant + (how.state == "f32" ? "" : " with states in " + how.state);
  const tools::Score after = Measure(graph, conversion.weights(), rounded, options.eval, options.output, "loss in " + precision);
  const char* unit = graph.tokenizer == format::TokenizerKind::Bytes ? "byte" : "token";
  std::printf("%s: %.6f nats/%s in f32, %.6f in %s: %+.6f (%llu scored)\n", tools::Printable(options.eval.file).c_str(),
              before.Mean(), unit, after.Mean(), precision.c_str(), after.Mean() - before.Mean(),
              static_cast<unsigned long long>(after.scored));
  return {after.scored, before.Mean(), after.Mean()};
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

// The graph whose matrices --quant auto chose, with a report of what was tried.
std::unique_ptr<GraphBuilder> BuildAuto(const Options& options, const Conversion& conversion, const tools::Score& before) {
  AutoModel model;
  model.build = [&](Precision base, const GroupTypes& types) {
    PrecisionRules rules(base);
    for (const auto& [group, type] : types) rules.Prefer(group, type);
    for (const std::string& rule : options.conversion.keep) rules.Keep(rule);
    return conversion.Build(rules);
  };
  model.measure = [&](const Graph& graph, const std::string& step) {
    return LossOf(Measure(graph, conversion.weights(), {}, options.eval, options.output, step)) - LossOf(before);
  };
  model.report = [](const std::string& line) {
    std::printf("auto: %s\n", tools::Printable(line).c_str());
    std::fflush(stdout);
  };
  const AutoChoice choice = ChoosePrecision(model, options.max_loss);
  if (choice.loss > options.max_loss) {
    Fail("--max-loss: ", options.max_loss, ": the smallest loss that was found is ", choice.loss, "; --state f32 loses less");
  }
  return model.build(choice.base, choice.types);
}

// What --eval and --calibrate ask for: types of matrices if they are to be chosen, matrices that are rounded already, the measured
// loss. `builder`: what is converted; another one where types were chosen.
RoundedMatrices RoundAndMeasure(const Options& options, const Conversion& conversion, std::unique_ptr<GraphBuilder>* builder) {
  RoundedMatrices rounded;
  const bool calibrates = !options.calibration.file.empty(), measures = !options.eval.file.empty();
  if (!calibrates && !measures) return rounded;
  const auto f32 = conversion.Build(Precision::kF32, /*f32_states=*/true);
  tools::Score before;
  if (measures) before = Measure(f32->graph(), conversion.weights(), {}, options.eval, options.output, "loss in f32");
  if (options.conversion.quant == "auto") *builder = BuildAuto(options, conversion, before);
  Graph& graph = (*builder)->graph();
  if (calibrates) {
    rounded = RoundForText(f32->graph(), graph, conversion.weights(), options.calibration, options.eval.threads, options.output);
  }
  if (measures) graph.loss = MeasureLoss(options, conversion, graph, rounded, before);
  return rounded;
}

// int3 and int2 are for those who have seen what they cost. Random weights have no loss, and other tasks no --eval: there a note
// has to do.
void CheckNarrow(const Options& options, const Conversion& conversion, const std::vector<Matrix>& matrices) {
  Precision narrowest = Precision::kF32;
  for (const Matrix& matrix : matrices) narrowest = std::max(narrowest, matrix.precision);
  if (narrowest <= Precision::kInt4 || !options.eval.file.empty() || options.conversion.seed.has_value()) return;
  const std::string cost = NameOf(narrowest) + " loses much more than int4: ";
  if (conversion.config().task != format::Task::CausalLm) return Note(cost + "measure the result");
  throw tools::UsageFailure(cost + "add --eval FILE, which shows how much");
}

void Convert(const Options& options) {
  const bool automatic = options.conversion.quant == "auto";
  const Conversion conversion(options.conversion);
  std::vector<std::string> inputs = conversion.inputs();
  for (const auto& [option, file] : {std::pair{"--eval", options.eval.file}, {"--calibrate", options.calibration.file}}) {
    if (file.empty()) continue;
    inputs.push_back(file);
    if (conversion.config().task == format::Task::CausalLm) continue;
    throw tools::UsageFailure(std::string(option) + ": a model of task \"causal_lm\" expected, which predicts next tokens");
  }
  tools::CatchInterrupts();
  auto builder = conversion.Build(automatic ? Precision::kInt4 : conversion.Rules());
  for (const std::string& note : conversion.notes()) Note(note);
  if (!automatic && !NarrowText(builder->matrices()).empty()) Note(NarrowText(builder->matrices()));
  CheckNarrow(options, conversion, builder->matrices());
  uint64_t parameters = 0;
  for (const WeightSpec& spec : builder->weights()) parameters += ElementCount(spec.shape);
  if (options.write_checkpoint) {
    const std::string& folder = conversion.folder();
    const CheckpointSource source{conversion.config_text(),
                                  builder->weights(),
                                  conversion.weights(),
                                  folder,
                                  TextFiles(folder),
                                  TokenizerConfigText(folder),
                                  inputs};
    return WriteOwnCheckpoint(options, source, parameters);
  }

  OutputFile file(options.output, inputs);
  const RoundedMatrices rounded = RoundAndMeasure(options, conversion, &builder);
  const std::string output = tools::Printable(options.output);
  ModelSizes sizes;
  {
    WriteProgress progress(options.output, parameters);
    sizes = WriteModel(builder->graph(), conversion.weights(), &file, std::ref(progress), &rounded);
    file.Commit();
  }
  std::printf("%s: %s (weights %s, graph %s), %.2f M parameters, %s, state %s, %s\n", output.c_str(),
              BytesText(sizes.file_bytes).c_str(), BytesText(sizes.weight_bytes).c_str(), BytesText(sizes.graph_bytes).c_str(),
              static_cast<double>(parameters) * 1e-6,
              tools::Printable(PrecisionText(builder->matrices(), options.conversion.quant)).c_str(),
              StatesText(conversion.config()).c_str(), SystemsText(conversion.config()).c_str());
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
void AddName(tools::App* app, const std::string& option, std::string* target, const std::string& description,
             const std::vector<std::string>& names) {
  const auto parse = [=](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw tools::InvalidValue(option, tools::UnknownName(name, names));
    }
    *target = name;
  };
  std::string values;
  for (const std::string& name : names) values += (values.empty() ? "" : "|") + name;
  const std::string otherwise = target->empty() ? "" : " (default: " + *target + ")";
  app->add_option_function(option, parse, description + otherwise)->type_name(values);
}

void AddEvalOptions(tools::App* app, MeasureOptions* options) {
  tools::Option* eval =
      app->add_option("--eval", options->file,
                      "Measure the loss on this text in f32 and as written (without tokenizer: a .npy file of int32 ids)")
          ->input_file();
  tools::AddInteger<uint64_t>(app, "--eval-begin", &options->range.begin, "Skip the first N tokens (default: 0)")->needs(eval);
  tools::AddInteger<uint64_t>(app, "--eval-tokens", &options->range.tokens, "Read at most N tokens (default: all)")->needs(eval);
  tools::AddInteger<uint64_t>(app, "--eval-block", &options->range.block, "Reset the model before every N tokens (default: 256)", 2)
      ->needs(eval);
  tools::AddInteger<uint32_t>(app, "-t,--threads", &options->threads,
                              "Threads of --eval and --calibrate (default: one per fast core that the process may use)", 1, 256);
}

void AddCalibrationOptions(tools::App* app, CalibrationOptions* options) {
  tools::Option* calibrate =
      app->add_option("--calibrate", options->file,
                      "Round int8, int4, int3 and int2 weights so that the outputs of the layers on this text change least; "
                      "the text must resemble the model's input (without tokenizer: a .npy file of int32 ids)")
          ->input_file();
  tools::AddInteger<uint64_t>(app, "--calibrate-tokens", &options->tokens,
                              "At most N tokens, in blocks from all over the text (default: 16384)", kLeastCalibration)
      ->needs(calibrate);
}

void AddFamilyOptions(tools::App* app, FamilyOptions* options) {
  tools::AddInteger<uint32_t>(app, "--max-context", &options->max_context,
                              "Published checkpoint: tokens that full attention remembers (default: the config's longest context)",
                              1, Fields::kMaxSize);
  tools::Option* window = tools::AddInteger<uint32_t>(
      app, "--window", &options->window, "Published checkpoint: full attention sees the last N tokens alone", 1, Fields::kMaxSize);
  tools::AddInteger<uint32_t>(app, "--sinks", &options->sinks,
                              "With --window: full attention also sees the first N tokens (default: 0)", 0, 65536)
      ->needs(window);
}

void AddShortlistOptions(tools::App* app, ConversionOptions* options) {
  app->add_option(
         "--shortlist", options->shortlist,
         "Marian's binary shortlist: which tokens a translation can have (default: the only lex*.bin of a Marian directory)")
      ->input_file();
  app->add_flag("--no-shortlist", options->no_shortlist, "A translation can have any token, whatever the directory has")
      ->excludes("--shortlist");
}

void AddListOptions(tools::App* app, Options* options) {
  app->add_flag("--list-tensors", options->list_tensors, "Print the tensors that a checkpoint with this config.json needs");
  app->add_option("--list-fields", options->list_fields,
                  "Print the fields of config.json (config), of a task, of an attention variant, or of all (default: config)")
      ->expected(0, 1)
      ->default_str("config")
      ->type_name("NAME");
  app->add_flag("--systems", options->list_systems, "Print the table of attention variants, as Markdown, and exit");
  app->add_flag("--families", options->list_families, "Print the table of published families, as Markdown, and exit");
}

// What the parser does not see by itself.
void CheckOptions(const tools::App& app, const Options& options, bool has_max_loss) {
  const ConversionOptions& how = options.conversion;
  const bool lists = options.list_systems || options.list_families || !options.list_fields.empty();
  if ((lists || options.list_tensors) && !options.output.empty()) {
    const char* const list = options.list_tensors    ? "--list-tensors"
                             : options.list_systems  ? "--systems"
                             : options.list_families ? "--families"
                                                     : "--list-fields";
    throw tools::ParseError(tools::App::BothText(list, "--output"));
  }
  if (lists) return;
  if (how.input.empty()) throw tools::ParseError(app.MissingText("input"));
  if (options.output.empty() && !options.list_tensors) throw tools::ParseError(app.MissingText("--output"));
  if (how.quant == "auto" && !has_max_loss) throw tools::ParseError(app.WithoutText("--quant auto", "--max-loss"));
  if (how.quant != "auto" && has_max_loss) throw tools::ParseError(app.WithoutText("--max-loss", "--quant auto"));
  if (how.quant == "auto" && !options.calibration.file.empty()) {
    throw tools::ParseError(tools::App::BothText("--quant auto", "--calibrate"));
  }
  if (options.eval.threads != 0 && options.eval.file.empty() && options.calibration.file.empty()) {
    throw tools::ParseError(app.WithoutText("--threads", "--eval or --calibrate"));
  }
}

int Run(int argc, char** argv) {
  Options options;
  ConversionOptions& how = options.conversion;
  tools::App app("Converts a checkpoint directory into a .tarn model file.", "tarn-convert");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("tarn-convert ") + tarn_version());
  app.add_option("input", how.input, "Checkpoint directory; with --random-weights a config.json, with --list-tensors either")
      ->type_name("PATH");
  app.add_option("-o,--output", options.output,
                 "Model file to write, or with --write-checkpoint a directory (required, except with --list-tensors, "
                 "--list-fields, --systems and --families)")
      ->output_file();
  std::vector<std::string> types = PrecisionNames();
  types.emplace_back("auto");
  AddName(&app, "--quant", &how.quant, "Type of matrices; int3 and int2 of a causal model, and auto, need --eval", types);
  app.add_option("--keep", how.keep,
                 "Another type for matrices whose name matches, as PATTERN=TYPE; repeatable, the last match wins")
      ->check(CheckKeep)
      ->type_name("RULE")
      ->allow_extra_args(false);
  app.add_option("--name", how.name, "Name of the model (default: the name of the input)")->type_name("NAME");
  AddName(&app, "--chat-template", &how.chat_template,
          "Text around the turns of a conversation, in place of the checkpoint's chat template", KnownTemplateNames());
  AddName(&app, "--state", &how.state, "Type of the states", {"f32", "f16", "int8"});
  AddEvalOptions(&app, &options.eval);
  AddCalibrationOptions(&app, &options.calibration);
  tools::Option* max_loss =
      tools::AddNumber(
          &app, "--max-loss", "X", &options.max_loss,
          "With --quant auto: the most loss above f32 on the text of --eval, in nats per byte (without tokenizer: per token)",
          {0, false, 100})
          ->needs("--eval");
  app.add_flag("--force", how.force, "Accept --state f16 where it loses more than rounding");
  AddFamilyOptions(&app, &how.family);
  AddShortlistOptions(&app, &how);
  tools::Option* write = app.add_flag("--write-checkpoint", options.write_checkpoint,
                                      "Write a checkpoint directory in tarn's own layout, F32, in place of a model file");
  for (const char* other :
       {"--quant", "--keep", "--name", "--chat-template", "--state", "--eval", "--calibrate", "--force", "--shortlist"}) {
    write->excludes(other);
  }
  AddListOptions(&app, &options);
  tools::AddInteger<uint64_t>(&app, "--random-weights", &how.seed,
                              "Write a model with random weights from seed N, without a checkpoint");
  try {
    if (const std::optional<std::string> text = app.parse({argv + std::min(argc, 1), argv + argc})) {
      std::fputs(text->c_str(), stdout);
      return 0;
    }
    CheckOptions(app, options, !max_loss->empty());
    how.no_shortlist = how.no_shortlist || options.write_checkpoint;  // a directory of tensors has none
  } catch (const tools::ParseError& error) {
    std::fprintf(stderr, "tarn-convert: error: %s (see tarn-convert --help)\n", tools::ErrorLine(error.what()).c_str());
    return tools::kUsageExit;
  }
  if (options.list_systems) {
    std::fputs(SystemTable(*SelectKernels(nullptr), Reference()).c_str(), stdout);
  } else if (options.list_families) {
    std::fputs(FamilyTable().c_str(), stdout);
  } else if (!options.list_fields.empty()) {
    ListFields(options.list_fields);
  } else if (options.list_tensors) {
    ListTensors(how);
  } else {
    Convert(options);
  }
  return 0;
}

}  // namespace
}  // namespace tarn::convert

int main(int argc, char** argv) { return tarn::tools::RunTool(tarn::convert::Run, argc, argv); }
