"""Models in Marian's own files (tests/data/families/marian_nmt_*): what is refused. families_test.py compares their logits.

    python3 tests/convert/marian_test.py
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ.get("TARN_BUILD", "build")).resolve() / "bin"
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "families"

# Of "the old sea" in the vocabulary of marian_nmt_a, by the package sentencepiece, and the end of a text.
IDS_OF_MARIAN = "2 21 10 0"


class Marian(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.model = self.work / "model.tarn"

    def convert(self, source, *options, status=0):
        self.model.unlink(missing_ok=True)
        done = subprocess.run([BIN / "tarn-convert", source, "-o", self.model, *options], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def refused(self, folder, *words):
        error = self.convert(folder, status=1)
        self.assertFalse(self.model.exists())
        for word in words:
            self.assertIn(word, error)

    def marian(self, name="marian_nmt_a", change=None, **options):
        """A model of Marian with other options, of the same length, and other bytes."""
        folder = self.work / "marian"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(FIXTURES / name, folder)
        for extra in "expected.safetensors", "vocab.ende.spm":
            (folder / extra).unlink(missing_ok=True)
        (path,) = folder.iterdir()
        data = path.read_bytes()
        for key, (old, new) in options.items():
            old, new = (f"\n{key.replace('_', '-')}: {value}\n".encode() for value in (old, new))
            self.assertIn(old, data)
            self.assertLessEqual(len(new), len(old))
            data = data.replace(old, new + b"\n" * (len(old) - len(new)))
        path.write_bytes(change(data) if change else data)
        return folder

    def test_models_of_marian_that_are_refused(self):
        for options, message in (
                ({"dec_cell": ("ssru", "sru")}, 'model.npz: dec-cell: "sru" is not supported, expected "ssru"'),
                ({"transformer_decoder_autoreg": ("rnn", "ann")}, 'transformer-decoder-autoreg: "ann" is not one of'),
                ({"transformer_preprocess": ('""', "n")}, 'transformer-preprocess: "n" is not supported'),
                ({"transformer_postprocess": ("dan", "da")}, 'transformer-postprocess: "a" without dropout is not supported'),
                ({"transformer_ffn_activation": ("relu", "gelu")}, 'transformer-ffn-activation: "gelu" is not one of relu, swish'),
                ({"transformer_ffn_depth": ("2", "3")}, "transformer-ffn-depth: 3 is not supported, expected 2"),
                ({"layer_normalization": ("false", "true")}, "layer-normalization: true is not supported"),
                ({"right_left": ("false", "true")}, "right-left: true is not supported"),
                ({"enc_depth": ("2", "0")}, "enc-depth: 0 is outside 1 .. 256"),
                ({"enc_depth": ("2", "3")}, '"encoder_l3_self_Wq": missing, expected [24, 24]'),
                ({"dec_depth": ("2", "1")}, '"decoder_l2_rnn_W": unknown'),
                ({"dim_rnn": ("1024", "{a:1")}, 'special:model.yml: line 8: "{a:1" is not a line'),
                ({"type": ("transformer", "s2s")}, 'type: "s2s" is not supported, expected "transformer"'),
                ({"skip": ("false", "{}")}, 'line 25: "{}" is not a line "key: value"'),
        ):  # fmt: skip
            with self.subTest(message):
                self.refused(self.marian(**options), message)
        self.refused(self.marian("marian_nmt_b", lambda data: data.replace(b"  - 2\n", b"  - 9\n")),
                     "transformer-tied-layers: 9, a list of dec-depth = 3 numbers of layers expected")
        self.refused(self.marian(change=lambda data: data.replace(b"  - 41\n", b"  - 43\n", 1)),
                     "dim-vocabs: [43,41] are not the same, and source and target have one table")
        self.refused(self.marian("marian_nmt_c", lambda data: data.replace(b"  - 41\n", b"  - 40\n")), '"Wemb": found I8 with a scale')

    def test_arrays_that_are_refused(self):
        for old, new, message in (
                (b"'descr': '<f4'", b"'descr': '>f4'", "descr: \">f4\" is not supported"),
                (b"'descr': '<f4'", b"'descr': '<f8'", "does not fit the"),
                (b"'fortran_order': False", b"'fortran_order': True ", "fortran_order: False expected"),
                (b"'shape': (1, 24)", b"'shape': (1, 25)", "F32 [1, 25] does not fit the 96 bytes behind the header"),
                (b"'shape': (1, 24)", b"'shape': (1, -4)", "its header is damaged"),
                (b"'fortran_order'", b"'fortran_cider'", "in the header: descr, fortran_order and shape expected, each once"),
                (b"'descr': '<f4', ", b"'descr': \"<f4\", ", "its header is damaged"),
                (b"\x93NUMPY\x01", b"\x93NUMPY\x07", "version 7.0 of .npy"),
                (b"\x93NUMPY", b"\x93NUMPI", "no array of NumPy"),
                (b".npy", b".pyn", "a name that ends in .npy expected"),
                (b"special:model.yml", b"special:model.xml", "special:model.yml is missing: is it a model of Marian?"),
        ):  # fmt: skip
            with self.subTest(message):
                self.refused(self.marian(change=lambda data, old=old, new=new: data.replace(old, new)), message)
        self.refused(self.marian(change=lambda data: data[:-1]), "truncated; copy it again")

    def test_files_of_marian_that_are_refused(self):
        def at(offset, text, form="<Q"):
            return lambda data: data[:offset] + struct.pack(form, text) + data[offset + struct.calcsize(form) :]

        def header(data):
            return 16 + 32 * struct.unpack_from("<Q", data, 8)[0]  # where the names begin

        for change, message in (
                (at(8, 1 << 60), "number of items: 1152921504606846976 do not fit the file"),
                (at(16, 1 << 40), "name (bytes): 1099511627776 do not fit the file"),
                (at(16, 1), "a name of 1 bytes"),
                (at(24, 0x404 + 0x800), "type 3076 is packed for one kind of processor"),
                (at(32, 9), "9 dimensions, at most 8 expected"),
                (at(40, 1 << 50), "do not fit the file"),
                (at(40, 0), "does not fit its 0 bytes"),
                (lambda data: data[:300], "do not fit the file of 300 bytes: truncated or damaged"),
                (lambda data: data + b"x", "1 bytes behind the last item"),
                (lambda data: data[: header(data)] + b"x" * 400 + data[header(data) + 400 :], "a name of"),
        ):
            for name in ("marian_nmt_b", "marian_nmt_c"):
                with self.subTest(message, name=name):
                    self.refused(self.marian(name, change), message)
        data = (FIXTURES / "marian_nmt_c" / "model.ende.intgemm.alphas.bin").read_bytes()
        number = next(i for i in range(200) if struct.unpack_from("<Q", data, 24 + 32 * i)[0] == 0x4101)  # the first matrix
        size = struct.unpack_from("<Q", data, 40 + 32 * number)[0]
        self.refused(self.marian("marian_nmt_c", at(40 + 32 * number, size - 256)), "bytes")
        folder = self.marian("marian_nmt_b", at(0, 2))  # no file of Marian then
        self.refused(folder, "config.json: cannot be opened")
        shutil.copy(FIXTURES / "marian_nmt_a" / "model.npz", folder / "other.npz")
        shutil.copy(FIXTURES / "marian_nmt_b" / "model.ende.bin", folder / "second.bin")
        self.refused(folder, "has other.npz and second.bin: which of them is the model?")
        (folder / "other.npz").rename(folder / "model.npz")
        self.convert(folder)
        self.refused(folder / "model.npz", "model.npz: a file, expected the directory that holds it")

    def test_the_vocabulary_of_marian(self):
        folder = self.marian()
        self.assertIn("the directory has no vocab*.spm, or has several", self.convert(folder))
        shutil.copy(FIXTURES / "marian_nmt_a" / "vocab.ende.spm", folder)
        self.assertNotIn("vocab*.spm", self.convert(folder))
        done = subprocess.run([BIN / "tarn", "tokenize", "-m", self.model, "-p", "the old sea", "--ids"], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stdout.strip(), IDS_OF_MARIAN)
        data = (folder / "vocab.ende.spm").read_bytes()
        self.assertIn(b"</s>", data)
        (folder / "vocab.ende.spm").write_bytes(data.replace(b"</s>", b"<\xc3\xa9>"))
        self.convert(folder)  # the name is free
        (folder / "vocab.ende.spm").write_bytes((FIXTURES.parent / "tokenizers/sentencepiece_bpe/tokenizer.model").read_bytes())
        self.refused(folder, "vocab.ende.spm")
        shutil.copy(folder / "vocab.ende.spm", folder / "vocab.en.spm")
        self.assertIn("or has several", self.convert(folder))

    def test_tensors_are_named_as_in_the_file(self):
        done = subprocess.run([BIN / "tarn-convert", "--list-tensors", FIXTURES / "marian_nmt_b"], capture_output=True, text=True,
                              check=True)
        # Layers 1 and 3 have the same tensors.
        for layer in 0, 2:
            self.assertIn(f"model.decoder.layers.{layer}.attn.q_proj.weight [24, 24] from decoder_l1_self_Wq\n", done.stdout)
        self.assertIn("lm_head.bias [42] from decoder_ff_logit_out_b\n", done.stdout)

    def test_layers_without_their_projection(self):
        """What marian_nmt becomes, as fields of config.json."""
        attention = {"system": "softmax", "max_context": 8}
        config = {"task": "seq2seq", "vocab_size": 11, "hidden_size": 8, "num_heads": 2, "intermediate_size": 12, "hidden_act": "relu",
                  "norm": "layernorm", "norm_eps": 1e-6, "tokenizer": "none", "encoder_layers": 1, "decoder_layers": 1,
                  "attention_bias": True, "encoder_attention": attention, "cross_attention": attention,
                  "decoder_attention": {"system": "diagonal_recurrence", "gate_bias": True},
                  "decoder_block": {"num_heads": 2, "output_activation": "relu", "output_projection": False}}  # fmt: skip
        path = self.work / "config.json"

        def write(**changes):
            path.write_text(json.dumps({**config, **changes}), encoding="utf-8")
            return path

        done = subprocess.run([BIN / "tarn-convert", "--list-tensors", write()], capture_output=True, text=True, check=True)
        names = {line.split(" [")[0] for line in done.stdout.splitlines()}
        for name in ("encoder.layers.0.attn.o_proj.bias", "decoder.layers.0.cross_attn.o_proj.weight", "decoder.layers.0.attn.g_proj.bias"):
            self.assertIn("model." + name, names)
        for name in "o_proj.weight", "v_proj.bias", "q_proj.weight":
            self.assertNotIn("model.decoder.layers.0.attn." + name, names)
        self.convert(write(), "--random-weights", "1")
        for changes, message in (
                ({"decoder_block": {"num_heads": 2, "value_head_dim": 3, "output_projection": False}},
                 "output_projection: false needs heads of v that are hidden_size = 8 wide together, found 6"),
                ({"decoder_block": {"num_heads": 3}}, "decoder_block: num_heads: 3 does not divide hidden_size = 8"),
                ({"decoder_block": {"num_heads": 2, "mlp_bias": True}}, 'decoder_block: unknown field "mlp_bias"'),
                ({"decoder_block": 7}, "decoder_block"),
                ({"position_embedding": "rope", "decoder_block": {"num_heads": 4}}, "rope needs heads as wide as the encoder's"),
        ):  # fmt: skip
            with self.subTest(message):
                self.assertIn(message, self.convert(write(**changes), "--random-weights", "1", status=1))


if __name__ == "__main__":
    unittest.main()
