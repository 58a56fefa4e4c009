/* Two texts in lockstep: one session, a batch of two sequences.
 *
 *   ./batch MODEL.tarn */
#include <example.h>

#define BATCH 2
#define LENGTH 40

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./batch MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = BATCH;
  tarn_session* session = NULL;
  check(tarn_session_create(model, &config, &session, &error));

  /* [BATCH, 6], row-major: all prompts of a batch have the same number of tokens. Here a token is a byte. */
  static const char prompts[BATCH][7] = {"ROMEO:", "JULIET"};
  int32_t tokens[BATCH * 6];
  for (int i = 0; i < BATCH * 6; ++i) tokens[i] = prompts[i / 6][i % 6];
  const float* logits = NULL; /* [BATCH, vocab_size] */
  check(tarn_session_prefill(session, tokens, 6, &logits, &error));

  char texts[BATCH][LENGTH];
  for (int i = 0; i < LENGTH; ++i) {
    int32_t next[BATCH];
    for (int b = 0; b < BATCH; ++b) {
      next[b] = largest(logits + (size_t)b * info.vocab_size, info.vocab_size);
      texts[b][i] = (char)next[b];
    }
    check(tarn_session_step(session, next, &logits, &error));
  }
  for (int b = 0; b < BATCH; ++b) printf("[%s%.*s]\n", prompts[b], LENGTH, texts[b]);

  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
