/* From reset to main() on a Cortex-M, and what happens on a fault. Names that are not defined here come from sections.ld. */
#include <board.h>
#include <stdint.h>
#include <string.h>

int main(void);

extern uint32_t stack_limit[], stack_top[];
extern unsigned char data_begin[], data_end[], bss_begin[], bss_end[];
extern const unsigned char data_in_flash[];

#define CPACR (*(volatile uint32_t*)0xE000ED88u) /* which coprocessors may be used */
#define CFSR (*(volatile uint32_t*)0xE000ED28u)  /* why there was a fault */

static const uint32_t paint = 0xA5A5A5A5u;

/* Begins at the far end of the stack: as far as the paint is whole, nobody has been. */
size_t board_stack_used(void) {
  const uint32_t* word = stack_limit;
  while (word < stack_top && *word == paint) ++word;
  return (size_t)((const unsigned char*)stack_top - (const unsigned char*)word);
}

_Noreturn void reset(void);
void reset(void) {
  CPACR |= 0xFu << 20; /* floating point and Helium */
  __asm__ volatile("dsb\n isb" ::: "memory");
  memcpy(data_begin, data_in_flash, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  for (volatile uint32_t* word = stack_limit; (uintptr_t)word < (uintptr_t)__builtin_frame_address(0) - 64; ++word) *word = paint;
  main();
  board_exit(1); /* main() ends with board_exit() */
}

static void fault(void) {
  static const char* const names[] = {"memory", "bus", "usage"};
  const uint32_t why = CFSR;
  const int kind = (why & 0xFFu) != 0 ? 0 : (why & 0xFF00u) != 0 ? 1 : 2;
  board_print("\nhard fault: ");
  board_print(names[kind]);
  /* A large frame may jump over the last painted word: then the handler itself runs below the stack. */
  const int full = *stack_limit != paint || (uintptr_t)__builtin_frame_address(0) <= (uintptr_t)stack_limit;
  board_print(full ? ", the stack is full\n" : "\n");
  board_exit(3);
}

/* What the CPU reads at reset: the first stack pointer, then handlers. */
static const struct {
  const void* stack;
  void (*handlers[15])(void);
} vectors __attribute__((section(".vectors"), used)) = {
    stack_top,
    {reset, fault, fault, fault, fault, fault, fault, 0, 0, 0, fault, fault, 0, fault, fault},
};
