/* Several tokens for each read of the weights, with exactly the text of single steps. Conventions as in tarn.h.
 *
 * The speed of decoding is limited by memory bandwidth: each token needs a read of all weights. Speculation guesses some tokens
 * (drafts), feeds them in one call, and takes the logits after each of them, which are those of single steps, bit for bit. Tokens
 * are picked from these logits in order, as without drafts, until a picked token differs from the next draft; the session then goes
 * back to the position of that token. So the text does not depend on drafts: with the same sampler it is the same as that of
 * tarn_session_step() and tarn_sampler_sample(), greedy or not, with penalties and grammars. There are two
 * exceptions (docs/speculation.md, Limits). On ARM, with weights in f32, and in int8 on cores with dot products, the last bits of
 * logits can differ. With a draft session, edit_logits of the sampler is called for guesses, too: it must not count its calls.
 *
 * Drafts come from the text itself (the tokens that followed an earlier occurrence of the last tokens) and, if the program gives
 * one, from a smaller model of the same vocabulary. The number of drafts depends on how often such drafts are right, and on how
 * long a call with them takes: if drafts do not help, none are fed.
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

typedef struct tarn_speculation tarn_speculation; /* the drafts of a session, and the memory to undo them */

/* How tokens are picked and drafted. */
typedef struct tarn_speculation_config {
  size_t struct_size;
  /* The most drafts of a step: 1 to min(max_chunk, max_logits_rows) - 1 of the session. 0 means that number, but at most 15. */
  uint32_t max_draft;
  /* How many of the last tokens of the text are searched for drafts, up to 2^24; rounded up to a power of two. Each takes 48 bytes.
   * 0 means 8192. */
  uint32_t history_tokens;
  /* A session of a smaller causal model with the same tokens, which also drafts. Only the speculation may use this session as long
   * as the speculation exists. NULL: none. The program must make sure that both models give each token id the same meaning; the
   * library does not check it. */
  tarn_session* draft;
  /* The cost of one draft, as a share of the cost of a step. 0: it is measured with the system's clock, and the number of drafts
   * (not the text) differs from run to run. > 0: this value is used, without a clock. On a system without a clock, 0 means 0.25. */
  float row_cost;
  uint32_t reserved; /* ignored */
  /* Picks tokens in place of a sampler, from `logits` [vocab_size]. NULL if a sampler is given. */
  int32_t (*pick)(void* context, const float* logits, size_t vocab_size);
  /* Gets each token that a step returns, in order, with the logits from which it was picked. If it returns a value other than 0,
   * the text ends after this token. It must not use the session. NULL: none. */
  int (*on_token)(void* context, int32_t token, const float* logits);
  void* context; /* passed to both */
  /* Optional: the memory, aligned to 64. It is the caller's again after tarn_speculation_destroy(). NULL: one block from
   * `allocator`. */
  void* block;
  size_t block_bytes;       /* the size of `block`, at least what tarn_speculation_requirements() says */
  tarn_allocator allocator; /* used at creation and by tarn_speculation_destroy() */
} tarn_speculation_config;
#define TARN_SPECULATION_CONFIG_INIT                                                                   \
  {                                                                                                    \
    sizeof(tarn_speculation_config), 0, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, { NULL, NULL, NULL } \
  }

/* Writes the bytes that tarn_speculation_create() takes to `*size_bytes`: the tokens and tables of the history; for each op with
 * states, the memory to go back; with a draft, its states and those of the sampler. `sampler` may be NULL if `config` has `pick`,
 * which must be NULL otherwise; `config` may be NULL (defaults).
 * Errors: TARN_INVALID_ARGUMENT (names the field; the session has several sequences, or room for the logits of only one token; the
 * sampler or the draft has another vocabulary size), TARN_UNSUPPORTED (another task than TARN_TASK_CAUSAL_LM), TARN_OUT_OF_MEMORY.
 * Thread safety: any thread, while nobody uses the session. */
TARN_API tarn_status tarn_speculation_requirements(tarn_session* session, tarn_sampler* sampler,
                                                   const tarn_speculation_config* config, uint64_t* size_bytes, tarn_error* error);

/* Creates a speculation over a session. Session, sampler and draft must outlive it. Nothing is allocated afterwards.
 * Errors: as tarn_speculation_requirements(), TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY.
 * Thread safety: it belongs to the thread of its session. */
TARN_API tarn_status tarn_speculation_create(tarn_session* session, tarn_sampler* sampler, const tarn_speculation_config* config,
                                             tarn_speculation** speculation, tarn_error* error);

/* Destroys a speculation, before its session. Processes accepted drafts that the session has not processed yet: until then they
 * lie in the speculation's memory. NULL is accepted.
 * Thread safety: it belongs to the thread of its session. */
TARN_API void tarn_speculation_destroy(tarn_speculation* speculation);

/* Records that the session has read `tokens` in another call, such as a prefill: they are searched for drafts, and the draft
 * session reads them. Tokens that are not recorded make drafts worse, and have no other effect.
 * Errors: TARN_INVALID_ARGUMENT (NULL; a token that the model does not have: none is recorded). */
TARN_API tarn_status tarn_speculation_read(tarn_speculation* speculation, const int32_t* tokens, size_t count, tarn_error* error);

/* Feeds `token`, the next token of the text, and drafts after it. Writes the tokens that follow to `tokens` and their number, 1 to
 * `capacity`, to `*count`. If on_token or a complete grammar ends the text, the last of these tokens is the end. The session has
 * read all of them but the last, which is the `token` of the next call. Some may still have to be processed: the next call that
 * reads or continues the session's state does so.
 * Errors: those of tarn_session_step(): `*count` is 0 and nothing has changed, except with TARN_INTERNAL, after which the session
 * needs a reset or a restore; a run that has begun is not cancelled any more. Those of tarn_sampler_sample() or of `pick`: `*count`
 * tokens have been returned before the error, and the session has read them all. */
TARN_API tarn_status tarn_speculation_step(tarn_speculation* speculation, int32_t token, int32_t* tokens, size_t capacity,
                                           size_t* count, tarn_error* error);

/* Forgets the text, to begin another one. Call it after a reset or a restore of the session. The draft session is reset. */
TARN_API void tarn_speculation_reset(tarn_speculation* speculation);

/* Counts since the creation. */
typedef struct tarn_speculation_stats {
  size_t struct_size;
  uint64_t runs;    /* of the model, one for each step */
  uint64_t drafted; /* drafts that were fed */
  /* Of them, those that became text. The number of tokens returned is runs + accepted, less 1 for each step that failed in the
   * sampler or in `pick`. */
  uint64_t accepted;
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
