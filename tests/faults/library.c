/* The library with the N-th call to the system failing, for every N: opening, creating a session, running, snapshots, the cache.
 *
 *   library SCENARIO MODEL FOLDER
 *
 * Every point is a process of its own that begins before the library's first use, so that a crash or a hang is one line in the
 * report and what is found out once per process is found out again. In it the scenario runs with the fault, and then twice without.
 * Wanted:
 *  - with the fault either the whole output, or a status with one line;
 *  - no signal, no hang, no temporary file in FOLDER, which is the packed cache's;
 *  - without the fault the whole output, by the same kernels as ever, and nothing more held than by a process that had no fault:
 *    blocks of the heap, mappings, descriptors, threads; with one thread no block and no mapping at all.
 * Prints "kind calls points ok error failed" for every kind, a line for every failure; exit 1 if there is one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "tarn/tarn.h"

enum { kSeconds = 10, kTokens = 24, kMostVocabulary = 4096 };

#define NAME_OF(name, error) #name,
static const char* const kKinds[] = {TARN_FAULT_KINDS(NAME_OF)};

typedef struct Scenario {
  const char* name;
  int cached, second_start; /* packed cache: empty at first, or filled */
  int verify, from_buffer;
  uint32_t threads;
} Scenario;
static const Scenario kScenarios[] = {
    {"one_thread", 0, 0, 0, 0, 1}, {"threads", 0, 0, 0, 0, 3},     {"verify", 0, 0, 1, 0, 1},
    {"buffer", 0, 0, 0, 1, 1},     {"first_start", 1, 0, 0, 0, 1}, {"second_start", 1, 1, 0, 0, 1},
};

/* What one run of a scenario gave. */
typedef struct Outcome {
  tarn_status status;
  char message[252];
  uint64_t digest; /* of all logits and texts */
  int portable;
} Outcome;

typedef struct Held {
  int64_t blocks, mappings, descriptors, threads;
} Held;

/* What a child says. */
typedef struct Report {
  Outcome faulty, after, again;
  Held held;
  uint64_t calls[TARN_FAULT_COUNT];
  uint64_t failed;
  int temporary_files;
} Report;

static const char* model_path;
static const char* folder;
static void* model_bytes;
static size_t model_size;
static int portable_dense;

static void Hash(uint64_t* digest, const void* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) *digest = (*digest ^ ((const unsigned char*)bytes)[i]) * 1099511628211u;
}

/* ---- the scenario ---- */

typedef struct Run {
  tarn_model* model;
  tarn_session* session;
  tarn_sampler* sampler;
  tarn_beam* beam;
  void* snapshot;
  tarn_model_info info;
  tarn_error error;
  uint64_t digest;
} Run;

static tarn_status Decode(Run* run, const tarn_session_config* config) {
  static const int32_t kPrompt[4 * kTokens] = {'t', 'h', 'e', ' ', 'k', 'i', 'n', 'g', 1, 2, 3};
  const size_t row = run->info.vocab_size * sizeof(float);
  const float* logits = NULL;
  tarn_status status = tarn_session_prefill(run->session, kPrompt, kTokens / 2, &logits, &run->error);
  if (status != TARN_OK) return status;
  Hash(&run->digest, logits, row);
  const uint64_t bytes = tarn_session_snapshot_bytes(run->session);
  run->snapshot = malloc(bytes);
  if (run->snapshot == NULL) {
    snprintf(run->error.message, sizeof(run->error.message), "no memory for a snapshot");
    return TARN_OUT_OF_MEMORY;
  }
  status = tarn_session_save(run->session, run->snapshot, bytes, &run->error);
  for (int turn = 0; turn < 2 && status == TARN_OK; ++turn) {
    if (turn == 1) {
      tarn_session_reset(run->session);
      status = tarn_session_restore(run->session, run->snapshot, bytes, &run->error);
    }
    for (int i = 0; i < 3 && status == TARN_OK; ++i) {
      status = tarn_session_step(run->session, kPrompt + i, &logits, &run->error);
      if (status != TARN_OK) break;
      Hash(&run->digest, logits, row);
      int32_t token;
      status = tarn_sampler_sample(run->sampler, logits, &token, &run->error);
      Hash(&run->digest, &token, sizeof(token));
    }
  }
  if (status != TARN_OK) return status;
  status = tarn_session_score(run->session, kPrompt, config->max_logits_rows, &logits, &run->error);
  if (status == TARN_OK) Hash(&run->digest, logits, config->max_logits_rows * row);
  return status;
}

