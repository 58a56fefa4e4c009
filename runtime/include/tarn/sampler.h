/* tarn/sampler.h: from logits to a token. tarn/tarn.h includes it, and its conventions hold here.
 *
 * A sampler is a chain of stages, in this order:
 *  1. logit bias, banned tokens, edit_logits, grammar: change the logits of chosen tokens.
 *  2. repetition, frequency and presence penalty: lower the logits of recently accepted tokens.
 *  3. DRY: lowers the logits of tokens that would extend a repetition.
 *  4. top-n-sigma, top-k, typical, top-p, min-p: drop improbable tokens.
 *  5. XTC: drops the most probable tokens, with a given probability.
 *  6. temperature, Mirostat 2, draw: choose one of the tokens that are left.
 *
 * Stages before temperature use the probabilities at temperature 1, over the tokens that earlier stages have kept. A stage that is
 * off costs nothing. At temperature 0 the largest logit after the penalties and DRY is chosen, and the later stages do not run. The
 * draw is PCG32: the same seed gives the same text on every machine whose logits are the same. Ties go to the lower id. */
#ifndef TARN_SAMPLER_H_
#define TARN_SAMPLER_H_

#include <stddef.h>
#include <stdint.h>

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sampler ---------------------------------------------------------------------------------------------------- */

/* A number that is added to the logit of a token. */
typedef struct tarn_logit_bias {
  int32_t token; /* in [0, vocab_size) */
  float bias;    /* finite; -100 nearly bans a token, 100 nearly forces it */
} tarn_logit_bias;

/* Which stages of a sampler are on, and how. Arrays are copied at creation. */
typedef struct tarn_sampler_config {
  size_t struct_size;
  float temperature; /* >= 0; 0 is greedy: the largest logit after penalties */
  uint32_t top_k;    /* keep the k largest logits; 0: all */
  float top_p;       /* in (0, 1]: keep the fewest tokens whose probabilities add up to it */
  float min_p;       /* in [0, 1]: drop tokens less probable than min_p times the most probable one */
  /* > 0; 1: none. Positive logits of recently accepted tokens are divided by it, and negative ones multiplied by it. */
  float repeat_penalty;
  uint32_t repeat_last_n; /* how many accepted tokens are recent, for the three penalties */
  uint64_t seed;
  tarn_allocator allocator; /* used at creation and by tarn_sampler_destroy() */
  uint32_t reserved;        /* ignored */
  /* Subtracted from the logit of a recent token, times the number of its occurrences. 0: none. */
  float frequency_penalty;
  /* Subtracted once from the logit of a recent token. 0: none. */
  float presence_penalty;
  /* >= 0; 0: no DRY. If the last n accepted tokens also occur earlier, and token i followed them there, the logit of i is lowered
   * by dry_multiplier * dry_base ^ (n - dry_allowed_length), with the largest such n >= dry_allowed_length. */
  float dry_multiplier;
  /* >= 1; 0 means 1.75. */
  float dry_base;
  /* The shortest repetition that is penalised, in tokens. 0 means 2. */
  uint32_t dry_allowed_length;
  /* How many accepted tokens DRY searches; its time is linear in this number. 0 means 1024. */
  uint32_t dry_last_n;
  /* Drop logits that are more than top_n_sigma standard deviations of all logits below the largest one. 0: keep all. */
  float top_n_sigma;
  /* In (0, 1]: keep the fewest tokens whose probabilities add up to it, beginning with the tokens whose log probability is closest
   * to its mean. 0 means 1: all. */
  float typical_p;
  /* In [0, 1]: the probability that XTC drops all tokens with a probability of at least xtc_threshold, except the least probable of
   * them. */
  float xtc_probability;
  /* In (0, 1]; 0 means 0.1. Above 0.5 nothing is dropped. */
  float xtc_threshold;
  /* >= 0; 0: none. The temperature varies between temperature - dynatemp_range (at least 0), if one token is certain, and
   * temperature + dynatemp_range, if all remaining tokens are equally probable. */
  float dynatemp_range;
  /* > 0: the exponent of the normalised entropy (a share of the largest possible one), which sets the temperature within this
   * range. 0 means 1. */
  float dynatemp_exponent;
  /* 2: Mirostat 2, which keeps the mean surprise of the tokens at mirostat_tau and takes the place of the stages from
   * top-n-sigma to XTC. 0: off. */
  uint32_t mirostat;
  /* > 0, in bits; 0 means 5. */
  float mirostat_tau;
  /* > 0: how fast Mirostat learns; 0 means 0.1. */
  float mirostat_eta;
  /* [logit_bias_count]; a token that is listed twice gets both biases. NULL if there are none. */
  const tarn_logit_bias* logit_bias;
  /* At most vocab_size, as the other counts. */
  size_t logit_bias_count;
  /* [banned_token_count]: tokens that are never picked. NULL if there are none. */
  const int32_t* banned_tokens;
  size_t banned_token_count; /* how many */
  /* [dry_breaker_count]: tokens that end a repetition, such as a line break. DRY neither searches beyond such a token nor penalises
   * it. NULL if there are none. */
  const int32_t* dry_breakers;
  size_t dry_breaker_count; /* how many */
  /* A function of the program that changes the logits in each tarn_sampler_sample(), in the sampler's copy: -infinity bans a token.
   * It must not call the sampler. Biases and bans have been applied before. NULL: none. */
  void (*edit_logits)(void* context, float* logits, size_t vocab_size);
  void* edit_context; /* passed to it */
  /* Bans all tokens that may not come next, and gets each picked token. tarn_sampler_accept() and tarn_sampler_reset() do not
   * change it. It must outlive the sampler. NULL: none. See tarn/grammar.h. */
  tarn_grammar* grammar;
} tarn_sampler_config;
#define TARN_SAMPLER_CONFIG_INIT                                                                                                 \
  {                                                                                                                              \
    sizeof(tarn_sampler_config), 0.8f, 40, 0.95f, 0.05f, 1.0f, 64, 0, {NULL, NULL, NULL}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL                                                                     \
  }

