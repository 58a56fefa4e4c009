"""What the tests of the tarn command line share: how to run it, and models to run. Standard library only."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

for default in "TARN_MODEL", "TARN_THREADS", "NO_COLOR":  # of whoever runs the tests
    os.environ.pop(default, None)
BIN = os.path.join(os.environ["TARN_BUILD"], "bin")
MODELS = os.path.join(os.environ["TARN_SOURCE"], "examples", "models")
MODEL = os.path.join(MODELS, "shakespeare-rfa-gate-int8.tarn")
MEMORY = ["mapped_bytes", "in_place_bytes", "packed_file_bytes", "packed_anonymous_bytes", "model_bytes", "session_bytes",
          "state_bytes", "arena_bytes", "scratch_bytes", "program_bytes"]
# A model in a moment: 256 ids, a context of 32 tokens.
TINY = {"task": "causal_lm", "vocab_size": 256, "hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64,
        "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5, "norm_position": "pre", "final_norm": True,
        "attention_bias": False, "mlp_bias": False, "position_embedding": "none", "first_position": 0,
        "scale_embeddings": False, "tie_word_embeddings": True, "tokenizer": "bytes",
        "attention": {"system": "softmax", "max_context": 32}}
# Models that encode.
RFA = {"system": "rfa", "feature_map": "gaussian", "num_features": 8}
BLOCKS = {key: TINY[key] for key in TINY if key not in ("task", "num_layers", "attention")}
SEQ2SEQ = {**BLOCKS, "task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, "share_embeddings": True, "bos_token_id": 0,
           "eos_token_id": 1, "encoder_attention": {"system": "softmax", "max_context": 64}, "decoder_attention": RFA,
           "cross_attention": RFA}
CLASSIFICATION = {**BLOCKS, "task": "classification", "num_layers": 1, "attention": RFA, "num_labels": 3, "pooling": "mean",
                  "tie_word_embeddings": False}
MASKED_LM = {**BLOCKS, "task": "masked_lm", "num_layers": 1, "attention": RFA, "mask_token_id": 0}


def tarn(*arguments, environment=None, stdout=subprocess.PIPE, preexec_fn=None, stdin=None):
    """Status, standard output (bytes) and standard error (text); `stdin`: bytes that a pipe feeds."""
    source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done = subprocess.run([os.path.join(BIN, "tarn"), *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE,
                          env={**os.environ, **(environment or {})}, timeout=120, preexec_fn=preexec_fn, **source)
    return done.returncode, done.stdout, done.stderr.decode()


def start(*arguments, hangup=signal.SIG_DFL):
    """A process with the signals of a terminal's, whatever ours are."""
    def signals():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, hangup)
    return subprocess.Popen([os.path.join(BIN, "tarn"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=signals)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.make("bounded", TINY)
        cls.make("ids", {**TINY, "tokenizer": "none"})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def make(cls, name, config):
        """NAME.tarn: a model of this shape with random weights."""
        with open(cls.path(name + ".json"), "w") as file:
            json.dump(config, file)
        subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", cls.path(name + ".json"), "-o",
                        cls.path(name + ".tarn"), "--quant", "f32"], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def fails(self, status, words, *arguments, **keywords):
        """One line of error with these words, this exit status, nothing on standard output."""
        found, out, err = tarn(*arguments, **keywords)
        lines = [line for line in err.splitlines() if line.startswith("tarn: error: ")]
        self.assertEqual((found, out or b"", len(lines)), (status, b"", 1), err)
        self.assertRegex(lines[0], words)
