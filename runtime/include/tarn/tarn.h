/* tarn: inference for sequence models whose memory does not grow. The C API (C99).
 *
 * Conventions
 *  1. Ownership: every `*_open` / `*_create` has one `*_close` / `*_destroy`, which accepts NULL. A tarn_model must outlive the
 *     sessions, tokenizers, grammars and text streams that were made from it. Strings and logits returned by pointer are borrowed:
 *     each declaration says how long they are valid.
 *  2. Errors: every call that can fail returns a tarn_status and takes a `tarn_error* error`, which may be NULL. On failure it
 *     holds one line that names the thing, the value found and the value expected. The library never aborts, exits, throws, prints
 *     or keeps an error in a global. Unless a declaration says otherwise, a failed call changes nothing and writes no out
 *     parameter, and a required pointer that is NULL is TARN_INVALID_ARGUMENT.
 *  3. Threads: a tarn_model is immutable and may be shared between threads. Everything else that is created (session,
 *     sampler, beam search, tokenizer, grammar, text stream) belongs to one thread at a time.
 *  4. Memory: tarn_requirements() reports the exact memory use, by class, before a model is opened. After tarn_session_create() a
 *     session allocates nothing. The library has no global state, with one exception: XNNPACK's process-wide allocator hook, which
 *     is set at the first use of XNNPACK. On ARM, XNNPACK also keeps cpuinfo's description of the processors: some KB from the C
 *     library's allocator that are never freed.
 *  5. Units: sizes are bytes where the name ends in `_bytes`, elements or tokens elsewhere. Text is UTF-8, lengths are
 *     bytes, and no string argument but a path or a name needs a terminating NUL.
 *  6. ABI: every config and info struct begins with `struct_size`; set it to sizeof(the struct), most easily
 *     by initialising with the `TARN_*_INIT` macro. Fields are only ever added at the end, and zero is their default.
 *  7. Files are untrusted: header and graph are always checked against their hash and validated. Weights are checked against their
 *     hash before they are used; tarn_model_config says when an earlier check counts. Later changes to the mapped memory are not
 *     detected.
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

/* The version of these headers; tarn_version() returns the version of the library. */
#define TARN_VERSION_MAJOR 0
#define TARN_VERSION_MINOR 1
#define TARN_VERSION_PATCH 0

typedef struct tarn_model tarn_model;     /* an open model file: weights and programs, immutable */
typedef struct tarn_session tarn_session; /* the state of a batch of sequences, and the memory to run them */
typedef struct tarn_sampler tarn_sampler; /* picks tokens from logits */
typedef struct tarn_grammar tarn_grammar; /* which texts are allowed: tarn/grammar.h */
typedef struct tarn_beam tarn_beam;       /* a beam search over the sequences of a session */

/* What a failed call reports. A call that succeeds does not change it. */
typedef struct tarn_error {
  tarn_status status; /* the code that the call returned */
  char message[252];  /* one NUL-terminated line without a newline; a longer one is cut */
} tarn_error;

/* The version of the library that runs, "MAJOR.MINOR.PATCH". The string lives for ever.
 * Thread safety: any thread. */
TARN_API const char* tarn_version(void);

/* What a code means, in two or three words; "unknown status" for other numbers. The string lives for ever.
 * Thread safety: any thread. */
TARN_API const char* tarn_status_string(tarn_status status);

/* Where memory comes from. `allocate` and `release` are both set, or both NULL for the C library's allocator. The
 * allocator of a model may be called from any thread that opens it, asks for its requirements, tokenizes, or creates or
 * destroys a session without a block (or with a block that is far too small, to write the message of the error). */
typedef struct tarn_allocator {
  /* Returns `size_bytes` bytes aligned to `alignment` (a power of two, at most 64), or NULL. */
  void* (*allocate)(void* context, size_t size_bytes, size_t alignment);
  /* Takes back a pointer that `allocate` returned, with its size. */
  void (*release)(void* context, void* pointer, size_t size_bytes);
  void* context; /* passed to both */
} tarn_allocator;

/* ---- Model ------------------------------------------------------------------------------------------------------ */

/* Which file to open: exactly one of path, fd (with `use_fd` set) or buffer. A file that is mapped must not be changed or
 * truncated while the model is open: the system would deliver SIGBUS. Replace model files by rename, as tarn-convert
 * does. */
