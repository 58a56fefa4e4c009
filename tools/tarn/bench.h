// tarn bench: what is measured, and the rows that come out.
#ifndef TARN_TOOLS_TARN_BENCH_H_
#define TARN_TOOLS_TARN_BENCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/tarn/model.h"
#include "tools/tarn/task.h"

namespace tarn_cli {

// What a test does with every sequence: reads a prompt (or a source), then takes single steps. One of them may be 0.
struct BenchWork {
  uint32_t prompt = 0;
  uint32_t generated = 0;

  uint32_t tokens() const { return prompt + generated; }
};

struct BenchOptions {
  std::vector<std::string> models;
  ModelOptions model;                       // but its path
  std::vector<uint32_t> prompts = {512};    // tokens of each test; 0: no such test
  std::vector<uint32_t> generated = {128};  // single steps of each; 0: no such test
  std::vector<BenchWork> both;              // a prompt, then single steps
  std::vector<uint32_t> depths = {0};
  std::vector<uint32_t> threads;
  uint32_t repetitions = 5;
  uint32_t chunk = 64;
  uint32_t batch = 1;  // sources
  bool profile = false;
  TaskOptions by_task;
};

// All ops of one kind, in one repetition.
struct KindTime {
  std::string kind;
  uint64_t runs = 0;
  uint64_t ns = 0;
};

// One test of one model with one number of threads.
struct BenchRow {
  std::string path;
  std::string model;
  std::string precision;
  uint64_t file_bytes;
  uint64_t parameters;
  std::string dense;
  std::string isa;
  bool bounded;  // its sequences end: what it reads per token depends on the depth
  uint32_t threads;
  bool encodes;    // the prompts are sources
  BenchWork work;  // that is timed, for each sequence
  uint32_t batch;  // sequences
  uint64_t depth;
  std::vector<double> rates;  // tokens/s of all sequences, one per repetition
  uint64_t session_bytes;     // the block that a session lives in: state, arena, scratch, program
  uint64_t state_bytes;
  uint64_t used_state_bytes;               // of the state, what a sequence of depth + tokens fills
  std::optional<uint64_t> peak_anonymous;  // bytes of the process; nothing where /proc does not say
  // Decode of models that are not bounded:
  std::optional<uint64_t> bytes_per_token;
  std::vector<double> bandwidths;  // bytes/s, one before each repetition
  double memory_bandwidth;         // bytes/s, of a buffer larger than caches
  std::vector<KindTime> profile;   // slowest first
  uint64_t profiled_ns;            // of that repetition as a whole

  std::string Test() const;  // "pp512", "tg128", "pp512+tg128"; of sources "enc512", "dec128"
  bool decode() const { return work.prompt == 0; }
  uint64_t all_tokens() const { return uint64_t{batch} * work.tokens(); }
  // Of a prompt alone: until the logits are there; of sources: until they are encoded.
  std::optional<double> FirstTokenMs() const;
  std::optional<double> BytesPerSecond() const;
  std::optional<double> BandwidthShare() const;
};

double Mean(const std::vector<double>& values);
double Deviation(const std::vector<double>& values);  // of a sample; 0 for one value
double Median(std::vector<double> values);            // at least one value

// The reference of "memory": by number of threads, bytes/s.
struct MemoryBandwidth {
  uint64_t size_bytes;
  std::map<uint32_t, double> by_threads;
};
MemoryBandwidth MeasureMemory(uint64_t size_bytes, const std::vector<uint32_t>& threads);

// Runs the tests of one model; `row` gets each as it is done and says whether to go on, and so does the result. What takes longer
// than a moment says on stderr how far it is. Throws Failure; Ctrl-C is one ("interrupted").
bool RunBench(const BenchOptions& options, const std::string& path, const MemoryBandwidth& memory,
              const std::function<bool(const BenchRow&)>& row);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_BENCH_H_
