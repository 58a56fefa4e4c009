/* Conversations: the turns of a system, a user and an assistant as the text that the model was trained on. Conventions as in
 * tarn.h.
 *
 * tarn_chat_format() writes the text of new turns alone, so that a session that has read the turns before needs no more. Tokenize
 * it with tarn/tokenizer.h: `no_template` 1, since the text has all that belongs to it, and `plain_ranges` as it gives them, so
 * that "<|im_end|>" in a user's text ends no turn. */
#ifndef TARN_CHAT_H_
#define TARN_CHAT_H_

#include "tarn/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who speaks. */
typedef enum tarn_chat_role {
  TARN_CHAT_SYSTEM = 0,   /* what the model is told before the conversation */
  TARN_CHAT_USER = 1,     /* a question */
  TARN_CHAT_ASSISTANT = 2 /* an answer */
} tarn_chat_role;

/* A turn of a conversation. */
typedef struct tarn_chat_message {
  uint32_t role;     /* who speaks: a tarn_chat_role */
  const char* text;  /* what is said; UTF-8, not terminated */
  size_t text_bytes; /* the size of `text` */
} tarn_chat_message;

/* How far a conversation is. Zero it to begin one; a copy goes on by itself. */
typedef struct tarn_chat {
  uint32_t stage; /* what may follow: 0 for everything, 1 behind a system text, 2 behind an answer or before it */
} tarn_chat;

/* What a model's chat template is. Pointers are valid as long as the model. */
typedef struct tarn_chat_info {
  size_t struct_size;
  const char* name; /* "chatml"; "model": that of the checkpoint */
  int takes_system; /* 0: a message of TARN_CHAT_SYSTEM is an error */
  /* Tokens that end an answer. They are no part of it, and a session need not read them: the next turn's text begins with what
   * ends an answer. */
  const int32_t* end_tokens;
  size_t end_token_count; /* how many there are */
} tarn_chat_info;
#define TARN_CHAT_INFO_INIT \
  { sizeof(tarn_chat_info), NULL, 0, NULL, 0 }

/* Writes what the model's chat template is to `*info`.
 * Errors: TARN_INVALID_ARGUMENT, TARN_NOT_FOUND (the model has none).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_chat_get_info(const tarn_model* model, tarn_chat_info* info, tarn_error* error);

/* Writes the text of `count` new messages to `text` and its size to `*text_bytes`, without a terminating zero; after a message of
 * the user also what opens the answer. The text of several calls, one after the other, is that of one call with all messages. The
 * answers of the model come between; a program that has a conversation to continue gives them as messages.
 *
 * Of a conversation there are at first a system text, if the model takes one, then messages of user and assistant in turn. After a
 * call that ends with the user's the answer is the model's.
 *
 * `contents` has room for `count` ranges and gets the place of each content in the text. NULL: nobody needs them.
 * Errors: TARN_NOT_FOUND (the model has no chat template), TARN_INVALID_ARGUMENT (also: a message that cannot stand there),
 * TARN_BUFFER_TOO_SMALL (`*text_bytes` is set; `capacity` 0 asks for it). `*chat` is then unchanged.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_chat_format(const tarn_model* model, tarn_chat* chat, const tarn_chat_message* messages, size_t count,
                                      char* text, size_t capacity, size_t* text_bytes, tarn_text_range* contents,
                                      tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_CHAT_H_ */
