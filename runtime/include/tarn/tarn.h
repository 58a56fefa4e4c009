/* tarn: sequence models whose memory does not grow. The C API (C99).
 *
 * Conventions
 *  1. Ownership: every `*_open` / `*_create` has one `*_close` / `*_destroy`, which accepts NULL. A tarn_model must
 *     outlive its sessions. Strings and logits returned by pointer are borrowed; each declaration says for how long.
 *  2. Errors: every call that can fail returns a tarn_status and takes a `tarn_error* error`, which may be NULL. On failure
 *     it holds one line that names the thing, the value found and the value wanted. The library never aborts, exits,
 *     throws, prints or keeps an error in a global. Unless a declaration says otherwise, a failed call changes nothing
 *     and out parameters are left alone; a NULL where a value is needed is TARN_INVALID_ARGUMENT.
 *  3. Threads: a tarn_model is immutable and may be shared between threads. A session, a sampler, a beam search and a
 *     text decoder belong to one thread at a time.
 *  4. Memory: tarn_requirements() tells every byte beforehand, by class. After tarn_session_create() a session allocates
 *     nothing. There is nothing global, with one exception: XNNPACK's process-wide allocator hook, set at the first use. On ARM
 *     it comes with cpuinfo's description of the processors: some KB of the C library's memory that stay.
 *  5. Units: sizes are bytes where the name ends in `_bytes`, elements or tokens elsewhere. Text is UTF-8, lengths are
 *     bytes, and no string argument but a path or a name needs a terminating NUL.
 *  6. ABI: every config and info struct begins with `struct_size`; set it to sizeof(the struct), most easily
 *     by initialising with the TARN_*_INIT macro. Fields are only ever added at the end, and zero is their default.
 *  7. Files are untrusted: header and graph are always checked against their hash and validated, and weights against theirs
 *     before they are used (tarn_model_config says when that is remembered). What changes in memory later is not seen.
 *  8. Not supported: big-endian machines, calls into one session from two threads at once. */
#ifndef TARN_TARN_H_
#define TARN_TARN_H_

#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#if defined(_WIN32)
#define TARN_API
#else
#define TARN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_VERSION_MAJOR 0
#define TARN_VERSION_MINOR 1
#define TARN_VERSION_PATCH 0

typedef struct tarn_model tarn_model;
typedef struct tarn_session tarn_session;
typedef struct tarn_sampler tarn_sampler;
typedef struct tarn_beam tarn_beam;

/* A failure in words. `message` is one NUL-terminated line without a newline; long ones are cut. */
typedef struct tarn_error {
  tarn_status status;
  char message[252];
} tarn_error;

/* "0.1.0". Lives for ever. Thread safety: any thread. */
TARN_API const char* tarn_version(void);

/* What a code means, in two or three words; "unknown status" for other numbers. Lives for ever. Thread safety: any thread. */
TARN_API const char* tarn_status_string(tarn_status status);

/* Where memory comes from. `allocate` returns `size_bytes` bytes aligned to `alignment` (a power of two, at most 64), or NULL;
 * `release` gets the pointer and size back. Both NULL: the C library's. The allocator of a model may be called from any
 * thread that opens it, asks for its requirements, or creates or destroys a session that has no block of its own. */
typedef struct tarn_allocator {
  void* (*allocate)(void* context, size_t size_bytes, size_t alignment);
  void (*release)(void* context, void* pointer, size_t size_bytes);
  void* context;
} tarn_allocator;

/* ---- Model ------------------------------------------------------------------------------------------------------ */

/* Which file to open: exactly one of path, fd (>= 0 with `use_fd` set) or buffer.
 *  - path:   NUL-terminated; mapped read-only, whole.
 *  - fd:     mapped from `offset_bytes` (any alignment: an asset inside an APK) over `length_bytes` (0: to the end of the
 *            file). The descriptor is not closed and may be closed by the caller after the call.
 *  - buffer: `length_bytes` bytes that must stay unchanged until tarn_model_close(). Any alignment is accepted; a graph
 *            that does not lie at a multiple of 8, or weights that do not lie at a multiple of 4, are copied.
 * A file that is mapped must not be changed or cut while the model is open: the system would deliver SIGBUS. Replace model
 * files by rename, as tarn-convert does. */
