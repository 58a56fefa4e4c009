// tarn run: what the command line says, and the two ways in which models make text.
#ifndef TARN_TOOLS_TARN_RUN_H_
#define TARN_TOOLS_TARN_RUN_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/output_file.h"
#include "tools/tarn/generation.h"
#include "tools/tarn/input.h"
#include "tools/tarn/model.h"
#include "tools/tarn/sampling_options.h"
#include "tools/tarn/sources.h"
#include "tools/tarn/speculation.h"
#include "tools/tarn/task.h"
#include "tools/tarn/translation.h"
#include "tools/tarn/turn.h"

namespace tarn_cli {

struct RunOptions {
  ModelOptions model;
  SessionOptions session;
  SamplingOptions sampling;
  Input input;
  TurnOptions turns;
  bool raw = false;                 // keep the newline at the end of a prompt that is read
  int64_t max_output_tokens = 128;  // -1: until something else ends it
  bool test_allocate = false;       // of GenerationOptions
  TranslationOptions translation;
  std::vector<std::string> stop_strings;
  bool escapes = false;  // in texts of the command line
  bool echo = true;      // write the prompt
  bool quiet = false;    // nothing on standard error but errors
  bool jsonl = false;    // a line of JSON for each event, instead of the text
  bool interactive = false;
  SpeculationOptions speculation;
  std::string load_state, save_state;  // snapshots
  bool compact_state = false;          // of those that are saved
  std::string prompt_cache;            // a directory
  uint64_t prompt_cache_bytes = uint64_t{1} << 30;
  std::string json_stats;  // "-": standard output, instead of the text
  TaskOptions by_task;
};

// Return the exit status. Throw Failure.
int RunInteractive(const RunOptions& options, const Model& model);
int RunCausal(const RunOptions& options, const Model& model);
int RunSeq2Seq(const RunOptions& options, const Model& model);

// The files that a run reads and that no output may replace. The state of --load-state may be replaced by --save-state.
std::vector<std::string> RunInputs(const RunOptions& options);

// The prompt of a causal model, behind `used` tokens. Throws UsageError or Failure: none, or one that the model does not take.
Tokens PromptTokens(const RunOptions& options, const Model& model, TurnPlace place, uint64_t used);

// Where --json-stats goes.
class StatsOutput {
 public:
  // Now, since that it cannot be written should not be found out after an hour. Throws Failure.
  explicit StatsOutput(const RunOptions& options);
  bool wanted() const { return to_stdout_ || file_ != nullptr; }
  bool to_stdout() const { return to_stdout_; }
  void Write(const std::string& text);

 private:
  bool to_stdout_ = false;
  std::unique_ptr<tarn::tools::OutputFile> file_;
};

// What a run took.
struct RunReport {
  const Model& model;
  tarn_session_config config;
  uint64_t prompt_tokens;                // that were read; of the sources
  uint64_t prompt_length;                // that were there to read
  std::optional<uint64_t> seed;          // where anything was drawn
  std::optional<double> encode_seconds;  // where there are sources
  const GenerationStats& stats;
};

// The table, and the event that ends a text of --jsonl; false: as WriteStdout().
std::string ReportText(const RunReport& report);
bool WriteEndEvent(const RunReport& report);

// A table on standard error, unless quiet, the event of --jsonl, and the JSON.
void WriteReport(const RunReport& report, const RunOptions& options, StatsOutput* output);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_RUN_H_
