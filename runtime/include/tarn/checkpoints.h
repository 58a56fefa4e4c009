/* Going back in a text while it is generated: exactly, and in memory of fixed size. Conventions as in tarn.h.
 *
 * A checkpoint is a copy of everything that determines a text: the session, the last logits and, if there are any, the sampler, the
 * grammar and the text stream. The library takes checkpoints automatically, every `spacing` tokens, and where a program asks for
 * one. A log keeps the last tokens. To go back to a position, the library restores the nearest checkpoint before it, and feeds the
 * tokens from there to the position again, with the same calls as the first time: so the results are the same, bit for bit. (If the
 * position is in the middle of a call, the results are those of a call that ends there.)
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
 * A program records a token when the session, the sampler and the text stream have taken it, before it picks the next one. After
 * any other change, such as another seed or a reset of the grammar, it calls tarn_checkpoints_mark(). */
#ifndef TARN_CHECKPOINTS_H_
#define TARN_CHECKPOINTS_H_

#include "tarn/text_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_checkpoints tarn_checkpoints; /* a ring of checkpoints, and a log */

/* The objects that generate a text. All of them must outlive the checkpoints. */
typedef struct tarn_generation {
  size_t struct_size;
  tarn_session* session; /* of `batch` 1, unless the other three are NULL */
  tarn_sampler* sampler; /* NULL: none */
  /* The grammar of the sampler if it has one, or else one that the program uses itself. NULL: none. */
  tarn_grammar* grammar;
  tarn_text_stream* text_stream; /* NULL: none */
} tarn_generation;
#define TARN_GENERATION_INIT \
  { sizeof(tarn_generation), NULL, NULL, NULL, NULL }

/* How much is kept. */
typedef struct tarn_checkpoints_config {
  size_t struct_size;
  /* The bytes for checkpoints, at least tarn_checkpoints_memory.checkpoint_bytes, which each of them takes. If there is no room
   * for another checkpoint, the library drops an automatic one, so that the distances between checkpoints double with their age.
   * The oldest checkpoint stays. Checkpoints with a tag stay as long as there are others. */
  uint64_t ring_bytes;
  /* Tokens that the log keeps. 0 means 2048. */
  uint32_t log_tokens;
  /* tarn_checkpoints_record() takes an automatic checkpoint if the last checkpoint is at least this many tokens back. 0 means 64;
   * UINT32_MAX: no automatic checkpoints. */
  uint32_t spacing;
  /* Room in a checkpoint for the position of the text in the grammar. Deeply nested rules need more; if there is too little room,
   * no checkpoint is taken. 0 means 4096. */
  uint32_t grammar_bytes;
  /* Optional: the memory, aligned to 64. It is the caller's again after tarn_checkpoints_destroy(). NULL: one block from
   * `allocator`. */
  void* block;
  /* The size of `block`, at least tarn_checkpoints_memory.size_bytes. */
  size_t block_bytes;
  tarn_allocator allocator; /* used at creation and by tarn_checkpoints_destroy() */
} tarn_checkpoints_config;
#define TARN_CHECKPOINTS_CONFIG_INIT                                           \
  {                                                                            \
    sizeof(tarn_checkpoints_config), 0, 0, 0, 0, NULL, 0, { NULL, NULL, NULL } \
  }

/* The exact memory that checkpoints take. */
typedef struct tarn_checkpoints_memory {
  size_t struct_size;
  uint64_t size_bytes;       /* of the one block that contains everything */
  uint64_t checkpoint_bytes; /* of one checkpoint: states, logits, sampler, text stream, room for the grammar */
  uint64_t log_bytes;        /* of the log */
  uint32_t capacity;         /* how many checkpoints there is room for */
} tarn_checkpoints_memory;
#define TARN_CHECKPOINTS_MEMORY_INIT \
  { sizeof(tarn_checkpoints_memory), 0, 0, 0, 0 }