typedef struct tarn_source {
  size_t struct_size;
  const char* path;
  int use_fd; /* 0 or 1 */
  int fd;
  uint64_t offset_bytes;
  uint64_t length_bytes;
  const void* buffer;
} tarn_source;
#define TARN_SOURCE_INIT \
  { sizeof(tarn_source), NULL, 0, -1, 0, 0, NULL }

typedef struct tarn_model_config {
  size_t struct_size;
  /* 1: read the whole weight section, and packed weights that are found, at every open, and compare their XXH3-128. 0: verify what
   * a session will read, once while the machine runs (see packed_cache). `no_verify` says never. */
  int verify_weights;
  /* Kernels to use: NULL for the best that this CPU runs, "reference" for the scalar oracle, or a name that
   * tarn_isa_name() lists. */
  const char* isa;
  /* Use the portable dense layers even where XNNPACK is built in. (On ARM, where /proc and /sys hide the CPU, it is not
   * used; the next open looks again.) */
  int portable_dense;
  /* For the model's own memory and for sessions that bring no block. */
  tarn_allocator allocator;
  /* A folder in which packed weights are kept between starts, one file per model and packing, as large as packed_file_bytes says
   * and readable by this user only. They are then file-backed, found in milliseconds and shared between processes. The folder is
   * made if its parent is there. A file that is damaged or does not fit is replaced without a word; where none can be written or
   * read, packed weights are anonymous. Old files stay: any may be deleted at any time, but not changed while a model is open. The
   * first start waits until its file is on the disk.
   * A model that was verified is noted there: while the machine runs and neither file is touched (device, inode, size, times), it
   * is not verified again. Without a folder, from a buffer, or where no note can be written every open reads all weights.
   * NUL-terminated, read during the call. NULL: no files. */
  const char* packed_cache;
  /* What a file may ask for; a model above is TARN_UNSUPPORTED, with both numbers and the op in the message.
   *  - max_work_per_token: multiply-adds for one token (of a source of 512 tokens, or what the model holds if that is less), as
   *    estimated from the graph. 0 means 2^28 + 128 for each byte of the file: a dense layer takes one to two for each byte of its
   *    weights in int8 and int4.
   *  - max_packed_bytes: packed_file_bytes or packed_anonymous_bytes of tarn_memory. 0 means 64 MiB + 8 for each byte of the file.
   */
  uint64_t max_work_per_token;
  uint64_t max_packed_bytes;
  /* 1: weights are taken as they are, and damage in them runs without a word. Not together with verify_weights. 0: they are
   * verified before tarn_model_open() returns; the hash is of all weights or none, so that it costs one read of them. */
  int no_verify;
} tarn_model_config;
#define TARN_MODEL_CONFIG_INIT \
  { sizeof(tarn_model_config), 0, NULL, 0, {NULL, NULL, NULL}, NULL, 0, 0, 0 }

/* Everything that the size of a session depends on. */
typedef struct tarn_session_config {
  size_t struct_size;
  /* Sequences that run in lockstep; with `beams`, the sources that they decode from. State is [batch, ...]. 0 means 1. */
  uint32_t batch;
  /* Longest chunk of a prefill, in tokens per sequence: longer prompts are cut into such chunks. 0 means 64. */
  uint32_t max_chunk;
  /* Rows of logits kept per sequence by tarn_session_score(), or positions of tarn_session_fill(). 0 means 1 (only the last row of
   * a prefill is ever needed to generate). */
  uint32_t max_logits_rows;
  /* Threads, the caller's included; tarn_default_threads() says how many are of use. 0 means 1. Output does not depend on it, bit
   * for bit. They are at most this many: fewer work while other programs keep cores busy, or while the process may use fewer
   * processors (its affinity may change at any time). The table of them is part of tarn_memory.program_bytes; their stacks, 1 MiB
   * of address space each, come from the system at creation. Workers are named tarn-1, tarn-2, ... and block all signals but those
   * of their own faults. Without an operating system the caller's thread is the only one. */
  uint32_t threads;
  /* Optional: the session's memory, at least tarn_memory.session_bytes bytes, aligned to 64, the caller's until
   * tarn_session_destroy(). NULL: one block from the model's allocator. */
  void* block;
  size_t block_bytes;
  /* Sequences that decode from each source: the session runs batch * beams, those of a source side by side. 0 means 1. */
  uint32_t beams;
  /* The longest source, in tokens, of a model that encodes: a longer one is an error. 0 means 512, or what the model holds if that
   * is less. The memory for a source depends on it, and with softmax cross attention the state. */
  uint32_t max_source;
} tarn_session_config;
#define TARN_SESSION_CONFIG_INIT \
  { sizeof(tarn_session_config), 0, 0, 0, 0, NULL, 0, 0, 0 }

