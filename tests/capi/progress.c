/* From C99: a prefill that says how far it is and can be stopped, and memory that a session gives back between calls. */
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "tarn/tarn.h"

enum { kTokens = 200, kChunk = 64, kVocab = 256 };

typedef struct Told {
  const tarn_session* session;
  size_t calls, done, stop_at;
} Told;

static int GoOn(void* context, size_t done, size_t total) {
  Told* told = context;
  ++told->calls;
  told->done = done;
  EXPECT(total == kTokens && tarn_session_tokens(told->session) == done);
  return done != told->stop_at;
}

static void TestProgress(tarn_session* session, const int32_t* tokens) {
  tarn_error error;
  const float* logits = NULL;
  float wanted[kVocab];
  Told told = {session, 0, 0, 0};

  EXPECT_OK(tarn_session_prefill(session, tokens, kTokens, &logits, &error));
  memcpy(wanted, logits, sizeof(wanted));
  tarn_session_reset(session);
  EXPECT_OK(tarn_session_prefill_progress(session, tokens, kTokens, GoOn, &told, &logits, &error));
  EXPECT(told.calls == 4 && told.done == kTokens && memcmp(logits, wanted, sizeof(wanted)) == 0);

  tarn_session_reset(session);
  told.stop_at = 2 * kChunk;
  logits = NULL;
  EXPECT(tarn_session_prefill_progress(session, tokens, kTokens, GoOn, &told, &logits, &error) == TARN_CANCELLED);
  EXPECT(strcmp(error.message, "128 of 200 tokens read: the caller's progress function stopped it") == 0);
  EXPECT(logits == NULL && told.done == 2 * kChunk && tarn_session_tokens(session) == 2 * kChunk);
  EXPECT_OK(tarn_session_prefill(session, tokens + 2 * kChunk, kTokens - 2 * kChunk, &logits, &error));
  EXPECT(memcmp(logits, wanted, sizeof(wanted)) == 0);

  tarn_session_reset(session);
  EXPECT_OK(tarn_session_prefill_progress(session, tokens, kTokens, NULL, NULL, NULL, &error));
  EXPECT(tarn_session_prefill_progress(NULL, tokens, 1, GoOn, &told, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_prefill_progress(session, NULL, 1, GoOn, &told, NULL, &error) == TARN_INVALID_ARGUMENT);
}

static void TestTrim(const tarn_model* model, tarn_session* session, const int32_t* tokens) {
  tarn_error error;
  tarn_memory memory = TARN_MEMORY_INIT;
  const float* logits = NULL;
  float wanted[kVocab];
  uint64_t released;

  tarn_session_reset(session);
  EXPECT_OK(tarn_session_prefill(session, tokens, kTokens, NULL, &error));
  EXPECT_OK(tarn_session_step(session, tokens, &logits, &error));
  memcpy(wanted, logits, sizeof(wanted));

  tarn_session_reset(session);
  EXPECT_OK(tarn_session_prefill(session, tokens, kTokens, NULL, &error));
  EXPECT_OK(tarn_model_requirements(model, NULL, &memory, &error));
  released = tarn_session_trim(session);
  EXPECT(released <= memory.session_bytes - memory.program_bytes);
  EXPECT(tarn_session_tokens(session) == kTokens);
  EXPECT_OK(tarn_session_step(session, tokens, &logits, &error));
  EXPECT(memcmp(logits, wanted, sizeof(wanted)) == 0);
  EXPECT(tarn_session_trim(NULL) == 0);
}

int main(void) {
  tarn_error error;
  tarn_model* model = NULL;
  tarn_session* session = NULL;
  tarn_source source = TARN_SOURCE_INIT;
  int32_t tokens[kTokens];
  int i;
  for (i = 0; i < kTokens; ++i) tokens[i] = i * 37 % kVocab;
  source.path = "examples/models/shakespeare-rfa-gate-int8.tarn";
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  if (model != NULL) EXPECT_OK(tarn_session_create(model, NULL, &session, &error));
  if (session != NULL) {
    TestProgress(session, tokens);
    TestTrim(model, session, tokens);
  }
  tarn_session_destroy(session);
  tarn_model_close(model);
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
