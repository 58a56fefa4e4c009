/* Snapshots from C99: a session undone, forked, kept in a file, and everything that is refused. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "tarn/inspect.h"
#include "tarn/tarn.h"

static const char* const kModel = "examples/models/shakespeare-rfa-gate-int8.tarn";
static const char* const kOtherModel = "tests/data/v1.0.tarn";

enum { kTokens = 24, kVocab = 256 };

static tarn_model* Open(const char* path) {
  tarn_error error;
  tarn_model* model = NULL;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = path;
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  return model;
}

static tarn_session* Create(const tarn_model* model, uint32_t batch, uint32_t max_chunk) {
  tarn_error error;
  tarn_session* session = NULL;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = batch;
  config.max_chunk = max_chunk;
  EXPECT_OK(tarn_session_create(model, &config, &session, &error));
  return session;
}

/* Greedy, from `token` on. */
static void Generate(tarn_session* session, int32_t token, int32_t* tokens) {
  tarn_error error;
  int i, j;
  for (i = 0; i < kTokens; ++i) {
    const float* logits = NULL;
    EXPECT_OK(tarn_session_step(session, &token, &logits, &error));
    for (token = 0, j = 1; j < kVocab; ++j) token = logits[j] > logits[token] ? j : token;
    tokens[i] = token;
  }
}

/* The prompt is read once; three texts begin after it, each time another way. */
static void TestContinuations(const tarn_model* model) {
  static const int32_t kPrompt[] = {'R', 'O', 'M', 'E', 'O'};
  tarn_error error;
  tarn_session* session = Create(model, 1, 0);
  tarn_session* other = Create(model, 1, 3);
  tarn_memory memory = TARN_MEMORY_INIT;
  int32_t wanted[kTokens], found[kTokens];
  uint64_t size;
  char* snapshot;
  FILE* file = tmpfile();

  EXPECT_OK(tarn_session_prefill(session, kPrompt, 5, NULL, &error));
  size = tarn_session_snapshot_bytes(session);
  EXPECT_OK(tarn_model_requirements(model, NULL, &memory, &error));
  EXPECT(size > 0 && size <= memory.state_bytes * 513 / 512 + 64);
  snapshot = malloc((size_t)size);
  EXPECT_OK(tarn_session_save(session, snapshot, size, &error));
  Generate(session, ':', wanted);

  EXPECT_OK(tarn_session_restore(session, snapshot, size, &error)); /* back */
  EXPECT(tarn_session_tokens(session) == 5);
  Generate(session, ':', found);
  EXPECT(memcmp(found, wanted, sizeof(wanted)) == 0);

  EXPECT(file != NULL && fwrite(snapshot, 1, (size_t)size, file) == size); /* elsewhere */
  memset(snapshot, 0, (size_t)size);
  rewind(file);
  EXPECT(fread(snapshot, 1, (size_t)size, file) == size);
  EXPECT_OK(tarn_session_restore(other, snapshot, size, &error));
  Generate(other, ':', found);
  EXPECT(memcmp(found, wanted, sizeof(wanted)) == 0);

  EXPECT_OK(tarn_session_restore(other, snapshot, size, &error)); /* another text */
  Generate(other, '!', found);
  EXPECT(memcmp(found, wanted, sizeof(wanted)) != 0);

  fclose(file);
  free(snapshot);
  tarn_session_destroy(other);
  tarn_session_destroy(session);
}

