package tarn;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.zip.CRC32;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** Text, its end, and the states in between. */
public class SessionTest {
  private static final String PROMPT = "ROMEO:";
  private Model model;
  private Session session;

  @Before
  public void open() {
    model = Tarn.open(Desktop.MODEL);
    session = model.newSession();
  }

  @After
  public void close() {
    session.close();
    model.close();
  }

  @Test
  public void writesWhatTheCommandLineWrites() throws Exception {
    String text = Desktop.generate(session, PROMPT, Desktop.greedy(300));
    assertEquals(Desktop.tarnRun(Desktop.MODEL, PROMPT, 300, "--temp", "0"), text);
    assertEquals(PROMPT.length() + 300, session.tokens());

    session.reset();
    String drawn = Desktop.generate(session, PROMPT, new GenerateOptions().seed(42));
    assertEquals(Desktop.tarnRun(Desktop.MODEL, PROMPT, 128, "-s", "42"), drawn);

    session.reset();
    GenerateOptions options = new GenerateOptions().seed(-42).repeatPenalty(1.1f, 20);
    String[] same = {
      "-s", Long.toUnsignedString(-42), "--repeat-penalty", "1.1", "--repeat-last-n", "20"
    };
    assertEquals(
        Desktop.tarnRun(Desktop.MODEL, PROMPT, 128, same),
        Desktop.generate(session, PROMPT, options));
  }

  @Test
  public void aPromptOfManyChunksIsTheSameInEach() throws Exception {
    String prompt = "To be, or not to be, that is the question. ".repeat(5);
    try (Session small = model.newSession(new SessionConfig().maxChunk(7).threads(1))) {
      String text = Desktop.tarnRun(Desktop.MODEL, prompt, 50, "--temp", "0", "--chunk", "7");
      assertEquals(text, Desktop.generate(small, prompt, Desktop.greedy(50)));
    }
  }

  @Test
  public void trimmedTextsGoOn() {
    String whole = Desktop.generate(session, PROMPT, Desktop.greedy(60));
    session.reset();
    String first = Desktop.generate(session, PROMPT, Desktop.greedy(25));
    assertTrue(session.trim() > 0);
    assertEquals(0, session.trim());
    assertEquals(whole, first + Desktop.generate(session, "", Desktop.greedy(35)));
  }

  @Test
  public void textsGoOn() {
    String whole = Desktop.generate(session, PROMPT, Desktop.greedy(60));
    session.reset();
    assertEquals(0, session.tokens());
    String first = Desktop.generate(session, PROMPT, Desktop.greedy(25));
    assertEquals(whole, first + Desktop.generate(session, "", Desktop.greedy(35)));

    session.reset();
    assertTrue(session.read(PROMPT));
    assertEquals(PROMPT.length(), session.tokens());
    assertThrows(
        IllegalArgumentException.class, () -> model.newSession().generate("", piece -> {}));
  }

  /** The token that begins a text stands at its beginning alone. */
  @Test
  public void aTextThatGoesOnBeginsOnce() {
    SessionConfig byToken = new SessionConfig().maxChunk(1); // the same steps, whatever the calls
    try (Model template = Tarn.open(Desktop.TEMPLATE);
        Session whole = template.newSession(byToken);
        Session parts = template.newSession(byToken);
        Session restored = template.newSession(byToken)) {
      assertTrue(whole.read("To be, or not"));
      assertTrue(parts.read("To be") && parts.read(""));
      restored.restore(parts.save());
      assertTrue(restored.read(", or not"));
      assertEquals(1 + templateTokens(", or not") + templateTokens("To be"), whole.tokens());
      assertArrayEquals(whole.save(), restored.save());

      String text = Desktop.generate(whole, "", Desktop.greedy(8));
      String first = Desktop.generate(restored, "", Desktop.greedy(3));
      assertEquals(text, first + Desktop.generate(restored, "", Desktop.greedy(5)));
      assertArrayEquals(whole.save(), restored.save());

      parts.reset();
      assertTrue(parts.read("To be"));
      assertEquals(1 + templateTokens("To be"), parts.tokens());
    }
  }

