/* What the program wants of a board: two functions to write, one to measure. semihosting.c and host.c have them. */
#ifndef BOARD_H_
#define BOARD_H_

#include <stddef.h>

/* Writes NUL-terminated text to a person: a UART, a debugger, a terminal. */
void board_print(const char* text);

/* Ends the program; on a product: resets. status 0: all is well. */
_Noreturn void board_exit(int status);

/* The most bytes that the stack has held since the start; 0: not known. */
size_t board_stack_used(void);

#endif /* BOARD_H_ */