typedef struct tarn_source {
  size_t struct_size;
  /* A NUL-terminated path. The whole file is mapped read-only. */
  const char* path;
  /* 1: map `fd`. 0: ignore it. */
  int use_fd;
  /* A file descriptor >= 0. The call does not close it, and the caller may close it after the call. */
  int fd;
  /* With `fd`: the offset of the model in the file, of any alignment (for an asset inside an APK). Else 0. */
  uint64_t offset_bytes;
  /* With `fd`: the length of the model; 0: to the end of the file. With `buffer`: its length. Else 0. */
  uint64_t length_bytes;
  /* The model in the caller's memory, which must stay unchanged until tarn_model_close(). Any alignment is accepted, but a graph
   * that is not at a multiple of 8, or weights that are not at a multiple of 4, are copied. */
  const void* buffer;
} tarn_source;
#define TARN_SOURCE_INIT \
  { sizeof(tarn_source), NULL, 0, -1, 0, 0, NULL }

/* How to open a model. */
typedef struct tarn_model_config {
  size_t struct_size;
  /* 1: at every open, read all weights, and packed weights found in a cache file, and compare their XXH3-128.
   * 0: verify the weights that a session will read, once per boot of the machine (see packed_cache). `no_verify` skips this. */
  int verify_weights;
  /* The kernel set: NULL for the best that this CPU runs, "reference" for the scalar kernels, or a name that
   * tarn_isa_name() lists. */
  const char* isa;
  /* 1: use the portable dense layers even where XNNPACK is built in. (On ARM, XNNPACK is not used if /proc and /sys hide the CPU;
   * the next open checks again.) */
  int portable_dense;
  /* For the model's own memory, for sessions that are created without a block, and for temporary memory. */
  tarn_allocator allocator;
  /* A directory that keeps packed weights between starts: one file per model and packing, of packed_file_bytes, readable by this
   * user only. Packed weights are then file-backed, ready in milliseconds and shared between processes. The directory is made if
   * its parent exists. A file that is damaged or does not fit is replaced silently; if no file can be written or read, packed
   * weights are anonymous memory. Old files stay. You may delete a file at any time, but must not change it while a model is open.
   * The first start waits until its file is on the disk.
   * The directory also records which model files were verified. Until the next boot, a recorded model is not verified again, unless
   * the model file or the record changes (device, inode, size, times). Without a directory, from a buffer, or if no record can be
   * written, every open reads all weights.
   * NUL-terminated, read during the call. NULL: no files. */
  const char* packed_cache;
  /* The most work that a model may need: multiply-adds for one token (in a source of 512 tokens, or in the longest source that the
   * model takes if that is shorter), as estimated from the graph. 0 means 2^28 + 128 for each byte of the file: a dense layer takes
   * one to 3.2 multiply-adds for each byte of its weights in int8 to int2. A model above the limit is TARN_UNSUPPORTED, with both
   * numbers and the op in the message. */
  uint64_t max_work_per_token;
  /* The most packed weights that a model may need: packed_file_bytes or packed_anonymous_bytes of tarn_memory. 0 means 64 MiB + 8
   * for each byte of the file. A model above the limit is TARN_UNSUPPORTED, as above. */
  uint64_t max_packed_bytes;
  /* 1: weights are not verified, and damage in them goes unnoticed. Not together with verify_weights. 0: they are verified before
   * tarn_model_open() returns. One hash covers all weights, so this costs one read of all weights. */
  int no_verify;
} tarn_model_config;
#define TARN_MODEL_CONFIG_INIT \
  { sizeof(tarn_model_config), 0, NULL, 0, {NULL, NULL, NULL}, NULL, 0, 0, 0 }

