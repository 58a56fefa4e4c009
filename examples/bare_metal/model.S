/* The model file, as it is, in read-only memory. MODEL is its path. 64: the build reads weights where they are, in whole words. */
  .section .rodata.model, "a", %progbits
  .balign 64
  .global model_begin, model_end
model_begin:
  .incbin MODEL
model_end:
#if defined(__ELF__) && defined(__linux__)
  .section .note.GNU-stack, "", %progbits
#endif
