// tarn bench: tokens per second, against depth, threads and what the machine's memory allows.
#include "tools/tarn/bench.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "tools/common/integer_option.h"
#include "tools/common/output_file.h"
#include "tools/common/signals.h"
#include "tools/tarn/bench_report.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;
using tarn::tools::OutputFile;

constexpr uint32_t kMostTokens = 1u << 20;  // of a test
constexpr uint32_t kMostDepth = 1u << 30;
constexpr uint32_t kMostThreads = 256;
constexpr uint32_t kMostBatch = 4096;

struct BenchCommand {
  BenchOptions bench;
  BenchFormat format = BenchFormat::kMarkdown;
  std::string plot;
  uint32_t memory_mib = 1024;  // what "memory" reads
};

// "1,2,4"
const CLI::Option* AddIntegerList(CLI::App* app, const std::string& names, std::vector<uint32_t>* target,
                                  const std::string& description, uint32_t min, uint32_t max) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const auto parse = [=](const std::string& text) {
    target->clear();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string item = text.substr(begin, end - begin);
      const std::optional<uint32_t> value = tarn::tools::ParseInteger<uint32_t>(item, min, max);
      if (!value) throw CLI::ValidationError(name, tarn::tools::NotInteger(item, min, max));
      target->push_back(*value);
      begin = end + 1;
    }
  };
  return app->add_option_function<std::string>(names, parse, description)->type_name("N,...");
}

int RunCommand(const BenchCommand& command) {
  tarn::tools::CatchInterrupts();
  // Now: that it cannot be written should not be found out after an hour.
  std::optional<OutputFile> plot;
  if (!command.plot.empty()) plot.emplace(command.plot, command.bench.models);
  // For the same reason: reads the graph alone.
  for (const std::string& path : command.bench.models) {
    ModelOptions options = command.bench.model;
    options.path = path;
    Requirements(options, SessionConfig({command.bench.threads.front(), command.bench.chunk}));
  }
  const MemoryBandwidth memory = MeasureMemory(uint64_t{command.memory_mib} << 20, command.bench.threads);
  std::vector<BenchRow> rows;
  if (!WriteStdout(BenchHeader(command.format, memory))) return 0;
  const auto write = [&](const BenchRow& row) {
    rows.push_back(row);
    return WriteStdout(BenchRowText(command.format, row, rows.size() == 1));
  };
  try {
    for (const std::string& path : command.bench.models) {
      if (!RunBench(command.bench, path, memory, write)) return 0;  // its reader has seen enough
    }
  } catch (const std::exception&) {
    WriteStdout(BenchFooter(command.format, !rows.empty()));  // what was measured stays readable
    throw;
  }
  WriteStdout(BenchFooter(command.format, !rows.empty()));
  if (rows.empty()) throw Failure("bench: no test could be run");
  if (command.format == BenchFormat::kMarkdown) WriteStdout(ProfileText(rows));
  if (plot) {
    const std::string svg = BenchPlot(rows);
    plot->Write(svg.data(), svg.size());
    plot->Commit();
  }
  return 0;
}

}  // namespace

void AddBench(CLI::App* app, Command* command) {
  CLI::App* bench = app->add_subcommand("bench", "Measure tokens per second against depth, threads and the machine's memory");
  const auto options = std::make_shared<BenchCommand>();
  BenchOptions& wanted = options->bench;
  bench->add_option("-m,--model", wanted.models, "Model file; may be given again")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  AddInteger<uint32_t>(bench, "-p,--n-prompt", &wanted.prompt_tokens,
                       "Tokens of the prompt, or of each source; 0: no such test (default: 512)", 0, kMostTokens);
  AddInteger<uint32_t>(bench, "-n,--n-gen", &wanted.generated_tokens,
                       "Single steps of the decode test; 0: no such test (default: 128)", 0, kMostTokens);
  wanted.by_task.Only({TARN_TASK_CAUSAL_LM}, AddIntegerList(bench, "-d,--n-depth", &wanted.depths,
                                                            "Tokens in the sequence before a test (default: 0)", 0, kMostDepth));
  wanted.by_task.Only({TARN_TASK_SEQ2SEQ, TARN_TASK_CLASSIFICATION, TARN_TASK_MASKED_LM},
                      AddInteger<uint32_t>(bench, "--batch", &wanted.batch, "Sources at a time (default: 1)", 1, kMostBatch));
  AddIntegerList(bench, "-t,--threads", &wanted.threads, "Threads (default: the fast cores, if it may run on so many)", 1,
                 kMostThreads);
  AddInteger<uint32_t>(bench, "-r,--repetitions", &wanted.repetitions, "Repetitions of each test (default: 5)", 1, 1000);
  AddInteger<uint32_t>(bench, "--chunk", &wanted.chunk, "Longest chunk of a prompt, in tokens (default: 64)", 1, 1u << 16);
  const std::map<std::string, BenchFormat> formats = {
      {"md", BenchFormat::kMarkdown}, {"csv", BenchFormat::kCsv}, {"json", BenchFormat::kJson}};
  const auto set_format = [=](const std::string& name) {
    const auto found = formats.find(name);
    if (found == formats.end()) throw CLI::ValidationError("--output", "is '" + name + "', wanted md, csv or json");
    options->format = found->second;
  };
  bench->add_option_function<std::string>("-o,--output", set_format, "Format: md, csv or json (default: md)")->type_name("FORMAT");
  wanted.by_task.Only(
      {TARN_TASK_CAUSAL_LM},
      bench->add_option("--plot", options->plot, "Draw tokens/s and memory against depth into an SVG file")->type_name("FILE"));
  bench->add_flag("--profile", wanted.profile, "One more repetition of each test: its time per kind of op (md, json)");
  AddInteger<uint32_t>(bench, "--memory-mib", &options->memory_mib, "", 1)->group("");  // hidden: for tests, which have no time
  AddModelOptions(bench, &wanted.model);
  bench->footer(
      "The read bandwidth that rows are compared with is measured before each of their repetitions.\n"
      "Models that encode: enc512 encodes sources of 512 tokens, dec128 takes 128 single steps after them; tokens/s are those of\n"
      "all sources.\n"
      "Examples:\n"
      "  tarn bench -m model.tarn -p 512 -n 128 -d 0,4096 -t 1,2\n"
      "  tarn bench -m model.tarn -n 0 --profile\n"
      "  tarn bench -m model.tarn -m softmax.tarn -p 0 -d 0,512,2048,8192 --plot depth.svg\n"
      "  tarn bench -m translation.tarn -p 2048 -n 2048 --batch 16");
  bench->callback([=] {
    BenchOptions& parsed = options->bench;
    if (parsed.prompt_tokens == 0 && parsed.generated_tokens == 0) throw UsageError("bench: nothing to measure: -p and -n are 0");
    if (parsed.profile && options->format == BenchFormat::kCsv)
      throw UsageError("bench: --profile does not fit -o csv, wanted md or json");
    if (parsed.threads.empty()) parsed.threads = {tarn_default_threads()};
    *command = [=] { return RunCommand(*options); };
  });
}

}  // namespace tarn_cli
