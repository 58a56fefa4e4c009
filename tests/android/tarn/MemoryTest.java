package tarn;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.StringReader;
import java.lang.management.ManagementFactory;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.ObjectName;
import org.junit.Test;

/** What is reported, and that nothing is left behind. */
public class MemoryTest {
  @Test
  public void readsTheKernelsNumbers() throws IOException {
    ProcessMemory memory =
        ProcessMemory.parse(
            new StringReader(
                "Name:\tdemo\n"
                    + "VmRSS:\t  300 kB\n"
                    + "RssAnon:\t     100 kB\n"
                    + "RssFile:\t 200 kB\n"
                    + "VmSwap:\t       7 kB\n"));
    assertEquals(100 * 1024, memory.anonymousBytes);
    assertEquals(200 * 1024, memory.fileBackedBytes);
    assertEquals(7 * 1024, memory.swapBytes);
    assertEquals(
        ProcessMemory.UNKNOWN,
        ProcessMemory.parse(new StringReader("VmSwap:\t 7 kB\n")).anonymousBytes);
    assertTrue(ProcessMemory.now().anonymousBytes > 0);
  }

  @Test
  public void theContractTellsAnonymousAndFileBackedApart() {
    try (Model model = Tarn.open(Desktop.MODEL)) {
      MemoryContract memory = model.memory(new SessionConfig());
      assertEquals(new File(Desktop.MODEL).length(), memory.mappedBytes);
      assertEquals(
          memory.sessionBytes,
          memory.stateBytes + memory.arenaBytes + memory.scratchBytes + memory.programBytes);
      assertEquals(memory.mappedBytes, memory.fileBackedBytes());
      assertEquals(
          memory.packedAnonymousBytes + memory.modelBytes + memory.sessionBytes,
          memory.anonymousBytes());
      assertTrue(memory.stateBytes > 0 && memory.packedAnonymousBytes > 0);
    }
  }

  /**
   * 10,000 tokens, and models and sessions opened, used, refused and closed again and again. What a
   * cycle leaves behind is there {@code cycles} times in the end; the JVM's own memory and
   * references come and go by less than half: its heap is fixed (-Xms, -Xmx), compiler threads take
   * a few references.
   */
  @Test
  public void nothingIsLeftBehind() throws Exception {
    use(5); // what is made once: classes, stacks
    final int references = globalReferences();
    final long bytes = nativeBytes();
    final int cycles = 100;
    final long held = use(cycles);
    final int newReferences = globalReferences() - references;
    final long newBytes = nativeBytes() - bytes;
    String what =
        String.format(
            "After %d models with a session of %d bytes each, all closed: resident anonymous memory"
                + " grew by %d bytes (from %d), JNI global references by %d (from %d)",
            cycles, held, newBytes, bytes, newReferences, references);
    System.out.println(what);
    assertTrue(what, newReferences < cycles);
    assertTrue(what, newBytes < cycles * held / 2);
  }

  /** Returns the bytes of a session. */
  private static long use(int cycles) throws IOException {
    long sessionBytes = 0;
    for (int i = 0; i < cycles; ++i) {
      try (Model model = Tarn.open(Desktop.MODEL);
          Session session = model.newSession()) {
        sessionBytes = model.memory(new SessionConfig()).sessionBytes;
        session.generate(
            "A \ud83d\ude00", new GenerateOptions().maxOutputTokens(100).seed(i), piece -> {});
        session.restore(session.save());
        assertThrows(TarnException.class, () -> session.restore(new byte[100]));
      }
    }
    return sessionBytes;
  }

  private static long nativeBytes() throws IOException {
    System.gc();
    return ProcessMemory.now().anonymousBytes;
  }

  /** The JVM tells them in its thread dump. */
  private static int globalReferences() throws Exception {
    System.gc();
    ObjectName diagnostics = new ObjectName("com.sun.management:type=DiagnosticCommand");
    String dump =
        (String)
            ManagementFactory.getPlatformMBeanServer()
                .invoke(
                    diagnostics,
                    "threadPrint",
                    new Object[] {new String[0]},
                    new String[] {String[].class.getName()});
    Matcher matcher = Pattern.compile("JNI global refs: (\\d+)").matcher(dump);
    assertTrue(matcher.find());
    return Integer.parseInt(matcher.group(1));
  }
}
