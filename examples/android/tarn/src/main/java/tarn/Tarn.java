package tarn;

import android.content.res.AssetFileDescriptor;

/**
 * Language models whose memory does not grow: where an app begins.
 *
 * <pre>{@code
 * try (Model model = Tarn.open(path);
 *     Session session = model.newSession()) {
 *   session.generate("ROMEO:", piece -> System.out.print(piece));
 * }
 * }</pre>
 *
 * <p>What holds for the whole package:
 *
 * <ul>
 *   <li>Ownership: what has {@code close()} wants to be closed. A model lives until it and all of
 *       its sessions are closed, in any order. Use after {@code close()} throws {@link
 *       IllegalStateException}.
 *   <li>Errors: what the library refuses becomes a {@link TarnException} with a status and one line
 *       that names the thing, the value found and the value wanted. Arguments out of range are
 *       {@link IllegalArgumentException}s.
 *   <li>Threads: a {@link Model} may be shared. A {@link Session} belongs to one thread at a time;
 *       {@link Session#cancel} and {@link Session#close} may be called from any.
 *   <li>Opening, generating, saving and restoring take time: call them on a background thread.
 * </ul>
 */
public final class Tarn {
  private Tarn() {}

  /** The version of the native library, such as "0.1.0". */
  public static String version() {
    return Utf8.decode(Native.version());
  }

  /**
   * The number of fast cores of this device, at least 1: the threads that a session has if nothing
   * else is asked for.
   */
  public static int fastCores() {
    return Native.fastCores();
  }

  /**
   * Opens a model file as {@link #open(String, ModelConfig)} does, with the default configuration.
   */
  public static Model open(String path) {
    return open(path, new ModelConfig());
  }

  /**
   * Opens a model file: maps it, checks its header and graph and packs its weights for this CPU.
   * The file must not be changed while the model is open; replace it by renaming another one over
   * it.
   *
   * @throws TarnException if there is no such file, or it is damaged, foreign or of a version that
   *     this library cannot read
   */
  public static Model open(String path, ModelConfig config) {
    return new Model(
        Native.modelOpen(
            Utf8.path(path),
            -1,
            0,
            0,
            config.verifyWeights,
            config.noVerify,
            config.packedCache()));
  }

  /**
   * Opens an asset as {@link #open(AssetFileDescriptor, ModelConfig)} does, with the default
   * configuration.
   */
  public static Model open(AssetFileDescriptor asset) {
    return open(asset, new ModelConfig());
  }

  /**
   * Opens a model where it lies inside the APK, without a copy: {@code
   * Tarn.open(context.getAssets().openFd("model.tarn"))}. The asset must be stored uncompressed
   * ({@code noCompress 'tarn'}). The descriptor stays the caller's and may be closed after the
   * call.
   *
   * @throws TarnException as {@link #open(String, ModelConfig)}
   */
  public static Model open(AssetFileDescriptor asset, ModelConfig config) {
    int fd = asset.getParcelFileDescriptor().getFd();
    return open(
        fd,
        asset.getStartOffset(),
        Math.max(asset.getLength(), 0),
        config); // no length: to the end of the file
  }

  /**
   * Opens a model that lies {@code offsetBytes} deep in an open file, at any alignment.
   *
   * @param fd a descriptor open for reading; it stays the caller's and may be closed after the call
   * @param lengthBytes length of the model; 0: to the end of the file
   * @throws TarnException as {@link #open(String, ModelConfig)}
   */
  public static Model open(int fd, long offsetBytes, long lengthBytes, ModelConfig config) {
    Check.atLeast("fd", fd, 0);
    Check.atLeast("offsetBytes", offsetBytes, 0);
    Check.atLeast("lengthBytes", lengthBytes, 0);
    return new Model(
        Native.modelOpen(
            null,
            fd,
            offsetBytes,
            lengthBytes,
            config.verifyWeights,
            config.noVerify,
            config.packedCache()));
  }
}
