/* Goes back in a text while it is made: writes a line, takes its end back, and writes it once more with another seed.
 *
 *   ./rewind MODEL.tarn */
#include <example.h>
#include <tarn/checkpoints.h>

#define PROMPT "ROMEO:"
#define LENGTH 60

static tarn_session* session;
static tarn_sampler* sampler;
static tarn_checkpoints* checkpoints;

/* Writes LENGTH tokens after those that the text has. */
static void generate(const float* logits, char* text) {
  for (int i = 0; i < LENGTH; ++i) {
    int32_t token = 0;
    check(tarn_sampler_sample(sampler, logits, &token, &error));
    check(tarn_session_step(session, &token, &logits, &error));
    check(tarn_checkpoints_record(checkpoints, &token, 1, logits, &error));
    text[i] = (char)token;
  }
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./rewind MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  check(tarn_session_create(model, NULL, &session, &error));
  check(tarn_sampler_create(info.vocab_size, NULL, &sampler, &error));

  tarn_generation generation = TARN_GENERATION_INIT;
  generation.session = session;
  generation.sampler = sampler;
  tarn_checkpoints_config config = TARN_CHECKPOINTS_CONFIG_INIT;
  config.ring_bytes = 16 << 20;
  tarn_checkpoints_memory memory = TARN_CHECKPOINTS_MEMORY_INIT;
  check(tarn_checkpoints_requirements(&generation, &config, &memory, &error));
  printf("%u checkpoints of %u bytes\n", memory.capacity, (unsigned)memory.checkpoint_bytes);
  check(tarn_checkpoints_create(&generation, &config, &checkpoints, &error));

  int32_t tokens[sizeof(PROMPT)];
  size_t count = 0;
  const float* logits = NULL;
  check(tarn_tokenize(model, PROMPT, strlen(PROMPT), tokens, sizeof(PROMPT), &count, &error));
  check(tarn_session_prefill(session, tokens, count, &logits, &error));
  for (size_t i = 0; i < count; ++i) tarn_sampler_accept(sampler, tokens[i]);
  check(tarn_checkpoints_record(checkpoints, tokens, count, logits, &error));

  char first[LENGTH], again[LENGTH], other[LENGTH];
  generate(logits, first);
  check(tarn_checkpoints_rewind(checkpoints, tarn_session_tokens(session) - LENGTH, &logits, &error));
  generate(logits, again); /* the sampler has gone back, too */
  check(tarn_checkpoints_rewind(checkpoints, tarn_session_tokens(session) - LENGTH / 2, &logits, &error));
  tarn_sampler_set_seed(sampler, 7);
  generate(logits, other);
  printf("%s%.*s\n%s\n", PROMPT, LENGTH, first, memcmp(first, again, LENGTH) == 0 ? "equal" : "different");
  printf("%s%.*s%.*s\n", PROMPT, LENGTH / 2, first, LENGTH, other);

  tarn_checkpoints_destroy(checkpoints);
  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
