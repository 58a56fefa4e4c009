/* The program on a computer, to compare with. */
#include <board.h>
#include <stdio.h>
#include <stdlib.h>

void board_print(const char* text) { fputs(text, stdout); }

void board_exit(int status) { exit(status); }

size_t board_stack_used(void) { return 0; }