/* Everything that the size of a session depends on. */
typedef struct tarn_session_config {
  size_t struct_size;
  /* Sequences of the session; with `beams`, the sources that they decode from. State is [batch, ...]. 0 means 1. At
   * most 4,096 sequences; a masked language model takes one. */
  uint32_t batch;
  /* The longest chunk of a prefill, in tokens per sequence: longer prompts are cut into such chunks. 0 means 64, at most
   * 65,536. */
  uint32_t max_chunk;
  /* Rows of logits per sequence: the most tokens of one tarn_session_score(), or positions of one tarn_session_fill().
   * 0 means 1, which is enough to generate: only the last row of a prefill is needed. At most max_chunk, or max_source for
   * tarn_session_fill(). */
  uint32_t max_logits_rows;
  /* The most threads that a call uses, the caller's included; tarn_default_threads() is a good value. 0 means 1, at most 256. The
   * output does not depend on it, bit for bit. A call uses fewer threads while other programs keep cores busy, or while the process
   * may use fewer processors (its affinity may change at any time). The thread table is part of tarn_memory.program_bytes; stacks,
   * 1 MiB of address space each, come from the system at creation. Worker threads are named tarn-1, tarn-2, ... and block all
   * signals but those of their own faults. Without an operating system there is only the caller's thread. */
  uint32_t threads;
  /* Optional: the session's memory, aligned to 64. It is the caller's again after tarn_session_destroy(). NULL: the session takes
   * one block from the model's allocator. */
  void* block;
  /* The size of `block`, at least tarn_memory.session_bytes. */
  size_t block_bytes;
  /* Sequences that decode from each source: the session runs batch * beams sequences, and those of a source have successive
   * numbers. 0 means 1. */
  uint32_t beams;
  /* The longest source, in tokens, of a model that encodes: a longer one is an error. 0 means 512, or the longest that the model
   * takes if that is less; at most 65,536. The memory for a source depends on it, and with softmax cross attention also the state.
   */
  uint32_t max_source;
} tarn_session_config;
#define TARN_SESSION_CONFIG_INIT \
  { sizeof(tarn_session_config), 0, 0, 0, 0, NULL, 0, 0, 0 }

