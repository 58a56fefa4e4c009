/* The sampler's chain: bans, biases, penalties, DRY, a mask of the program's own, and how probable each token was.
 *
 *   ./sampling MODEL.tarn */
#include <example.h>

/* Only printable ASCII and the line break. */
static void ascii_only(void* context, float* logits, size_t vocab_size) {
  const float never = *(const float*)context;
  for (size_t i = 0; i < vocab_size; ++i) {
    if (i != '\n' && (i < ' ' || i > '~')) logits[i] = never;
  }
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./sampling MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session* session = NULL;
  check(tarn_session_create(model, NULL, &session, &error));

  const tarn_logit_bias biases[] = {{'!', -2.0f}, {'\n', 0.5f}}; /* a token is a byte */
  const int32_t banned[] = {'Z'};
  const int32_t breakers[] = {'\n', ':'};
  float never = -1e30f;
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  chain.seed = 42;
  chain.logit_bias = biases;
  chain.logit_bias_count = sizeof(biases) / sizeof(*biases);
  chain.banned_tokens = banned;
  chain.banned_token_count = 1;
  chain.frequency_penalty = 0.05f;
  chain.dry_multiplier = 0.8f;
  chain.dry_allowed_length = 8;
  chain.dry_breakers = breakers;
  chain.dry_breaker_count = 2;
  chain.edit_logits = ascii_only;
  chain.edit_context = &never;
  tarn_sampler* sampler = NULL;
  check(tarn_sampler_create(info.vocab_size, &chain, &sampler, &error)); /* copies the arrays; allocates nothing later */

  static const int32_t prompt[] = {'R', 'O', 'M', 'E', 'O', ':'};
  const float* logits = NULL;
  check(tarn_session_prefill(session, prompt, 6, &logits, &error));
  for (int i = 0; i < 6; ++i) tarn_sampler_accept(sampler, prompt[i]); /* penalties and DRY know the prompt */
  for (int i = 0; i < 20; ++i) {
    int32_t token = 0;
    check(tarn_sampler_sample(sampler, logits, &token, &error));
    double log_probability = 0;
    tarn_log_probability best[3];
    size_t count = 0;
    check(tarn_log_probabilities(logits, info.vocab_size, token, &log_probability, best, 3, &count, &error));
    printf("token %3d: log p = %7.3f; best", (int)token, log_probability);
    for (size_t k = 0; k < count; ++k) printf(" %d (%.3f)", (int)best[k].token, best[k].log_probability);
    printf("\n");
    check(tarn_session_step(session, &token, &logits, &error));
  }

  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
