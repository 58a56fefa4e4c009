package tarn.demo;

import android.app.Activity;
import android.content.res.AssetFileDescriptor;
import android.os.Bundle;
import android.widget.ScrollView;
import android.widget.TextView;
import java.io.File;
import java.io.IOException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import tarn.GenerateOptions;
import tarn.MemoryContract;
import tarn.Model;
import tarn.ModelConfig;
import tarn.ProcessMemory;
import tarn.Session;
import tarn.SessionConfig;
import tarn.Tarn;
import tarn.TarnException;

/**
 * Opens the model in the APK and writes what it says, on a thread of its own, until it is done or
 * the screen goes.
 */
public final class MainActivity extends Activity {
  private static final String MODEL = "shakespeare-rfa-gate-int8.tarn";
  private static final String PROMPT = "ROMEO:";

  private final ExecutorService writer = Executors.newSingleThreadExecutor();
  private TextView view;

  @Override
  protected void onCreate(Bundle savedInstanceState) {
    super.onCreate(savedInstanceState);
    view = new TextView(this);
    ScrollView scroll = new ScrollView(this);
    scroll.addView(view);
    setContentView(scroll);
    writer.execute(this::write);
  }

  /** Interrupts the writer, which ends with the token that it is at. */
  @Override
  protected void onDestroy() {
    writer.shutdownNow();
    super.onDestroy();
  }

  private void write() {
    ModelConfig config = new ModelConfig().packedCache(new File(getCacheDir(), "tarn"));
    try (AssetFileDescriptor asset = getAssets().openFd(MODEL);
        Model model = Tarn.open(asset, config);
        Session session = model.newSession()) {
      show(PROMPT);
      session.generate(
          PROMPT, new GenerateOptions().maxOutputTokens(500).seed(System.nanoTime()), this::show);
      MemoryContract contract = model.memory(new SessionConfig());
      show("\n\n" + model.info() + "\n" + contract + "\n" + ProcessMemory.now());
    } catch (IOException | TarnException e) {
      show("\n" + e.getMessage());
    }
  }

  private void show(String text) {
    runOnUiThread(() -> view.append(text));
  }
}