/* The memory contract: exact bytes, by class. File-backed and anonymous bytes are never added up. */
typedef struct tarn_memory {
  size_t struct_size;
  /* Per model. */
  uint64_t mapped_bytes;           /* file-backed and clean: the model file (a buffer source: the caller's bytes) */
  uint64_t packed_file_bytes;      /* file-backed and clean: the cache file of weights in the layout of the dense kernels */
  uint64_t packed_anonymous_bytes; /* anonymous: those weights, where there is no such file; both 0 with portable dense */
  uint64_t model_bytes;            /* anonymous: the model object and what had to be copied for alignment */
  /* Per session; session_bytes is the sum of the others and the size of the one block that a session lives in. */
  uint64_t state_bytes;   /* what the sequences remember; constant for ever */
  uint64_t arena_bytes;   /* values between the ops, packed by lifetime */
  uint64_t scratch_bytes; /* per-thread working memory of the ops */
  uint64_t program_bytes; /* the prepared program: ops, operators, tables */
  uint64_t session_bytes;
  /* Per model, of mapped_bytes: weights of dense layers that are read where the model file has them, never packed (a head that is
   * the embedding table too, types that XNNPACK does not take; with portable dense all). */
  uint64_t in_place_bytes;
  /* Per model: what tarn_model_open() takes from the allocator at its peak, in sizes as they are asked for. When it returns,
   * model_bytes + packed_anonymous_bytes of it stay. (XNNPACK learns sizes in a few KB of the C library's memory besides, which it
   * gives back.) */
  uint64_t opening_bytes;
} tarn_memory;
#define TARN_MEMORY_INIT \
  { sizeof(tarn_memory), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* What a model and a session of it will need, from the graph part of the file and the scales of quantized weights alone:
 * the weights themselves are not read, so not verified.
 * `model_config` and `session_config` may be NULL (defaults). With `packed_cache` it foretells whether packed weights will be in a
 * file: whether a fitting one is there, or the folder and the free space of its disk allow one. No file is changed.
 * Errors: as tarn_model_open() and tarn_session_create().   Thread safety: any thread. */
TARN_API tarn_status tarn_requirements(const tarn_source* source, const tarn_model_config* model_config,
                                       const tarn_session_config* session_config, tarn_memory* memory, tarn_error* error);

/* Opens, checks and validates a model, verifies its weights and packs them for the dense kernels of this CPU, or finds them packed
 * in a cache file.
 * Errors: TARN_NOT_FOUND (no such file), TARN_IO, TARN_BAD_FORMAT (names the field), TARN_UNSUPPORTED (names the feature or the
 *   version), TARN_CHECKSUM (names the part and both hashes), TARN_OUT_OF_MEMORY (names the block, its size and opening_bytes),
 *   TARN_INVALID_ARGUMENT.   Thread safety: any thread. */
TARN_API tarn_status tarn_model_open(const tarn_source* source, const tarn_model_config* config, tarn_model** model,
                                     tarn_error* error);

/* All sessions must be gone. Thread safety: once, from any thread. */
TARN_API void tarn_model_close(tarn_model* model);

/* The same answer as tarn_requirements(), for a model that is open: packed weights are counted where they are.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_requirements(const tarn_model* model, const tarn_session_config* config, tarn_memory* memory,
                                             tarn_error* error);

typedef enum tarn_tokenizer_kind {
  TARN_TOKENIZER_NONE = 0, /* token ids only */
  TARN_TOKENIZER_BYTES = 1 /* token = byte value; no begin or end token */
} tarn_tokenizer_kind;