static tarn_status Search(Run* run) {
  const float* logits;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && !tarn_beam_done(run->beam)) {
    status = tarn_session_step(run->session, tarn_beam_tokens(run->beam), &logits, &run->error);
    if (status == TARN_OK) status = tarn_beam_advance(run->beam, logits, &run->error);
    if (status == TARN_OK) status = tarn_session_reorder(run->session, tarn_beam_parents(run->beam), &run->error);
  }
  const int32_t* tokens;
  size_t count;
  double score;
  if (status == TARN_OK) status = tarn_beam_result(run->beam, 0, 0, &tokens, &count, &score, &run->error);
  if (status != TARN_OK) return status;
  Hash(&run->digest, tokens, count * sizeof(*tokens));
  Hash(&run->digest, &score, sizeof(score));
  return status;
}

static tarn_status CreateAll(Run* run, tarn_session_config* config) {
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_status status = tarn_model_requirements(run->model, config, &memory, &run->error);
  if (status == TARN_OK) status = tarn_session_create(run->model, config, &run->session, &run->error);
  tarn_sampler_config sampling = TARN_SAMPLER_CONFIG_INIT;
  if (status == TARN_OK) status = tarn_sampler_create(run->info.vocab_size, &sampling, &run->sampler, &run->error);
  if (status == TARN_OK && config->beams > 1) {
    tarn_beam_config beam = TARN_BEAM_CONFIG_INIT;
    beam.beams = config->beams;
    beam.vocab_size = run->info.vocab_size;
    beam.max_output_tokens = 6;
    beam.bos_token = run->info.bos_token;
    beam.eos_token = run->info.eos_token;
    status = tarn_beam_create(&beam, &run->beam, &run->error);
  }
  return status;
}

static tarn_status RunAll(const Scenario* scenario, Run* run) {
  tarn_source source = TARN_SOURCE_INIT;
  if (scenario->from_buffer) {
    source.buffer = model_bytes;
    source.length_bytes = model_size;
  } else {
    source.path = model_path;
  }
  tarn_model_config model_config = TARN_MODEL_CONFIG_INIT;
  model_config.verify_weights = scenario->verify;
  model_config.portable_dense = portable_dense;
  model_config.packed_cache = scenario->cached ? folder : NULL;
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.threads = scenario->threads;
  config.max_chunk = 8;
  config.max_logits_rows = 4;
  tarn_status status = tarn_requirements(&source, &model_config, &config, &memory, &run->error);
  if (status == TARN_OK) status = tarn_model_open(&source, &model_config, &run->model, &run->error);
  if (status == TARN_OK) status = tarn_model_get_info(run->model, &run->info, &run->error);
  if (status != TARN_OK) return status;
  config.beams = run->info.task == TARN_TASK_SEQ2SEQ ? 2 : 0;
  config.max_source = run->info.task == TARN_TASK_CAUSAL_LM ? 0 : 16;
  status = CreateAll(run, &config);
  if (status != TARN_OK) return status;
  const int32_t tokens[5] = {5, 4, 3, 2, 1};
  const size_t length = 5;
  const uint32_t position = 2;
  const float* logits = NULL;
  switch (run->info.task) {
    case TARN_TASK_CAUSAL_LM:
      return Decode(run, &config);
    case TARN_TASK_SEQ2SEQ:
      status = tarn_session_encode(run->session, tokens, 5, &length, &run->error);
      return status == TARN_OK ? Search(run) : status;
    case TARN_TASK_CLASSIFICATION:
      status = tarn_session_classify(run->session, tokens, 5, &length, &logits, &run->error);
      if (status == TARN_OK) Hash(&run->digest, logits, run->info.num_labels * sizeof(*logits));
      return status;
    default:
      status = tarn_session_fill(run->session, tokens, 5, &position, 1, &logits, &run->error);
      if (status == TARN_OK) Hash(&run->digest, logits, run->info.vocab_size * sizeof(*logits));
      return status;
  }
}

