package tarn;

import java.nio.charset.StandardCharsets;

/**
 * Text crosses the native border as UTF-8 bytes, never as JNI's strings: those are "modified"
 * UTF-8, in which NUL and everything beyond U+FFFF look different.
 */
final class Utf8 {
  private Utf8() {}

  /** Half a surrogate pair becomes '?'. */
  static byte[] encode(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** A path, terminated as C wants it. */
  static byte[] path(String path) {
    if (path.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          "a path with a NUL in it: \"" + path.replace('\0', '?') + "\"");
    }
    return encode(path + '\0');
  }

  /** Bytes that are not UTF-8 become U+FFFD. */
  static String decode(byte[] bytes) {
    return decode(bytes, bytes.length);
  }

  static String decode(byte[] bytes, int count) {
    return new String(bytes, 0, count, StandardCharsets.UTF_8);
  }

  /** How many of the first {@code count} bytes are whole characters; only the last one may be cut. */
  static int wholeBytes(byte[] bytes, int count) {
    int whole = 0;
    while (whole < count) {
      int first = bytes[whole] & 0xff;
      int length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
      if (length > count - whole) {
        break;
      }
      whole += length;
    }
    return whole;
  }
}
