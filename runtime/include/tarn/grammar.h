/* Constrained output: a text that a grammar allows, however improbable it is for the model. Conventions as in tarn.h.
 *
 * A grammar is a text of rules (docs/grammars.md; the notation is llama.cpp's GBNF). It determines which tokens of a model may come
 * next: exactly those whose bytes, after the text so far, are the beginning of a text of the grammar. A token may end inside a
 * character. The end token is allowed exactly where the grammar may end, and other special tokens never are.
 *
 * Put the grammar into tarn_sampler_config.grammar: the sampler then picks only allowed tokens, and passes each picked token to the
 * grammar. A program that picks tokens itself calls tarn_grammar_mask() and tarn_grammar_accept(). The prompt is not part of the
 * text. */
#ifndef TARN_GRAMMAR_H_
#define TARN_GRAMMAR_H_

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of a grammar. If a limit is exceeded, the result is an error that names it, never a wrong mask. */
typedef struct tarn_grammar_config {
  size_t struct_size;
  /* How deep rules may call each other in a text, for example for brackets inside brackets. Repetitions, and calls at the end of a
   * rule, add no depth. 0 means 256; at most 65,536. */
  uint32_t max_depth;
  /* In how many ways a text may be parsed at the same time, for example if two rules begin alike. 0 means 64; at most 16,384. There
   * is room for max_depth * max_stacks entries of stacks, of 24 to 28 bytes each: at most 2^24 entries. In addition, max_stacks *
   * (bytes of the longest token + 7) entries take 8 bytes each. */
  uint32_t max_stacks;
  /* States of the automata into which the rules are compiled. A repetition {m,n} has n copies of its element. 0 means 65,536; at
   * most 2^22. */
  uint32_t max_states;
  tarn_allocator allocator; /* used at creation and by tarn_grammar_destroy() */
  /* Steps that the creation may take, which bounds its time for hostile rules. A step looks at one part of a rule, edge of an
   * automaton, or stack, and takes 3 to 8 ns on a desktop. 0 means 2^30. */
  uint64_t max_work;
} tarn_grammar_config;
#define TARN_GRAMMAR_CONFIG_INIT \
  { sizeof(tarn_grammar_config), 0, 0, 0, {NULL, NULL, NULL}, 0 }

/* Where the text stands. */
typedef enum tarn_grammar_progress {
  TARN_GRAMMAR_OPEN = 0,    /* the text must go on */
  TARN_GRAMMAR_MAY_END = 1, /* the text may end here, or go on */
  TARN_GRAMMAR_COMPLETE = 2 /* nothing may follow but the end token */
} tarn_grammar_progress;

/* Compiles the rules in `text` for the tokens of `model`, which must outlive the grammar; `text` need not. The grammar is at the
 * beginning of the text that it constrains. `config` may be NULL (defaults). Nothing is allocated afterwards. TARN_BAD_FORMAT names
 * the line and the column of the rules.
 * Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED (more than max_states or max_work; no tokenizer),
 * TARN_INVALID_ARGUMENT (names the field and its range), TARN_CONTEXT_FULL (the beginning of the text already exceeds a limit),
 * TARN_OUT_OF_MEMORY.
 * Thread safety: any thread; a grammar belongs to one thread at a time. */
TARN_API tarn_status tarn_grammar_create(const tarn_model* model, const char* text, size_t text_bytes,
                                         const tarn_grammar_config* config, tarn_grammar** grammar, tarn_error* error);

/* Destroys a grammar. NULL is accepted. A sampler that uses it must be destroyed first. */
TARN_API void tarn_grammar_destroy(tarn_grammar* grammar);

/* Sets the logits of all tokens that may not come next to -infinity. `logits` is [vocab_size]. If no token may come next, all of
 * them are -infinity and the call is an error.
 * Errors: TARN_CONTEXT_FULL (the check of a token needs more than max_depth or max_stacks: names the limit), TARN_INVALID_ARGUMENT
 * (no token may come next: the grammar is complete and the model has no end token, or no token of the vocabulary can continue the
 * text). */
TARN_API tarn_status tarn_grammar_mask(tarn_grammar* grammar, float* logits, tarn_error* error);

/* Adds a token to the text. A sampler that has the grammar does so itself.
 * Errors: TARN_INVALID_ARGUMENT (the token may not come next), TARN_CONTEXT_FULL (names the limit). After an error the text is
 * unchanged. */
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
