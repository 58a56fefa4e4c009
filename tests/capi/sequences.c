/* From C99: sequences of a batch that come and go on their own, snapshots of one of them, and everything that is refused. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

#include "expect.h"
#include "tarn/inspect.h"
#include "tarn/tarn.h"

enum { kBatch = 3, kChunk = 16, kVocab = 256, kTokens = 100 };

/* With dot products, XNNPACK's int8 kernels for ARM give several rows other bits than one row (docs/c-api.md). */
static int HasDotProducts(void) {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP) >> 20 & 1) != 0;
#elif defined(__arm__)
  return (getauxval(AT_HWCAP) >> 24 & 1) != 0;
#else
  return 0;
#endif
}

/* Blocks that the library has from the allocator of the model. */
static size_t blocks = 0, allocations = 0;

static void* Allocate(void* context, size_t size_bytes, size_t alignment) {
  void* pointer = NULL;
  (void)context;
  ++blocks;
  ++allocations;
  return posix_memalign(&pointer, alignment < sizeof(void*) ? sizeof(void*) : alignment, size_bytes) == 0 ? pointer : NULL;
}

static void Release(void* context, void* pointer, size_t size_bytes) {
  (void)context;
  (void)size_bytes;
  --blocks;
  free(pointer);
}

static tarn_session* Create(const tarn_model* model, uint32_t batch) {
  tarn_error error;
  tarn_session* session = NULL;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = batch;
  config.max_chunk = kChunk;
  EXPECT_OK(tarn_session_create(model, &config, &session, &error));
  return session;
}

/* Prompts of different lengths in one call, then steps of some: the logits of sessions of their own, bit for bit. */
static void TestLogits(const tarn_model* model, const int32_t* tokens) {
  static const size_t kCounts[][kBatch] = {{40, 1, 7}, {1, 1, 1}, {0, 1, 0}, {1, 0, 33}, {2, 2, 2}, {0, 0, 1}};
  tarn_error error;
  tarn_session* batch = Create(model, kBatch);
  tarn_session* own[kBatch];
  uint64_t seen[kBatch] = {0, 0, 0};
  size_t call, i, before;
  for (i = 0; i < kBatch; ++i) own[i] = Create(model, 1);
  before = allocations;
  for (call = 0; call < sizeof(kCounts) / sizeof(*kCounts); ++call) {
    tarn_sequence_tokens parts[kBatch];
    const float* logits = NULL;
    const float* wanted = NULL;
    size_t count = 0;
    for (i = 0; i < kBatch; ++i) {
      if (kCounts[call][i] == 0) continue;
      parts[count].sequence = (uint32_t)i;
      parts[count].tokens = tokens + seen[i] + i;
      parts[count++].count = kCounts[call][i];
    }
    EXPECT_OK(tarn_session_prefill_sequences(batch, parts, count, &logits, &error));
    for (i = 0; i < count; ++i) {
      const uint32_t sequence = parts[i].sequence;
      EXPECT_OK(tarn_session_prefill(own[sequence], parts[i].tokens, parts[i].count, &wanted, &error));
      EXPECT(memcmp(logits + i * kVocab, wanted, kVocab * sizeof(float)) == 0);
      seen[sequence] += parts[i].count;
    }
    for (i = 0; i < kBatch; ++i) EXPECT(tarn_session_sequence_tokens(batch, (uint32_t)i) == seen[i]);
  }
  EXPECT(tarn_session_tokens(batch) == 44);
  EXPECT_OK(tarn_session_reset_sequence(batch, 0, &error));
  EXPECT(tarn_session_sequence_tokens(batch, 0) == 0 && tarn_session_sequence_tokens(batch, 1) == seen[1]);
  EXPECT(tarn_session_sequence_tokens(batch, kBatch) == 0 && tarn_session_sequence_tokens(NULL, 0) == 0);
  EXPECT(allocations == before);
  for (i = 0; i < kBatch; ++i) tarn_session_destroy(own[i]);
  tarn_session_destroy(batch);
}