static void TestRefusals(const tarn_model* model, const tarn_model* other_model) {
  tarn_error error;
  tarn_session* session = Create(model, 1, 0);
  tarn_session* two = Create(model, 2, 0);
  tarn_session* foreign = Create(other_model, 1, 0);
  const int32_t token = 'a';
  uint64_t size;
  char* snapshot;

  EXPECT_OK(tarn_session_step(session, &token, NULL, &error));
  size = tarn_session_snapshot_bytes(session);
  snapshot = malloc((size_t)size);
  EXPECT(tarn_session_snapshot_bytes(NULL) == 0);
  EXPECT(tarn_session_save(NULL, snapshot, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_save(session, NULL, size, &error) == TARN_INVALID_ARGUMENT && strstr(error.message, "snapshot") != NULL);
  EXPECT(tarn_session_save(session, snapshot, size - 1, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(tarn_session_restore(NULL, snapshot, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_restore(session, NULL, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_session_save(session, snapshot, size, &error));

  EXPECT(tarn_session_restore(foreign, snapshot, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "fingerprint is ") != NULL);
  EXPECT(tarn_session_restore(two, snapshot, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "sequences is 1, 2 expected") != NULL);
  EXPECT(tarn_session_restore(session, snapshot, size - 1, &error) == TARN_BAD_FORMAT);
  EXPECT(tarn_session_restore(session, snapshot, 0, &error) == TARN_BAD_FORMAT);
  snapshot[size / 2] ^= 1;
  EXPECT(tarn_session_restore(session, snapshot, size, NULL) == TARN_CHECKSUM);
  EXPECT(tarn_session_tokens(session) == 1 && tarn_session_tokens(two) == 0);

  free(snapshot);
  tarn_session_destroy(foreign);
  tarn_session_destroy(two);
  tarn_session_destroy(session);
}

/* A delta snapshot, its base, and what the one says of the other. */
static void TestDelta(const tarn_model* model) {
  tarn_error error;
  tarn_session* session = Create(model, 1, 0);
  tarn_session* other = Create(model, 1, 0);
  static const unsigned char kZeros[16] = {0};
  tarn_snapshot_info base_info, info;
  int32_t wanted[kTokens], found[kTokens];
  uint64_t base_size, size;
  float state;
  char *base, *delta;

  memset(&base_info, 0, sizeof(base_info));
  base_info.struct_size = sizeof(base_info);
  info = base_info;
  Generate(session, 'a', found);
  base_size = tarn_session_snapshot_bytes(session);
  base = malloc((size_t)base_size);
  EXPECT_OK(tarn_session_save(session, base, base_size, &error));
  Generate(session, 'b', found);
  EXPECT_OK(tarn_session_delta_bytes(session, base, base_size, &size, &error));
  delta = malloc((size_t)size);
  EXPECT_OK(tarn_session_save_delta(session, base, base_size, delta, size, &error));
  Generate(session, 'c', wanted);
  EXPECT_OK(tarn_session_restore_delta(other, base, base_size, delta, size, &error));
  EXPECT(tarn_session_tokens(other) == 2 * kTokens);
  Generate(other, 'c', found);
  EXPECT(memcmp(found, wanted, sizeof(wanted)) == 0);

  EXPECT_OK(tarn_snapshot_get_info(base, base_size, &base_info, &error));
  EXPECT_OK(tarn_snapshot_get_info(delta, size, &info, &error));
  EXPECT(info.version == 3 && info.tokens == 2 * kTokens && info.snapshot_bytes == size);
  EXPECT(memcmp(info.base_hash, base_info.hash, sizeof(info.base_hash)) == 0);
  EXPECT(memcmp(info.hash, base_info.hash, sizeof(info.hash)) != 0);
  EXPECT(memcmp(base_info.base_hash, kZeros, sizeof(kZeros)) == 0);
  memset(&info, 0xEE, sizeof(info)); /* a caller that knows no hashes */
  info.struct_size = offsetof(tarn_snapshot_info, hash);
  EXPECT_OK(tarn_snapshot_get_info(delta, size, &info, &error));
  EXPECT(info.snapshot_bytes == size && info.hash[0] == 0xEE && info.base_hash[15] == 0xEE);
  EXPECT(tarn_snapshot_read(delta, size, 0, &state, sizeof(state), &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "it is a delta snapshot") != NULL);

  EXPECT(tarn_session_restore(other, delta, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_restore_delta(other, NULL, base_size, delta, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "base is NULL") == 0);
  EXPECT(tarn_session_restore_delta(other, base, 0, delta, size, &error) == TARN_BAD_FORMAT);
  EXPECT(tarn_session_restore_delta(other, base, base_size, NULL, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_restore_delta(NULL, base, base_size, delta, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_save_delta(session, base, 0, delta, size, &error) == TARN_BAD_FORMAT);
  EXPECT(tarn_session_save_delta(session, base, base_size, delta, 0, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(tarn_session_save_delta(session, base, base_size, NULL, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_delta_bytes(session, base, base_size, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "delta_bytes is NULL") == 0);
  free(delta);
  free(base);
  tarn_session_destroy(other);
  tarn_session_destroy(session);
}

static void TestCompact(const tarn_model* model) {
  tarn_error error;
  tarn_session* session = Create(model, 1, 0);
  tarn_session* other = Create(model, 1, 0);
  tarn_snapshot_info info;
  int32_t found[kTokens];
  uint64_t exact, size;
  float states[16];
  char* snapshot;

  memset(&info, 0, sizeof(info));
  info.struct_size = sizeof(info);
  Generate(session, 'a', found);
  exact = tarn_session_snapshot_bytes(session);
  size = tarn_session_compact_bytes(session);
  EXPECT(size < exact / 2 && tarn_session_compact_bytes(NULL) == 0);
  snapshot = malloc((size_t)size);
  EXPECT(tarn_session_save_compact(session, snapshot, size - 1, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(tarn_session_save_compact(session, NULL, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_save_compact(NULL, snapshot, size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_session_save_compact(session, snapshot, size, &error));
  EXPECT_OK(tarn_snapshot_get_info(snapshot, size, &info, &error));
  EXPECT(info.version == 4 && info.tokens == kTokens && info.snapshot_bytes == size && info.stored_bytes < info.state_bytes / 2);
  EXPECT_OK(tarn_snapshot_read(snapshot, size, 64, states, sizeof(states), &error));
  EXPECT_OK(tarn_session_restore(other, snapshot, size, &error));
  EXPECT(tarn_session_tokens(other) == kTokens);
  EXPECT_OK(tarn_session_restore_sequence(other, 0, snapshot, size, &error));
  Generate(other, 'b', found);
  free(snapshot);
  tarn_session_destroy(other);
  tarn_session_destroy(session);
}

/* What a snapshot says without a session, and what is refused. */
static void TestReading(const tarn_model* model) {
  tarn_error error;
  tarn_session* session = Create(model, 2, 0);
  tarn_model_info model_info = TARN_MODEL_INFO_INIT;
  tarn_snapshot_info info;
  const int32_t tokens[2] = {'a', 'b'};
  uint32_t source;
  float states[16];
  uint64_t size, offset;
  char* snapshot;

  memset(&info, 0, sizeof(info));
  info.struct_size = sizeof(info);
  EXPECT_OK(tarn_model_get_info(model, &model_info, &error));
  EXPECT_OK(tarn_session_step(session, tokens, NULL, &error));
  size = tarn_session_snapshot_bytes(session);
  snapshot = malloc((size_t)size);
  EXPECT_OK(tarn_session_save(session, snapshot, size, &error));

  EXPECT_OK(tarn_snapshot_get_info(snapshot, size, &info, &error));
  EXPECT(info.version == 1 && info.sequences == 2 && info.tokens == 1 && info.sources == 0 && info.max_source == 0);
  EXPECT(info.snapshot_bytes == size && info.stored_bytes > 0 && info.stored_bytes <= info.state_bytes);
  EXPECT(memcmp(info.fingerprint, model_info.fingerprint, sizeof(info.fingerprint)) == 0);
  for (offset = 0; offset < info.state_bytes; offset += sizeof(states)) {
    EXPECT_OK(tarn_snapshot_read(snapshot, size, offset, states, sizeof(states), &error));
  }
  EXPECT(tarn_snapshot_read(snapshot, size, offset - 1, states, 2, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "snapshot: 2 bytes of the states") != NULL);
  EXPECT(tarn_snapshot_source_tokens(snapshot, size, 0, &source, &error) == TARN_NOT_FOUND);

  EXPECT(tarn_snapshot_get_info(NULL, size, &info, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "snapshot is NULL") == 0);
  EXPECT(tarn_snapshot_get_info(snapshot, size, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_snapshot_read(snapshot, size, 0, NULL, 1, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_snapshot_source_tokens(snapshot, size, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_snapshot_get_info(snapshot, size - 1, &info, &error) == TARN_BAD_FORMAT);
  EXPECT(strstr(error.message, "snapshot: size is ") != NULL);
  snapshot[size / 2] ^= 1;
  EXPECT(tarn_snapshot_get_info(snapshot, size, &info, &error) == TARN_CHECKSUM);
  snapshot[0] ^= 1;
  EXPECT(tarn_snapshot_get_info(snapshot, size, &info, &error) == TARN_BAD_FORMAT);
  EXPECT(tarn_snapshot_read(snapshot, size, 0, states, 1, &error) == TARN_BAD_FORMAT);
  free(snapshot);
  tarn_session_destroy(session);
}

int main(void) {
  tarn_model* model = Open(kModel);
  tarn_model* other_model = Open(kOtherModel);
  if (model != NULL && other_model != NULL) {
    TestContinuations(model);
    TestRefusals(model, other_model);
    TestReading(model);
    TestDelta(model);
    TestCompact(model);
  }
  tarn_model_close(other_model);
  tarn_model_close(model);
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
