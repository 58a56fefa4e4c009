"""libtarn.so through ctypes: models that encode, with rows of logits as lists."""

import ctypes
import os
import pathlib
from ctypes import POINTER, byref, c_char, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

LIBRARY = pathlib.Path(os.environ.get("TARN_BUILD", "build")).resolve() / "lib" / "libtarn.so"


def loads():
    """A library with AddressSanitizer in it wants a program that was built with it, which Python is not."""
    return LIBRARY.exists() and b"__asan_init" not in LIBRARY.read_bytes()


class Source(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("path", c_char_p), ("use_fd", c_int), ("fd", c_int), ("offset_bytes", c_uint64),
                ("length_bytes", c_uint64), ("buffer", c_void_p)]


class SessionConfig(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("batch", c_uint32), ("max_chunk", c_uint32), ("max_logits_rows", c_uint32),
                ("threads", c_uint32), ("block", c_void_p), ("block_bytes", c_size_t), ("beams", c_uint32),
                ("max_source", c_uint32)]


class SequenceTokens(ctypes.Structure):
    _fields_ = [("sequence", c_uint32), ("tokens", POINTER(c_int32)), ("count", c_size_t)]


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * 252)]


class TarnError(Exception):
    """What the library said."""


class Session:
    """A model and its session; what the model's task has no call for is an error."""

    def __init__(self, path, vocab_size, **options):
        self.tarn, self.vocab_size = ctypes.CDLL(str(LIBRARY)), vocab_size
        self.model, self.session, self.logits = c_void_p(), c_void_p(), POINTER(c_float)()
        source = Source(struct_size=ctypes.sizeof(Source), path=os.fsencode(path), fd=-1)
        self.call("tarn_model_open", byref(source), None, byref(self.model))
        config = SessionConfig(struct_size=ctypes.sizeof(SessionConfig), **options)
        self.batch, self.sequences = max(1, config.batch), max(1, config.batch) * max(1, config.beams)
        try:
            self.call("tarn_session_create", self.model, byref(config), byref(self.session))
        except TarnError:
            self.close()
            raise

    def close(self):
        for destroy, handle in ("tarn_session_destroy", self.session), ("tarn_model_close", self.model):
            getattr(self.tarn, destroy).restype = None
            getattr(self.tarn, destroy)(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, name, *arguments):
        error = Error()
        if getattr(self.tarn, name)(*arguments, byref(error)) != 0:
            raise TarnError(error.message.decode())

    def rows(self, count, width):
        return [self.logits[i * width : (i + 1) * width] for i in range(count)]

    def padded(self, sources):
        """Arguments for a batch of sources; what is behind a source would be out of every vocabulary."""
        stride = max(map(len, sources))
        ids = [token for source in sources for token in source + [-1] * (stride - len(source))]
        return (c_int32 * len(ids))(*ids), c_size_t(stride), (c_size_t * len(sources))(*map(len, sources))

    def encode(self, sources):
        self.call("tarn_session_encode", self.session, *self.padded(sources))

    def step(self, tokens):
        """The logits of every sequence after its next token."""
        self.call("tarn_session_step", self.session, (c_int32 * len(tokens))(*tokens), byref(self.logits))
        return self.rows(self.sequences, self.vocab_size)

    def prefill_sequences(self, tokens):
        """`tokens`: lists by the number of their sequence, in ascending order. Rows of logits, one for each."""
        rows = [(c_int32 * len(ids))(*ids) for ids in tokens.values()]
        parts = (SequenceTokens * len(rows))(*(SequenceTokens(number, row, len(row)) for number, row in zip(tokens, rows)))
        self.call("tarn_session_prefill_sequences", self.session, parts, c_size_t(len(parts)), byref(self.logits))
        return [self.logits[i * self.vocab_size:(i + 1) * self.vocab_size] for i in range(len(parts))]

    def prefill(self, sequences):
        """The logits of every sequence after its next tokens, as many for each."""
        ids = [token for sequence in sequences for token in sequence]
        self.call("tarn_session_prefill", self.session, (c_int32 * len(ids))(*ids), c_size_t(len(sequences[0])), byref(self.logits))
        return self.rows(self.sequences, self.vocab_size)

    def classify(self, sources, labels):
        self.call("tarn_session_classify", self.session, *self.padded(sources), byref(self.logits))
        return self.rows(self.batch, labels)

    def fill(self, tokens, positions):
        self.call("tarn_session_fill", self.session, (c_int32 * len(tokens))(*tokens), c_size_t(len(tokens)),
                  (c_uint32 * len(positions))(*positions), c_size_t(len(positions)), byref(self.logits))
        return self.rows(len(positions), self.vocab_size)
