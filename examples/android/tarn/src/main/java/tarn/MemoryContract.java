package tarn;

/**
 * What a model and one session of it hold, in bytes, exact and constant: the session allocates
 * nothing more. File-backed bytes are clean pages of files, which Android may drop and read again;
 * anonymous ones it can only swap. The two are never added up.
 */
public final class MemoryContract {
  /** File-backed, per model: the model file. */
  public final long mappedBytes;

  /** File-backed, per model: the weights as this CPU wants them, in the cache directory. */
  public final long packedFileBytes;

  /** Anonymous, per model: those weights, where there is no such directory. */
  public final long packedAnonymousBytes;

  /** Anonymous, per model: the model object, and what had to be copied for alignment. */
  public final long modelBytes;

  /** Of the session: what it remembers of all tokens. */
  public final long stateBytes;

  /** Of the session: values between the operators. */
  public final long arenaBytes;

  /** Of the session: working memory of its threads. */
  public final long scratchBytes;

  /** Of the session: operators and tables. */
  public final long programBytes;

  /** Anonymous, per session: the sum of the four above. */
  public final long sessionBytes;

  /** Reads the array of the native library, in its order. */
  MemoryContract(long[] bytes) {
    mappedBytes = bytes[0];
    packedFileBytes = bytes[1];
    packedAnonymousBytes = bytes[2];
    modelBytes = bytes[3];
    stateBytes = bytes[4];
    arenaBytes = bytes[5];
    scratchBytes = bytes[6];
    programBytes = bytes[7];
    sessionBytes = bytes[8];
  }

  /**
   * The most that model and session add to {@link ProcessMemory#anonymousBytes} and {@link
   * ProcessMemory#swapBytes}.
   */
  public long anonymousBytes() {
    return packedAnonymousBytes + modelBytes + sessionBytes;
  }

  /** The most that model and session add to {@link ProcessMemory#fileBackedBytes}. */
  public long fileBackedBytes() {
    return mappedBytes + packedFileBytes;
  }

  @Override
  public String toString() {
    return "tarn: anonymous "
        + anonymousBytes()
        + " bytes, file-backed "
        + fileBackedBytes()
        + " bytes";
  }
}
