"""Checkpoint folder -> tarn-convert -> libtarn.so, held against reference_encoder.py: classifiers, masked and seq2seq models.

    python3 tests/e2e/encoder_test.py [-v] [EncoderTest.test_NAME]
"""

import pathlib
import random
import shutil
import tempfile
import unittest

import checkpoint_maker
import reference_encoder
from lm_test import TOLERANCE, largest, max_difference, must
from tarn_library import Session, TarnError, loads

BASE = dict(vocab_size=53, hidden_size=24, num_heads=4, intermediate_size=37, hidden_act="gelu", norm="layernorm", norm_eps=1e-5,
            tokenizer="none")
POST = dict(norm_position="post", final_norm=False, embedding_norm=True, attention_bias=True, mlp_bias=True)
LENGTHS = (1, 2, 19, 37)  # of sources
# int8 states of sources: an element is off by up to 1/254 of the largest of its row.
STATE_TOLERANCES = {"f16": 5e-3, "int8": 5e-2}


def rfa(**options):
    return {"system": "rfa", "feature_map": "gaussian", "num_features": 12, "den_eps": 0.3, **options}


def abc(**options):
    return {"system": "abc_mlp", "num_slots": 5, **options}


def t2r(**options):
    return {"system": "t2r", "num_features": 9, "den_eps": 0.5, **options}


def linformer(**options):
    return {"system": "linformer", "num_slots": 6, "max_len": 64, **options}


def softmax(**options):
    return {"system": "softmax", "max_context": 64, **options}


def classifier(attention, **options):
    return {**BASE, "task": "classification", "num_layers": 2, "num_labels": 3, "pooling": "mean", "attention": attention,
            **options}


def masked_lm(attention, **options):
    return {**BASE, "task": "masked_lm", "num_layers": 2, "attention": attention, **options}


def seq2seq(encoder, decoder, cross, **options):
    return {**BASE, "task": "seq2seq", "encoder_layers": 2, "decoder_layers": 2, "encoder_attention": encoder,
            "decoder_attention": decoder, "cross_attention": cross, "bos_token_id": 1, "eos_token_id": 2, **options}


CASES = {
    "classifier_rfa": classifier(rfa(), position_embedding="sinusoidal"),
    "classifier_softmax_first": classifier(softmax(), pooling="first", classifier_transform=True, position_embedding="rope",
                                           num_kv_heads=2, norm="rmsnorm", hidden_act="swiglu"),
    "classifier_abc_max": classifier(abc(control_sharing="model"), pooling="max", num_kv_heads=2, value_head_dim=7, **POST),
    "classifier_hybrid": classifier([t2r(), linformer()], position_embedding="learned", max_positions=40, first_position=2),
    "masked_abc": masked_lm(abc(control_sharing="model"), position_embedding="learned", max_positions=40, first_position=2,
                            lm_head_transform=True, lm_head_bias=True, mask_token_id=4, **POST),
    "masked_linformer": masked_lm(linformer(), tie_word_embeddings=False, num_kv_heads=2),
    "masked_hybrid": masked_lm([rfa(feature_map="arccos", normalize_qk=False), abc(activation="sigmoid", mask_empty=True)],
                               position_embedding="rope"),
    "seq2seq_softmax": seq2seq(softmax(), softmax(), softmax(), position_embedding="sinusoidal", scale_embeddings=True,
                               share_embeddings=True),
    "seq2seq_rfa": seq2seq(softmax(), rfa(gate="forget"), rfa(), position_embedding="sinusoidal", share_embeddings=True, **POST),
    "seq2seq_rfa_arccos_rope": seq2seq(rfa(), rfa(feature_map="arccos"), rfa(feature_map="arccos"), position_embedding="rope",
                                       num_kv_heads=2, source_vocab_size=41, tie_word_embeddings=False, lm_head_bias=True),
    "seq2seq_abc": seq2seq(softmax(), abc(control_sharing="model"), abc(control_sharing="model", num_slots=7),
                           share_embeddings=True, **POST),
    "seq2seq_abc_layer": seq2seq(abc(), abc(), [abc(), abc(activation="relu", mask_empty=True)], position_embedding="learned",
                                 max_positions=40, embedding_norm=True, num_kv_heads=2, value_head_dim=5),
    "seq2seq_bias_of_k_and_o": seq2seq(softmax(), rfa(gate="forget"), abc(control_bias=True), attention_bias=["k", "o"], norm="rmsnorm"),
    "seq2seq_own_values": seq2seq(linformer(own_value_control=True), abc(),
                                  [abc(control_input="heads", own_value_control=True, control_sharing="model", num_slots=7),
                                   abc(control_sharing="model", own_value_control=True, control_input="heads", num_slots=7)],
                                  share_embeddings=True, num_kv_heads=2, value_head_dim=5),
    "seq2seq_t2r": seq2seq(softmax(), t2r(num_features=4), t2r(), norm="rmsnorm", hidden_act="swiglu"),
    "seq2seq_linformer": seq2seq(linformer(), softmax(), linformer(num_slots=4), share_embeddings=True, encoder_layers=1),
}


