/* Turns token ids into text one by one, up to a stop string, in working memory of fixed size. Conventions as in tarn.h, which has
 * tarn_text_decode() for text without stop strings.
 *
 * A stop string ends the text where it first occurs, even if it spans several tokens. Text that may still become a stop string is
 * held back; the text before it is returned. Of two stop strings, the one that is complete first counts; of two that are complete
 * at the same byte, the longer one. Text goes to the buffer of the call, or to a function of the caller.
 *
 * Call tarn_text_stream_prompt() for each token of the prompt, tarn_text_stream_feed() for each token that is drawn, until
 * tarn_text_stream_stop() is not -1, then tarn_text_stream_finish(), and for the next text tarn_text_stream_reset(). */
#ifndef TARN_TEXT_STREAM_H_
#define TARN_TEXT_STREAM_H_

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_text_stream tarn_text_stream; /* turns the tokens of a text into characters */

/* A string that ends a text. */
typedef struct tarn_stop_string {
  const char* text;  /* UTF-8 */
  size_t text_bytes; /* 1 to 65,536 */
} tarn_stop_string;

/* Which text a stream returns, and where it goes. */
typedef struct tarn_text_stream_config {
  size_t struct_size;
  const tarn_stop_string* stop_strings; /* [stop_string_count], copied at creation. NULL if there are none. */
  size_t stop_string_count;             /* at most 256 */
  int keep_stop_string;                 /* 1: the stop string is returned too. 0: only the text before it. */
  int keep_special;                     /* 1: the text of a special token is its name. 0: it has no text. */
  /* Gets the text in place of the buffers of the calls; it is called only if there is text. It must not call the stream. NULL:
   * none. */
  void (*write)(void* context, const char* text, size_t text_bytes);
  void* write_context; /* passed to it */
  /* Optional: the stream's memory, aligned to 64. It is the caller's again after tarn_text_stream_destroy(). NULL: one block from
   * `allocator`. */
  void* block;
  /* The size of `block`, at least what tarn_text_stream_requirements() says. */
  size_t block_bytes;
  tarn_allocator allocator; /* used at creation and by tarn_text_stream_destroy() */
} tarn_text_stream_config;
#define TARN_TEXT_STREAM_CONFIG_INIT                                                          \
  {                                                                                           \
    sizeof(tarn_text_stream_config), NULL, 0, 0, 0, NULL, NULL, NULL, 0, { NULL, NULL, NULL } \
  }

/* Writes the size of the one block that tarn_text_stream_create() takes to `*size_bytes`. `config` may be NULL (defaults).
 * Errors: TARN_INVALID_ARGUMENT (names the stop string, the value found and the value expected), TARN_UNSUPPORTED (the model has no
 * tokenizer).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_text_stream_requirements(const tarn_model* model, const tarn_text_stream_config* config,
                                                   uint64_t* size_bytes, tarn_error* error);

/* Creates a stream at the beginning of a text. It allocates nothing afterwards. The model must outlive it.
 * Errors: as tarn_text_stream_requirements(), TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY.
 * Thread safety: any thread; a stream belongs to one thread at a time. */
TARN_API tarn_status tarn_text_stream_create(const tarn_model* model, const tarn_text_stream_config* config,
                                             tarn_text_stream** stream, tarn_error* error);

/* Destroys a stream. NULL is accepted. A block of the caller belongs to the caller again. */
TARN_API void tarn_text_stream_destroy(tarn_text_stream* stream);

/* The most bytes that one call returns. 0 for NULL. */
TARN_API size_t tarn_text_stream_max_bytes(const tarn_text_stream* stream);

/* Takes a token that the model did not generate, such as a token of the prompt: its text is not searched for stop strings. Writes
 * the text that is complete to `text` and its length to `*text_bytes`, always whole characters. A character that consists of tokens
 * for single bytes comes with its last token, whatever follows. `capacity` is at least
 * tarn_text_stream_max_bytes(). With a `write` function `text` and `text_bytes` are not used and may be NULL. If the text has
 * already ended, the call does nothing.
 * Errors: TARN_BUFFER_TOO_SMALL (names both sizes), as tarn_text_decode(); the stream is unchanged. */
TARN_API tarn_status tarn_text_stream_prompt(tarn_text_stream* stream, int32_t token, char* text, size_t capacity,
                                             size_t* text_bytes, tarn_error* error);

/* Takes a token that the model generated, and returns the text that can no longer become a stop string. A stop string ends the
 * text; text after it is dropped. Buffer and errors as tarn_text_stream_prompt(). */
TARN_API tarn_status tarn_text_stream_feed(tarn_text_stream* stream, int32_t token, char* text, size_t capacity, size_t* text_bytes,
                                           tarn_error* error);

/* Ends the text: returns the text that was held back, and U+FFFD for an incomplete character. After a stop string it returns
 * nothing. Buffer and errors as tarn_text_stream_prompt(). */
TARN_API tarn_status tarn_text_stream_finish(tarn_text_stream* stream, char* text, size_t capacity, size_t* text_bytes,
                                             tarn_error* error);

/* The index of the stop string that ended the text; -1 if none did, and for NULL. */
TARN_API int32_t tarn_text_stream_stop(const tarn_text_stream* stream);

/* Returns the stream to the beginning of a text. Text that it held back is dropped. */
TARN_API void tarn_text_stream_reset(tarn_text_stream* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_TEXT_STREAM_H_ */
