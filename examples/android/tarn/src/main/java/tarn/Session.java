package tarn;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.zip.CRC32;

/**
 * A text that a model reads and writes, in memory that does not grow. Texts go on: what {@link
 * #generate} is given comes after all that the session has taken in and written since it was
 * created or reset.
 *
 * <p>What the model's tokenizer puts before and after a text, such as a begin token, is put around
 * the first text of a session, as {@code tarn run} puts it around its prompt, and around none that
 * goes on.
 *
 * <p>Threads: one at a time; a call while another one is running throws {@link
 * IllegalStateException}, which includes calls from within a piece's consumer. {@link #cancel} and
 * {@link #close} may be called from any thread at any time.
 */
public final class Session implements AutoCloseable {
  private static final int NONE = -1;

  /** What a saved state has after the snapshot: {@link #last}, {@link #decoder}, and the CRC-32 of both. */
  private static final int TAIL_BYTES = 4 + Native.DECODER_BYTES + 4;

  // Fields of tarn_text_decoder, behind the bytes that wait.
  private static final int DECODER_PENDING = 24;
  private static final int DECODER_FLAGS = 28;

  /** Of the flags: the text has not begun, and loses a space at its beginning. */
  private static final int DROPS_SPACE = 16;

  private final Model model;
  private final long modelHandle;
  private final long handle;
  private final int maxChunk;
  private final byte[] piece; // room for the longest

  /**
   * The text's last token, which the model has not been fed: logits live for one call only, so that
   * the next one needs it.
   */
  private int last = NONE;

  /** A tarn_text_decoder: the bytes of a character that is not whole yet, and what came before. */
  private final byte[] decoder = new byte[Native.DECODER_BYTES];

  private volatile boolean cancelled;
  private final Object lock = new Object();
  private Thread user; // whose call is running; guarded by lock
  private boolean closed; // guarded by lock

  /** The caller has retained the model for this session, which will release it. */
  Session(Model model, long modelHandle, SessionConfig config) {
    this.model = model;
    this.modelHandle = modelHandle;
    maxChunk = config.maxChunk;
    piece = new byte[Native.maxPieceBytes(modelHandle)];
    // The last step, so that one that fails leaves nothing behind.
    handle = Native.sessionCreate(modelHandle, maxChunk, config.threads());
  }

  /** Generates with the default options. */
  public int generate(String prompt, Consumer<String> onPiece) {
    return generate(prompt, new GenerateOptions(), onPiece);
  }

  /**
   * Takes in the prompt and writes what follows it, piece by piece, on the calling thread.
   *
   * <p>It ends after {@link GenerateOptions#maxOutputTokens}, or earlier at the model's {@link
   * ModelInfo#endToken}, or when it is cancelled: by {@link #cancel}, by {@link #close} or by an
   * interrupt of the calling thread, whose interrupt status stays set. A cancelled call returns
   * within a token, or a chunk of the prompt. After a piece the text can be gone on with; a session
   * that was cancelled within a prompt has taken in a part of it: reset it, or restore an earlier
   * state.
   *
   * @param prompt may be empty to go on where the text ended, but not at its beginning unless the
   *     tokenizer begins texts with a token. Names of special tokens in it, such as {@code
   *     <|endoftext|>}, become these tokens; {@link #readPlain} reads text without any.
   * @param onPiece gets text of whole characters, without names of special tokens. Before this call
   *     ends, it has got all characters that are whole. What it throws ends the generation and
   *     comes out of this call.
   * @return how many tokens were generated, without an end token
   * @throws TarnException if the model has no tokenizer or is not for generating, its context is
   *     full, or an option is out of range
   */
  public int generate(String prompt, GenerateOptions options, Consumer<String> onPiece) {
    enter();
    long sampler = 0;
    try {
      sampler =
          Native.samplerCreate(
              model.info().vocabSize,
              options.temperature,
              options.topK,
              options.topP,
              options.minP,
              options.repeatPenalty,
              options.repeatLastN,
              options.seed);
      int[] given = tokenize(prompt, false);
      int[] unfed = behindLast(given);
      Native.accept(sampler, unfed);
      long logits = feed(unfed, unfed.length);
      if (logits != 0) {
        beginBehind(given);
      }
      int generated = 0;
      while (logits != 0) {
        last = Native.sample(sampler, logits);
        if (last == model.info().endToken) {
          deliver(Utf8.decode(piece, Native.finish(decoder, piece)), onPiece);
          return generated;
        }
        ++generated;
        deliver(decode(last), onPiece);
        logits = generated < options.maxOutputTokens ? feed(new int[] {last}, 1) : 0;
      }
      deliver(takeWhole(), onPiece);
      return generated;
    } catch (TarnException e) {
      deliver(takeWhole(), onPiece); // where the context is full, the text so far is whole, too
      throw e;
    } finally {
      if (sampler != 0) {
        Native.samplerDestroy(sampler);
      }
      exit();
    }
  }