typedef enum tarn_task {
  TARN_TASK_CAUSAL_LM = 0,      /* tokens in, logits of the next: prefill, step, score */
  TARN_TASK_SEQ2SEQ = 1,        /* the same, after encode */
  TARN_TASK_CLASSIFICATION = 2, /* classify */
  TARN_TASK_MASKED_LM = 3       /* fill */
} tarn_task;

typedef enum tarn_verified {
  TARN_VERIFIED_NOT = 0,   /* no_verify */
  TARN_VERIFIED_NOW = 1,   /* by this open */
  TARN_VERIFIED_BEFORE = 2 /* by an earlier open, as a note in the cache folder says */
} tarn_verified;

typedef struct tarn_model_info {
  size_t struct_size;
  const char* name; /* borrowed from the model */
  const char*
      precision; /* how the converter was asked to store the weights: "f32", "f16", "int8", "int4"; borrowed from the model */
  uint32_t vocab_size;
  tarn_tokenizer_kind tokenizer;
  uint64_t first_position;
  uint64_t max_tokens;     /* tokens that a session can take from a reset; UINT64_MAX: no bound; 0: none, it only encodes */
  uint64_t parameters;     /* elements of all weight tensors, quantization scales not counted */
  uint8_t fingerprint[32]; /* XXH3-128 of the graph, then of the weights */
  const char* isa;         /* the kernels that were chosen; lives for ever */
  const char* dense;       /* "xnnpack" or "portable"; lives for ever */
  int packed_from_cache;   /* 1: packed weights were found in a cache file; 0: they were packed now */
  /* What the precision costs, as the converter measured it (--eval): mean nats per token over the same `eval_scored` tokens with
   * f32 weights and with these. eval_scored 0: it was not measured. */
  uint64_t eval_scored;
  double eval_nats_f32;
  double eval_nats;
  tarn_task task;
  uint32_t source_vocab_size; /* ids of sources; 0: the model does not encode */
  uint32_t num_labels;        /* of a classifier; else 0 */
  int32_t bos_token;          /* what decoding begins with; -1: not said, as for the next two */
  int32_t eos_token;          /* what ends it */
  int32_t mask_token;         /* what stands for a hidden token of a source */
  uint64_t max_source_tokens; /* of a source; UINT64_MAX: no bound; 0: the model does not encode */
  tarn_verified weights_verified;
} tarn_model_info;
#define TARN_MODEL_INFO_INIT                                                                                                      \
  {                                                                                                                               \
    sizeof(tarn_model_info), NULL, NULL, 0, TARN_TOKENIZER_NONE, 0, 0, 0, {0}, NULL, NULL, 0, 0, 0, 0, TARN_TASK_CAUSAL_LM, 0, 0, \
        -1, -1, -1, 0, TARN_VERIFIED_NOT                                                                                          \
  }

/* Errors: TARN_INVALID_ARGUMENT.   Thread safety: any thread. */
TARN_API tarn_status tarn_model_get_info(const tarn_model* model, tarn_model_info* info, tarn_error* error);

/* Names of the kernel sets that this CPU can run, best first, then "reference"; NULL past the last. Lives for ever. Thread safety:
 * any thread. */
TARN_API const char* tarn_isa_name(size_t index);

/* The number of fast cores (without the little ones of a big.LITTLE system), found out once per process. At least 1.
 * Thread safety: any thread. */
TARN_API uint32_t tarn_fast_cores(void);

/* What `threads` should be: the number of fast cores, but no more than the processors that the calling thread may run on (its
 * affinity, which taskset or a container's cpuset narrows). At least 1. Android moves an app between sets of cores as it comes and
 * goes: one that opens a session while it is in the background wants tarn_fast_cores().
 * Thread safety: any thread. */
