package tarn;

import java.io.File;

/** How to open a model. Each setter returns this object, so that they chain. */
public final class ModelConfig {
  boolean verifyWeights;
  boolean noVerify;
  private File packedCache;

  /**
   * Whether to read all weights at every open and compare them with the checksum of the file.
   * Default: once while the device runs, if there is a directory of packed weights that can note it,
   * and else at every open.
   */
  public ModelConfig verifyWeights(boolean verify) {
    verifyWeights = verify;
    return this;
  }

  /** Whether to take weights as they are: damage in them is not noticed. Not together with verifyWeights. */
  public ModelConfig noVerify(boolean never) {
    noVerify = never;
    return this;
  }

  /**
   * A directory that keeps the weights in the layout of this CPU between starts, {@code new
   * File(context.getCacheDir(), "tarn")} for instance. They are then file-backed memory, which
   * Android can drop and read again, and the next start finds them in milliseconds. The directory is
   * made if its parent exists, and may be emptied at any time. Default: none, packed weights are
   * anonymous memory.
   */
  public ModelConfig packedCache(File folder) {
    packedCache = folder;
    return this;
  }

  byte[] packedCache() {
    return packedCache == null ? null : Utf8.path(packedCache.getPath());
  }
}