static void RunScenario(const Scenario* scenario, Outcome* outcome) {
  Run run;
  memset(&run, 0, sizeof(run));
  run.info.struct_size = sizeof(run.info);
  run.digest = 14695981039346656037u;
  outcome->status = RunAll(scenario, &run);
  memcpy(outcome->message, run.error.message, sizeof(outcome->message));
  outcome->digest = run.digest;
  outcome->portable = run.info.dense != NULL && strcmp(run.info.dense, "portable") == 0;
  free(run.snapshot);
  tarn_beam_destroy(run.beam);
  tarn_sampler_destroy(run.sampler);
  tarn_session_destroy(run.session);
  tarn_model_close(run.model);
}

/* ---- what is left behind ---- */

static int64_t Entries(const char* path) {
  DIR* list = opendir(path);
  int64_t entries = 0;
  while (list != NULL && readdir(list) != NULL) ++entries;
  if (list != NULL) closedir(list);
  return entries;
}

static Held HeldNow(void) {
  Held held = {tarn_faults_blocks(), tarn_faults_mappings(), Entries("/proc/self/fd"), Entries("/proc/self/task")};
  for (int i = 0; i < 100 && held.threads > 3; ++i) { /* one that was joined stays in /proc for a moment */
    usleep(10000);
    held.threads = Entries("/proc/self/task");
  }
  return held;
}