/* The memory contract: exact bytes, by class. File-backed and anonymous bytes are never added up. */
typedef struct tarn_memory {
  size_t struct_size;
  /* Per model, file-backed and clean: the model file. For a buffer source, the caller's bytes. */
  uint64_t mapped_bytes;
  /* Per model, file-backed and clean: the cache file of packed weights (in the layout of the dense kernels). */
  uint64_t packed_file_bytes;
  /* Per model, anonymous: packed weights, if there is no cache file. With portable dense layers, int3 and int2 alone are packed. */
  uint64_t packed_anonymous_bytes;
  /* Per model, anonymous: the model object, and parts of the file that were copied for alignment. */
  uint64_t model_bytes;
  /* Per session: the memory of the sequences. It does not depend on how many tokens they have seen. */
  uint64_t state_bytes;
  /* Per session: values between the ops, packed by lifetime. */
  uint64_t arena_bytes;
  /* Per session: working memory of the ops, for each thread. */
  uint64_t scratch_bytes;
  /* Per session: the prepared program (ops, operators, tables). */
  uint64_t program_bytes;
  /* Per session, anonymous: the sum of the four above, and the size of the one block that a session lives in. */
  uint64_t session_bytes;
  /* Per model, part of mapped_bytes: dense weights that are read from the model file and never packed (of an output layer that
   * shares the embedding table or has a shortlist, and f16; with portable dense layers, all dense weights but int3 and int2). */
  uint64_t in_place_bytes;
  /* Per model: the most that tarn_model_open() holds from the allocator at one time, in sizes as requested. When the call returns,
   * model_bytes + packed_anonymous_bytes of these stay. (XNNPACK also takes a few KB from the C library's allocator to learn sizes,
   * and frees them.) */
  uint64_t opening_bytes;
} tarn_memory;
#define TARN_MEMORY_INIT \
  { sizeof(tarn_memory), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Reports the memory that a model and a session of it will need. It reads the graph of the file, the scales of quantized weights
 * and the lists of a shortlist; other weights are neither read nor verified. `model_config` and `session_config` may be NULL
 * (defaults). With `packed_cache` it predicts whether packed weights will be in a file: whether a fitting file exists, or the
 * directory and the free space of its disk allow a new one. No file is changed.
 * Errors: as tarn_model_open() and tarn_session_create().
 * Thread safety: any thread. */
TARN_API tarn_status tarn_requirements(const tarn_source* source, const tarn_model_config* model_config,
                                       const tarn_session_config* session_config, tarn_memory* memory, tarn_error* error);

/* Opens, checks and validates a model, verifies its weights, and packs them for the dense kernels of this CPU or finds
 * them packed in a cache file.
 * Errors: TARN_NOT_FOUND (no such file), TARN_IO, TARN_BAD_FORMAT (names the field), TARN_UNSUPPORTED (names the feature or
 * the version), TARN_CHECKSUM (names the part and both hashes), TARN_OUT_OF_MEMORY (names the block, its size and
 * opening_bytes), TARN_INVALID_ARGUMENT.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_open(const tarn_source* source, const tarn_model_config* config, tarn_model** model,
                                     tarn_error* error);

/* Closes a model. All objects that were made from it must have been destroyed before. NULL is accepted.
 * Thread safety: once, from any thread. */
TARN_API void tarn_model_close(tarn_model* model);

/* As tarn_requirements(), for an open model: packed weights are counted in the class in which they are.
 * Errors: as tarn_session_create().
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_requirements(const tarn_model* model, const tarn_session_config* config, tarn_memory* memory,
                                             tarn_error* error);

/* How a model turns text into token ids. */
typedef enum tarn_tokenizer_kind {
  TARN_TOKENIZER_NONE = 0,  /* no tokenizer: token ids only */
  TARN_TOKENIZER_BYTES = 1, /* token = byte value; no begin or end token */
  /* With the tables of the model file: */
  TARN_TOKENIZER_BPE = 2,       /* BPE over bytes or over characters */
  TARN_TOKENIZER_UNIGRAM = 3,   /* the pieces of the best score */
  TARN_TOKENIZER_WORDPIECE = 4, /* the longest pieces of a word, from its beginning on */
  TARN_TOKENIZER_WORDLEVEL = 5, /* token = word */
  TARN_TOKENIZER_LONGEST = 6    /* the longest strings of the text, from its beginning on: RWKV's, characters */
} tarn_tokenizer_kind;

/* The task of a model, which determines the calls that run it. */
typedef enum tarn_task {
  TARN_TASK_CAUSAL_LM = 0,      /* tokens in, logits of the next token out: prefill, step, score */
  TARN_TASK_SEQ2SEQ = 1,        /* the same, after encode */
  TARN_TASK_CLASSIFICATION = 2, /* a source in, logits of labels out: classify */
  TARN_TASK_MASKED_LM = 3       /* a source in, logits at hidden tokens out: fill */
} tarn_task;

/* Whether the weights of an open model were compared with their hash. */
typedef enum tarn_verified {
  TARN_VERIFIED_NOT = 0,   /* no: no_verify was set */
  TARN_VERIFIED_NOW = 1,   /* by this open */
  TARN_VERIFIED_BEFORE = 2 /* by an earlier open, which the cache directory records */
} tarn_verified;

/* Properties of an open model. Strings are borrowed from the model, unless a comment says otherwise. */
typedef struct tarn_model_info {
  size_t struct_size;
  const char* name;
  const char* precision; /* what --quant of tarn-convert was: "f32", "f16", "int8", "int4", "int3", "int2" or "auto" */
  uint32_t vocab_size;
  tarn_tokenizer_kind tokenizer;
  uint64_t first_position; /* the position number of a sequence's first token */
  uint64_t max_context;    /* tokens that a session takes after a reset; UINT64_MAX: no bound; 0: none, it only encodes */
  uint64_t parameters;     /* elements of all weight tensors; quantization scales are not counted */
  uint8_t fingerprint[32]; /* XXH3-128 of the graph, then of the weights */
  const char* isa;         /* the kernel set in use; lives for ever */
  const char* dense;       /* what runs dense layers, "xnnpack" or "portable"; lives for ever */
  int packed_from_cache;   /* 1: packed weights were found in a cache file; 0: they were packed by this open */
  /* The loss that the converter measured (--eval): the number of tokens that were scored. 0: it was not measured. */
  uint64_t eval_scored;
  double eval_nats_f32; /* mean nats per token over these tokens, with f32 weights */
  double eval_nats;     /* the same with the weights of this file */
  tarn_task task;
  uint32_t source_vocab_size; /* ids of sources; 0: the model does not encode */
  uint32_t num_labels;        /* of a classifier; else 0 */
  int32_t bos_token;          /* what decoding begins with; -1: not given, as for the next two */
  int32_t eos_token;          /* what ends an output */
  int32_t mask_token;         /* what stands for a hidden token of a source */
  uint64_t max_source_tokens; /* of a source; UINT64_MAX: no bound; 0: the model does not encode */
  tarn_verified weights_verified;
  uint32_t format_major; /* the version of the file's format is format_major.format_minor */
  uint32_t format_minor; /* see format_major */
} tarn_model_info;
#define TARN_MODEL_INFO_INIT                                                                                                      \
  {                                                                                                                               \
    sizeof(tarn_model_info), NULL, NULL, 0, TARN_TOKENIZER_NONE, 0, 0, 0, {0}, NULL, NULL, 0, 0, 0, 0, TARN_TASK_CAUSAL_LM, 0, 0, \
        -1, -1, -1, 0, TARN_VERIFIED_NOT, 0, 0                                                                                    \
  }

/* Fills `info`. Set its struct_size first.
 * Errors: TARN_INVALID_ARGUMENT.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_get_info(const tarn_model* model, tarn_model_info* info, tarn_error* error);

/* Names of the kernel sets that this CPU can run, the best first, then "reference"; NULL if `index` is past the last one. The
 * strings live for ever.
 * Thread safety: any thread. */
TARN_API const char* tarn_isa_name(size_t index);

/* The number of fast cores (without the little ones of a big.LITTLE system), determined once per process. At least 1.
 * Thread safety: any thread. */
TARN_API uint32_t tarn_fast_cores(void);

/* A good value for tarn_session_config.threads: the number of fast cores, but no more than the processors that the calling
 * thread may run on (its affinity, which taskset or a container's cpuset narrows). At least 1. Android moves an app
 * between sets of cores as it comes and goes: an app that creates a session in the background should use
 * tarn_fast_cores().
 * Thread safety: any thread. */
TARN_API uint32_t tarn_default_threads(void);

/* ---- Session ---------------------------------------------------------------------------------------------------- */

/* Creates a session in the reset state, in exactly the bytes that tarn_requirements() reports. During the call XNNPACK may
 * take a few KB per dense layer from the C library's allocator, to learn sizes, and frees them.
 * Errors: TARN_BUFFER_TOO_SMALL (names both sizes), TARN_OUT_OF_MEMORY (also if a thread cannot be started),
 * TARN_INVALID_ARGUMENT.
 * Thread safety: any thread; sessions of one model may be created at the same time. */
TARN_API tarn_status tarn_session_create(const tarn_model* model, const tarn_session_config* config, tarn_session** session,
                                         tarn_error* error);

/* Destroys a session. NULL is accepted. A block of the caller belongs to the caller again.
 * Thread safety: any thread, when no call on the session is running. */
TARN_API void tarn_session_destroy(tarn_session* session);

/* Feeds `count` >= 1 tokens per sequence; `tokens` is [batch, count], row-major. If `logits` is not NULL it receives a
 * pointer to [batch, vocab_size] f32, the logits after the last token, borrowed until the next call on this session.
 * Errors: TARN_INVALID_ARGUMENT (a token >= vocab_size: names it; nothing has been fed), TARN_CONTEXT_FULL (names the bound;
 * nothing has been fed), TARN_CANCELLED (see tarn_session_cancel() for the tokens that have been fed), TARN_INTERNAL (until
 * tarn_session_reset(), the state is undefined and calls are TARN_INVALID_ARGUMENT).
 * Thread safety: as all calls on a session but tarn_session_cancel(), one thread at a time. */
TARN_API tarn_status tarn_session_prefill(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                                          tarn_error* error);

/* A tarn_session_prefill() that calls `go_on` after every chunk (`max_chunk`): `done` of `total` tokens of each sequence have been
 * read. If `go_on` returns 0 before all tokens have been read, the call fails with TARN_CANCELLED. The session has then read
 * exactly `done` tokens of this call, and continues from there, bit for bit as if the call had been given only these tokens. After
 * the last chunk the return value is ignored. `go_on` runs on the calling thread. On this session it may call
 * tarn_session_cancel(), and functions that take a const tarn_session, such as tarn_session_save(). NULL: the same as
 * tarn_session_prefill(). `context` is passed to `go_on`.
 * Errors: as tarn_session_prefill().
 * Thread safety: as tarn_session_prefill(). */
TARN_API tarn_status tarn_session_prefill_progress(tarn_session* session, const int32_t* tokens, size_t count,
                                                   int (*go_on)(void* context, size_t done, size_t total), void* context,
                                                   const float** logits, tarn_error* error);

/* Feeds one token per sequence; `tokens` is [batch]. The same as tarn_session_prefill() with a count of 1.
 * Errors: as tarn_session_prefill(). */
TARN_API tarn_status tarn_session_step(tarn_session* session, const int32_t* tokens, const float** logits, tarn_error* error);

/* Scores text: feeds `count` tokens per sequence in one chunk, and returns the logits after each of them, [batch, count,
 * vocab_size] f32, borrowed until the next call on this session. 1 <= count <= min(max_chunk, max_logits_rows).
 * Errors: as tarn_session_prefill(). */
TARN_API tarn_status tarn_session_score(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                                        tarn_error* error);

/* Tokens for one sequence. */
typedef struct tarn_sequence_tokens {
  uint32_t sequence;     /* < batch * beams */
  const int32_t* tokens; /* [count] */
  size_t count;          /* >= 1 */
} tarn_sequence_tokens;

/* Feeds tokens to some sequences of a session: `parts` [part_count] in ascending order of their sequences, each at most once. The
 * other sequences do not change, not by a bit. The weights are read once for all parts, whatever their numbers of tokens are. The
 * results of a sequence are those of a session of its own, bit for bit, for the same calls and the same max_chunk: its tokens are
 * cut into chunks in the same way. (On ARM the last bits can differ with weights in f32, and in int8 on cores with dot products.)
 * A sequence with fewer chunks than another begins later, so that all sequences end with the last
 * run of the model. If `logits` is not NULL it receives a pointer to [part_count, vocab_size] f32, the logits after the last token
 * of each part, borrowed until the next call on this session. If it is NULL, no logits are computed.
 * Errors: as tarn_session_prefill(), of the sequences of the call; TARN_INVALID_ARGUMENT (parts out of order; the model decodes
 * from sources and `beams` is above 1). TARN_CANCELLED: each sequence keeps the chunks that were complete, which
 * tarn_session_sequence_tokens() counts. A sequence that was stopped in the middle of a chunk must be reset or restored; the others
 * can continue. */
TARN_API tarn_status tarn_session_prefill_sequences(tarn_session* session, const tarn_sequence_tokens* parts, size_t part_count,
                                                    const float** logits, tarn_error* error);

/* Returns one sequence to the state after creation; the others do not change. The source from which it decodes stays encoded. The
 * cost is that of writing the states of one sequence.
 * Errors: TARN_INVALID_ARGUMENT (no such sequence). */
TARN_API tarn_status tarn_session_reset_sequence(tarn_session* session, uint32_t sequence, tarn_error* error);

/* Tokens fed to one sequence since its last reset; 0 if there is no such sequence.
 * Errors: none. */
TARN_API uint64_t tarn_session_sequence_tokens(const tarn_session* session, uint32_t sequence);

/* Encodes the sources of a seq2seq model. `tokens` has `batch` rows of `stride` ids; the first lengths[i] ids of row i are source
 * i. The rest of a row is never read: padding does not change the result. All sequences are reset: feed them bos_token.
 * Errors: TARN_UNSUPPORTED (another task), TARN_INVALID_ARGUMENT (a source that is empty or longer than max_source, an id >=
 * source_vocab_size: names both; nothing has been encoded), TARN_CANCELLED, TARN_INTERNAL. */
TARN_API tarn_status tarn_session_encode(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths,
                                         tarn_error* error);

/* Gives each sequence i the state of sequence parents[i], which must decode from the same source; `parents` is
 * [batch * beams]. The cost does not depend on how many tokens the sequences have seen. Logits are not moved.
 * Errors: TARN_INVALID_ARGUMENT (a parent of another source; nothing has been copied). */
TARN_API tarn_status tarn_session_reorder(tarn_session* session, const uint32_t* parents, tarn_error* error);

/* Classifies `batch` sources, given as for tarn_session_encode(): [batch, num_labels] f32 logits, borrowed until the next
 * call on this session.
 * Errors: as tarn_session_encode(). */
TARN_API tarn_status tarn_session_classify(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths,
                                           const float** logits, tarn_error* error);

/* Encodes one source of `count` ids with a masked language model and returns the logits at `positions`, 1 to
 * max_logits_rows of them: [position_count, vocab_size] f32, borrowed until the next call on this session.
 * Errors: as tarn_session_encode(); TARN_INVALID_ARGUMENT (a position >= count). */
TARN_API tarn_status tarn_session_fill(tarn_session* session, const int32_t* tokens, size_t count, const uint32_t* positions,
                                       size_t position_count, const float** logits, tarn_error* error);

/* Cancels a call that runs on the session: prefill, step, score, encode, classify or fill soon fails with TARN_CANCELLED. The
 * request is checked between ops and inside long ones. If no call runs, or the running call is about to end, the next call that
 * would run the model fails with TARN_CANCELLED before it changes anything. A reset or a restore of the session, or of its only
 * sequence, withdraws the request; so do a copy into it and a rewind (checkpoints.h).
 *
 * After a cancelled encode, classify or fill, nothing of its sources has been encoded. A cancelled prefill, step or score keeps the
 * chunks (`max_chunk`) that were complete, which tarn_session_tokens() counts, and the session continues from there as if the call
 * had been given only those tokens. A chunk of at least 2^31 multiply-adds may be stopped in its middle: 64 tokens of a model of 34
 * M parameters, or one token of a model of 2,000 M parameters. Then prefill, step, score, reorder and save are
 * TARN_INVALID_ARGUMENT until a reset, a restore or an encode.
 * Errors: none.
 * Thread safety: any thread at any time while the session exists; signal handlers. */
TARN_API void tarn_session_cancel(tarn_session* session);

/* Returns the session, with all sequences, to the state after creation.
 * Errors: none. */
TARN_API void tarn_session_reset(tarn_session* session);

/* Returns to the system the memory that the session does not need until its next call: the whole pages of arena and scratch
 * (tarn_memory), and the pages of the states that are all zero. Call it when the system signals that memory is short. The states
 * stay, and later results are the same, bit for bit. Logits of an earlier call are undefined afterwards. The next calls take back
 * the pages that they need, which takes some microseconds per page, once. The call reads the states. Address space and tarn_memory
 * do not change, and packed weights stay.
 * Returns the bytes of those pages that were resident; 0 for NULL, without an operating system, and if memory is locked.
 * Errors: none. */
TARN_API uint64_t tarn_session_trim(tarn_session* session);

/* Tokens fed to each sequence since the last reset; if the numbers differ, the largest of them.
 * Errors: none. */
TARN_API uint64_t tarn_session_tokens(const tarn_session* session);

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Turns text into token ids. Writes up to `capacity` ids and sets `*count` to the number of ids of the text, also if `capacity` is
 * too small: with a capacity of 0 it only counts. With TARN_TOKENIZER_BYTES a text has as many ids as bytes. With other tokenizers
 * the call allocates working memory from the model's allocator and releases it, in proportion to the length of the text: at most 51
 * MiB. tokenizer.h has the same with memory of the caller, and with the range of the text for each id.
 * Errors: TARN_UNSUPPORTED (the model has no tokenizer), TARN_BUFFER_TOO_SMALL (names both numbers; `*count` is set, and it is 0 if
 * a word of the text has more than 2^20 bytes), TARN_OUT_OF_MEMORY.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_tokenize(const tarn_model* model, const char* text, size_t text_bytes, int32_t* tokens, size_t capacity,
                                   size_t* count, tarn_error* error);

/* The state of a conversion from token ids to text, in the caller's memory: zero it to begin a text. Bytes are written as soon as
 * they form whole UTF-8 characters. Bytes that can never become valid UTF-8 are written as U+FFFD. Some tokenizers have tokens that
 * stand for single bytes (byte fallback). A run of such tokens is written together, at most 24 of them: if the run is not valid
 * UTF-8, each of its bytes becomes U+FFFD. Decode the prompt too: some tokenizers drop a space at the beginning of a text. */
typedef struct tarn_text_decoder {
  uint8_t pending[24];    /* bytes that wait for others */
  uint32_t pending_bytes; /* how many: 0 to 3 of a character, 0 to 23 of tokens for single bytes */
  uint32_t flags;         /* internal: what came before */
} tarn_text_decoder;

/* Writes the text that `token` completes to `text`, which has room for `capacity` bytes, and its length to `*text_bytes`: 0
 * if a character is still incomplete. tarn_max_piece_bytes() is always enough room. Pass the tokens of the prompt first.
 * Errors: TARN_UNSUPPORTED (the model has no tokenizer), TARN_INVALID_ARGUMENT (token or pending_bytes out of range),
 * TARN_BUFFER_TOO_SMALL; the decoder is unchanged.
 * Thread safety: one thread at a time per decoder. */
TARN_API tarn_status tarn_text_decode(const tarn_model* model, tarn_text_decoder* decoder, int32_t token, char* text,
                                      size_t capacity, size_t* text_bytes, tarn_error* error);

/* Ends a text: an incomplete character comes out as U+FFFD. `text` has room for tarn_max_piece_bytes(). Returns the number
 * of bytes written and zeroes the decoder. */
TARN_API size_t tarn_text_finish(tarn_text_decoder* decoder, char* text);

/* The most bytes that one tarn_text_decode() or tarn_text_finish() writes. */
TARN_API size_t tarn_max_piece_bytes(const tarn_model* model);

/* ---- Beam search ------------------------------------------------------------------------------------------------ */

/* A beam search finds, for each source of a batch, the outputs of the highest score: log probability / ((5 + length) /
 * 6)^length_penalty, with the end token counted in `length` (Wu et al. 2016). In each step, the search keeps the `beams` most
 * probable continuations of a source that do not end. A continuation that ends is finished if it is among the `beams` most probable
 * of all continuations. A source is done when none of its remaining beams can become one of its `beams` best finished outputs. With
 * one beam the search is greedy decoding, which is done at the first end token. Ties go to the lower beam, then to the larger
 * logit, then to the lower id. Sums of log probabilities have rounding errors of up to 1e-6 per step, so nearly equal outputs of
 * different beams may swap ranks.
 *
 * The beams are the sequences of a session: those of source s are [s * beams, (s + 1) * beams).
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
  uint32_t sources;           /* >= 1 */
  uint32_t beams;             /* >= 1, per source */
  uint32_t vocab_size;        /* >= 1 */
  uint32_t max_output_tokens; /* >= 1: longer outputs are cut and count as finished. The end token counts. */
  float length_penalty;       /* >= 0; 0: the most probable output */
  int32_t bos_token;          /* what every output begins with; tarn_model_info has it */
  int32_t eos_token;          /* what ends an output; -1: nothing does */
  tarn_allocator allocator;   /* used at creation and by tarn_beam_destroy() */
} tarn_beam_config;
#define TARN_BEAM_CONFIG_INIT                                                \
  {                                                                          \
    sizeof(tarn_beam_config), 1, 4, 0, 0, 0.6f, -1, -1, { NULL, NULL, NULL } \
  }