/* Writes the memory that tarn_checkpoints_create() takes to `*memory`. Set its struct_size first.
 * Errors: TARN_INVALID_ARGUMENT (names the field; ring_bytes is too small for one checkpoint: names both sizes), TARN_OUT_OF_MEMORY
 * (more than the address space), TARN_UNSUPPORTED (the model takes no sequence token by token).
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

/* Records that the session has read `tokens` [batch, count] in one tarn_session_prefill() or tarn_session_step(), which returned
 * `logits` (NULL: a checkpoint that is taken here has no logits). The sampler must have accepted or picked the tokens. If the
 * grammar has taken only some of the tokens, these must be the last ones of the call.
 * Errors: TARN_INVALID_ARGUMENT (the session has read more or fewer tokens than were recorded, or its sequences have read different
 * numbers of tokens; a sampler with penalties or DRY has not accepted the last token). */
TARN_API tarn_status tarn_checkpoints_record(tarn_checkpoints* checkpoints, const int32_t* tokens, size_t count,
                                             const float* logits, tarn_error* error);

/* Takes a checkpoint with a tag; several checkpoints may have the same tag. `logits` are those of the last call; NULL: the
 * checkpoint has no logits.
 * Errors: TARN_CONTEXT_FULL (the grammar needs more than grammar_bytes: names both), TARN_INVALID_ARGUMENT (a call was not
 * recorded). */
TARN_API tarn_status tarn_checkpoints_mark(tarn_checkpoints* checkpoints, uint64_t tag, const float* logits, tarn_error* error);

/* Returns all objects to the state in which the session had read `position` tokens, and forgets the later tokens. `*logits` are the
 * logits [batch, vocab_size] after the last of these tokens, borrowed until the next call on the session or on the checkpoints;
 * NULL if they were not recorded. `logits` may be NULL.
 * Errors: TARN_NOT_FOUND (too far back: names the positions that can be reached), TARN_INVALID_ARGUMENT (after the present
 * position); those of tarn_session_prefill(): all objects are then in the state of the last checkpoint before `position`. */
TARN_API tarn_status tarn_checkpoints_rewind(tarn_checkpoints* checkpoints, uint64_t position, const float** logits,
                                             tarn_error* error);

/* The same, to the last checkpoint with the tag.
 * Errors: TARN_NOT_FOUND (there is none, or it was dropped). */
TARN_API tarn_status tarn_checkpoints_rewind_to_tag(tarn_checkpoints* checkpoints, uint64_t tag, const float** logits,
                                                    tarn_error* error);

/* The first position P such that tarn_checkpoints_rewind() can reach P and every later position; before P it can reach only the
 * positions of checkpoints. If the log does not go back to any checkpoint, no such position exists, and the function returns the
 * number of the session's tokens plus one. 0 for NULL. */
TARN_API uint64_t tarn_checkpoints_earliest(const tarn_checkpoints* checkpoints);

/* A checkpoint. */
typedef struct tarn_checkpoint {
  uint64_t position; /* how many tokens the session had read */
  uint64_t tag;      /* 0 without one */
  int has_tag;       /* 1: it was taken by tarn_checkpoints_mark() */
} tarn_checkpoint;

/* The `index`-th checkpoint, counted from the oldest one.
 * Errors: TARN_NOT_FOUND (there are fewer). */
TARN_API tarn_status tarn_checkpoints_get(const tarn_checkpoints* checkpoints, size_t index, tarn_checkpoint* checkpoint,
                                          tarn_error* error);

/* Forgets everything and takes the first checkpoint of another text. Call it after a reset, a restore or an encode of the session,
 * or of one of its sequences, and after a copy into it. Where the number of tokens happens to be the same, nothing else notices
 * that.
 * Errors: TARN_INVALID_ARGUMENT (the session was stopped in the middle of a chunk; its sequences have read different numbers
 * of tokens). */
TARN_API tarn_status tarn_checkpoints_restart(tarn_checkpoints* checkpoints, tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_CHECKPOINTS_H_ */