  /**
   * Takes in text without writing any: a long document, whose state is then kept with {@link
   * #save}. Cancelled as {@link #generate} is.
   *
   * @return false if it was cancelled
   * @throws TarnException as {@link #generate}
   */
  public boolean read(String text) {
    return read(text, false);
  }

  /**
   * As {@link #read}, but names of special tokens in the text are text like any other: for what
   * users write. {@link #generate} with an empty prompt then answers.
   */
  public boolean readPlain(String text) {
    return read(text, true);
  }

  private boolean read(String text, boolean plain) {
    enter();
    try {
      int[] given = tokenize(text, plain);
      int[] unfed = behindLast(given);
      int end = unfed.length - 1;
      if (end > 0 && feed(unfed, end) == 0) {
        return false;
      }
      beginBehind(given);
      last = unfed[end];
      return true;
    } finally {
      exit();
    }
  }

  /**
   * Ends the call of {@link #generate} or {@link #read} that is running; without one it does
   * nothing. Any thread.
   */
  public void cancel() {
    cancelled = true;
  }

  /**
   * All that the session remembers, for a file or for {@link #restore}: at most {@link
   * MemoryContract#stateBytes}, 1/512 of it and 104 bytes, however long the text was. It is bound to the
   * model, not to this session: any session of the same model file takes it, on any device.
   */
  public byte[] save() {
    enter();
    try {
      int bytes = Math.toIntExact(Native.snapshotBytes(handle));
      byte[] state = new byte[Math.addExact(bytes, TAIL_BYTES)];
      Native.save(handle, state, bytes);
      tail(state).putInt(last).put(decoder).putInt(checksum(state));
      return state;
    } finally {
      exit();
    }
  }

  /**
   * Goes on from a saved state exactly as the session that saved it would have.
   *
   * @throws TarnException if the state is damaged or of another model; the session is then as it
   *     was
   */
  public void restore(byte[] state) {
    enter();
    try {
      if (state.length < TAIL_BYTES) {
        throw damaged("has " + state.length + " bytes, must have at least " + TAIL_BYTES);
      }
      ByteBuffer tail = tail(state);
      int savedLast = tail.getInt();
      byte[] savedDecoder = new byte[Native.DECODER_BYTES];
      tail.get(savedDecoder);
      if (tail.getInt() != checksum(state)) {
        throw damaged("the checksum of its last " + TAIL_BYTES + " bytes is wrong");
      }
      if (savedLast < NONE || savedLast >= model.info().vocabSize) {
        throw damaged(
            "its last token is " + savedLast + ", must be below " + model.info().vocabSize);
      }
      ByteBuffer fields = fields(savedDecoder);
      if (fields.getInt(DECODER_PENDING) != 0) {
        checkPending(savedDecoder);
      }
      int flags = fields.getInt(DECODER_FLAGS);
      if (flags < 0 || flags > 31) {
        throw damaged("the flags of its text are " + flags + ", must be 0 to 31");
      }
      Native.restore(handle, state, state.length - TAIL_BYTES);
      last = savedLast;
      System.arraycopy(savedDecoder, 0, decoder, 0, decoder.length);
    } finally {
      exit();
    }
  }

  /** Forgets everything: the state after creation. */
  public void reset() {
    enter();
    try {
      Native.sessionReset(handle);
      Arrays.fill(decoder, (byte) 0);
      last = NONE;
    } finally {
      exit();
    }
  }

  /**
   * Gives the system the memory back that the session can do without until its next call: for {@code
   * onTrimMemory}, on the thread that uses the session. The text goes on as if nothing had happened;
   * the next call takes the memory again, which costs some microseconds per page.
   *
   * @return how many bytes were given back
   */
  public long trim() {
    enter();
    try {
      return Native.sessionTrim(handle);
    } finally {
      exit();
    }
  }

  /** How many tokens the text has, read and written. */
  public long tokens() {
    enter();
    try {
      return Native.sessionTokens(handle) + (last == NONE ? 0 : 1);
    } finally {
      exit();
    }
  }

  /**
   * Cancels what is running, and gives the memory back as soon as that has ended. A second time it
   * does nothing. Any thread.
   */
  @Override
  public void close() {
    synchronized (lock) {
      if (closed) {
        return;
      }
      closed = true;
      cancelled = true;
      if (user == null) {
        destroy();
      }
    }
  }