TARN_API uint32_t tarn_default_threads(void);

/* ---- Session ---------------------------------------------------------------------------------------------------- */

/* Creates a session in the reset state, in exactly the bytes that tarn_requirements() reports. During the call XNNPACK may take
 * a few KB of the C library's memory per dense layer, to learn sizes, and gives them back.
 * Errors: TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY (also if a thread cannot be started), TARN_INVALID_ARGUMENT.
 * Thread safety: any thread; sessions of one model may be created at the same time. */
TARN_API tarn_status tarn_session_create(const tarn_model* model, const tarn_session_config* config, tarn_session** session,
                                         tarn_error* error);
/* Thread safety: any thread, when no call on the session is running. */
TARN_API void tarn_session_destroy(tarn_session* session);

/* Feeds `count` >= 1 tokens per sequence; `tokens` is [batch, count], row-major. If `logits` is not NULL it receives a pointer to
 * [batch, vocab_size] f32, the logits after the last token, borrowed until the next call on this session.
 * Errors: TARN_INVALID_ARGUMENT (a token >= vocab_size: names it; nothing has been fed), TARN_CONTEXT_FULL (names the bound;
 *   nothing has been fed), TARN_CANCELLED (tarn_session_cancel() says what has been fed), TARN_INTERNAL (the state is
 *   undefined, and calls are TARN_INVALID_ARGUMENT, until tarn_session_reset()).
 * Thread safety (all calls on a session but tarn_session_cancel()): one thread at a time. */
TARN_API tarn_status tarn_session_prefill(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                                          tarn_error* error);

/* Feeds one token per sequence, `tokens` is [batch]. As tarn_session_prefill() with count 1. */
TARN_API tarn_status tarn_session_step(tarn_session* session, const int32_t* tokens, const float** logits, tarn_error* error);

/* Feeds `count` tokens per sequence, 1 <= count <= min(max_chunk, max_logits_rows), in one chunk, and returns the logits after
 * every one of them: [batch, count, vocab_size] f32, borrowed until the next call on this session. For scoring text.
 * Errors: as tarn_session_prefill(). */
TARN_API tarn_status tarn_session_score(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                                        tarn_error* error);

/* Encodes the sources of a seq2seq model: `batch` rows of `stride` ids, of which the first lengths[i] are source i; what stands
 * behind them is never looked at, so that a row of a padded batch gives what it gives alone. The sequences start anew: feed them
 * bos_token. Errors: TARN_UNSUPPORTED (another task), TARN_INVALID_ARGUMENT (a source that is empty or longer than max_source, an
 * id >= source_vocab_size: names both; nothing has been encoded), TARN_CANCELLED, TARN_INTERNAL. */
TARN_API tarn_status tarn_session_encode(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths,
                                         tarn_error* error);

/* Sequence i goes on as sequence parents[i], which decodes from the same source; `parents` is [batch * beams]. Copies states, whose
 * size does not depend on how many tokens they have seen. Logits stay where they were.
 * Errors: TARN_INVALID_ARGUMENT (a parent of another source; nothing has been copied). */
TARN_API tarn_status tarn_session_reorder(tarn_session* session, const uint32_t* parents, tarn_error* error);

/* Classifies `batch` sources, given as for tarn_session_encode(): [batch, num_labels] f32 logits, borrowed until the next call on
 * this session. Errors: as tarn_session_encode(). */
TARN_API tarn_status tarn_session_classify(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths,
                                           const float** logits, tarn_error* error);

/* Encodes one source of `count` ids with a masked language model and returns the logits of its tokens at `positions`, 1 to
 * max_logits_rows of them: [position_count, vocab_size] f32, borrowed until the next call on this session.
 * Errors: as tarn_session_encode(); TARN_INVALID_ARGUMENT (a position >= count). */
TARN_API tarn_status tarn_session_fill(tarn_session* session, const int32_t* tokens, size_t count, const uint32_t* positions,
                                       size_t position_count, const float** logits, tarn_error* error);