  @Test
  public void aTextOfWhichOnlyAPartWasTakenInHasBegun() {
    try (Model template = Tarn.open(Desktop.TEMPLATE);
        Session cut = template.newSession(new SessionConfig().maxChunk(20))) {
      assertThrows(TarnException.class, () -> cut.read("z".repeat(40))); // its second chunk
      assertEquals(20, cut.tokens());
      assertTrue(cut.read("z"));
      assertEquals(21, cut.tokens());
    }
  }

  @Test
  public void namesOfSpecialTokensArePlainTextWhereAsked() {
    try (Model template = Tarn.open(Desktop.TEMPLATE);
        Session special = template.newSession()) {
      assertTrue(special.read("<|sep|>"));
      assertEquals(2, special.tokens());
      assertTrue(special.readPlain("<|sep|>"));
      long plain = special.tokens() - 2;
      assertTrue(plain > 1);
      special.reset();
      assertTrue(special.readPlain("<|sep|>"));
      assertEquals(1 + plain, special.tokens());
    }
  }

  /** A word that is longer than the tokenizer's first memory for words; one that is too long. */
  @Test
  public void longWordsAreRead() {
    long handle = Native.modelOpen(Utf8.path(Desktop.TEMPLATE), -1, 0, 0, false, false, null);
    try {
      int[] one = Native.tokenize(handle, Utf8.encode("z"), false, false);
      int[] tokens = Native.tokenize(handle, Utf8.encode("z".repeat(20_000)), false, false);
      assertEquals(1, one.length);
      assertEquals(20_000, tokens.length);
      assertTrue(Arrays.stream(tokens).allMatch(token -> token == one[0]));
      byte[] longest = Utf8.encode("z".repeat((1 << 20) + 1));
      TarnException thrown =
          assertThrows(TarnException.class, () -> Native.tokenize(handle, longest, false, false));
      assertEquals(TarnException.Status.BUFFER_TOO_SMALL, thrown.status());
    } finally {
      Native.modelClose(handle);
    }
  }

  private static int templateTokens(String text) {
    long handle = Native.modelOpen(Utf8.path(Desktop.TEMPLATE), -1, 0, 0, false, false, null);
    try {
      return Native.tokenize(handle, Utf8.encode(text), false, false).length;
    } finally {
      Native.modelClose(handle);
    }
  }

  @Test
  public void aSavedStateGoesOnExactly() {
    String before = Desktop.generate(session, PROMPT, Desktop.greedy(40));
    byte[] state = session.save();
    final String expected = Desktop.generate(session, "", Desktop.greedy(100));
    try (Session other = model.newSession()) {
      other.restore(state);
      assertEquals(PROMPT.length() + before.length(), other.tokens());
      assertArrayEquals(state, other.save());
      assertEquals(expected, Desktop.generate(other, "", Desktop.greedy(100)));
    }
    session.restore(state);
    assertEquals(expected, Desktop.generate(session, "", Desktop.greedy(100)));
    assertTrue(state.length <= model.memory(new SessionConfig()).stateBytes * 513 / 512 + 64 + 12);
  }

  @Test
  public void aStateThatDoesNotFitChangesNothing() {
    Desktop.generate(session, PROMPT, Desktop.greedy(10));
    final byte[] state = session.save();
    List<byte[]> bad = new ArrayList<>();
    bad.add(new byte[0]);
    bad.add(new byte[12]);
    bad.add(Arrays.copyOf(state, state.length - 1));
    List<Integer> places = new ArrayList<>(Arrays.asList(0, state.length / 2));
    for (int at = state.length - 48; at < state.length; ++at) {
      places.add(at); // of the snapshot's end, and all that Java adds behind it
    }
    for (int at : places) {
      byte[] damaged = state.clone();
      damaged[at] ^= 0x04;
      bad.add(damaged);
    }
    try (Model foreign = Tarn.open(Desktop.RANDOM);
        Session other = foreign.newSession()) {
      bad.add(other.save());
    }
    for (byte[] bytes : bad) {
      TarnException refused = assertThrows(TarnException.class, () -> session.restore(bytes));
      assertFalse(refused.getMessage().isEmpty());
      assertArrayEquals(state, session.save());
    }
  }

