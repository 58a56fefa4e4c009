/* Several tokens for one run of the model, and the same text as with single steps.
 *
 *   ./speculate MODEL.tarn */
#include <example.h>
#include <tarn/speculation.h>

#define PROMPT "ROMEO:\nO, she doth teach the torches to burn bright!\n\nROMEO:\nO, she doth teach the torches to"
#define LENGTH 400
#define DRAFTS 8

static tarn_session* session;
static tarn_sampler* sampler;

/* Feeds the prompt to a new session and returns the first token behind it. */
static int32_t begin(tarn_model* model, uint32_t vocab_size, int32_t* prompt, size_t* count) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.max_logits_rows = DRAFTS + 1; /* a token and its drafts */
  check(tarn_session_create(model, &config, &session, &error));
  check(tarn_sampler_create(vocab_size, NULL, &sampler, &error));
  const float* logits = NULL;
  check(tarn_tokenize(model, PROMPT, strlen(PROMPT), prompt, sizeof(PROMPT), count, &error));
  check(tarn_session_prefill(session, prompt, *count, &logits, &error));
  for (size_t i = 0; i < *count; ++i) tarn_sampler_accept(sampler, prompt[i]);
  int32_t token = 0;
  check(tarn_sampler_sample(sampler, logits, &token, &error));
  return token;
}

static void end(void) {
  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./speculate MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  int32_t prompt[sizeof(PROMPT)];
  size_t count = 0;

  static int32_t plain[LENGTH];
  plain[0] = begin(model, info.vocab_size, prompt, &count);
  for (int i = 1; i < LENGTH; ++i) {
    const float* logits = NULL;
    check(tarn_session_step(session, &plain[i - 1], &logits, &error));
    check(tarn_sampler_sample(sampler, logits, &plain[i], &error));
  }
  end();

  static int32_t text[LENGTH + DRAFTS];
  text[0] = begin(model, info.vocab_size, prompt, &count);
  tarn_speculation* speculation = NULL;
  check(tarn_speculation_create(session, sampler, NULL, &speculation, &error));
  check(tarn_speculation_read(speculation, prompt, count, &error));
  for (size_t i = 0; i + 1 < LENGTH; i += count) {
    check(tarn_speculation_step(speculation, text[i], &text[i + 1], DRAFTS + 1, &count, &error));
  }
  tarn_speculation_stats stats = TARN_SPECULATION_STATS_INIT;
  check(tarn_speculation_get_stats(speculation, &stats, &error));
  tarn_speculation_destroy(speculation);
  end();

  for (int i = 0; i < LENGTH; ++i) putchar((char)text[i]);
  printf("\n%s; runs of the model: %s\n", memcmp(text, plain, sizeof(plain)) == 0 ? "equal" : "different",
         stats.runs < LENGTH - 1 ? "fewer than tokens" : "one for each token");
  tarn_model_close(model);
  return 0;
}
