package tarn;

import java.io.File;
import java.io.FileDescriptor;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What the tests share: models, the command line to compare with, and what a device has and a
 * desktop hides.
 */
final class Desktop {
  /** The default model. */
  static final String MODEL = System.getProperty("tarn.model");

  /**
   * Random weights over 256 bytes, of which one ends a text, and a context of 32 tokens: text that is
   * full of characters cut and broken.
   */
  static final String RANDOM = System.getProperty("tarn.random");

  /** As {@link #RANDOM}, but its tokenizer puts a begin token before a text. */
  static final String TEMPLATE = System.getProperty("tarn.template");

  /**
   * Writes " \ud83d\ude00" after "a", and ends: the space, a special token, four tokens for single
   * bytes, the end token. Its tokenizer drops a space at the beginning of a text.
   */
  static final String CHAIN = System.getProperty("tarn.chain");

  private Desktop() {}

  /** What `tarn run` writes after the prompt. */
  static String tarnRun(String model, String prompt, int count, String... options)
      throws Exception {
    List<String> command =
        new ArrayList<>(
            Arrays.asList(
                System.getProperty("tarn.cli"),
                "run",
                "-m",
                model,
                "-p",
                prompt,
                "-n",
                String.valueOf(count)));
    command.addAll(Arrays.asList(options));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException("failed: " + command);
    }
    return text.substring(prompt.length(), text.length() - 1); // without the line's end
  }

  /** The number of an open file, which Android's ParcelFileDescriptor tells. */
  static int number(FileDescriptor descriptor) throws ReflectiveOperationException {
    Field fd = FileDescriptor.class.getDeclaredField("fd");
    fd.setAccessible(true);
    return fd.getInt(descriptor);
  }

  /** A new file that goes when the JVM ends. */
  static File temporaryFile() throws IOException {
    File file = File.createTempFile("tarn", null);
    file.deleteOnExit();
    return file;
  }

  static String generate(Session session, String prompt, GenerateOptions options) {
    StringBuilder text = new StringBuilder();
    session.generate(prompt, options, text::append);
    return text.toString();
  }

  static GenerateOptions greedy(int count) {
    return new GenerateOptions().temperature(0).maxOutputTokens(count);
  }
}