  @Test
  public void aTextGoesOnFromItsPromptToItsEnd() throws Exception {
    try (Model chain = Tarn.open(Desktop.CHAIN);
        Session emoji = chain.newSession()) {
      StringBuilder text = new StringBuilder();
      assertEquals(6, emoji.generate("a", Desktop.greedy(20), text::append));
      assertEquals(" \ud83d\ude00", text.toString());
      assertEquals(Desktop.tarnRun(Desktop.CHAIN, "a", 20, "--temp", "0"), text.toString());

      emoji.reset();
      assertTrue(emoji.read("a"));
      assertEquals(" \ud83d\ude00", Desktop.generate(emoji, "", Desktop.greedy(20)));
      assertEquals("", Desktop.generate(emoji, "a\ud83d\ude00", Desktop.greedy(20)));
    }
  }

  /** The tokens for single bytes that a call ends with are a part of what may be a longer run. */
  @Test
  public void charactersThatAreWholeDoNotWaitForTheNextCall() {
    try (Model chain = Tarn.open(Desktop.CHAIN);
        Session emoji = chain.newSession()) {
      assertEquals(" \ud83d\ude00", Desktop.generate(emoji, "a", Desktop.greedy(6)));
      assertEquals("", Desktop.generate(emoji, "", Desktop.greedy(6)));
      for (int cut = 3; cut < 6; ++cut) {
        emoji.reset();
        assertEquals(" ", Desktop.generate(emoji, "a", Desktop.greedy(cut)));
        emoji.restore(emoji.save());
        assertEquals("\ud83d\ude00", Desktop.generate(emoji, "", Desktop.greedy(20)));
      }

      StringBuilder text = new StringBuilder();
      emoji.reset();
      assertTrue(emoji.read("a ".repeat(249) + "a")); // with a begin token, 251 of 256
      TarnException full =
          assertThrows(
              TarnException.class, () -> emoji.generate("", Desktop.greedy(20), text::append));
      assertEquals(TarnException.Status.CONTEXT_FULL, full.status());
      assertEquals(" \ud83d\ude00", text.toString());

      emoji.reset();
      assertEquals(" ", Desktop.generate(emoji, "a", Desktop.greedy(4)));
      assertEquals(" \ud83d\ude00", Desktop.generate(emoji, "a", Desktop.greedy(20)));
    }
  }

  /** Of a run of tokens for single bytes, up to 23 bytes wait. */
  @Test
  public void asManyBytesMayWaitAsTheTokenizerLetsWait() {
    final int inRun = 3;
    try (Model chain = Tarn.open(Desktop.CHAIN);
        Session emoji = chain.newSession()) {
      assertTrue(emoji.read("a"));
      byte[] state = emoji.save();
      emoji.restore(waiting(state, 23, inRun));
      assertEquals(
          "x".repeat(23) + " \ud83d\ude00", Desktop.generate(emoji, "", Desktop.greedy(20)));
      emoji.restore(state);
      for (byte[] bad :
          List.of(waiting(state, 24, inRun), waiting(state, 4, 1), waiting(state, -1, inRun))) {
        TarnException refused = assertThrows(TarnException.class, () -> emoji.restore(bad));
        assertEquals(TarnException.Status.BAD_FORMAT, refused.status());
        assertArrayEquals(state, emoji.save());
      }
    }
  }

