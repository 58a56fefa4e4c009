/* The smallest complete program: opens a model, asks what it needs, gives a session exactly that memory, and streams text.
 *
 *   ./hello MODEL.tarn "a prompt"
 */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/tarn.h>

#define TOKENS 200

/* Whatever fails, the library has put it into one line of words. */
static tarn_error error;
static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "hello: %s\n", error.message);
  exit(1);
}

static void* need(void* memory) {
  if (memory != NULL) return memory;
  fprintf(stderr, "hello: out of memory\n");
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: hello MODEL.tarn PROMPT\n");
    return 2;
  }

  /* How much will it take? The answer comes from the head of the file; no weight is read for it. */
  tarn_source source = TARN_SOURCE_INIT;
  source.path = argv[1];
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  tarn_memory memory = TARN_MEMORY_INIT;
  check(tarn_requirements(&source, NULL, &config, &memory, &error));
  fprintf(stderr, "the model: %llu bytes, a session: %llu bytes\n", (unsigned long long)memory.mapped_bytes,
          (unsigned long long)memory.session_bytes);

  tarn_model* model = NULL;
  check(tarn_model_open(&source, NULL, &model, &error));
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  check(tarn_model_get_info(model, &info, &error));

  /* A session lives in one block, here our own. One byte less and its creation would fail and say so. */
  void* block = NULL;
  if (posix_memalign(&block, 64, (size_t)memory.session_bytes) != 0) block = NULL;
  config.block = need(block);
  config.block_bytes = (size_t)memory.session_bytes;
  tarn_session* session = NULL;
  check(tarn_session_create(model, &config, &session, &error));

  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT; /* temperature 0.8, top-k 40, ... */
  chain.seed = 42;                                      /* the same seed gives the same text */
  tarn_sampler* sampler = NULL;
  check(tarn_sampler_create(info.vocab_size, &chain, &sampler, &error));

  /* Prompt to token ids: without room for any, the call counts them. */
  const size_t prompt_bytes = strlen(argv[2]);
  size_t count = 0;
  tarn_tokenize(model, argv[2], prompt_bytes, NULL, 0, &count, NULL);
  int32_t* tokens = need(malloc((count + 1) * sizeof(*tokens)));
  char* text = need(malloc(tarn_max_piece_bytes(model)));
  check(tarn_tokenize(model, argv[2], prompt_bytes, tokens, count, &count, &error));

  const float* logits = NULL; /* [vocab_size], the session's, until its next call */
  check(tarn_session_prefill(session, tokens, count, &logits, &error));
  printf("%s", argv[2]);

  tarn_text_decoder decoder = {{0}, 0, 0}; /* bytes wait here until they are a whole character */
  for (int i = 0; i < TOKENS; ++i) {
    int32_t token = 0;
    size_t text_bytes = 0;
    check(tarn_sampler_sample(sampler, logits, &token, &error));
    if (token == info.eos_token) break;
    check(tarn_text_decode(model, &decoder, token, text, tarn_max_piece_bytes(model), &text_bytes, &error));
    if (fwrite(text, 1, text_bytes, stdout) != text_bytes || fflush(stdout) != 0) break; /* nobody reads */
    check(tarn_session_step(session, &token, &logits, &error));
  }
  fwrite(text, 1, tarn_text_finish(&decoder, text), stdout);
  printf("\n");

  free(text);
  free(tokens);
  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
  free(block);
  tarn_model_close(model);
  return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
