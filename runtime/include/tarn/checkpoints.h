/* Going back in a text while it is made, exactly, in memory of fixed size. Conventions as in tarn.h.
 *
 * Checkpoints are copies of everything that makes a text: the session, the last logits, and, where there are any, the sampler, the
 * grammar and the text stream. They are taken now and then, and wherever a program asks for one. Between them a log keeps the last
 * tokens. To go back by some tokens, the library restores the nearest checkpoint before that place and gives the session the
 * tokens between, in the calls in which it got them first: so the bits are the same. (In the middle of a call they are those of a
 * call that ends there.)
 *
 *   tarn_session_prefill(session, prompt_tokens, count, &logits, &error);  // the sampler accepts these, too
 *   tarn_checkpoints_record(checkpoints, prompt_tokens, count, logits, &error);
 *   for (;;) {
 *     tarn_sampler_sample(sampler, logits, &token, &error);                // the text stream gets the token, too
 *     tarn_session_step(session, &token, &logits, &error);
 *     tarn_checkpoints_record(checkpoints, &token, 1, logits, &error);
 *   }
 *   tarn_checkpoints_rewind(checkpoints, tarn_session_tokens(session) - 5, &logits, &error);
 *
 * A program records a token when the session, the sampler and the text stream have it, before the next one is picked. What it
 * changes otherwise it follows with tarn_checkpoints_mark(): another seed, a grammar that begins anew. */
#ifndef TARN_CHECKPOINTS_H_
#define TARN_CHECKPOINTS_H_

#include "tarn/text_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_checkpoints tarn_checkpoints; /* a ring of checkpoints, and a log */

/* What makes a text. All of it must outlive the checkpoints. */
typedef struct tarn_generation {
  size_t struct_size;
  tarn_session* session; /* of `batch` 1, unless the other three are NULL */
  tarn_sampler* sampler; /* NULL: none */
  /* That of the sampler, or one that the program asks itself. NULL: none. */
  tarn_grammar* grammar;
  tarn_text_stream* text_stream; /* NULL: none */
} tarn_generation;
#define TARN_GENERATION_INIT \
  { sizeof(tarn_generation), NULL, NULL, NULL, NULL }

/* How much is kept. */
typedef struct tarn_checkpoints_config {
  size_t struct_size;
  /* The bytes for checkpoints: as many of tarn_checkpoints_memory.checkpoint_bytes as fit, at least one. Where there is no room for
   * another one, one goes that was taken automatically: the one whose neighbours are close to each other, for its age, so that the
   * spaces between checkpoints double with age. The oldest one stays. Those with a tag stay while there are others. */
  uint64_t ring_bytes;
  /* Tokens that the log keeps. 0 means 2048. */
  uint32_t log_tokens;
  /* A checkpoint is taken automatically by the record that ends this many tokens or more behind the last one. 0 means 64;
   * UINT32_MAX: none is. */
  uint32_t spacing;
  /* Room in a checkpoint for where the text stands in the grammar. Deeply nested rules need more; where there is too little, no
   * checkpoint is taken. 0 means 4096. */
  uint32_t grammar_bytes;
  /* Optional: the memory, aligned to 64, the caller's again after tarn_checkpoints_destroy(). NULL: one block from `allocator`. */
  void* block;
  /* The size of `block`, at least tarn_checkpoints_memory.size_bytes. */
  size_t block_bytes;
  tarn_allocator allocator; /* used at creation and by tarn_checkpoints_destroy() */
} tarn_checkpoints_config;
#define TARN_CHECKPOINTS_CONFIG_INIT                                           \
  {                                                                            \
    sizeof(tarn_checkpoints_config), 0, 0, 0, 0, NULL, 0, { NULL, NULL, NULL } \
  }

/* What checkpoints take, exactly. */
typedef struct tarn_checkpoints_memory {
  size_t struct_size;
  uint64_t size_bytes;       /* of the one block in which everything lies */
  uint64_t checkpoint_bytes; /* of one checkpoint: states, logits, sampler, text stream, room for the grammar */
  uint64_t log_bytes;        /* of the log */
  uint32_t capacity;         /* how many checkpoints there is room for */
} tarn_checkpoints_memory;
#define TARN_CHECKPOINTS_MEMORY_INIT \
  { sizeof(tarn_checkpoints_memory), 0, 0, 0, 0 }

