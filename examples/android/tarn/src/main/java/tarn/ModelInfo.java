package tarn;

/** What a model file says of itself, and how it will run here. */
public final class ModelInfo {
  /**
   * What a model is for; this package generates with {@link #CAUSAL_LM} only. In the order of the C
   * API.
   */
  public enum Task {
    CAUSAL_LM,
    SEQ2SEQ,
    CLASSIFICATION,
    MASKED_LM
  }

  public final String name;

  /** What --quant of tarn-convert was: "f32", "f16", "int8", "int4", "int3", "int2" or "auto". */
  public final String precision;

  /** The kernels that were chosen for this CPU. */
  public final String isa;

  /** What computes the dense layers: "xnnpack" or "portable". */
  public final String dense;

  /** 64 hexadecimal digits that tell this model from all others; saved states are bound to it. */
  public final String fingerprint;

  public final Task task;
  public final int vocabSize;

  /** Whether the model reads and writes text; without it, it knows token ids only. */
  public final boolean hasTokenizer;

  /** Elements of all weight tensors. */
  public final long parameters;

  /** How many tokens a session can take in from a reset; {@link Long#MAX_VALUE}: no end. */
  public final long maxContext;

  /** The token that ends a text, where {@link Session#generate} ends; -1: nothing ends one. */
  public final int endToken;

  /** Whether packed weights were found in the cache directory, rather than packed now. */
  public final boolean packedFromCache;

  /** Reads the arrays of the native library, in its order. */
  ModelInfo(byte[][] texts, long[] numbers) {
    name = Utf8.decode(texts[0]);
    precision = Utf8.decode(texts[1]);
    isa = Utf8.decode(texts[2]);
    dense = Utf8.decode(texts[3]);
    fingerprint = hex(texts[4]);
    task = Task.values()[(int) numbers[0]];
    vocabSize = (int) numbers[1];
    hasTokenizer = numbers[2] != 0;
    parameters = numbers[3];
    maxContext = numbers[4];
    packedFromCache = numbers[5] != 0;
    endToken = (int) numbers[6];
  }

  private static String hex(byte[] bytes) {
    StringBuilder digits = new StringBuilder();
    for (byte b : bytes) {
      digits.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
    }
    return digits.toString();
  }

  @Override
  public String toString() {
    return name
        + ", "
        + parameters
        + " parameters in "
        + precision
        + ", "
        + isa
        + " and "
        + dense
        + " kernels";
  }
}