  /** A state in which bytes wait: at its end 24 bytes, their number, flags, a checksum. */
  private static byte[] waiting(byte[] state, int pending, int flags) {
    byte[] changed = state.clone();
    int decoder = state.length - 4 - Native.DECODER_BYTES;
    Arrays.fill(changed, decoder, decoder + 24, (byte) 'x');
    ByteBuffer fields = ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN);
    fields.putInt(decoder + 24, pending).putInt(decoder + 28, flags);
    CRC32 crc = new CRC32();
    crc.update(changed, decoder - 4, 4 + Native.DECODER_BYTES);
    fields.putInt(state.length - 4, (int) crc.getValue());
    return changed;
  }

  @Test
  public void cancelEndsItAfterTheTokenOfNow() throws Exception {
    List<String> pieces = new ArrayList<>();
    int generated =
        session.generate(
            PROMPT,
            new GenerateOptions().maxOutputTokens(1_000_000),
            piece -> {
              pieces.add(piece);
              if (pieces.size() == 5) {
                inThread(session::cancel);
              }
            });
    assertEquals(5, generated);
    assertEquals(5, pieces.size());
    assertEquals(3, session.generate("", Desktop.greedy(3), piece -> {})); // and only that call
  }

  @Test
  public void closeEndsItFromAnotherThread() throws Exception {
    CountDownLatch writing = new CountDownLatch(1);
    FutureTask<Integer> generation =
        new FutureTask<>(
            () ->
                session.generate(
                    PROMPT,
                    new GenerateOptions().maxOutputTokens(Integer.MAX_VALUE),
                    piece -> writing.countDown()));
    Thread thread = new Thread(generation);
    thread.start();
    writing.await();
    session.close();
    assertTrue(generation.get() < Integer.MAX_VALUE);
    thread.join();
    assertThrows(IllegalStateException.class, () -> session.generate(PROMPT, piece -> {}));
  }

  @Test
  public void anInterruptEndsItAndStays() {
    int generated =
        session.generate(PROMPT, Desktop.greedy(1000), piece -> Thread.currentThread().interrupt());
    assertTrue(Thread.interrupted());
    assertEquals(1, generated);

    Thread.currentThread().interrupt();
    assertFalse(session.read("a long text"));
    assertTrue(Thread.interrupted());
    assertEquals(PROMPT.length() + 1, session.tokens());
  }

  @Test
  public void whatThePieceConsumerThrowsComesOut() {
    RuntimeException own = new RuntimeException("own");
    RuntimeException thrown =
        assertThrows(
            RuntimeException.class,
            () ->
                session.generate(
                    PROMPT,
                    piece -> {
                      throw own;
                    }));
    assertEquals(own, thrown);
    assertEquals(3, session.generate("", Desktop.greedy(3), piece -> {}));
  }

  @Test
  public void oneThreadAtATime() {
    List<RuntimeException> refused = new ArrayList<>();
    session.generate(
        PROMPT,
        Desktop.greedy(1),
        piece -> {
          inThread(() -> refused.add(assertThrows(IllegalStateException.class, session::save)));
          refused.add(assertThrows(IllegalStateException.class, session::reset));
        });
    assertEquals(2, refused.size());
    String other = refused.get(0).getMessage();
    String own = refused.get(1).getMessage();
    assertTrue(other, other.contains("\"" + Thread.currentThread().getName() + "\""));
    assertTrue(own, own.contains("by this thread: a callback may only cancel() or close()"));
    assertTrue(session.save().length > 0);
  }

  @Test
  public void aClosedSessionSaysSo() {
    session.close();
    assertThrows(IllegalStateException.class, () -> session.generate(PROMPT, piece -> {}));
    assertThrows(IllegalStateException.class, session::save);
    assertThrows(IllegalStateException.class, () -> session.restore(new byte[100]));
    assertThrows(IllegalStateException.class, session::reset);
    assertThrows(IllegalStateException.class, session::tokens);
    session.cancel();
  }

  @Test
  public void optionsOutOfRangeAreRefused() {
    assertThrows(IllegalArgumentException.class, () -> new GenerateOptions().maxOutputTokens(0));
    TarnException topP =
        assertThrows(
            TarnException.class,
            () -> session.generate(PROMPT, new GenerateOptions().topP(2), piece -> {}));
    assertEquals(TarnException.Status.INVALID_ARGUMENT, topP.status());
    assertEquals(0, session.tokens());
  }

  @Test
  public void aFullContextIsAnErrorThatLeavesTheSession() {
    try (Model bounded = Tarn.open(Desktop.RANDOM);
        Session full = bounded.newSession()) {
      TarnException thrown =
          assertThrows(
              TarnException.class, () -> full.generate("A", Desktop.greedy(100), piece -> {}));
      assertEquals(TarnException.Status.CONTEXT_FULL, thrown.status());
      assertEquals(33, full.tokens()); // 32 taken in, and one more written
      full.reset();
      assertEquals(10, full.generate("A", Desktop.greedy(10), piece -> {}));
    }
  }

  /** NUL and what is beyond U+FFFF: JNI's own strings have these wrong. */
  @Test
  public void textCrossesTheBorderUnchanged() {
    String text = "NUL \0, \u00e9, \u20ac, \ud83d\ude00\ud83c\udfd4 end";
    long handle = Native.modelOpen(Utf8.path(Desktop.MODEL), -1, 0, 0, false, false, null);
    int[] tokens = Native.tokenize(handle, Utf8.encode(text), true, false);
    assertEquals(Utf8.encode(text).length, tokens.length);
    byte[] decoder = new byte[Native.DECODER_BYTES];
    byte[] piece = new byte[Native.maxPieceBytes(handle)];
    StringBuilder read = new StringBuilder();
    for (int token : tokens) {
      read.append(whole(Utf8.decode(piece, Native.decode(handle, decoder, token, piece))));
    }
    assertEquals(text, read.toString());
    assertThrows(TarnException.class, () -> Native.decode(handle, decoder, 256, piece));
    Native.modelClose(handle);
    assertTrue(session.generate(text, Desktop.greedy(5), SessionTest::whole) == 5);
    assertEquals(Utf8.encode(text).length + 5, session.tokens());
  }

  /** Random weights write random bytes: broken characters, and some that are whole by accident. */
  @Test
  public void piecesAreWholeCharactersAndTextsEndAtTheEndToken() throws Exception {
    try (Model random = Tarn.open(Desktop.RANDOM);
        Session bytes = random.newSession()) {
      StringBuilder text = new StringBuilder();
      int fewest = 30;
      for (int seed = 0; seed < 50; ++seed) {
        bytes.reset();
        StringBuilder now = new StringBuilder();
        GenerateOptions options =
            new GenerateOptions().topK(0).topP(1).minP(0).temperature(2).maxOutputTokens(30).seed(seed);
        fewest = Math.min(fewest, bytes.generate("A", options, piece -> now.append(whole(piece))));
        String expected =
            Desktop.tarnRun(
                Desktop.RANDOM,
                "A",
                30,
                "-s",
                "" + seed,
                "--top-k",
                "0",
                "--top-p",
                "1",
                "--min-p",
                "0",
                "--temp",
                "2");
        if (!expected.contentEquals(now)) {
          assertEquals(
              expected,
              now + "\ufffd"); // its end is in the middle of a character: not written until that is
          // whole
        }
        text.append(now);
      }
      assertTrue(fewest < 30);
      assertNotEquals(-1, text.indexOf("\ufffd"));
      assertTrue(text.chars().anyMatch(c -> c > 127 && c != 0xfffd));
    }
  }

  private static String whole(String piece) {
    assertFalse(piece, Character.isLowSurrogate((piece + " ").charAt(0)));
    assertFalse(piece, Character.isHighSurrogate((" " + piece).charAt(piece.length())));
    return piece;
  }

  /** Runs it in another thread, to its end. */
  private static void inThread(Runnable work) {
    FutureTask<Void> task = new FutureTask<>(work, null);
    new Thread(task).start();
    try {
      task.get();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }
}
