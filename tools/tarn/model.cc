#include "tools/tarn/model.h"

#include <strings.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/printable.h"
#include "tools/common/suggestion.h"
#include "tools/common/tokenizer.h"
#include "tools/tarn/environment.h"
#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

// The kernels that --isa or else TARN_ISA asks for, in any case; nullptr if nobody does.
const char* ChosenIsa(const std::string& option) {
  const std::string wanted = !option.empty() ? option : Environment("TARN_ISA");
  if (wanted.empty()) return nullptr;
  std::vector<std::string> names;
  for (size_t i = 0; tarn_isa_name(i) != nullptr; ++i) {
    if (strcasecmp(wanted.c_str(), tarn_isa_name(i)) == 0) return tarn_isa_name(i);
    names.push_back(tarn_isa_name(i));
  }
  const std::string unknown = tarn::tools::UnknownName(wanted, names);
  if (option.empty()) throw Failure("TARN_ISA of the environment " + unknown);
  throw UsageError("--isa " + unknown);
}

std::string NamedPackedCache(const std::string& option) { return !option.empty() ? option : Environment("TARN_PACKED_CACHE"); }

// The directory of packed weights that --packed-cache, or else TARN_PACKED_CACHE, or else the user's cache directory says; empty:
// none.
std::string ChosenPackedCache(const std::string& option) {
  const std::string wanted = NamedPackedCache(option);
  if (wanted == "none") return "";
  if (!wanted.empty()) return wanted;
  std::string caches = Environment("XDG_CACHE_HOME");
  if (caches.empty() && !Environment("HOME").empty()) caches = Environment("HOME") + "/.cache";
  if (caches.empty() || caches[0] != '/') return "";
  // The library makes the last directory.
  std::error_code failed;  // then the library finds no directory, and does without
  std::filesystem::create_directories(caches + "/tarn", failed);
  return caches + "/tarn/packed";
}

// What the C API is asked with; `options` outlive it.
struct ModelArguments {
  explicit ModelArguments(const ModelOptions& options) : packed_cache(ChosenPackedCache(options.packed_cache)) {
    source.path = options.path.c_str();
    config.verify_weights = options.verify ? 1 : 0;
    config.no_verify = options.no_verify ? 1 : 0;
    config.isa = ChosenIsa(options.isa);
    config.portable_dense = options.portable_dense ? 1 : 0;
    config.max_work_per_token = options.max_work;
    config.max_packed_bytes = options.max_packed;
    if (!packed_cache.empty()) config.packed_cache = packed_cache.c_str();
  }
  ModelArguments(const ModelArguments&) = delete;
  ModelArguments& operator=(const ModelArguments&) = delete;

  const std::string packed_cache;
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
};

// A directory that somebody named, and that keeps nothing for the next start: the model runs, and starts slowly every time.
void WarnOfPackedCache(const ModelOptions& options, const Model& model) {
  const std::string named = NamedPackedCache(options.packed_cache);
  if (options.quiet || named.empty() || named == "none") return;
  const bool is_open = access((named + "/.").c_str(), R_OK | W_OK | X_OK) == 0;
  const char* why = is_open ? "a file cannot be written there" : std::strerror(errno);
  if (is_open && model.Requirements(TARN_SESSION_CONFIG_INIT).packed_anonymous_bytes == 0) return;
  const std::string name = options.packed_cache.empty() ? "TARN_PACKED_CACHE " : "--packed-cache ";
  const std::string line = tarn::tools::ErrorLine(name + named + ": " + why);
  std::fprintf(stderr, "tarn: warning: %s; every start packs and verifies the weights again\n", line.c_str());
}

}  // namespace

OptionGroup::OptionGroup(App* app, const std::string& name) : app_(app), before_(app->set_group(name)) {}

OptionGroup::~OptionGroup() { app_->set_group(before_); }

namespace {

Option* AddModel(App* app, std::string* path) {
  return app->add_option("model,-m,--model", *path, "Model file; TARN_MODEL can name it instead")->input_file();
}

}  // namespace