/* Stops a call that runs on the session: prefill, step, score, encode, classify or fill then fails with TARN_CANCELLED, soon: it
 * looks between ops and inside long ones. Where none runs, or one that is too near its end to hear it, the next one that would run
 * the model fails so, before it changes anything; a reset or a restore withdraws the request.
 *
 * What holds afterwards: an encode, classify or fill has encoded nothing of the source it was at. A prefill, step or score keeps
 * the chunks (`max_chunk`) that were whole, which tarn_session_tokens() counts, and goes on from there as if the call had been
 * given those tokens alone. A chunk of at least 2^31 multiply-adds (64 tokens of a model of 34 M parameters, one token of a model
 * of 2,000 M) may be broken off in its middle: then prefill, step, score, reorder and save are TARN_INVALID_ARGUMENT until a
 * reset, a restore or an encode.
 * Errors: none.   Thread safety: any thread at any time while the session exists; signal handlers. */
TARN_API void tarn_session_cancel(tarn_session* session);

/* Back to the state after creation. Errors: none. */
TARN_API void tarn_session_reset(tarn_session* session);

/* Tokens fed to each sequence since the last reset. Errors: none. */
TARN_API uint64_t tarn_session_tokens(const tarn_session* session);

/* A snapshot is all that a session carries from call to call, as bytes to keep in memory or in a file: states, positions, encoded
 * sources. A session that is made what the saved one was goes on from there, bit for bit with the same kernels: snapshots undo,
 * fork, and begin after a prompt that was read before. One belongs to its model, known by the fingerprint, and to the shape of its
 * session: `batch` and `beams` (without sources their product), and with softmax cross attention `max_source`; the other limits may
 * differ. Logits are no part of it: keep the token that follows, or feed the last one of a prompt after the restore. Neither are
 * samplers, beam searches and text decoders. Blocks of 64 zero bytes are left out, so that a bounded cache is as long as it is
 * full. The bytes mean the same on every machine; another version of them is refused. */

/* Bytes of a snapshot of the session as it is now: never more than tarn_memory.state_bytes * 513 / 512 + 64. Reads all of the
 * state. 0 for NULL. Errors: none. */
TARN_API uint64_t tarn_session_snapshot_bytes(const tarn_session* session);

/* Writes a snapshot into the caller's memory, of any alignment: `size_bytes` must be at least tarn_session_snapshot_bytes(); what
 * lies behind it is left alone. Allocates nothing.
 * Errors: TARN_BUFFER_TOO_SMALL (names both sizes; nothing has been written), TARN_INVALID_ARGUMENT. */
TARN_API tarn_status tarn_session_save(const tarn_session* session, void* snapshot, uint64_t size_bytes, tarn_error* error);

/* Makes the session what the saved one was. The snapshot is at the front of `size_bytes` bytes of any alignment, which are not
 * kept and must not change during the call. It is untrusted, like a file: all of it is checked, against its hash and the model's
 * bounds, before anything changes, and one that was made up to harm can make the session give wrong logits but nothing else.
 * Allocates nothing. Errors: TARN_BAD_FORMAT (no snapshot, or cut, or at odds with itself), TARN_UNSUPPORTED (of another version),
 * TARN_CHECKSUM (damaged), TARN_INVALID_ARGUMENT (of another model or shape). All name the field, what was found and what is
 * wanted. */
TARN_API tarn_status tarn_session_restore(tarn_session* session, const void* snapshot, uint64_t size_bytes, tarn_error* error);

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Turns text into token ids. Writes up to `capacity` ids and always sets `*count` to the number that the text has.
 * Errors: TARN_UNSUPPORTED (the model has no tokenizer), TARN_BUFFER_TOO_SMALL (names both numbers; `*count` is set).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_tokenize(const tarn_model* model, const char* text, size_t text_bytes, int32_t* tokens, size_t capacity,
                                   size_t* count, tarn_error* error);

/* Streams token ids back to text: bytes come out as soon as they are whole UTF-8 characters. Bytes that can never become valid
 * UTF-8 come out as U+FFFD. Plain data of the caller's: zero it to begin a text. */