  private void enter() {
    synchronized (lock) {
      if (closed) {
        throw new IllegalStateException("the session is closed");
      }
      if (user != null) {
        throw new IllegalStateException(
            user == Thread.currentThread()
                ? "the session is in use by this thread: a callback may only cancel() or close() it"
                : "the session is in use by thread \""
                    + user.getName()
                    + "\": wait until its call has ended");
      }
      user = Thread.currentThread();
      cancelled = false;
    }
  }

  private void exit() {
    synchronized (lock) {
      user = null;
      if (closed) {
        destroy();
      }
    }
  }

  private void destroy() {
    Native.sessionDestroy(handle);
    model.release();
  }

  /** Tokens that begin a text stand at its beginning alone. */
  private int[] tokenize(String text, boolean plain) {
    boolean begins = last == NONE && Native.sessionTokens(handle) == 0;
    return Native.tokenize(modelHandle, Utf8.encode(text), begins, plain);
  }

  /** The last token, then these: at least one. */
  private int[] behindLast(int[] tokens) {
    if (last == NONE && tokens.length == 0) {
      throw new IllegalArgumentException(
          "the text is empty, and the session has none to go on with: give some");
    }
    if (last == NONE) {
      return tokens;
    }
    int[] unfed = new int[1 + tokens.length];
    unfed[0] = last;
    System.arraycopy(tokens, 0, unfed, 1, tokens.length);
    return unfed;
  }

  /**
   * Feeds the first {@code count} >= 1 tokens, chunk by chunk. Returns the logits after the last
   * one, or 0 if it was cancelled.
   */
  private long feed(int[] tokens, int count) {
    long logits = 0;
    for (int from = 0; from < count; from += maxChunk) {
      if (cancelled || Thread.currentThread().isInterrupted()) {
        return 0;
      }
      logits = Native.prefill(handle, tokens, from, Math.min(maxChunk, count - from));
      last = NONE;
    }
    return logits;
  }

  /**
   * The text that is generated goes on from the prompt, whose own text nobody gets: a space behind
   * it is none at the beginning. An empty prompt goes on with the text before.
   */
  private void beginBehind(int[] prompt) {
    if (prompt.length == 0) {
      return;
    }
    Arrays.fill(decoder, (byte) 0);
    for (int token : prompt) {
      decode(token);
    }
    takeWhole();
  }

  /** The text that a token completes: of a special token nothing, as {@code tarn run} has it. */
  private String decode(int token) {
    if (Native.isSpecial(modelHandle, token)) {
      return "";
    }
    return Utf8.decode(piece, Native.decode(modelHandle, decoder, token, piece));
  }

  /**
   * Takes the whole characters from the bytes that wait. The decoder holds a run of tokens for
   * single bytes back until another token comes, which may be after a prompt, or never.
   */
  private String takeWhole() {
    ByteBuffer fields = fields(decoder);
    int pending = fields.getInt(DECODER_PENDING);
    int whole = Utf8.wholeBytes(decoder, pending);
    if (whole == 0) {
      return "";
    }
    String text = Utf8.decode(decoder, whole);
    System.arraycopy(decoder, whole, decoder, 0, pending - whole);
    fields.putInt(DECODER_PENDING, pending - whole);
    fields.putInt(DECODER_FLAGS, fields.getInt(DECODER_FLAGS) & ~DROPS_SPACE);
    return text;
  }

  private static void deliver(String text, Consumer<String> onPiece) {
    if (!text.isEmpty()) {
      onPiece.accept(text);
    }
  }

  /** How many bytes may wait depends on flags and tokenizer: the library checks it at any token. */
  private void checkPending(byte[] savedDecoder) {
    try {
      Native.decode(modelHandle, savedDecoder.clone(), 0, piece);
    } catch (TarnException e) {
      throw damaged(e.getMessage());
    }
  }

  private static ByteBuffer fields(byte[] decoder) {
    return ByteBuffer.wrap(decoder).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static ByteBuffer tail(byte[] state) {
    return ByteBuffer.wrap(state, state.length - TAIL_BYTES, TAIL_BYTES)
        .order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Of the tail without its last four bytes; what is before it has hashes of its own. */
  private static int checksum(byte[] state) {
    CRC32 crc = new CRC32();
    crc.update(state, state.length - TAIL_BYTES, TAIL_BYTES - 4);
    return (int) crc.getValue();
  }

  private static TarnException damaged(String why) {
    return new TarnException(TarnException.Status.BAD_FORMAT, "saved state: " + why);
  }
}