/* Writes the size of the one block that tarn_beam_create() allocates to `*size_bytes`.
 * Errors: TARN_INVALID_ARGUMENT (names the field and its range), TARN_OUT_OF_MEMORY (more than the address space).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_beam_requirements(const tarn_beam_config* config, uint64_t* size_bytes, tarn_error* error);

/* Creates a beam search at its beginning: the next token of each beam is the begin token.
 * Errors: as tarn_beam_requirements(), TARN_OUT_OF_MEMORY. */
TARN_API tarn_status tarn_beam_create(const tarn_beam_config* config, tarn_beam** beam, tarn_error* error);

/* Destroys a beam search. NULL is accepted. */
TARN_API void tarn_beam_destroy(tarn_beam* beam);

/* The token to feed to each sequence next, [sources * beams]: the begin token at first, and for sequences that are not continued.
 * Borrowed until tarn_beam_destroy(); tarn_beam_advance() and tarn_beam_reset() change the values. NULL for NULL. */
TARN_API const int32_t* tarn_beam_tokens(const tarn_beam* beam);

/* Chooses continuations by `logits` [sources * beams, vocab_size], the logits after tarn_beam_tokens(). Rows of sequences that are
 * not continued are not read. Allocates nothing.
 * Errors: TARN_INVALID_ARGUMENT (a logit is NaN or +inf, or all logits of a row are -inf: names the sequence; or all sources are
 * done).
 * Thread safety: as all calls on a beam search, one thread at a time. */
TARN_API tarn_status tarn_beam_advance(tarn_beam* beam, const float* logits, tarn_error* error);

/* For tarn_session_reorder(): the sequence whose state each sequence takes over, [sources * beams], one of the same source.
 * Borrowed as tarn_beam_tokens(). NULL for NULL. */
TARN_API const uint32_t* tarn_beam_parents(const tarn_beam* beam);

/* 1 when every source is done, and for NULL; else 0. */
TARN_API int tarn_beam_done(const tarn_beam* beam);

/* The `rank`-th best finished output of a source, from 0: `*count` tokens without begin and end token, borrowed until the next call
 * on this tarn_beam. `score` may be NULL. A source that is done has 1 to `beams` outputs.
 * Errors: TARN_INVALID_ARGUMENT (no such source), TARN_NOT_FOUND (fewer are finished). */
TARN_API tarn_status tarn_beam_result(tarn_beam* beam, uint32_t source, uint32_t rank, const int32_t** tokens, size_t* count,
                                      double* score, tarn_error* error);

/* Returns the beam search to its beginning, for other sources. */
TARN_API void tarn_beam_reset(tarn_beam* beam);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "tarn/sampler.h"
#include "tarn/snapshot.h"

#endif /* TARN_TARN_H_ */