typedef struct tarn_text_decoder {
  uint8_t pending[4];
  uint32_t pending_bytes;
} tarn_text_decoder;

/* The text that `token` completes: writes its `*text_bytes` bytes (0 if a character is still incomplete) to `text`, which has
 * room for `capacity` bytes; tarn_max_piece_bytes() is always enough.
 * Errors: TARN_UNSUPPORTED (the model has no tokenizer), TARN_INVALID_ARGUMENT (token out of range, or pending_bytes above 3),
 *   TARN_BUFFER_TOO_SMALL; the decoder is unchanged.
 * Thread safety: one thread at a time per decoder. */
TARN_API tarn_status tarn_text_decode(const tarn_model* model, tarn_text_decoder* decoder, int32_t token, char* text,
                                      size_t capacity, size_t* text_bytes, tarn_error* error);

/* Ends a text: an incomplete character comes out as U+FFFD. `text` has room for tarn_max_piece_bytes(). Returns the number of
 * bytes written and zeroes the decoder. */
TARN_API size_t tarn_text_finish(tarn_text_decoder* decoder, char* text);

/* Upper bound of the bytes of one tarn_text_decode() or tarn_text_finish(). */
TARN_API size_t tarn_max_piece_bytes(const tarn_model* model);

/* ---- Sampler ---------------------------------------------------------------------------------------------------- */

/* The chain, in this order: repetition penalty (over the last `repeat_last_n` accepted tokens: a positive logit is divided by it,
 * a negative one multiplied), top-k, top-p, min-p, temperature, draw. The draw is PCG32's: the same seed gives the same text
 * on every machine whose logits are the same. Ties go to the lower id. */
typedef struct tarn_sampler_config {
  size_t struct_size;
  float temperature;    /* >= 0; 0 is greedy: the largest logit after penalties */
  uint32_t top_k;       /* keep the k largest logits; 0: all */
  float top_p;          /* in (0, 1]: keep the fewest tokens whose probability reaches it */
  float min_p;          /* in [0, 1]: drop tokens less probable than min_p times the most probable one */
  float repeat_penalty; /* > 0; 1: none */
  uint32_t repeat_last_n;
  uint64_t seed;
  tarn_allocator allocator; /* used at creation only */
} tarn_sampler_config;
#define TARN_SAMPLER_CONFIG_INIT                                                           \
  {                                                                                        \
    sizeof(tarn_sampler_config), 0.8f, 40, 0.95f, 0.05f, 1.0f, 64, 0, { NULL, NULL, NULL } \
  }

/* Errors: TARN_INVALID_ARGUMENT (names the field and its range), TARN_OUT_OF_MEMORY. */
TARN_API tarn_status tarn_sampler_create(uint32_t vocab_size, const tarn_sampler_config* config, tarn_sampler** sampler,
                                         tarn_error* error);
TARN_API void tarn_sampler_destroy(tarn_sampler* sampler);

/* Picks a token from `logits` [vocab_size] and accepts it into the penalty window. Allocates nothing.
 * Errors: TARN_INVALID_ARGUMENT (a logit is NaN: names the token; or all are -inf).
 * Thread safety (all calls on a sampler): one thread at a time. */
TARN_API tarn_status tarn_sampler_sample(tarn_sampler* sampler, const float* logits, int32_t* token, tarn_error* error);

/* Tells the sampler of a token that it did not pick (a prompt's). */
TARN_API void tarn_sampler_accept(tarn_sampler* sampler, int32_t token);

/* Back to the seed and an empty window. */
TARN_API void tarn_sampler_reset(tarn_sampler* sampler);

/* ---- Beam search ------------------------------------------------------------------------------------------------ */

