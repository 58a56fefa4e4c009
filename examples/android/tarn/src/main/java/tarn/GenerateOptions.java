package tarn;

/**
 * How tokens are chosen, in this order: repetition penalty, top-k, top-p, min-p, temperature, draw.
 * The defaults are those of {@code tarn run}. Each setter returns this object, so that they chain;
 * the library checks the ranges of floating-point numbers.
 */
public final class GenerateOptions {
  int maxOutputTokens = 128;
  float temperature = 0.8f;
  int topK = 40;
  float topP = 0.95f;
  float minP = 0.05f;
  float repeatPenalty = 1;
  int repeatLastN = 64;
  long seed;

  /** The most tokens to generate, at least 1. */
  public GenerateOptions maxOutputTokens(int count) {
    maxOutputTokens = Check.atLeast("maxOutputTokens", count, 1);
    return this;
  }

  /** At least 0; 0 is greedy: always the most probable token. */
  public GenerateOptions temperature(float value) {
    temperature = value;
    return this;
  }

  /** Keeps the {@code count} most probable tokens; 0: all. */
  public GenerateOptions topK(int count) {
    topK = Check.atLeast("topK", count, 0);
    return this;
  }

  /** Keeps the fewest tokens whose probability reaches {@code probability}, in (0, 1]. */
  public GenerateOptions topP(float probability) {
    topP = probability;
    return this;
  }

  /** Drops tokens less probable than {@code fraction} times the most probable one, in [0, 1]. */
  public GenerateOptions minP(float fraction) {
    minP = fraction;
    return this;
  }

  /**
   * Makes the last {@code lastN} tokens of the prompt and of the answer less probable; above 0, and
   * 1 is none.
   */
  public GenerateOptions repeatPenalty(float penalty, int lastN) {
    repeatPenalty = penalty;
    repeatLastN = Check.atLeast("lastN", lastN, 0);
    return this;
  }

  /** The same seed gives the same text. Default: 0. */
  public GenerateOptions seed(long value) {
    seed = value;
    return this;
  }
}
