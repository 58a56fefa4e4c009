package tarn;

/**
 * What the native library refused, in one line that names the thing, the value found and the value
 * wanted.
 */
public final class TarnException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The codes of the C API, in its order. */
  public enum Status {
    OK,
    INVALID_ARGUMENT,
    NOT_FOUND,
    IO,
    BAD_FORMAT,
    UNSUPPORTED,
    OUT_OF_MEMORY,
    CONTEXT_FULL,
    BUFFER_TOO_SMALL,
    CHECKSUM,
    INTERNAL,
    CANCELLED
  }

  private final Status status;

  TarnException(Status status, String message) {
    super(message);
    this.status = status;
  }

  /** Called by the native library. */
  TarnException(int status, byte[] message) {
    this(Status.values()[status], Utf8.decode(message));
  }

  /** What kind of failure it was. */
  public Status status() {
    return status;
  }
}
