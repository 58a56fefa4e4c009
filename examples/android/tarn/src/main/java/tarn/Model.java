package tarn;

/**
 * An open model: weights and graph, which do not change, for any number of sessions. Any thread may
 * call any method.
 *
 * <p>{@link #close} ends the use of this object. The memory goes when the sessions are closed too.
 */
public final class Model implements AutoCloseable {
  private final long handle;
  private final ModelInfo info;
  private int users = 1; // this object until it is closed, and each session; guarded by this
  private boolean closed; // guarded by this

  /** Takes over the handle. */
  Model(long handle) {
    this.handle = handle;
    ModelInfo read = null;
    try {
      read = new ModelInfo(Native.modelTexts(handle), Native.modelNumbers(handle));
    } finally {
      if (read == null) {
        Native.modelClose(handle);
      }
    }
    info = read;
  }

  /** What the file says of itself. Also after {@link #close}. */
  public ModelInfo info() {
    return info;
  }

  /** A session with the default configuration. */
  public Session newSession() {
    return newSession(new SessionConfig());
  }

  /**
   * A session in the reset state.
   *
   * @throws TarnException if there is not enough memory
   */
  public Session newSession(SessionConfig config) {
    long model = retain();
    Session session = null;
    try {
      session = new Session(this, model, config);
    } finally {
      if (session == null) {
        release();
      }
    }
    return session;
  }

  /** What this model and a session with this configuration hold. */
  public MemoryContract memory(SessionConfig config) {
    long model = retain();
    try {
      return new MemoryContract(Native.modelMemory(model, config.maxChunk, config.threads()));
    } finally {
      release();
    }
  }

  /** A second time it does nothing. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    release();
  }

  /** The handle, which stays valid until {@link #release}. */
  private synchronized long retain() {
    if (closed) {
      throw new IllegalStateException("the model is closed");
    }
    ++users;
    return handle;
  }

  synchronized void release() {
    if (--users == 0) {
      Native.modelClose(handle);
    }
  }
}