@unittest.skipUnless(loads(), "no libtarn.so that Python can load")
class EncoderTest(unittest.TestCase):
    """One test_NAME for each case, added below."""

    def check(self, name, config):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"tarn-{name}-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.name, self.config, self.generator = name, config, random.Random(name)
        self.tensors = checkpoint_maker.random_tensors(config, name)
        checkpoint_maker.write_checkpoint(self.folder / "checkpoint", config, self.tensors)
        getattr(self, "check_" + config["task"])()

    def convert(self, *flags):
        output = self.folder / "model.tarn"
        must("tarn-convert", self.folder / "checkpoint", "-o", output, "--quant", "f32", *flags)
        return output

    def session(self, *flags, **options):
        return Session(self.convert(*flags), self.config["vocab_size"], max_source=max(LENGTHS), **options)

    def sources(self):
        vocab_size = self.config.get("source_vocab_size", self.config["vocab_size"])
        return [[self.generator.randrange(vocab_size) for _ in range(length)] for length in LENGTHS]

    def assert_close(self, got, want, what, tolerance=TOLERANCE):
        self.assertLessEqual(max_difference(got, want), tolerance * max(1, largest(want)), f"logits differ: {what}")

    def check_classification(self):
        sources, labels = self.sources(), self.config["num_labels"]
        reference = reference_encoder.Classifier(self.config, self.tensors)
        want = [reference.logits(source) for source in sources]
        with self.session(batch=len(sources), threads=2) as session:
            self.assert_close(session.classify(sources, labels), want, "a batch")
            self.assert_close(session.classify(sources[::-1], labels), want[::-1], "another batch")
        with self.session() as session:
            for source, row in zip(sources, want):
                self.assert_close(session.classify([source], labels), [row], f"{len(source)} tokens alone")
            with self.assertRaises(TarnError):
                session.classify([sources[-1] + [0]], labels)

    def check_masked_lm(self):
        reference = reference_encoder.MaskedLm(self.config, self.tensors)
        with self.session(max_logits_rows=5) as session:
            for source in self.sources():
                want = reference.logits(source)
                positions = sorted(self.generator.sample(range(len(source)), min(len(source), 5)))
                self.assert_close(session.fill(source, positions), [want[p] for p in positions], f"{len(source)} tokens")

    def check_seq2seq(self):
        sources = self.sources()
        targets = [[self.generator.randrange(self.config["vocab_size"]) for _ in range(9)] for _ in sources]
        reference = reference_encoder.Seq2Seq(self.config, self.tensors)
        want = [reference.logits(source, target) for source, target in zip(sources, targets)]
        with self.session(batch=len(sources), max_chunk=4) as session:
            for _ in range(2):  # encoding begins anew
                session.encode(sources)
                for t, tokens in enumerate(zip(*targets)):
                    self.assert_close(session.step(tokens), [rows[t] for rows in want], f"step {t}")
            session.encode(sources)
            self.assert_close(session.prefill(targets), [rows[-1] for rows in want], "a prefill")
        with self.session(beams=len(targets)) as session:
            session.encode(sources[-1:])
            beams = [reference.logits(sources[-1], target) for target in targets]
            for t, tokens in enumerate(zip(*targets)):
                self.assert_close(session.step(tokens), [rows[t] for rows in beams], f"beams, step {t}")
        for state, tolerance in STATE_TOLERANCES.items():
            with self.session("--state", state, batch=len(sources)) as session:
                session.encode(sources)
                for t, tokens in enumerate(zip(*targets)):
                    self.assert_close(session.step(tokens), [rows[t] for rows in want], f"{state} states, step {t}", tolerance)


for case_name, case_config in CASES.items():
    setattr(EncoderTest, f"test_{case_name}", lambda self, name=case_name, config=case_config: self.check(name, config))

if __name__ == "__main__":
    unittest.main()
