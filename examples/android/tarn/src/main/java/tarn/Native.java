package tarn;

/**
 * The C API, one to one: see tarn.h for what each call does. Handles and logits are C pointers;
 * whoever holds them sees to it that they are alive. Text is UTF-8, paths end with NUL. Every call
 * throws {@link TarnException} where its counterpart reports an error.
 */
final class Native {
  static {
    System.loadLibrary("tarn_jni");
  }

  /**
   * Bytes of a tarn_text_decoder.
   */
  static final int DECODER_BYTES = 32;

  private Native() {}

  static native byte[] version();

  static native int fastCores();

  /** By path if there is one, else by descriptor. */
  static native long modelOpen(
      byte[] path,
      int fd,
      long offsetBytes,
      long lengthBytes,
      boolean verifyWeights,
      boolean noVerify,
      byte[] packedCache);

  static native void modelClose(long model);

  /** name, precision, isa, dense, fingerprint. */
  static native byte[][] modelTexts(long model);

  /** task, vocab_size, tokenizer, parameters, max_context, packed_from_cache, eos_token. */
  static native long[] modelNumbers(long model);

  /** mapped, packed_file, packed_anonymous, model, state, arena, scratch, program, session. */
  static native long[] modelMemory(long model, int maxChunk, int threads);

  /**
   * With the tokens that the tokenizer puts before and after a text, or without. {@code plain}:
   * names of special tokens in the text are ordinary text.
   */
  static native int[] tokenize(long model, byte[] text, boolean withTemplate, boolean plain);

  static native int maxPieceBytes(long model);

  static native boolean isSpecial(long model, int token);

  /** Returns the number of bytes written to {@code piece}; so does {@link #finish}. */
  static native int decode(long model, byte[] decoder, int token, byte[] piece);

  static native int finish(byte[] decoder, byte[] piece);

  static native long sessionCreate(long model, int maxChunk, int threads);

  static native void sessionDestroy(long session);

  static native void sessionReset(long session);

  static native long sessionTrim(long session);

  static native long sessionTokens(long session);

  /**
   * Returns the logits after the last of the tokens, which live until the next call on this
   * session.
   */
  static native long prefill(long session, int[] tokens, int from, int count);

  static native long snapshotBytes(long session);

  /** The snapshot is the first {@code bytes} of the array; so it is in {@link #restore}. */
  static native void save(long session, byte[] snapshot, int bytes);

  static native void restore(long session, byte[] snapshot, int bytes);

  static native long samplerCreate(
      int vocabSize,
      float temperature,
      int topK,
      float topP,
      float minP,
      float repeatPenalty,
      int repeatLastN,
      long seed);

  static native void samplerDestroy(long sampler);

  static native void accept(long sampler, int[] tokens);

  static native int sample(long sampler, long logits);
}
