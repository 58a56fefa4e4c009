/* The C API from C99: every struct, every refusal of a bad argument, a session from file to tokens. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "tarn/inspect.h"
#include "tarn/tarn.h"

static const char* const kModel = "examples/models/shakespeare-rfa-gate-int8.tarn";

static void TestRefusals(void) {
  tarn_error error;
  tarn_model* model = NULL;
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_source source = TARN_SOURCE_INIT;
  memset(&error, 0, sizeof(error));

  EXPECT(tarn_model_open(NULL, NULL, &model, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "source") != NULL);
  EXPECT(tarn_model_open(&source, NULL, &model, NULL) == TARN_INVALID_ARGUMENT); /* nothing given */
  source.path = kModel;
  source.buffer = kModel;
  EXPECT(tarn_model_open(&source, NULL, &model, &error) == TARN_INVALID_ARGUMENT); /* two given */
  source.buffer = NULL;
  EXPECT(tarn_model_open(&source, NULL, NULL, &error) == TARN_INVALID_ARGUMENT);
  source.struct_size = 0;
  EXPECT(tarn_model_open(&source, NULL, &model, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "struct_size") != NULL);
  source.struct_size = sizeof(source);
  source.path = "no/such/model.tarn";
  EXPECT(tarn_model_open(&source, NULL, &model, &error) == TARN_NOT_FOUND);
  EXPECT(strstr(error.message, "no/such/model.tarn") != NULL);
  EXPECT(tarn_requirements(&source, NULL, NULL, &memory, &error) == TARN_NOT_FOUND);
  EXPECT(model == NULL);

  tarn_model_close(NULL);
  tarn_session_destroy(NULL);
  tarn_sampler_destroy(NULL);
  tarn_session_reset(NULL);
  tarn_session_cancel(NULL);
  EXPECT(strcmp(tarn_status_string(TARN_CANCELLED), "cancelled") == 0);
  EXPECT(tarn_session_step(NULL, NULL, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_profile(NULL, 1, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_op_time(NULL, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(tarn_status_string(TARN_OK), "ok") == 0);
  EXPECT(tarn_isa_name(0) != NULL && tarn_isa_name(1000) == NULL);
  EXPECT(tarn_fast_cores() >= 1);
  EXPECT(tarn_default_threads() >= 1);
}

/* A caller of tomorrow has longer structs, one of yesterday shorter ones. */
static void TestOtherSizes(const tarn_source* source) {
  struct {
    tarn_session_config config;
    uint64_t from_the_future;
  } longer;
  tarn_error error;
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_session_config shorter = TARN_SESSION_CONFIG_INIT;
  memset(&longer, 0, sizeof(longer));
  longer.config.struct_size = sizeof(longer);
  EXPECT_OK(tarn_requirements(source, NULL, &longer.config, &memory, &error));
  longer.from_the_future = 1;
  EXPECT(tarn_requirements(source, NULL, &longer.config, &memory, &error) == TARN_UNSUPPORTED);
  shorter.struct_size = offsetof(tarn_session_config, max_logits_rows);
  shorter.threads = 100000; /* beyond what the struct claims to have */
  EXPECT_OK(tarn_requirements(source, NULL, &shorter, &memory, &error));
  memory.struct_size = offsetof(tarn_memory, model_bytes);
  memory.model_bytes = 4711;
  EXPECT_OK(tarn_requirements(source, NULL, NULL, &memory, &error));
  EXPECT(memory.model_bytes == 4711 && memory.mapped_bytes > 0);
}

static void* Aligned(size_t bytes, void** allocation) {
  *allocation = malloc(bytes + 64);
  return (void*)(((uintptr_t)*allocation + 63) / 64 * 64);
}

static void TestInspection(const tarn_model* model) {
  tarn_error error;
  tarn_tensor_info tensor = TARN_TENSOR_INFO_INIT;
  tarn_state_info state = TARN_STATE_INFO_INIT;
  tarn_op_info op = TARN_OP_INFO_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  size_t i;
  uint64_t state_bytes = 0, op_state_bytes = 0;
  for (i = 0; tarn_model_tensor(model, i, &tensor, NULL) == TARN_OK; ++i) EXPECT(tensor.rank >= 1 && tensor.data_bytes > 0);
  EXPECT(i > 10);
  EXPECT(tarn_model_tensor(model, i, &tensor, &error) == TARN_NOT_FOUND);
  for (i = 0; tarn_model_state(model, i, &state, NULL) == TARN_OK; ++i) state_bytes += state.data_bytes;
  EXPECT(i == 8); /* S and z of 4 layers */
  for (i = 0; tarn_model_op(model, i, &op, NULL) == TARN_OK; ++i) op_state_bytes += op.state_bytes;
  EXPECT(state_bytes == op_state_bytes && state_bytes == 4 * 4 * 128 * 65 * 4);
  EXPECT_OK(tarn_model_get_info(model, &info, &error));
  EXPECT(info.vocab_size == 256 && info.tokenizer == TARN_TOKENIZER_BYTES && info.max_context == UINT64_MAX);
  EXPECT(strcmp(info.precision, "int8") == 0);
}

static void TestGeneration(const tarn_model* model) {
  tarn_error error;
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  tarn_session* session = NULL;
  tarn_sampler* sampler = NULL;
  tarn_text_decoder decoder;
  const float* logits = NULL;
  int32_t tokens[16];
  char text[256];
  size_t count = 0, used = 0, bytes = 0;
  void* allocation = NULL;
  int i;

  EXPECT_OK(tarn_model_requirements(model, &config, &memory, &error));
  config.block = Aligned((size_t)memory.session_bytes, &allocation);
  config.block_bytes = (size_t)memory.session_bytes - 1;
  EXPECT(tarn_session_create(model, &config, &session, &error) == TARN_BUFFER_TOO_SMALL);
  config.block = (char*)config.block + 1;
  EXPECT(tarn_session_create(model, &config, &session, &error) == TARN_INVALID_ARGUMENT);
  config.block = (char*)config.block - 1;
  config.block_bytes += 1;
  EXPECT_OK(tarn_session_create(model, &config, &session, &error));

  EXPECT(tarn_tokenize(model, "ROMEO:", 6, tokens, 2, &count, &error) == TARN_BUFFER_TOO_SMALL && count == 6);
  EXPECT_OK(tarn_tokenize(model, "ROMEO:", 6, tokens, 16, &count, &error));
  EXPECT_OK(tarn_session_prefill(session, tokens, count, &logits, &error));
  EXPECT(tarn_session_tokens(session) == 6);
  chain.temperature = 0;
  EXPECT_OK(tarn_sampler_create(256, &chain, &sampler, &error));
  memset(&decoder, 0, sizeof(decoder));
  for (i = 0; i < 40; ++i) {
    int32_t token = 0;
    EXPECT_OK(tarn_sampler_sample(sampler, logits, &token, &error));
    EXPECT_OK(tarn_text_decode(model, &decoder, token, text + used, sizeof(text) - used, &bytes, &error));
    used += bytes;
    EXPECT_OK(tarn_session_step(session, &token, &logits, &error));
  }
  EXPECT(used == 40);                                                                       /* this model writes ASCII */
  EXPECT(tarn_session_score(session, tokens, 2, &logits, &error) == TARN_INVALID_ARGUMENT); /* created for one row */
  decoder.pending_bytes = 4; /* as a decoder from a damaged file may say */
  EXPECT(tarn_text_decode(model, &decoder, 'a', text, sizeof(text), &bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "pending_bytes is 4") != NULL);
  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
  free(allocation);
}

/* A caller of the first version, which knew neither packed_cache nor in_place_bytes nor packed_from_cache. */
static void TestOldCaller(const tarn_source* source) {
  tarn_error error;
  tarn_model* model = NULL;
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_memory memory = TARN_MEMORY_INIT;
  config.struct_size = offsetof(tarn_model_config, packed_cache);
  config.packed_cache = (const char*)1; /* not his */
  info.struct_size = offsetof(tarn_model_info, packed_from_cache);
  info.packed_from_cache = 4711;
  memory.struct_size = offsetof(tarn_memory, in_place_bytes);
  memory.in_place_bytes = 4711;
  EXPECT_OK(tarn_requirements(source, &config, NULL, &memory, &error));
  EXPECT_OK(tarn_model_open(source, &config, &model, &error));
  EXPECT_OK(tarn_model_get_info(model, &info, &error));
  EXPECT(info.packed_from_cache == 4711 && memory.in_place_bytes == 4711 && memory.packed_file_bytes == 0);
  tarn_model_close(model);
}

/* Opens with the cache; what is foretold must be so. */
static void OpenWithCache(const tarn_source* source, const char* folder, int want_file, int want_found) {
  tarn_error error;
  tarn_model* model = NULL;
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_memory before = TARN_MEMORY_INIT, after = TARN_MEMORY_INIT;
  config.packed_cache = folder;
  EXPECT_OK(tarn_requirements(source, &config, NULL, &before, &error));
  EXPECT_OK(tarn_model_open(source, &config, &model, &error));
  EXPECT_OK(tarn_model_requirements(model, NULL, &after, &error));
  EXPECT(memcmp(&before, &after, sizeof(before)) == 0);
  EXPECT_OK(tarn_model_get_info(model, &info, &error));
  if (strcmp(info.dense, "xnnpack") == 0) {
    EXPECT((after.packed_file_bytes > 0) == want_file);
    EXPECT((after.packed_anonymous_bytes > 0) == !want_file);
    EXPECT(info.packed_from_cache == want_found);
  } else {
    EXPECT(after.packed_file_bytes == 0 && after.packed_anonymous_bytes == 0 && info.packed_from_cache == 0);
    EXPECT(after.in_place_bytes > 0);
  }
  EXPECT(after.in_place_bytes < after.mapped_bytes);
  tarn_model_close(model);
}

static void TestPackedCache(const tarn_source* source) {
  char folder[] = "/tmp/tarn_c_test_XXXXXX", command[64];
  EXPECT(mkdtemp(folder) != NULL);
  OpenWithCache(source, NULL, 0, 0);
  OpenWithCache(source, kModel, 0, 0); /* no folder */
  OpenWithCache(source, folder, 1, 0);
  OpenWithCache(source, folder, 1, 1);
  snprintf(command, sizeof(command), "rm -r %s", folder);
  EXPECT(system(command) == 0);
}

/* Two sources of two beams; the logits are what a session would give. */
static void TestBeamSearch(void) {
  static const float kLogits[4 * 5] = {
      0, 1, 5, 2, 4, /* source 0 */
      0, 1, 5, 2, 4, /**/
      0, 9, 0, 0, 0, /* source 1: ends at once */
      0, 9, 0, 0, 0,
  };
  tarn_error error;
  tarn_beam* beam = NULL;
  tarn_beam_config config = TARN_BEAM_CONFIG_INIT;
  const int32_t* tokens = NULL;
  uint64_t size_bytes = 0;
  size_t count = 0;
  double best = 0, second = 0;
  int steps = 0;

  EXPECT(tarn_beam_create(NULL, &beam, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_beam_create(&config, &beam, &error) == TARN_INVALID_ARGUMENT); /* no vocabulary */
  EXPECT(tarn_beam_requirements(&config, &size_bytes, &error) == TARN_INVALID_ARGUMENT && size_bytes == 0);
  config.sources = 2;
  config.beams = 2;
  config.vocab_size = 5;
  config.max_output_tokens = 3;
  config.bos_token = 0;
  config.eos_token = 1;
  EXPECT_OK(tarn_beam_requirements(&config, &size_bytes, &error));
  EXPECT(size_bytes > 0);
  EXPECT_OK(tarn_beam_create(&config, &beam, &error));
  EXPECT(tarn_beam_tokens(beam)[0] == 0 && tarn_beam_tokens(beam)[3] == 0 && !tarn_beam_done(beam));
  EXPECT(tarn_beam_advance(beam, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_beam_advance(beam, kLogits, &error));
  EXPECT(tarn_beam_tokens(beam)[0] == 2 && tarn_beam_tokens(beam)[1] == 4);
  EXPECT(tarn_beam_parents(beam)[0] == 0 && tarn_beam_parents(beam)[1] == 0 && tarn_beam_parents(beam)[2] == 2);
  for (steps = 1; !tarn_beam_done(beam) && steps < 9; ++steps) EXPECT_OK(tarn_beam_advance(beam, kLogits, &error));
  EXPECT(steps == 3);
  EXPECT(tarn_beam_advance(beam, kLogits, &error) == TARN_INVALID_ARGUMENT); /* done */
  EXPECT_OK(tarn_beam_result(beam, 0, 1, &tokens, &count, &second, &error));
  EXPECT_OK(tarn_beam_result(beam, 0, 0, &tokens, &count, &best, &error));
  EXPECT(count == 3 && tokens[0] == 2 && tokens[1] == 2 && tokens[2] == 2 && best > second);
  EXPECT_OK(tarn_beam_result(beam, 1, 0, &tokens, &count, NULL, &error));
  EXPECT(count == 0);
  EXPECT(tarn_beam_result(beam, 1, 2, &tokens, &count, NULL, &error) == TARN_NOT_FOUND);
  EXPECT(tarn_beam_result(beam, 2, 0, &tokens, &count, NULL, &error) == TARN_INVALID_ARGUMENT);
  tarn_beam_reset(beam);
  EXPECT(!tarn_beam_done(beam) && tarn_beam_tokens(beam)[1] == 0);
  tarn_beam_destroy(beam);

  tarn_beam_destroy(NULL);
  tarn_beam_reset(NULL);
  EXPECT(tarn_beam_done(NULL) && tarn_beam_tokens(NULL) == NULL && tarn_beam_parents(NULL) == NULL);
}

static tarn_session* interrupted;

static void Interrupt(int signal) {
  (void)signal;
  tarn_session_cancel(interrupted);
}

/* From a signal handler: the next call stops, the session goes on afterwards. */
static void TestCancellation(const tarn_model* model) {
  const int32_t tokens[3] = {'a', 'b', 'c'};
  const float* logits = NULL;
  tarn_error error;
  EXPECT_OK(tarn_session_create(model, NULL, &interrupted, &error));
  if (interrupted == NULL) return;
  EXPECT(signal(SIGUSR1, Interrupt) != SIG_ERR);
  EXPECT_OK(tarn_session_prefill(interrupted, tokens, 1, &logits, &error));
  EXPECT(raise(SIGUSR1) == 0);
  EXPECT(tarn_session_prefill(interrupted, tokens, 3, &logits, &error) == TARN_CANCELLED);
  EXPECT(error.status == TARN_CANCELLED && strstr(error.message, "0 of 3 tokens read") != NULL);
  EXPECT(tarn_session_tokens(interrupted) == 1);
  EXPECT_OK(tarn_session_prefill(interrupted, tokens, 3, &logits, &error));
  EXPECT(tarn_session_tokens(interrupted) == 4);
  tarn_session_destroy(interrupted);
  interrupted = NULL;
}

/* A file may ask for so much and no more. */
static void TestBounds(const tarn_source* source) {
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  tarn_model* model = NULL;
  tarn_error error;
  config.max_work_per_token = 1000;
  EXPECT(tarn_model_open(source, &config, &model, &error) == TARN_UNSUPPORTED);
  EXPECT(strstr(error.message, "at most 1000 expected (max_work_per_token, --max-work)") != NULL);
  EXPECT(model == NULL);
}

int main(void) {
  tarn_error error;
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model* model = NULL;
  char version[32];
  snprintf(version, sizeof(version), "%d.%d.%d", TARN_VERSION_MAJOR, TARN_VERSION_MINOR, TARN_VERSION_PATCH);
  EXPECT(strcmp(tarn_version(), version) == 0);
  TestRefusals();
  TestBeamSearch();
  source.path = kModel;
  TestOtherSizes(&source);
  TestOldCaller(&source);
  TestPackedCache(&source);
  TestBounds(&source);
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  if (model != NULL) {
    TestInspection(model);
    TestGeneration(model);
    TestCancellation(model);
  }
  tarn_model_close(model);
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
