/* Several tokens for one read of the weights, with exactly the text of single steps. Conventions as in tarn.h.
 *
 * Decoding is as fast as memory gives the weights. Speculation guesses some tokens (drafts), feeds them in one call, and looks at
 * the logits behind each of them, which are those of single steps, bit for bit. Tokens are picked from these logits in order, as
 * they would be without drafts, until one is picked that is not the next draft; the session goes back to there. So the text does
 * not depend on drafts: with the same sampler it is the same as that of tarn_session_step() and tarn_sampler_sample(), greedy or
 * not, with penalties and grammars.
 *
 * Drafts come from the text itself: what followed the last tokens where they stood before; and, where the program gives one, from
 * a smaller model of the same vocabulary. How many are fed depends on how often such drafts are right, and on how long a call with
 * them takes: where nothing can be guessed, nothing is drafted.
 *
 *   tarn_session_prefill(session, prompt_tokens, count, &logits, &error);  // of a session with max_logits_rows 8, say
 *   tarn_speculation_read(speculation, prompt_tokens, count, &error);
 *   tarn_sampler_sample(sampler, logits, &token, &error);                  // the first token
 *   for (;;) {
 *     tarn_speculation_step(speculation, token, tokens, 8, &count, &error);
 *     token = tokens[count - 1];  // tokens[0 .. count - 1] are the next of the text
 *   } */
#ifndef TARN_SPECULATION_H_
#define TARN_SPECULATION_H_

#include "tarn/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_speculation tarn_speculation; /* drafts, and the way back from them */

/* Who picks tokens, and how many are drafted. */
typedef struct tarn_speculation_config {
  size_t struct_size;
  /* The most drafts of a step: 1 to min(max_chunk, max_logits_rows) - 1 of the session. 0 means as many as that, and at most 15. */
  uint32_t max_draft;
  /* The last tokens of the text in which drafts are looked for, up to 2^24; the next power of two is taken. They take 36 bytes
   * each. 0 means 8192. */
  uint32_t history_tokens;
  /* A session of a smaller causal model of the same tokens, which drafts as well; it belongs to the speculation as long as that
   * exists. NULL: none. Nobody but the program knows that both models give a token the same meaning. */
  tarn_session* draft;
  /* What a draft costs besides the step, as a share of it. 0: it is measured with the system's clock, and the number of drafts (not
   * the text) is not the same in every run. Else > 0: as without a clock, where 0 means 0.25. */
  float row_cost;
  uint32_t reserved; /* ignored */
  /* Picks tokens in place of a sampler, from `logits` [vocab_size]. NULL where the sampler is none. */
  int32_t (*pick)(void* context, const float* logits, size_t vocab_size);
  /* Gets each token that a step gives out, in order, with the logits that it was picked from. Not 0: nothing follows this token.
   * It must not use the session. NULL: none. */
  int (*on_token)(void* context, int32_t token, const float* logits);
  void* context; /* passed to both */
  /* Optional: the memory, aligned to 64, the caller's again after tarn_speculation_destroy(). NULL: one block from `allocator`. */
  void* block;
  size_t block_bytes;       /* the size of `block`, at least what tarn_speculation_requirements() says */
  tarn_allocator allocator; /* used at creation and by tarn_speculation_destroy() */
} tarn_speculation_config;
#define TARN_SPECULATION_CONFIG_INIT                                                                   \
  {                                                                                                    \
    sizeof(tarn_speculation_config), 0, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, { NULL, NULL, NULL } \
  }

/* Writes the bytes that tarn_speculation_create() takes to `*size_bytes`: the tokens and tables of the history; of each op with
 * states what going back takes; with a draft its states and those of the sampler. `sampler` may be NULL if `config` has `pick`,
 * which must be NULL otherwise; `config` may be NULL (defaults).
 * Errors: TARN_INVALID_ARGUMENT (names the field; the session has several sequences, or room for the logits of one token alone; the
 * sampler or the draft has another vocabulary size), TARN_UNSUPPORTED (another task than TARN_TASK_CAUSAL_LM), TARN_OUT_OF_MEMORY.
 * Thread safety: any thread, while nobody uses the session. */
TARN_API tarn_status tarn_speculation_requirements(tarn_session* session, tarn_sampler* sampler,
                                                   const tarn_speculation_config* config, uint64_t* size_bytes, tarn_error* error);

/* Creates a speculation over a session, which must outlive it as sampler and draft must. Nothing is allocated afterwards.
 * Errors: as tarn_speculation_requirements(), TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY.
 * Thread safety: it belongs to the thread of its session. */
TARN_API tarn_status tarn_speculation_create(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* config,
                                             tarn_speculation** speculation, tarn_error* error);

/* Destroys a speculation. NULL is accepted. */
TARN_API void tarn_speculation_destroy(tarn_speculation* speculation);

/* Says that the session was given `tokens` by another call, such as a prefill: drafts are looked for in them, and the draft session
 * reads them. What it is not told makes drafts worse, and nothing else.
 * Errors: TARN_INVALID_ARGUMENT (NULL). */
TARN_API tarn_status tarn_speculation_read(tarn_speculation* speculation, const int32_t* tokens, size_t count, tarn_error* error);

/* Feeds `token`, the next of the text, and drafts behind it. Writes the tokens that follow to `tokens` and their number, 1 to
 * `capacity`, to `*count`; one after which on_token or a complete grammar lets nothing follow is the last. The session has read all
 * of them but the last, which is the `token` of the next call. Errors: those of tarn_session_step(), also where a run is cancelled:
 * nothing has changed. Those of tarn_sampler_sample() or of `pick`: `*count` tokens before it have been given out, and the session
 * has read them all. */
TARN_API tarn_status tarn_speculation_step(tarn_speculation* speculation, int32_t token, int32_t* tokens, size_t capacity,
                                           size_t* count, tarn_error* error);

/* Forgets the text, for another one: after a reset or a restore of the session. The draft session is reset. */
TARN_API void tarn_speculation_reset(tarn_speculation* speculation);

/* What has happened since the creation. */
typedef struct tarn_speculation_stats {
  size_t struct_size;
  uint64_t runs;     /* of the model, one for each step */
  uint64_t drafted;  /* drafts that were fed */
  uint64_t accepted; /* of them, those that became text: runs + accepted tokens were given out */
} tarn_speculation_stats;
#define TARN_SPECULATION_STATS_INIT \
  { sizeof(tarn_speculation_stats), 0, 0, 0 }

/* Fills `stats`. Set its struct_size first.
 * Errors: TARN_INVALID_ARGUMENT. */
TARN_API tarn_status tarn_speculation_get_stats(const tarn_speculation* speculation, tarn_speculation_stats* stats,
                                                tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_SPECULATION_H_ */
