/* Turns a text into token ids part by part, in working memory of fixed size, with the range of the text for each id. Conventions as
 * in tarn.h. There, tarn_tokenize() does the same in one call, and tarn_text_decode() turns ids into text.
 *
 * Create a tokenizer, begin a text with tarn_tokenizer_begin(), and call tarn_tokenizer_read() until it returns fewer ids than
 * there is room for. */
#ifndef TARN_TOKENIZER_H_
#define TARN_TOKENIZER_H_

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_tokenizer tarn_tokenizer; /* the memory to turn text into token ids */

/* Everything that the size of a tokenizer depends on. */
typedef struct tarn_tokenizer_config {
  size_t struct_size;
  /* The longest word of a text, in bytes of normalized text. A word is a part of the text that the tokenizer's patterns do not cut
   * further. A longer word is an error. Each byte of this bound takes up to 33 bytes of memory, or up to 50 if the tokenizer
   * normalizes texts. 0 means 4,096; at most 2^26. */
  uint32_t max_word_bytes;
  /* Number of words whose tokens are cached, at 64 bytes each; rounded down to a power of two. 0 means 8,192; at most 2^20. */
  uint32_t cache_words;
  /* Optional: the tokenizer's memory, aligned to 64. It is the caller's again after tarn_tokenizer_destroy(). NULL: one block from
   * `allocator`. */
  void* block;
  /* The size of `block`, at least what tarn_tokenizer_requirements() says. */
  size_t block_bytes;
  tarn_allocator allocator; /* used at creation and by tarn_tokenizer_destroy() */
} tarn_tokenizer_config;
#define TARN_TOKENIZER_CONFIG_INIT                                     \
  {                                                                    \
    sizeof(tarn_tokenizer_config), 0, 0, NULL, 0, { NULL, NULL, NULL } \
  }

/* A part of a text. */
typedef struct tarn_text_range {
  size_t begin; /* its first byte */
  size_t end;   /* the first byte after it */
} tarn_text_range;

/* How a text is read. */
typedef struct tarn_tokenizer_options {
  size_t struct_size;
  /* 1: without the ids that the model's tokenizer puts before and after every text. 0: with them. */
  int no_template;
  /* 1: special tokens in the text ("<|endoftext|>") are read as ordinary text. 0: they become their ids. */
  int plain;
  /* Parts of the text that are read as with `plain`, in the order of the text, such as the `contents` of tarn_chat_format(). A
   * special token that reaches into such a part is read as ordinary text. The ranges must stay unchanged as long as the text. */
  const tarn_text_range* plain_ranges;
  size_t plain_range_count; /* how many there are */
} tarn_tokenizer_options;
#define TARN_TOKENIZER_OPTIONS_INIT \
  { sizeof(tarn_tokenizer_options), 0, 0, NULL, 0 }

/* Writes the size of the one block that tarn_tokenizer_create() takes to `*size_bytes`. `config` may be NULL (defaults).
 * Errors: TARN_INVALID_ARGUMENT (names the field and its range), TARN_UNSUPPORTED (the model has no tokenizer).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_tokenizer_requirements(const tarn_model* model, const tarn_tokenizer_config* config, uint64_t* size_bytes,
                                                 tarn_error* error);

/* Creates a tokenizer, which allocates nothing afterwards. The model must outlive it.
 * Errors: as tarn_tokenizer_requirements(), TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY.
 * Thread safety: any thread; a tokenizer belongs to one thread at a time. */
TARN_API tarn_status tarn_tokenizer_create(const tarn_model* model, const tarn_tokenizer_config* config, tarn_tokenizer** tokenizer,
                                           tarn_error* error);

/* Destroys a tokenizer. NULL is accepted. A block of the caller belongs to the caller again. */
TARN_API void tarn_tokenizer_destroy(tarn_tokenizer* tokenizer);

/* Begins a text of any length, which must stay unchanged until its last tarn_tokenizer_read(). The rest of an earlier text is
 * dropped. `options` may be NULL (defaults).
 * Errors: TARN_INVALID_ARGUMENT (also: plain_ranges that are not in order). */
TARN_API tarn_status tarn_tokenizer_begin(tarn_tokenizer* tokenizer, const char* text, size_t text_bytes,
                                          const tarn_tokenizer_options* options, tarn_error* error);

/* Writes the next ids of the text to `tokens`, up to `capacity`, and their number to `*count`; if it is less than `capacity`, the
 * text has ended. `ranges` may be NULL; else it has room for `capacity` ranges of the text. An id that stands for part of a
 * character has the range of the whole character. Ids that the tokenizer adds before and after every text have {0, 0}.
 * Errors: TARN_BUFFER_TOO_SMALL (a word is longer than max_word_bytes; the `*count` ids before it are written, and the rest of the
 * text is dropped). */
TARN_API tarn_status tarn_tokenizer_read(tarn_tokenizer* tokenizer, int32_t* tokens, tarn_text_range* ranges, size_t capacity,
                                         size_t* count, tarn_error* error);

/* 1 if the token stands for no text of its own, such as the begin or the end token; else 0, also for NULL and for ids that the
 * model does not have. tarn_text_decode() writes the name of such a token. To leave the name out, do not pass the token.
 * Thread safety: any thread. */
TARN_API int tarn_token_is_special(const tarn_model* model, int32_t token);

/* The number of bytes of text that the token stands for. 0 for a special token, for NULL and for ids that the model does not have.
 * Thread safety: any thread. */
TARN_API size_t tarn_token_bytes(const tarn_model* model, int32_t token);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_TOKENIZER_H_ */
