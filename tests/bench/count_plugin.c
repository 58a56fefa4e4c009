/* A plugin for QEMU's user mode (-plugin FILE,mark=NUMBER -d plugin): counts the guest's instructions between the first two system
 * calls of that number, and prints `total COUNT`, then `COUNT FUNCTION` for every function that had any.
 *
 * Counts are those of the guest's own instructions, equal in every run. QEMU offers plugins a C API, of which the few functions
 * that are used stand here: Debian ships the emulator without their header (QEMU 7.2, version 1 of the API). */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum { kNoRegisters = 0 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn* instruction);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*f)(qemu_plugin_id_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block, void (*f)(unsigned, void*), int registers, void* data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id,
                                          void (*f)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                                    uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_outs(const char* text);

EXPORT int qemu_plugin_version = 1;

/* A translated block; blocks end at branches, so it belongs to one function. Lives as long as the process. */
typedef struct Block {
  const char* function;
  uint64_t instructions, runs;
  struct Block* next;
} Block;

static Block* blocks;
static int64_t mark = -1;
static int marks_seen;

static void run_block(unsigned cpu, void* data) {
  (void)cpu;
  ((Block*)data)->runs += marks_seen == 1;
}

static void translate_block(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  const char* function = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
  Block* block = calloc(1, sizeof *block);
  if (block == NULL) abort();
  block->function = strdup(function != NULL ? function : "?");
  block->instructions = qemu_plugin_tb_n_insns(tb);
  block->next = blocks;
  blocks = block;
  qemu_plugin_register_vcpu_tb_exec_cb(tb, run_block, kNoRegisters, block);
}

static void print_counts(void) {
  uint64_t total = 0;
  char line[32];
  for (const Block* block = blocks; block != NULL; block = block->next) total += block->runs * block->instructions;
  snprintf(line, sizeof line, "total %" PRIu64 "\n", total);
  qemu_plugin_outs(line);
  for (const Block* block = blocks; block != NULL; block = block->next) {
    if (block->runs == 0) continue;
    snprintf(line, sizeof line, "%" PRIu64 " ", block->runs * block->instructions);
    qemu_plugin_outs(line);
    qemu_plugin_outs(block->function);
    qemu_plugin_outs("\n");
  }
}

static void enter_system_call(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                              uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)cpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (number == mark && ++marks_seen == 2) print_counts();
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info* info, int argc, char** argv) {
  (void)info;
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "mark=", 5) == 0) mark = strtoll(argv[i] + 5, NULL, 10);
  }
  if (mark < 0) {
    fprintf(stderr, "count_plugin: which system call marks? -plugin FILE,mark=NUMBER\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate_block);
  qemu_plugin_register_vcpu_syscall_cb(id, enter_system_call);
  return 0;
}
