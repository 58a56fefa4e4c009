/* Decodes the output of a seq2seq model with four beams.
 *
 *   ./beam MODEL.tarn "the third of March 1998" */
#include <example.h>

#define BEAMS 4

int main(int argc, char** argv) {
  expect_arguments(argc, 2, "./beam MODEL.tarn \"the third of March 1998\"");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);

  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.beams = BEAMS; /* one source, four sequences */
  tarn_session* session = NULL;
  check(tarn_session_create(model, &config, &session, &error));

  tarn_beam_config search = TARN_BEAM_CONFIG_INIT;
  search.beams = BEAMS;
  search.vocab_size = info.vocab_size;
  search.max_output_tokens = 32;
  search.bos_token = info.bos_token;
  search.eos_token = info.eos_token;
  tarn_beam* beam = NULL;
  check(tarn_beam_create(&search, &beam, &error));

  int32_t source[512];
  size_t length = 0;
  check(tarn_tokenize(model, argv[2], strlen(argv[2]), source, 512, &length, &error));
  check(tarn_session_encode(session, source, length, &length, &error));
  while (!tarn_beam_done(beam)) {
    const float* logits = NULL;
    check(tarn_session_step(session, tarn_beam_tokens(beam), &logits, &error));
    check(tarn_beam_advance(beam, logits, &error));
    check(tarn_session_reorder(session, tarn_beam_parents(beam), &error));
  }

  const int32_t* tokens = NULL;
  size_t count = 0;
  double score = 0;
  check(tarn_beam_result(beam, 0, 0, &tokens, &count, &score, &error)); /* source 0, its best output */
  for (size_t i = 0; i < count; ++i) putchar(tokens[i]);                /* here a token is a byte */
  printf("\nscore %.3f\n", score);

  tarn_beam_destroy(beam);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