/* Writes what tarn_checkpoints_create() takes to `*memory`. Set its struct_size first.
 * Errors: TARN_INVALID_ARGUMENT (names the field; ring_bytes hold no checkpoint: names both sizes), TARN_OUT_OF_MEMORY (more than
 * the address space).
 * Thread safety: any thread, while nobody uses the session. */
TARN_API tarn_status tarn_checkpoints_requirements(const tarn_generation* generation, const tarn_checkpoints_config* config,
                                                   tarn_checkpoints_memory* memory, tarn_error* error);

/* Creates the checkpoints and takes the first one. Nothing is allocated afterwards.
 * Errors: as tarn_checkpoints_requirements(), TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY.
 * Thread safety: checkpoints belong to the thread of their session. */
TARN_API tarn_status tarn_checkpoints_create(const tarn_generation* generation, const tarn_checkpoints_config* config,
                                             tarn_checkpoints** checkpoints, tarn_error* error);

/* Destroys checkpoints. NULL is accepted. */
TARN_API void tarn_checkpoints_destroy(tarn_checkpoints* checkpoints);

/* Says that the session was given `tokens` [batch, count] by one tarn_session_prefill() or tarn_session_step(), which returned
 * `logits` (NULL: nobody needs them at a checkpoint that is taken here). The sampler has accepted or picked the tokens; those that
 * the grammar has taken are the last ones of the call.
 * Errors: TARN_INVALID_ARGUMENT (the session has seen more or fewer tokens than were recorded, or its sequences different numbers
 * of them; the sampler has not accepted the last one). */
TARN_API tarn_status tarn_checkpoints_record(tarn_checkpoints* checkpoints, const int32_t* tokens, size_t count,
                                             const float* logits, tarn_error* error);

/* Takes a checkpoint with a tag, which need not be the only one with it. `logits` are those of the last call; NULL: nobody needs
 * them.
 * Errors: TARN_CONTEXT_FULL (the grammar needs more than grammar_bytes: names both), TARN_INVALID_ARGUMENT (a call was not
 * recorded). */
TARN_API tarn_status tarn_checkpoints_mark(tarn_checkpoints* checkpoints, uint64_t tag, const float* logits, tarn_error* error);

/* Makes everything what it was when the session had seen `position` tokens; what came later is forgotten. `*logits` are those
 * [batch, vocab_size] behind the last token there, borrowed until the next call on the session or on the checkpoints; NULL where
 * nobody recorded them. `logits` may be NULL.
 * Errors: TARN_NOT_FOUND (too far back: names the positions that can be had), TARN_INVALID_ARGUMENT (ahead of now); those of
 * tarn_session_prefill(): everything is then as it was at the last checkpoint before `position`. */
TARN_API tarn_status tarn_checkpoints_rewind(tarn_checkpoints* checkpoints, uint64_t position, const float** logits,
                                             tarn_error* error);

/* The same for the last checkpoint with the tag.
 * Errors: TARN_NOT_FOUND (there is none, or it had to go). */
TARN_API tarn_status tarn_checkpoints_rewind_to_tag(tarn_checkpoints* checkpoints, uint64_t tag, const float** logits,
                                                    tarn_error* error);

/* The first position from which on every one can be rewound to; before it, those of checkpoints alone. One more than the
 * session's tokens where not even the present one can be, since the log does not reach back to a checkpoint. 0 for NULL. */
TARN_API uint64_t tarn_checkpoints_earliest(const tarn_checkpoints* checkpoints);

/* A checkpoint. */
typedef struct tarn_checkpoint {
  uint64_t position; /* how many tokens the session had seen */
  uint64_t tag;      /* 0 without one */
  int has_tag;       /* 1: it was taken by tarn_checkpoints_mark() */
} tarn_checkpoint;

/* The `index`-th checkpoint, from the oldest on.
 * Errors: TARN_NOT_FOUND (there are fewer). */
TARN_API tarn_status tarn_checkpoints_get(const tarn_checkpoints* checkpoints, size_t index, tarn_checkpoint* checkpoint,
                                          tarn_error* error);

/* Forgets everything and takes the first checkpoint, for another text: after a reset, a restore or an encode of the session, or of
 * a sequence of it.
 * Errors: TARN_INVALID_ARGUMENT (the session was left in the middle of a chunk; its sequences have seen different numbers of
 * tokens). */
TARN_API tarn_status tarn_checkpoints_restart(tarn_checkpoints* checkpoints, tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_CHECKPOINTS_H_ */
