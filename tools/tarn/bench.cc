// tarn bench: tokens per second, against depth, threads and what the machine's memory allows.
#include "tools/tarn/bench.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/output_file.h"
#include "tools/common/suggestion.h"
#include "tools/tarn/bench_report.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/environment.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;
using tarn::tools::OutputFile;

constexpr uint32_t kMostTokens = 1u << 20;  // of a test
constexpr uint32_t kMostDepth = 1u << 30;
constexpr uint32_t kMostBatch = 4096;

struct BenchCommand {
  BenchOptions bench;
  BenchFormat format = BenchFormat::kMarkdown;
  std::string plot;
  uint32_t memory_mib = 1024;  // what "memory" reads
};

// "1,2,4"
const Option* AddIntegerList(App* app, const std::string& names, std::vector<uint32_t>* target, const std::string& description,
                             uint32_t min, uint32_t max) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const auto parse = [=](const std::string& text) {
    target->clear();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string item = text.substr(begin, end - begin);
      const std::optional<uint32_t> value = tarn::tools::ParseInteger<uint32_t>(item, min, max);
      if (!value) throw tarn::tools::InvalidValue(name, tarn::tools::NotInteger(item, min, max));
      target->push_back(*value);
      begin = end + 1;
    }
  };
  return app->add_option_function(names, parse, tarn::tools::WithRange(description, tarn::tools::IntegerRange(min, max)))
      ->type_name("N,...");
}

// "512,128": a prompt, then single steps. main() has a -pg for it.
const Option* AddBoth(App* app, std::vector<BenchWork>* both) {
  const auto parse = [=](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t comma = std::min(text.find(','), text.size());
      const auto prompt = tarn::tools::ParseInteger<uint32_t>(text.substr(0, comma), 1, kMostTokens);
      const auto generated = tarn::tools::ParseInteger<uint32_t>(comma < text.size() ? text.substr(comma + 1) : "", 1, kMostTokens);
      if (!prompt || !generated) {
        throw tarn::tools::InvalidValue("-pg",
                                        Format("is '%s', expected P,N: tokens of a prompt and single steps, each an integer from 1 "
                                               "to %u",
                                               text.c_str(), kMostTokens));
      }
      both->push_back({*prompt, *generated});
    }
  };
  return app
      ->add_option_function("--pg", parse,
                            "Test a prompt of P tokens and N steps after it, timed together; also -pg P,N; repeatable")
      ->type_name("P,N")
      ->allow_extra_args(false);
}

int RunCommand(const BenchCommand& command) {
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

void AddBench(App* app, Command* command) {
  App* bench = app->add_subcommand("bench", "Measure tokens per second by depth and threads, and the share of the read bandwidth");
  const auto options = std::make_shared<BenchCommand>();
  BenchOptions& wanted = options->bench;
  Option* models =
      bench->add_option("model,-m,--model", wanted.models, "Model files; TARN_MODEL can name one instead")->input_file();
  if (Environment("TARN_MODEL").empty()) models->required();
  AddIntegerList(bench, "-p,--n-prompt", &wanted.prompts,
                 "Tokens of the prompt, or of each source; 0: skip this test (default: 512)", 0, kMostTokens);
  AddIntegerList(bench, "-n,--n-gen", &wanted.generated, "Steps of the decode test; 0: skip it (default: 128)", 0, kMostTokens);
  wanted.by_task.Only({TARN_TASK_CAUSAL_LM}, AddBoth(bench, &wanted.both));
  wanted.by_task.Only({TARN_TASK_CAUSAL_LM},
                      AddIntegerList(bench, "-d,--n-depth", &wanted.depths,
                                     "Tokens that the sequence has before a test (default: 0)", 0, kMostDepth));
  wanted.by_task.Only({TARN_TASK_SEQ2SEQ, TARN_TASK_CLASSIFICATION, TARN_TASK_MASKED_LM},
                      AddInteger<uint32_t>(bench, "--batch", &wanted.batch, "Sources per batch (default: 1)", 1, kMostBatch));
  AddIntegerList(bench, "-t,--threads", &wanted.threads, kThreadsHelp, 0, kMostThreads);
  AddInteger<uint32_t>(bench, "-r,--repetitions", &wanted.repetitions, "Repetitions of each test (default: 5)", 1, 1000);
  AddInteger<uint32_t>(bench, "--chunk", &wanted.chunk, "Tokens per prefill chunk (default: 64)", 1, kMostChunk);
  const auto set_format = [=](const std::string& name) {
    static const std::vector<std::string> kNames = {"md", "csv", "json", "jsonl"};  // by BenchFormat
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) throw tarn::tools::InvalidValue("--output", tarn::tools::UnknownName(name, kNames));
    options->format = static_cast<BenchFormat>(found - kNames.begin());
  };
  bench->add_option_function("-o,--output", set_format, "Format of the rows; jsonl: one JSON object per line (default: md)")
      ->type_name("md|csv|json|jsonl");
  wanted.by_task.Only(
      {TARN_TASK_CAUSAL_LM},
      bench->add_option("--plot", options->plot, "Draw tokens/s and memory by depth into an SVG file")->output_file());
  bench->add_flag("--profile", wanted.profile, "Repeat each test once more and report its time per kind of op (not with csv)");
  AddInteger<uint32_t>(bench, "--memory-mib", &options->memory_mib, "", 1)->group("");  // hidden: for tests, which have no time
  AddModelOptions(bench, &wanted.model);
  bench->footer(
      "Each repetition is compared with the read bandwidth that was measured just before it.\n"
      "For models that encode, enc512 encodes sources of 512 tokens, dec128 takes 128 steps after them; tokens/s are\n"
      "those of all sources.\n"
      "Examples (shakespeare-*: examples/models; dates: tarn-convert examples/train/checkpoints/dates-abc -o dates.tarn):\n"
      "  tarn bench shakespeare-rfa-gate-int8.tarn -p 128,512 -n 32,128 -d 0,4096 -t 1,2\n"
      "  tarn bench shakespeare-rfa-gate-int8.tarn -n 0 --profile\n"
      "  tarn bench shakespeare-rfa-gate-int8.tarn -p 0 -n 0 -pg 512,128 -o jsonl\n"
      "  tarn bench shakespeare-rfa-gate-int8.tarn shakespeare-abc-mlp-int8.tarn -p 0 -d 0,512,2048 --plot depth.svg\n"
      "  tarn bench dates.tarn -p 32 -n 32 --batch 16");
  bench->callback([=] {
    BenchOptions& parsed = options->bench;
    if (parsed.models.empty()) parsed.models = {Environment("TARN_MODEL")};
    const auto some = [](const std::vector<uint32_t>& list) {
      return std::any_of(list.begin(), list.end(), [](uint32_t n) { return n > 0; });
    };
    if (!some(parsed.prompts) && !some(parsed.generated) && parsed.both.empty()) {
      throw UsageError("bench: nothing to measure: -p and -n are 0, and there is no -pg");
    }
    if (parsed.profile && options->format == BenchFormat::kCsv) {
      throw UsageError("bench: --profile does not fit -o csv, expected md, json or jsonl");
    }
    if (parsed.threads.empty()) parsed.threads = {ChosenThreads(std::nullopt)};
    std::replace(parsed.threads.begin(), parsed.threads.end(), 0u, tarn_default_threads());
    *command = [=] { return RunCommand(*options); };
  });
}

}  // namespace tarn_cli