/* With `remove` all files of the cache, without it those that are temporary: how many. */
static int CacheFiles(int remove) {
  DIR* list = opendir(folder);
  if (list == NULL) return 0;
  int files = 0;
  for (const struct dirent* entry; (entry = readdir(list)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    if (remove) unlinkat(dirfd(list), entry->d_name, 0);
    files += strstr(entry->d_name, "tmp") != NULL;
  }
  closedir(list);
  return files;
}

/* ---- one point ---- */

/* The child's exit status, as waitpid gives it. `kind` -1: no fault. */
static int Point(const Scenario* scenario, int kind, uint64_t nth, int lasting, Report* report) {
  memset(report, 0, sizeof(*report));
  if (!scenario->second_start) CacheFiles(1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const int64_t blocks = tarn_faults_blocks(), mappings = tarn_faults_mappings();
    tarn_faults_arm(kind, nth, lasting);
    RunScenario(scenario, &report->faulty);
    report->failed = tarn_faults_disarm();
    for (int i = 0; i < TARN_FAULT_COUNT; ++i) report->calls[i] = tarn_faults_calls(i);
    report->temporary_files = CacheFiles(0);
    RunScenario(scenario, &report->after);
    RunScenario(scenario, &report->again);
    report->held = HeldNow();
    report->held.blocks -= blocks;
    report->held.mappings -= mappings;
    _exit(0);
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  return status;
}

static int Hangs(int status) { return status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM; }

static int IsOneLine(const char* message) {
  const size_t length = strnlen(message, 252);
  return length > 0 && length < 252 && strchr(message, '\n') == NULL;
}

static int SameOutcome(const Outcome* a, const Outcome* b) {
  return a->status == TARN_OK && a->digest == b->digest && a->portable == b->portable;
}

/* NULL, or what is wrong. */
static const char* Wrong(const Report* report, int status, const Report* good, const Outcome* portable) {
  static char text[400];
  if (status != 0) {
    snprintf(text, sizeof(text), Hangs(status) ? "hangs" : "signal %d", WTERMSIG(status));
    return text;
  }
  const Outcome* faulty = &report->faulty;
  if (faulty->status != TARN_OK && !IsOneLine(faulty->message)) return "an error without one line of words";
  if (faulty->status == TARN_OK && faulty->digest != (faulty->portable ? portable : &good->faulty)->digest) return "wrong output";
  if (report->temporary_files != 0) return "a temporary file stays";
  const Outcome* const later[] = {&report->after, &report->again};
  for (int i = 0; i < 2; ++i) {
    if (SameOutcome(later[i], &good->faulty)) continue;
    snprintf(text, sizeof(text), "later without a fault: status %d, %s dense layers, %s", (int)later[i]->status,
             later[i]->portable ? "portable" : "XNNPACK's", later[i]->message);
    return text;
  }
  if (memcmp(&report->held, &good->held, sizeof(Held)) != 0) {
    snprintf(text, sizeof(text), "leaks: blocks %+lld, mappings %+lld, descriptors %+lld, threads %+lld",
             (long long)(report->held.blocks - good->held.blocks), (long long)(report->held.mappings - good->held.mappings),
             (long long)(report->held.descriptors - good->held.descriptors),
             (long long)(report->held.threads - good->held.threads));
    return text;
  }
  return NULL;
}

/* All points of a kind. Returns the number of failures. */
static int Sweep(const Scenario* scenario, int kind, const Report* good, const Outcome* portable, Report* report) {
  int points = 0, ok = 0, errors = 0, wrong = 0;
  for (int lasting = 0; lasting < 2; ++lasting) {
    for (uint64_t nth = 1;; ++nth) {
      int status = Point(scenario, kind, nth, lasting, report);
      if (Hangs(status)) status = Point(scenario, kind, nth, lasting, report); /* the machine may have been stopped meanwhile */
      if (status == 0 && report->failed == 0) break;                           /* there are no more calls */
      ++points;
      const char* what = Wrong(report, status, good, portable);
      if (what != NULL) {
        ++wrong;
        printf("FAILED %s %s:%llu%s: %s\n", scenario->name, kKinds[kind], (unsigned long long)nth, lasting ? "+" : "", what);
      } else {
        ++*(report->faulty.status == TARN_OK ? &ok : &errors);
      }
      if (status != 0 && nth > good->calls[kind] + 100) break; /* it crashes for ever */
    }
  }
  printf("%s %llu %d %d %d %d\n", kKinds[kind], (unsigned long long)good->calls[kind], points, ok, errors, wrong);
  fflush(stdout);
  return wrong;
}

static void ReadModel(void) {
  const int fd = open(model_path, O_RDONLY);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    fprintf(stderr, "%s: %s\n", model_path, strerror(errno));
    exit(2);
  }
  model_size = (size_t)info.st_size;
  model_bytes = mmap(NULL, model_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
}

int main(int argc, char** argv) {
  const Scenario* scenario = NULL;
  for (size_t i = 0; i < sizeof(kScenarios) / sizeof(*kScenarios) && argc == 4; ++i) {
    if (strcmp(argv[1], kScenarios[i].name) == 0) scenario = &kScenarios[i];
  }
  if (scenario == NULL) {
    fprintf(stderr, "usage: library SCENARIO MODEL FOLDER\n");
    return 2;
  }
  model_path = argv[2];
  folder = argv[3];
  ReadModel();
  Report* const good = mmap(NULL, 2 * sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (good == MAP_FAILED) return 2;
  Report* const report = good + 1;
  if (scenario->second_start) Point(scenario, -1, 0, 0, good); /* fills the cache */
  const int status = Point(scenario, -1, 0, 0, good);
  if (status != 0 || !SameOutcome(&good->faulty, &good->again) || !SameOutcome(&good->after, &good->again)) {
    fprintf(stderr, "%s: fails without a fault: %d, %s\n", scenario->name, status, good->faulty.message);
    return 2;
  }
  /* "Nothing else is global": tarn.h. Of threads that have ended the C library keeps something; cpuinfo on ARM does. */
#if defined(__x86_64__) || defined(__i386__)
  if (scenario->threads == 1 && (good->held.blocks != 0 || good->held.mappings != 0)) {
    printf("FAILED %s: %lld blocks and %lld mappings stay after everything is closed\n", scenario->name,
           (long long)good->held.blocks, (long long)good->held.mappings);
    return 1;
  }
#endif
  /* What comes out where the system hides the CPU. */
  portable_dense = 1;
  const int portable_status = Point(scenario, -1, 0, 0, report);
  portable_dense = 0;
  const Outcome portable = report->faulty;
  if (portable_status != 0 || portable.status != TARN_OK) {
    fprintf(stderr, "%s: fails with portable dense layers: %s\n", scenario->name, portable.message);
    return 2;
  }
  int wrong = 0;
  for (int kind = 0; kind < TARN_FAULT_COUNT; ++kind) wrong += Sweep(scenario, kind, good, &portable, report);
  return wrong != 0;
}