void AddModelPath(App* app, std::string* path) { AddModel(app, path); }

void RequireModelPath(App* app, std::string* path) {
  Option* option = AddModel(app, path);
  *path = Environment("TARN_MODEL");
  if (path->empty()) option->required();
}

void AddModelOptions(App* app, ModelOptions* options) {
  const OptionGroup group(app, kRuntimeOptions);
  app->add_option("--isa", options->isa,
                  "Instruction set of the kernels; `tarn inspect --cpu` lists them (default: TARN_ISA, else the best)")
      ->type_name("NAME");
  app->add_flag("--portable-dense", options->portable_dense, "Run dense layers with tarn's own kernels instead of XNNPACK");
  app->add_option("--packed-cache", options->packed_cache,
                  "Directory that keeps packed weights between starts; none: no files (default: TARN_PACKED_CACHE, else "
                  "tarn/packed in the user's cache directory)")
      ->directory();
  auto* verify = app->add_flag("--verify", options->verify,
                               "Check the hash of the weights at every start (default: at the first start after a boot)");
  app->add_flag("--no-verify", options->no_verify, "Never check the weights: damaged ones are used without notice")
      ->excludes(verify);
  tarn::tools::AddInteger<uint64_t>(
      app, "--max-work", &options->max_work,
      "Refuse a model that needs more than N multiply-adds per token (default: 2^28 plus 128 per byte of the file)");
  tarn::tools::AddInteger<uint64_t>(
      app, "--max-packed", &options->max_packed,
      "Refuse a model that needs more than N bytes of packed weights (default: 64 MiB plus 8 per byte of the file)");
}

void AddSessionOptions(App* app, SessionOptions* options) {
  const OptionGroup group(app, kRuntimeOptions);
  tarn::tools::AddInteger<uint32_t>(app, "-t,--threads", &options->threads, kThreadsHelp, 0, kMostThreads);
  tarn::tools::AddInteger<uint32_t>(app, "--chunk", &options->chunk, "Tokens per prefill chunk (default: 64)", 1, kMostChunk);
}

uint32_t ChosenThreads(std::optional<uint32_t> option) {
  const uint32_t threads = option ? *option : EnvironmentInteger("TARN_THREADS", 0, kMostThreads).value_or(0);
  return threads != 0 ? threads : tarn_default_threads();
}

tarn_session_config SessionConfig(const SessionOptions& options) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.threads = ChosenThreads(options.threads);
  config.max_chunk = options.chunk != 0 ? options.chunk : 64;
  return config;
}

Model::Model(const ModelOptions& options) : path_(options.path) {
  const ModelArguments arguments(options);
  tarn_error error;
  tarn_model* model = nullptr;
  Check(tarn_model_open(&arguments.source, &arguments.config, &model, &error), error);
  model_.reset(model);
  StopIfInterrupted();
  Check(tarn_model_get_info(model, &info_, &error), error);
  WarnOfPackedCache(options, *this);
}

tarn_memory Requirements(const ModelOptions& options, const tarn_session_config& config) {
  const ModelArguments arguments(options);
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_error error;
  Check(tarn_requirements(&arguments.source, &arguments.config, &config, &memory, &error), error);
  return memory;
}

tarn_memory Model::Requirements(const tarn_session_config& config) const {
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_error error;
  Check(tarn_model_requirements(get(), &config, &memory, &error), error);
  return memory;
}

std::vector<int32_t> Model::Tokenize(const std::string& text, bool plain) const {
  return tarn::tools::Tokenizer(get(), plain).Encode(text, /*with_template=*/true).tokens;
}

std::string HowItRuns(const Model& model, const tarn_session_config& config) {
  return Format("%u thread%s, kernels %s, dense layers %s", config.threads, config.threads == 1 ? "" : "s", model.info().isa,
                model.info().dense);
}

}  // namespace tarn_cli
