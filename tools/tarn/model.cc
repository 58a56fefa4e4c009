#include "tools/tarn/model.h"

#include <CLI/CLI.hpp>

#include "tools/tarn/error.h"

namespace tarn_cli {

void AddModelOptions(CLI::App* app, ModelOptions* options) {
  app->add_option("--isa", options->isa, "Kernels to use; `tarn inspect --cpu` lists them (default: the best)")
      ->envname("TARN_ISA")
      ->type_name("NAME");
  app->add_flag("--portable-dense", options->portable_dense, "Use the portable dense layers instead of XNNPACK");
  app->add_flag("--verify", options->verify, "Read all weights once and check their hash");
}

void AddSessionOptions(CLI::App* app, SessionOptions* options) {
  app->add_option("-t,--threads", options->threads, "Threads (default: the number of fast cores)")->type_name("N");
  app->add_option("--chunk", options->chunk, "Longest chunk of a prefill, in tokens (default: 64)")->type_name("N");
}

std::string NotNegative(const std::string& value) {
  return value.empty() || value[0] != '-' ? "" : "is " + value + ", must be at least 0";
}

tarn_session_config SessionConfig(const SessionOptions& options) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.threads = options.threads != 0 ? options.threads : tarn_fast_cores();
  config.max_chunk = options.chunk != 0 ? options.chunk : 64;
  return config;
}

Model::Model(const ModelOptions& options) {
  tarn_source source = TARN_SOURCE_INIT;
  source.path = options.path.c_str();
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  config.verify_weights = options.verify ? 1 : 0;
  config.isa = options.isa.empty() ? nullptr : options.isa.c_str();
  config.portable_dense = options.portable_dense ? 1 : 0;
  tarn_error error;
  tarn_model* model = nullptr;
  Check(tarn_model_open(&source, &config, &model, &error), error);
  model_.reset(model);
  Check(tarn_model_get_info(model, &info_, &error), error);
}

tarn_memory Model::Requirements(const tarn_session_config& config) const {
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_error error;
  Check(tarn_model_requirements(get(), &config, &memory, &error), error);
  return memory;
}

std::vector<int32_t> Model::Tokenize(const std::string& text) const {
  tarn_error error;
  size_t count = 0;
  const tarn_status status = tarn_tokenize(get(), text.data(), text.size(), nullptr, 0, &count, &error);
  if (status != TARN_BUFFER_TOO_SMALL) Check(status, error);
  std::vector<int32_t> tokens(count);
  Check(tarn_tokenize(get(), text.data(), text.size(), tokens.data(), count, &count, &error), error);
  return tokens;
}

Session CreateSession(const Model& model, const tarn_session_config& config) {
  tarn_session* session = nullptr;
  tarn_error error;
  Check(tarn_session_create(model.get(), &config, &session, &error), error);
  return Session(session, tarn_session_destroy);
}

}  // namespace tarn_cli
