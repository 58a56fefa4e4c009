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
#include "tools/tarn/model.h"
#include "tools/tarn/sources.h"
#include "tools/tarn/task.h"
#include "tools/tarn/translation.h"

namespace tarn_cli {

struct RunOptions {
  ModelOptions model;
  SessionOptions session;
  tarn_sampler_config sampler = TARN_SAMPLER_CONFIG_INIT;
  bool has_seed = false;
  std::string prompt;
  std::string prompt_file;
  std::string ids;  // the prompt as --tokens has it
  Tokens tokens;
  int64_t max_tokens = 128;    // -1: until something else ends it
  bool test_allocate = false;  // of GenerationOptions
  TranslationOptions translation;
  std::string json_stats;
  TaskOptions by_task;
};

// Return the exit status. Throw Failure.
int RunCausal(const RunOptions& options, const Model& model);
int RunSeq2Seq(const RunOptions& options, const Model& model);

// The file of --json-stats, if it is asked for: at the start, since that it cannot be written should not be found out after an
// hour.
std::unique_ptr<tarn::tools::OutputFile> StatsFile(const RunOptions& options);

// What a run took.
struct RunReport {
  const Model& model;
  tarn_session_config config;
  uint64_t prompt_tokens;                // of the sources
  std::optional<uint64_t> seed;          // where anything was drawn
  std::optional<double> encode_seconds;  // where there are sources
  const GenerationStats& stats;
};

// A table on standard error, and the file; nullptr: none.
void WriteReport(const RunReport& report, tarn::tools::OutputFile* file);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_RUN_H_
