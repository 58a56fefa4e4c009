/* Checkpoints and forks from C99: arguments that are missing, structs of other sizes, memory of the caller's. */
#include "tarn/checkpoints.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static const char* const kModel = "examples/models/shakespeare-rfa-gate-int8.tarn";

static tarn_error error;
static tarn_generation generation = TARN_GENERATION_INIT;

static tarn_checkpoints_config Config(void) {
  tarn_checkpoints_config config = TARN_CHECKPOINTS_CONFIG_INIT;
  config.ring_bytes = 1 << 22;
  return config;
}

static void TestMemory(void) {
  tarn_checkpoints_config config = Config();
  tarn_checkpoints_memory memory = TARN_CHECKPOINTS_MEMORY_INIT;
  tarn_checkpoints* checkpoints = NULL;
  const float* logits = NULL;
  const int32_t token = 'a';
  unsigned char *memory_of_ours, *block;
  EXPECT_OK(tarn_checkpoints_requirements(&generation, &config, &memory, &error));
  EXPECT(memory.capacity == config.ring_bytes / memory.checkpoint_bytes);
  EXPECT(memory.size_bytes > memory.capacity * memory.checkpoint_bytes + memory.log_bytes);
  memory_of_ours = malloc((size_t)memory.size_bytes + 64);
  block = memory_of_ours + (64 - (size_t)memory_of_ours % 64);
  config.block = block;
  config.block_bytes = (size_t)memory.size_bytes - 1;
  EXPECT(tarn_checkpoints_create(&generation, &config, &checkpoints, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(checkpoints == NULL);
  config.block_bytes = (size_t)memory.size_bytes;
  config.block = block + 8;
  EXPECT(tarn_checkpoints_create(&generation, &config, &checkpoints, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "block lies 8 bytes past a multiple of 64, a multiple expected") == 0);
  config.block = NULL;
  EXPECT(tarn_checkpoints_create(&generation, &config, &checkpoints, &error) == TARN_INVALID_ARGUMENT);
  config.block = block;
  EXPECT_OK(tarn_checkpoints_create(&generation, &config, &checkpoints, &error));
  EXPECT_OK(tarn_session_step(generation.session, &token, &logits, &error));
  EXPECT_OK(tarn_checkpoints_record(checkpoints, &token, 1, logits, &error));
  EXPECT_OK(tarn_checkpoints_mark(checkpoints, 5, logits, &error));
  EXPECT_OK(tarn_checkpoints_rewind(checkpoints, 0, NULL, &error));
  EXPECT(tarn_session_tokens(generation.session) == 0);
  EXPECT(tarn_checkpoints_earliest(checkpoints) == 0);
  tarn_checkpoints_destroy(checkpoints);
  memset(block, 1, (size_t)memory.size_bytes); /* it is ours again */
  free(memory_of_ours);
}

static void TestNothing(void) {
  const tarn_checkpoints_config config = Config();
  const tarn_generation nothing = TARN_GENERATION_INIT;
  tarn_checkpoints_memory memory = TARN_CHECKPOINTS_MEMORY_INIT;
  tarn_checkpoints* checkpoints = NULL;
  tarn_checkpoint checkpoint;
  const int32_t token = 0;
  EXPECT(tarn_checkpoints_requirements(NULL, &config, &memory, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_requirements(&nothing, &config, &memory, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "session is NULL") == 0);
  EXPECT(tarn_checkpoints_requirements(&generation, NULL, &memory, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_requirements(&generation, &config, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_create(&generation, &config, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_record(NULL, &token, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_mark(NULL, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_rewind(NULL, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_rewind_to_tag(NULL, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_restart(NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_get(NULL, 0, &checkpoint, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_earliest(NULL) == 0);
  tarn_checkpoints_destroy(NULL);
  EXPECT_OK(tarn_checkpoints_create(&generation, &config, &checkpoints, &error));
  EXPECT(tarn_checkpoints_record(checkpoints, NULL, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_checkpoints_get(checkpoints, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_checkpoints_get(checkpoints, 0, &checkpoint, &error));
  EXPECT(checkpoint.position == 0 && !checkpoint.has_tag);
  EXPECT(tarn_checkpoints_get(checkpoints, 1, &checkpoint, &error) == TARN_NOT_FOUND);
  EXPECT(tarn_checkpoints_rewind_to_tag(checkpoints, 1, NULL, &error) == TARN_NOT_FOUND);
  tarn_checkpoints_destroy(checkpoints);
  tarn_sampler_set_seed(NULL, 1);
}

/* Structs of every size that a caller could claim, in memory of exactly that size. */
static void TestSizes(void) {
  const size_t before_ring_bytes = /* a config without it leaves no room for a checkpoint */
      offsetof(tarn_checkpoints_config, ring_bytes);
  const tarn_checkpoints_config good = Config();
  size_t claimed;
  for (claimed = 0; claimed < 200; ++claimed) {
    const size_t bytes = claimed < sizeof(size_t) ? sizeof(size_t) : claimed;
    const int aligned = claimed % sizeof(size_t) == 0;
    tarn_checkpoints_config* const config = calloc(1, bytes);
    tarn_checkpoints_memory* const memory = calloc(1, bytes);
    tarn_checkpoints_memory whole = TARN_CHECKPOINTS_MEMORY_INIT;
    memcpy(config, &good, bytes < sizeof(good) ? bytes : sizeof(good));
    memcpy(config, &claimed, sizeof(claimed));
    memcpy(memory, &claimed, sizeof(claimed));
    EXPECT((tarn_checkpoints_requirements(&generation, config, &whole, &error) == TARN_OK) ==
           (aligned && claimed > before_ring_bytes));
    EXPECT((tarn_checkpoints_requirements(&generation, &good, memory, &error) == TARN_OK) == (aligned && claimed > sizeof(size_t)));
    free(config);
    free(memory);
  }
}

static void TestForks(const tarn_model* model) {
  tarn_session* fork = NULL;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  const int32_t tokens[2] = {'a', 'b'};
  config.batch = 2;
  EXPECT_OK(tarn_session_create(model, &config, &fork, &error));
  EXPECT(tarn_session_copy(NULL, fork, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_copy(fork, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_copy(fork, generation.session, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_copy_sequence(NULL, 0, fork, 0, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_copy_sequence(fork, 0, NULL, 0, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_session_step(fork, tokens, NULL, &error));
  EXPECT_OK(tarn_session_copy_sequence(generation.session, 0, fork, 1, &error));
  EXPECT(tarn_session_tokens(generation.session) == 1);
  tarn_session_destroy(fork);
}

int main(void) {
  tarn_model* model = NULL;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = kModel;
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  EXPECT_OK(tarn_session_create(model, NULL, &generation.session, &error));
  TestMemory();
  TestNothing();
  TestSizes();
  TestForks(model);
  tarn_session_destroy(generation.session);
  tarn_model_close(model);
  return failures != 0;
}
