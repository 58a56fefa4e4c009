/* Structs of every size that a caller could claim, in memory of exactly that size: AddressSanitizer sees a byte too much. Each is
 * accepted, as an older or a newer caller's, or refused with words; nothing else happens. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "tarn/inspect.h"
#include "tarn/tarn.h"

enum { kLargest = 4096 }; /* more than that no struct has, and is refused by its number alone */

static tarn_source source = TARN_SOURCE_INIT;
static tarn_model* model;

/* As good a struct as fits, with `claimed` as its size. */
static void* Copy(const void* good, size_t good_bytes, size_t claimed) {
  const size_t bytes = claimed < sizeof(size_t) || claimed > kLargest ? kLargest : claimed;
  unsigned char* copy = calloc(1, bytes);
  EXPECT(copy != NULL);
  memcpy(copy, good, bytes < good_bytes ? bytes : good_bytes);
  memcpy(copy, &claimed, sizeof(claimed));
  return copy;
}

static void ExpectWords(tarn_status status, const tarn_error* error) {
  EXPECT(status == TARN_OK || (error->message[0] != '\0' && strchr(error->message, '\n') == NULL));
}

static void Configs(size_t claimed) {
  const tarn_source good_source = source;
  const tarn_model_config good_model = TARN_MODEL_CONFIG_INIT;
  const tarn_session_config good_session = TARN_SESSION_CONFIG_INIT;
  const tarn_sampler_config good_sampler = TARN_SAMPLER_CONFIG_INIT;
  const tarn_beam_config good_beam = TARN_BEAM_CONFIG_INIT;
  tarn_source* const a_source = Copy(&good_source, sizeof(good_source), claimed);
  tarn_model_config* const model_config = Copy(&good_model, sizeof(good_model), claimed);
  tarn_session_config* const session_config = Copy(&good_session, sizeof(good_session), claimed);
  tarn_sampler_config* const sampler_config = Copy(&good_sampler, sizeof(good_sampler), claimed);
  tarn_beam_config* const beam_config = Copy(&good_beam, sizeof(good_beam), claimed);
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_error error;
  tarn_model* other = NULL;
  tarn_session* session = NULL;
  tarn_sampler* sampler = NULL;
  tarn_beam* beam = NULL;
  memset(&error, 0, sizeof(error));
  ExpectWords(tarn_requirements(a_source, model_config, session_config, &memory, &error), &error);
  ExpectWords(tarn_model_open(a_source, NULL, &other, &error), &error);
  tarn_model_close(other);
  other = NULL;
  ExpectWords(tarn_model_open(&source, model_config, &other, &error), &error);
  tarn_model_close(other);
  ExpectWords(tarn_session_create(model, session_config, &session, &error), &error);
  tarn_session_destroy(session);
  ExpectWords(tarn_sampler_create(7, sampler_config, &sampler, &error), &error);
  tarn_sampler_destroy(sampler);
  ExpectWords(tarn_beam_create(beam_config, &beam, &error), &error);
  tarn_beam_destroy(beam);
  free(a_source);
  free(model_config);
  free(session_config);
  free(sampler_config);
  free(beam_config);
}

static void Answers(size_t claimed) {
  static const unsigned char kNothing[sizeof(size_t)] = {0};
  tarn_memory* const memory = Copy(kNothing, sizeof(kNothing), claimed);
  tarn_model_info* const info = Copy(kNothing, sizeof(kNothing), claimed);
  tarn_op_info* const op = Copy(kNothing, sizeof(kNothing), claimed);
  tarn_tensor_info* const tensor = Copy(kNothing, sizeof(kNothing), claimed);
  tarn_state_info* const state = Copy(kNothing, sizeof(kNothing), claimed);
  tarn_error error;
  memset(&error, 0, sizeof(error));
  ExpectWords(tarn_model_requirements(model, NULL, memory, &error), &error);
  ExpectWords(tarn_model_get_info(model, info, &error), &error);
  ExpectWords(tarn_model_op(model, 0, op, &error), &error);
  ExpectWords(tarn_model_tensor(model, 0, tensor, &error), &error);
  ExpectWords(tarn_model_state(model, 0, state, &error), &error);
  free(memory);
  free(info);
  free(op);
  free(tensor);
  free(state);
}

int main(void) {
  static const size_t kHuge[] = {kLargest + 8, (size_t)1 << 20, SIZE_MAX / 2, SIZE_MAX - 7, SIZE_MAX};
  tarn_error error;
  size_t size;
  source.path = "tests/data/v1.2.tarn";
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  for (size = 0; size < 320; ++size) {
    /* Opening takes milliseconds: the odd sizes, which are all refused, need not all be tried. */
    if (size % 8 == 0 || size < 16) Configs(size);
    Answers(size);
  }
  for (size = 0; size < sizeof(kHuge) / sizeof(*kHuge); ++size) {
    Configs(kHuge[size]);
    Answers(kHuge[size]);
  }
  tarn_model_close(model);
  return failures != 0;
}