/* Creates a sampler for logits of `vocab_size` tokens. `config` may be NULL (defaults).
 * Errors: TARN_INVALID_ARGUMENT (names the field, its value and its range; the grammar is for a vocabulary of another size),
 * TARN_OUT_OF_MEMORY. */
TARN_API tarn_status tarn_sampler_create(uint32_t vocab_size, const tarn_sampler_config* config, tarn_sampler** sampler,
                                         tarn_error* error);

/* Destroys a sampler. NULL is accepted. */
TARN_API void tarn_sampler_destroy(tarn_sampler* sampler);

/* Picks a token from `logits` [vocab_size] and adds it to the recently accepted ones. `logits` do not change. Allocates nothing.
 * Errors: TARN_INVALID_ARGUMENT (a logit is NaN: names the token; or all logits are -inf); with a grammar those of
 * tarn_grammar_mask() and tarn_grammar_accept().
 * Thread safety: as all calls on a sampler, one thread at a time. */
TARN_API tarn_status tarn_sampler_sample(tarn_sampler* sampler, const float* logits, int32_t* token, tarn_error* error);

/* Adds a token that the sampler did not pick, such as a token of the prompt, to the recently accepted ones. */
TARN_API void tarn_sampler_accept(tarn_sampler* sampler, int32_t token);

/* Later draws are those of a new sampler with `seed`: Mirostat starts again, too. The recently accepted tokens stay. */
TARN_API void tarn_sampler_set_seed(tarn_sampler* sampler, uint64_t seed);

/* Returns the sampler to its initial state: its seed, the initial value of Mirostat, and no accepted tokens. */
TARN_API void tarn_sampler_reset(tarn_sampler* sampler);

/* ---- Log probabilities ------------------------------------------------------------------------------------------ */

/* A token and its log probability. */
typedef struct tarn_log_probability {
  int32_t token;          /* its id */
  double log_probability; /* natural; at most 0 */
} tarn_log_probability;

/* Computes the log probability of `token` under softmax(`logits`): logits as a session gives them, [vocab_size], before any stage
 * of a sampler. Writes up to `capacity` of the most probable tokens to `best`, best first (of equal ones the lower id), and their
 * number to `*count`. The number is smaller if fewer tokens have a logit above -inf. `log_probability` may be NULL; `token` is then
 * ignored. `best` and `count` may be NULL if `capacity` is 0. The error is less than 1e-6. Allocates nothing.
 * Errors: TARN_INVALID_ARGUMENT (a logit is NaN or +inf: names the token; all are -inf; a token out of range).
 * Thread safety: any thread.
 */
TARN_API tarn_status tarn_log_probabilities(const float* logits, uint32_t vocab_size, int32_t token, double* log_probability,
                                            tarn_log_probability* best, size_t capacity, size_t* count, tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_SAMPLER_H_ */
