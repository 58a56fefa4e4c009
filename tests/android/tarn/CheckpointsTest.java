package tarn;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.content.ComponentCallbacks2;
import org.junit.Test;

public class CheckpointsTest {
  @Test
  public void rollsBackUntilAndroidWantsTheMemory() {
    try (Model model = Tarn.open(Desktop.MODEL);
        Session session = model.newSession()) {
      Checkpoints checkpoints = new Checkpoints(session);
      assertFalse(checkpoints.rollBack("question"));

      session.read("First Citizen:");
      checkpoints.keep("question");
      String answer = Desktop.generate(session, "\n", Desktop.greedy(30));
      checkpoints.keep("answer");
      assertTrue(checkpoints.bytes() > session.save().length); // of two
      for (int again = 0; again < 2; ++again) {
        assertTrue(checkpoints.rollBack("question"));
        assertEquals(answer, Desktop.generate(session, "\n", Desktop.greedy(30)));
      }

      ComponentCallbacks2 registered = checkpoints;
      registered.onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN);
      assertEquals(0, checkpoints.bytes());
      long tokens = session.tokens();
      assertFalse(checkpoints.rollBack("answer"));
      assertEquals(tokens, session.tokens());

      checkpoints.keep("answer");
      registered.onLowMemory();
      assertFalse(checkpoints.rollBack("answer"));
    }
  }
}
