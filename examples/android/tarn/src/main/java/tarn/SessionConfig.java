package tarn;

/** What the size of a session depends on. Each setter returns this object, so that they chain. */
public final class SessionConfig {
  int maxChunk = 64;
  private int threads; // 0: not set

  /**
   * How many tokens of a prompt are taken in at a time, at least 1; cancelling waits for one chunk
   * at most. Default: 64.
   */
  public SessionConfig maxChunk(int tokens) {
    maxChunk = Check.atLeast("maxChunk", tokens, 1);
    return this;
  }

  /**
   * Threads that compute, the caller's included, at least 1. The text does not depend on it.
   * Default: the fast cores.
   */
  public SessionConfig threads(int count) {
    threads = Check.atLeast("threads", count, 1);
    return this;
  }

  /* Not tarn_default_threads(): a session that is opened in the background, where Android allows little cores alone, outlives that. */
  int threads() {
    return threads == 0 ? Native.fastCores() : threads;
  }
}
