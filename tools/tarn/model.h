// A model and a session as every subcommand opens them, with the options that they share.
#ifndef TARN_TOOLS_TARN_MODEL_H_
#define TARN_TOOLS_TARN_MODEL_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/tarn/error.h"

namespace tarn_cli {

using tarn::tools::App;
using tarn::tools::Option;

struct ModelOptions {
  std::string path;
  std::string isa;  // as TARN_ISA says where it is empty
  bool portable_dense = false;
  bool verify = false;       // at every start
  bool no_verify = false;    // never
  std::string packed_cache;  // a directory or "none"; as TARN_PACKED_CACHE says where it is empty
  uint64_t max_work = 0;     // multiply-adds per token; this and the next: 0: the library's default
  uint64_t max_packed = 0;   // bytes
  bool quiet = false;        // no warnings
};

// Numbers of a session that the command line sets.
struct SessionOptions {
  std::optional<uint32_t> threads;  // of ChosenThreads()
  uint32_t chunk = 0;               // 0: the library's default
};

// While it lives, options that are added to `app` have a heading of their own in the help.
class OptionGroup {
 public:
  OptionGroup(App* app, const std::string& name);
  ~OptionGroup();
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  App* app_;
  std::string before_;
};

constexpr char kRuntimeOptions[] = "Runtime";  // the heading of AddModelOptions() and AddSessionOptions()
constexpr char kThreadsHelp[] = "Threads; 0: one per fast core that the process may use (default: TARN_THREADS, else 0)";
// What the library takes.
constexpr uint32_t kMostThreads = 256;
constexpr uint32_t kMostChunk = 1u << 16;

// The model file, as MODEL or -m MODEL; where neither is given `*path` stays empty.
void AddModelPath(App* app, std::string* path);
// The same of a command that needs one.
void RequireModelPath(App* app, std::string* path);
// --isa, --portable-dense, --packed-cache, --verify, --no-verify, --max-work, --max-packed.
void AddModelOptions(App* app, ModelOptions* options);
// -t, --chunk.
void AddSessionOptions(App* app, SessionOptions* options);

// The number of threads that -t, or else TARN_THREADS, asks for; 0 and nothing: tarn_default_threads(). Throws Failure.
uint32_t ChosenThreads(std::optional<uint32_t> option);

tarn_session_config SessionConfig(const SessionOptions& options);

class Model {
 public:
  explicit Model(const ModelOptions& options);  // throws Failure, also if it was interrupted; may warn on standard error

  const tarn_model* get() const { return model_.get(); }
  const tarn_model_info& info() const { return info_; }
  const std::string& path() const { return path_; }
  tarn_memory Requirements(const tarn_session_config& config) const;

  // Token ids of a text; `plain`: special tokens in it are text like any other. Throws Failure if the model has no tokenizer.
  std::vector<int32_t> Tokenize(const std::string& text, bool plain = false) const;

 private:
  std::unique_ptr<tarn_model, void (*)(tarn_model*)> model_{nullptr, tarn_model_close};
  tarn_model_info info_ = TARN_MODEL_INFO_INIT;
  std::string path_;
};

// The same as Model::Requirements, of a file that is not opened for it.
tarn_memory Requirements(const ModelOptions& options, const tarn_session_config& config);  // throws Failure

// "2 threads, kernels AVX2, dense layers xnnpack"
std::string HowItRuns(const Model& model, const tarn_session_config& config);

// Every entry of one of the lists of inspect.h.
template <typename Info>
std::vector<Info> List(const Model& model, tarn_status (*get)(const tarn_model*, size_t, Info*, tarn_error*)) {
  std::vector<Info> list;
  for (;;) {
    Info info = {};
    info.struct_size = sizeof(Info);
    tarn_error error;
    const tarn_status status = get(model.get(), list.size(), &info, &error);
    if (status == TARN_NOT_FOUND) return list;
    Check(status, error);
    list.push_back(info);
  }
}

using tarn::tools::Session;
inline Session CreateSession(const Model& model, const tarn_session_config& config) {  // throws Failure
  return tarn::tools::CreateSession(model.get(), config);
}

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_MODEL_H_
