"""tarn-convert from outside: what it says of the fields and tensors of a checkpoint."""

import json
import re
import resource
import struct
import unittest

from tarn_convert_case import CONFIG, SHAPES, TarnConvertCase, safetensors


class TarnConvertCheckpoint(TarnConvertCase):
    def test_errors_name_the_culprit(self):
        self.expect_failure(self.run_tool(self.root / "none", "-o", self.out), 1, "none", "no such file or directory")
        self.expect_failure(self.run_tool(self.config, "-o", self.out), 1, "config.json", "not a directory (--random-weights")
        other = self.root / "model.gguf"
        other.write_bytes(b"GGUF")
        self.expect_failure(self.run_tool(other, "-o", self.out), 1, "not a directory with config.json; model.gguf is a GGUF file")

        self.weights.write_bytes(safetensors({k: v for k, v in SHAPES.items() if k != "model.norm.weight"}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, '"model.norm.weight": missing', lines=2)
        shapes = {**SHAPES, "surplus": [2], "model.norm.weight": [17]}
        del shapes["model.embeddings.weight"]
        self.weights.write_bytes(safetensors(shapes))
        done = self.run_tool(self.folder, "-o", self.out)
        self.expect_failure(done, 1, "tiny-model: 3 tensors do not fit config.json (missing: 1, different: 1, unknown: 1)", lines=4)
        self.assertEqual(done.stderr.splitlines()[1:],
                         ['  "model.embeddings.weight": missing, expected [256, 16]',
                          '  "model.norm.weight": found F32 [17] in model.safetensors, expected [16]',
                          '  "surplus": unknown, found F32 [2] in model.safetensors'])
        self.weights.write_bytes(safetensors(SHAPES, float("nan")))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, '"model.embeddings.weight"', "nan", "[0, 0]")
        self.weights.write_bytes(safetensors(SHAPES)[:-1])
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "model.safetensors")

        self.weights.write_bytes(safetensors(SHAPES))
        self.config.write_text(json.dumps({**CONFIG, "hidden_sise": 3}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "config.json",
                            'unknown field "hidden_sise" (did you mean hidden_size?)')

    def unknown(self, *parts, **fields):
        self.config.write_text(json.dumps({**CONFIG, **fields}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, *parts)

    def test_unknown_fields_say_where_they_belong(self):
        self.unknown('unknown field "num_labels"', 'it is read where "task" is "classification"', num_labels=2)
        self.unknown('unknown field "num_slots"', 'it is a field of attention objects, of "abc_mlp", "linformer", "compressive_mean" and',
                     " more", num_slots=2)
        self.unknown('unknown field "zzz"', "tarn-convert --list-fields config", zzz=2)
        rfa = {"system": "linear_attention", "feature_map": "identity", "zzz": 2}
        self.unknown('attention: unknown field "zzz"', "tarn-convert --list-fields linear_attention", attention=rfa)
        rfa = {"system": "linear_attention", "feature_map": "identity", "gate_normalizer": 2}
        self.unknown('unknown field "gate_normalizer"', 'it is read where "gate" is "vector"', attention=rfa)
        rfa = {"system": "rfa", "feature_map": "gaussian", "num_features": 8, "activation": "exp"}
        self.unknown('unknown field "activation": it is a field of "abc_mlp", "luna_causal" and "slot_attention"; ', attention=rfa)
        self.unknown('system: "rfaa" is unknown (did you mean rfa?)', attention={"system": "rfaa"})

    def test_a_misspelt_required_field_is_named(self):
        for misspelt, key, where in (("num_head", "num_heads", "config.json: "), ("attntion", "attention", "config.json: ")):
            config = {**CONFIG, misspelt: CONFIG[key]}
            del config[key]
            self.config.write_text(json.dumps(config))
            self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, f'{where}the field "{key}" is missing, expected ',
                                f'found the unknown field "{misspelt}": did you mean "{key}"?')
        self.unknown('attention: the field "max_context" is missing', 'did you mean "max_context"?',
                     attention={"system": "softmax", "max_contex": 8})
        # A known field is not taken for another one, however near it is.
        config = {**CONFIG, "num_kv_heads": 2}
        del config["num_heads"]
        self.config.write_text(json.dumps(config))
        done = self.run_tool(self.folder, "-o", self.out)
        self.expect_failure(done, 1, 'the field "num_heads" is missing')
        self.assertNotIn("did you mean", done.stderr)

    def test_a_pointer_of_git_lfs_is_named(self):
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1234567\n"
        for path in self.weights, self.config:
            path.write_text(pointer)
            self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1,
                                f"{path}: a Git LFS pointer, not the file: git lfs pull")

    def test_unknown_tensors_say_whose_they_are(self):
        prefix = "model.layers.0.attn."
        rfa = {"system": "rfa", "feature_map": "gaussian", "num_features": 8}
        shapes = {**SHAPES, prefix + "random_matrix": [2, 8, 8], prefix + "sigma": [2, 8], prefix + "g_proj.weight": [2, 16],
                  prefix + "control_proj.weight": [8, 16], prefix + "q_proj.bias": [16], "lm_head.bias": [256]}
        self.config.write_text(json.dumps({**CONFIG, "attention": rfa}))
        self.weights.write_bytes(safetensors(shapes))
        done = self.run_tool(self.folder, "-o", self.out)
        self.expect_failure(done, 1, "unknown: 4", lines=5)
        found = [line.rsplit("; ", 1)[1] for line in done.stderr.splitlines()[1:]]
        self.assertEqual(found[0], 'it is read where "lm_head_bias" is true')
        self.assertRegex(found[1], '^a tensor of attention "abc_mlp"')
        self.assertEqual(found[2], 'attention "rfa" has it where "gate" is "forget"')
        self.assertEqual(found[3], 'it is read where "attention_bias" is true')

    def test_list_of_fields(self):
        done = self.run_tool("--list-fields", "rfa")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        rows = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines())}
        self.assertEqual(rows["num_features"][1], "required")
        self.assertEqual(rows["den_eps"][1], '0.01; "gate" is "forget": 0.001')
        self.assertEqual(rows["gate"][0], '"none", "forget" ("forget": causal)')
        self.assertEqual(rows["attn.g_proj.bias"], ["[num_kv_heads]", '"gate" is "forget"'])
        self.assertNotIn("vector", rows["gate"][2])
        for line in self.run_tool("--list-fields", "abc_mlp").stdout.splitlines():
            if "cross_control_proj" in line:
                self.assertTrue(line.endswith('"control_sharing" is "model", cross attention of seq2seq'), line)
        self.assertEqual(self.run_tool("--list-fields").stdout, self.run_tool("--list-fields", "config").stdout)
        for option in "--list-fields", "--systems", "--families", "--list-tensors":  # nothing would be written
            done = self.run_tool(option, "-o", self.root / "x.tarn")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{option} and --output are both there, expected one of them", done.stderr)
        everything = self.run_tool("--list-fields", "all").stdout
        for line in self.run_tool("--systems").stdout.splitlines()[2:]:
            self.assertIn(f"\n{line.split('`')[1]} (", everything)
        self.expect_failure(self.run_tool("--list-fields", "rfaa"), 2, "did you mean rfa?")

    def test_list_of_tensors(self):
        for path in self.config, self.folder:
            done = self.run_tool("--list-tensors", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            listed = dict(line.split(" ", 1) for line in done.stdout.splitlines())
            self.assertEqual({name: json.loads(shape) for name, shape in listed.items()}, SHAPES)
        self.config.write_text(json.dumps({**CONFIG, "tie_word_embeddings": False}))
        self.assertIn("lm_head.weight [256, 16]\n", self.run_tool("--list-tensors", self.config).stdout)
        self.expect_failure(self.run_tool("--list-tensors", self.root / "none"), 1, "none")

    def test_a_tied_head_may_be_there(self):
        self.assertEqual(self.run_tool(self.folder, "-o", self.out).returncode, 0)
        before = self.out.read_bytes()
        self.weights.write_bytes(safetensors({**SHAPES, "lm_head.weight": [256, 16]}))
        done = self.run_tool(self.folder, "-o", self.out)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(self.out.read_bytes(), before)

    def test_json_errors_say_where(self):
        for text, words in (('{\n "vocab_size": 256,\n}', "line 3, column 1: expected a key in double quotes, found '}'"),
                            ("", "line 1, column 1: expected a value, but the text ends"),
                            ('{"vocab_size": ' + "9" * 5_000_000 + "}", "a number that a double can hold"),
                            ('{"vocab_size": "' + "x" * 5_000_000, "a closing quote")):
            self.config.write_text(text)
            done = self.run_tool(self.folder, "-o", self.out)
            self.expect_failure(done, 1, "config.json: not valid JSON: ", words)
            self.assertNotIn("json.exception", done.stderr)
        self.config.write_text(json.dumps({**CONFIG, "hidden_act": "x" * 5_000_000}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "hidden_act", "is not one of swiglu")
        self.config.write_text(" " * 16_000_001)
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "16000001 bytes, expected at most 16000000")

    def test_many_tensors_take_no_longer_each(self):
        """80,000 tensors took two minutes of a processor and more than a second for each that came: far beyond this limit."""
        header = {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(80_000)}
        text = json.dumps(header).encode()
        self.weights.write_bytes(struct.pack("<Q", len(text)) + text)
        done = self.run_tool(self.folder, "-o", self.out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
        self.expect_failure(done, 1, "80010 tensors do not fit", "unknown: 80000", "... and 79960 more", lines=52)


if __name__ == "__main__":
    unittest.main()
