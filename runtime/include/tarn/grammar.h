/* Constrained output: a text that a grammar allows, whatever the model would rather write. Conventions as in tarn.h.
 *
 * A grammar is a text of rules (docs/grammars.md; the notation is llama.cpp's GBNF). Of the tokens of a model it knows after each
 * one which may come next: exactly those whose bytes, behind the text so far, begin a text of the grammar. A token may end inside a
 * character. The end token is allowed exactly where the grammar may end, and other special tokens never are.
 *
 * Put the grammar into tarn_sampler_config.grammar: the sampler then picks such tokens alone, and tells the grammar what it picked.
 * A program that picks tokens itself calls tarn_grammar_mask() and tarn_grammar_accept(). The prompt is no part of the text. */
#ifndef TARN_GRAMMAR_H_
#define TARN_GRAMMAR_H_

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is asked for a grammar. What is exceeded is an error that names it, never a wrong mask. */
typedef struct tarn_grammar_config {
  size_t struct_size;
  /* How deep rules may call each other in a text, as brackets inside brackets do; repetitions, and calls at the end of a rule, take
   * no depth. 0 means 256; at most 65,536. */
  uint32_t max_depth;
  /* In how many ways a text may be read at a time, as where two rules begin alike. 0 means 64; at most 16,384. There is room for
   * max_depth * max_stacks entries of stacks, of 24 to 28 bytes each: at most 2^24. Besides, max_stacks * (bytes of the longest
   * token + 7) entries take 8 bytes each. */
  uint32_t max_stacks;
  /* States of the automata that the rules become. A repetition {m,n} has n copies of its element. 0 means 65,536; at most 2^22. */
  uint32_t max_states;
  tarn_allocator allocator; /* used at creation and by tarn_grammar_destroy() */
  /* Steps of work that the creation may take, so that hostile rules come to an end: parts of rules, edges of automata and stacks
   * that are looked at. A step takes 3 to 8 ns on a desktop. 0 means 2^30. */
  uint64_t max_work;
} tarn_grammar_config;
#define TARN_GRAMMAR_CONFIG_INIT \
  { sizeof(tarn_grammar_config), 0, 0, 0, {NULL, NULL, NULL}, 0 }

/* Where the text stands. */
typedef enum tarn_grammar_progress {
  TARN_GRAMMAR_OPEN = 0,    /* the grammar wants more */
  TARN_GRAMMAR_MAY_END = 1, /* the text may end here, or go on */
  TARN_GRAMMAR_COMPLETE = 2 /* nothing may follow but the end token */
} tarn_grammar_progress;

/* Compiles the rules in `text` for the tokens of `model`, which must outlive the grammar; `text` need not. The text that the
 * grammar constrains begins. `config` may be NULL (defaults). Nothing is allocated afterwards. TARN_BAD_FORMAT names the line and
 * the column of the rules. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED (more than max_states or max_work; no tokenizer),
 * TARN_INVALID_ARGUMENT (names the field and its range), TARN_CONTEXT_FULL (the begin exceeds a limit), TARN_OUT_OF_MEMORY. Thread
 * safety: any thread; a grammar belongs to one thread at a time. */
TARN_API tarn_status tarn_grammar_create(const tarn_model* model, const char* text, size_t text_bytes,
                                         const tarn_grammar_config* config, tarn_grammar** grammar, tarn_error* error);

/* Destroys a grammar. NULL is accepted. A sampler that has it must be destroyed before. */
TARN_API void tarn_grammar_destroy(tarn_grammar* grammar);

/* Sets the logits of all tokens that may not come next to -infinity. `logits` [vocab_size]; where no token may come next, all of
 * them are -infinity and the call is an error.
 * Errors: TARN_CONTEXT_FULL (to know whether some token may come next needs more than max_depth or max_stacks: names it),
 * TARN_INVALID_ARGUMENT (no token may come next: the grammar is complete and the model has no end token, or the vocabulary cannot
 * write what the grammar wants). */
TARN_API tarn_status tarn_grammar_mask(tarn_grammar* grammar, float* logits, tarn_error* error);

/* Adds a token to the text. A sampler that has the grammar does so itself.
 * Errors: TARN_INVALID_ARGUMENT (the token may not come next), TARN_CONTEXT_FULL (names the limit). The text is then as before. */
TARN_API tarn_status tarn_grammar_accept(tarn_grammar* grammar, int32_t token, tarn_error* error);

/* Where the text stands. TARN_GRAMMAR_COMPLETE for NULL. */
TARN_API tarn_grammar_progress tarn_grammar_progress_of(const tarn_grammar* grammar);

/* Begins another text. NULL is accepted. */
TARN_API void tarn_grammar_reset(tarn_grammar* grammar);

/* Bytes that the grammar holds. 0 for NULL. */
TARN_API uint64_t tarn_grammar_size_bytes(const tarn_grammar* grammar);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_GRAMMAR_H_ */
