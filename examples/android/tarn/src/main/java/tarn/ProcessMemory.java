package tarn;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;

/**
 * The memory of this process, in bytes, as the kernel and Android's low memory killer account for
 * it: what is resident of each kind, of everything in the process, Java's heap included. Beside it,
 * {@link MemoryContract} says how much of it can be tarn's.
 */
public final class ProcessMemory {
  /**
   * Stands for a number that the kernel does not tell: before Linux 4.5 resident memory was not
   * told apart.
   */
  public static final long UNKNOWN = -1;

  /** Anonymous memory that is resident: heaps, stacks, states. It counts against the app. */
  public final long anonymousBytes;

  /**
   * Pages of files that are resident, model files and code among them. Clean ones can be dropped at
   * any time.
   */
  public final long fileBackedBytes;

  /** Anonymous memory that has been swapped out (compressed, with zram). */
  public final long swapBytes;

  private ProcessMemory(long anonymousBytes, long fileBackedBytes, long swapBytes) {
    this.anonymousBytes = anonymousBytes;
    this.fileBackedBytes = fileBackedBytes;
    this.swapBytes = swapBytes;
  }

  /**
   * The memory of now. Any thread.
   *
   * @throws IOException if /proc/self/status cannot be read
   */
  public static ProcessMemory now() throws IOException {
    try (Reader status =
        new InputStreamReader(
            new FileInputStream("/proc/self/status"), StandardCharsets.US_ASCII)) {
      return parse(status);
    }
  }

  static ProcessMemory parse(Reader status) throws IOException {
    BufferedReader lines = new BufferedReader(status);
    long anonymous = UNKNOWN;
    long file = UNKNOWN;
    long swap = UNKNOWN;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.startsWith("RssAnon:")) {
        anonymous = bytes(line);
      } else if (line.startsWith("RssFile:")) {
        file = bytes(line);
      } else if (line.startsWith("VmSwap:")) {
        swap = bytes(line);
      }
    }
    return new ProcessMemory(anonymous, file, swap);
  }

  /** Of a line such as "RssAnon: 1234 kB". */
  private static long bytes(String line) {
    return 1024
        * Long.parseLong(line.substring(line.indexOf(':') + 1, line.lastIndexOf(' ')).trim());
  }

  @Override
  public String toString() {
    return "process: anonymous "
        + anonymousBytes
        + " bytes, file-backed "
        + fileBackedBytes
        + " bytes, swapped "
        + swapBytes
        + " bytes";
  }
}
