package tarn;

import java.io.File;

/** How to open a model. Each setter returns this object, so that they chain. */
public final class ModelConfig {
  boolean verifyWeights;
  private File packedCache;

  /**
   * Whether to read all weights once and hold them against the checksum of the file: for files that
   * came over a network.
   */
  public ModelConfig verifyWeights(boolean verify) {
    verifyWeights = verify;
    return this;
  }

  /**
   * A folder that keeps the weights in the layout of this CPU between starts, {@code new
   * File(context.getCacheDir(), "tarn")} for instance. They are then file-backed memory, which
   * Android can drop and read again, and the next start finds them in milliseconds. The folder is
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
