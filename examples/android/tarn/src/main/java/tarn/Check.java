package tarn;

/** Arguments against their ranges. */
final class Check {
  private Check() {}

  /** The value, if it is at least {@code minimum}. */
  static long atLeast(String name, long value, long minimum) {
    if (value < minimum) {
      throw new IllegalArgumentException(name + " is " + value + ", must be at least " + minimum);
    }
    return value;
  }

  static int atLeast(String name, int value, int minimum) {
    return (int) atLeast(name, (long) value, minimum);
  }
}