/* For a batch of sources the outputs of the highest score, log probability / ((5 + length) / 6)^length_penalty with the end token
 * counted in `length` (Wu et al. 2016). Of all continuations of a source's beams the `beams` most probable ones that do not end go
 * on; one that ends is finished if it is among the `beams` most probable of all. A source is done when nothing that goes on can
 * come among its `beams` best finished outputs. One beam is greedy decoding, done with the first end token. Ties go to the lower
 * beam, then to the larger logit, then to the lower id; sums of different beams are equal where their computed values are, which
 * are off by up to 1e-6 a step.
 *
 * The beams are the sequences of a session, those of source s being [s * beams, (s + 1) * beams), and what one goes on from is a
 * state of fixed size:
 *
 *   tarn_session_encode(session, sources, stride, lengths, &error);
 *   while (!tarn_beam_done(beam)) {
 *     tarn_session_step(session, tarn_beam_tokens(beam), &logits, &error);
 *     tarn_beam_advance(beam, logits, &error);
 *     tarn_session_reorder(session, tarn_beam_parents(beam), &error);
 *   }
 *   tarn_beam_result(beam, source, 0, &tokens, &count, &score, &error); */
typedef struct tarn_beam_config {
  size_t struct_size;
  uint32_t sources;         /* >= 1 */
  uint32_t beams;           /* >= 1, per source */
  uint32_t vocab_size;      /* >= 1 */
  uint32_t max_tokens;      /* >= 1: longer outputs are cut, and finished as they are. The end token counts. */
  float length_penalty;     /* >= 0; 0: the most probable output */
  int32_t bos_token;        /* what every output is begun with; tarn_model_info has it */
  int32_t eos_token;        /* what ends an output; -1: nothing does */
  tarn_allocator allocator; /* used at creation only */
} tarn_beam_config;
#define TARN_BEAM_CONFIG_INIT                                                \
  {                                                                          \
    sizeof(tarn_beam_config), 1, 4, 0, 0, 0.6f, -1, -1, { NULL, NULL, NULL } \
  }

/* The size of the one block that tarn_beam_create() allocates, into `*size_bytes`.
 * Errors: TARN_INVALID_ARGUMENT (names the field and its range), TARN_OUT_OF_MEMORY (no address space has so much).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_beam_requirements(const tarn_beam_config* config, uint64_t* size_bytes, tarn_error* error);

/* Errors: as tarn_beam_requirements(), TARN_OUT_OF_MEMORY. */
TARN_API tarn_status tarn_beam_create(const tarn_beam_config* config, tarn_beam** beam, tarn_error* error);
TARN_API void tarn_beam_destroy(tarn_beam* beam);

/* What each sequence is to be fed next, [sources * beams]: the begin token at first, and where nothing goes on. Borrowed until
 * tarn_beam_destroy(); tarn_beam_advance() and tarn_beam_reset() change the values. NULL for NULL. */
TARN_API const int32_t* tarn_beam_tokens(const tarn_beam* beam);

/* Chooses by the `logits` [sources * beams, vocab_size] that came after tarn_beam_tokens(). Rows of sequences that do not go on
 * are not read. Allocates nothing.
 * Errors: TARN_INVALID_ARGUMENT (a logit is NaN or +inf, or all of a row are -inf: names the sequence; or all sources are done).
 * Thread safety (all calls on a tarn_beam): one thread at a time. */
TARN_API tarn_status tarn_beam_advance(tarn_beam* beam, const float* logits, tarn_error* error);

/* For tarn_session_reorder(): the sequence whose state each goes on from, [sources * beams], one of the same source. Borrowed as
 * tarn_beam_tokens(). NULL for NULL. */
TARN_API const uint32_t* tarn_beam_parents(const tarn_beam* beam);

/* 1 when every source is done, and for NULL; else 0. */
TARN_API int tarn_beam_done(const tarn_beam* beam);

/* The `rank`-th best finished output of a source, from 0: `*count` tokens without begin and end token, borrowed until the next call
 * on this tarn_beam. `score` may be NULL. A source that is done has at least one, at most `beams`.
 * Errors: TARN_INVALID_ARGUMENT (no such source), TARN_NOT_FOUND (fewer are finished). */
TARN_API tarn_status tarn_beam_result(tarn_beam* beam, uint32_t source, uint32_t rank, const int32_t** tokens, size_t* count,
                                      double* score, tarn_error* error);

/* Back to the begin tokens, for other sources. */
TARN_API void tarn_beam_reset(tarn_beam* beam);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_TARN_H_ */
