package tarn;

import android.content.ComponentCallbacks2;
import android.content.res.Configuration;
import java.util.HashMap;
import java.util.Map;

/**
 * Named states of a session, kept in Java's heap to go back to: before a question that the user may
 * edit, say. Each is a copy of {@link Session#save}, of at most the state's bytes however long the text
 * was.
 *
 * <p>Checkpoints are a convenience that the system may take back: register the object with {@link
 * android.content.Context#registerComponentCallbacks}, and it drops them all whenever Android asks
 * for memory. What must survive belongs into a file.
 *
 * <p>{@link #keep} and {@link #rollBack} use the session and belong to its thread; the rest may be
 * called from any thread.
 */
public final class Checkpoints implements ComponentCallbacks2 {
  private final Session session;
  private final Map<String, byte[]> states = new HashMap<>(); // guarded by itself

  public Checkpoints(Session session) {
    this.session = session;
  }

  /** Keeps the session's state of now, in the place of an earlier one of this name. */
  public void keep(String name) {
    byte[] state = session.save();
    synchronized (states) {
      states.put(name, state);
    }
  }

  /**
   * Takes the session back to a checkpoint, which stays. Returns false, and does nothing, if there
   * is none of this name (any more).
   */
  public boolean rollBack(String name) {
    byte[] state;
    synchronized (states) {
      state = states.get(name);
    }
    if (state == null) {
      return false;
    }
    session.restore(state);
    return true;
  }

  /** How much the checkpoints hold. */
  public long bytes() {
    synchronized (states) {
      long sum = 0;
      for (byte[] state : states.values()) {
        sum += state.length;
      }
      return sum;
    }
  }

  /** Drops all checkpoints. */
  public void drop() {
    synchronized (states) {
      states.clear();
    }
  }

  /**
   * Drops all checkpoints, at any level: from API level 34 on, Android sends only {@link
   * #TRIM_MEMORY_UI_HIDDEN} and {@link #TRIM_MEMORY_BACKGROUND}.
   */
  @Override
  public void onTrimMemory(int level) {
    drop();
  }

  @Override
  public void onLowMemory() {
    drop();
  }

  @Override
  public void onConfigurationChanged(Configuration configuration) {}
}