/* One sequence is saved, and goes on in a session of its own and in another place. */
static void TestSnapshots(const tarn_model* model, const int32_t* tokens) {
  tarn_error error;
  tarn_session* batch = Create(model, kBatch);
  tarn_session* alone = Create(model, 1);
  const tarn_sequence_tokens parts[2] = {{1, tokens, 20}, {2, tokens, 5}};
  const tarn_sequence_tokens again[2] = {{0, tokens + 20, 1}, {1, tokens + 20, 1}};
  const float* logits = NULL;
  const float* of_alone = NULL;
  tarn_snapshot_info info = TARN_SNAPSHOT_INFO_INIT;
  uint64_t one_bytes, all_bytes, seen = 0;
  char *one, *all;

  EXPECT_OK(tarn_session_prefill_sequences(batch, parts, 2, NULL, &error));
  one_bytes = tarn_session_sequence_snapshot_bytes(batch, 1);
  all_bytes = tarn_session_snapshot_bytes(batch);
  one = malloc((size_t)one_bytes);
  all = malloc((size_t)all_bytes);
  EXPECT_OK(tarn_session_save_sequence(batch, 1, one, one_bytes, &error));
  EXPECT_OK(tarn_session_save(batch, all, all_bytes, &error));
  EXPECT_OK(tarn_snapshot_get_info(one, one_bytes, &info, &error));
  EXPECT(info.version == 1 && info.sequences == 1 && info.tokens == 20);
  EXPECT_OK(tarn_snapshot_get_info(all, all_bytes, &info, &error));
  EXPECT(info.version == 2 && info.sequences == kBatch && info.tokens == 20);
  EXPECT_OK(tarn_snapshot_sequence_tokens(all, all_bytes, 2, &seen, &error));
  EXPECT(seen == 5);
  EXPECT_OK(tarn_snapshot_sequence_tokens(one, one_bytes, 0, &seen, &error));
  EXPECT(seen == 20);
  EXPECT(tarn_snapshot_sequence_tokens(all, all_bytes, kBatch, &seen, &error) == TARN_NOT_FOUND);
  EXPECT(tarn_snapshot_sequence_tokens(all, all_bytes, 0, NULL, &error) == TARN_INVALID_ARGUMENT);

  EXPECT_OK(tarn_session_restore(alone, one, one_bytes, &error));
  EXPECT_OK(tarn_session_restore_sequence(batch, 0, one, one_bytes, &error));
  EXPECT_OK(tarn_session_prefill_sequences(batch, again, 2, &logits, &error));
  EXPECT_OK(tarn_session_step(alone, tokens + 20, &of_alone, &error));
  EXPECT(memcmp(logits, of_alone, kVocab * sizeof(float)) == 0);
  EXPECT(memcmp(logits + kVocab, of_alone, kVocab * sizeof(float)) == 0);
  EXPECT_OK(tarn_session_restore(batch, all, all_bytes, &error));
  EXPECT(tarn_session_sequence_tokens(batch, 0) == 0 && tarn_session_sequence_tokens(batch, 2) == 5);

  EXPECT(tarn_session_restore_sequence(batch, 0, all, all_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "snapshot: sequences is 3, 1 expected: batch * beams of the session") == 0);
  EXPECT(tarn_session_restore_sequence(batch, kBatch, one, one_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_restore_sequence(NULL, 0, one, one_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_restore_sequence(batch, 0, NULL, one_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_save_sequence(batch, 1, one, one_bytes - 1, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(tarn_session_save_sequence(batch, kBatch, one, one_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_save_sequence(NULL, 0, one, one_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_save_sequence(batch, 0, NULL, one_bytes, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_sequence_snapshot_bytes(NULL, 0) == 0 && tarn_session_sequence_snapshot_bytes(batch, kBatch) == 0);
  free(one);
  free(all);
  tarn_session_destroy(alone);
  tarn_session_destroy(batch);
}

static void TestRefusals(const tarn_model* model, const int32_t* tokens) {
  tarn_error error;
  tarn_session* batch = Create(model, kBatch);
  const tarn_sequence_tokens good = {0, tokens, 1}, far = {kBatch, tokens, 1}, empty = {0, tokens, 0};
  const tarn_sequence_tokens twice[2] = {{1, tokens, 1}, {1, tokens, 1}};
  EXPECT(tarn_session_prefill_sequences(NULL, &good, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_prefill_sequences(batch, NULL, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_prefill_sequences(batch, &good, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_prefill_sequences(batch, &far, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_prefill_sequences(batch, &empty, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_prefill_sequences(batch, twice, 2, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_reset_sequence(batch, kBatch, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "sequence is 3, 0 to 2 expected") == 0);
  EXPECT(tarn_session_reset_sequence(NULL, 0, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_tokens(batch) == 0);
  tarn_session_destroy(batch);
}

int main(void) {
  tarn_error error;
  tarn_model* model = NULL;
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  int32_t tokens[kTokens];
  int i;
  for (i = 0; i < kTokens; ++i) tokens[i] = i * 37 % kVocab;
  source.path = "examples/models/shakespeare-rfa-gate-int8.tarn";
  config.allocator.allocate = Allocate;
  config.allocator.release = Release;
  config.portable_dense = HasDotProducts();
  EXPECT_OK(tarn_model_open(&source, &config, &model, &error));
  if (model != NULL) {
    TestLogits(model, tokens);
    TestSnapshots(model, tokens);
    TestRefusals(model, tokens);
  }
  tarn_model_close(model);
  EXPECT(blocks == 0);
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
