#!/usr/bin/env python3
"""tarn inspect --graph: what the picture shows is what the model has, and layers that are alike are drawn once."""

import json
import os
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from tarn_testing import BIN, MODEL, RFA, SEQ2SEQ, TINY, CliTest, tarn

SVG = "{http://www.w3.org/2000/svg}"
SOFTMAX = {"system": "softmax", "max_context": 32}


class Picture:
    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        self.texts = [text.text or "" for text in self.root.iter(SVG + "text")]
        self.edges = [path.get("d") for path in self.root.iter(SVG + "path") if path.get("class") == "edge"]

    def boxes(self, style):
        """(left, top, right, bottom) of each."""
        found = []
        for rect in self.root.iter(SVG + "rect"):
            if rect.get("class") == style:
                x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
                found.append((x, y, x + width, y + height))
        return found[1:] if style != "frame" else found  # the first one is the legend's

    def bold(self):
        return [text.text for text in self.root.iter(SVG + "text") if text.get("class") == "name"]


class GraphTest(CliTest):
    def draw(self, model, *options):
        path = self.path("graph.svg")
        status, out, err = tarn("inspect", model, "--graph", path, *options)
        self.assertEqual((status, err), (0, ""))
        self.out = out.decode()
        return Picture(path)

    def listed(self, model):
        return json.loads(tarn("inspect", model, "--json")[1])

    def model(self, name, config):
        self.make(name, config)
        return self.path(name + ".tarn")

    def test_twelve_layers_are_drawn_once(self):
        model = self.model("twelve", {**TINY, "num_layers": 12, "attention": RFA})
        picture, listed = self.draw(model), self.listed(model)
        layer = [op for op in listed["ops"] if op["name"].startswith("layers.0.")]
        others = [op for op in listed["ops"] if not op["name"].startswith("layers.")]
        names = [op["name"].removeprefix("layers.0.") for op in layer]
        self.assertEqual(len(picture.boxes("op")), len(layer) + len(others))
        for name in names + [op["name"] for op in others]:
            self.assertEqual(picture.bold().count(name), 1, name)
        self.assertIn("layers 0 to 11: 12 times", picture.bold())
        self.assertEqual(len(picture.boxes("frame")), 1)
        # Every tensor and state of a layer, with type, shape and bytes.
        for kind in "tensors", "states":
            arrays = [one for one in listed[kind] if "layers.0." in one["name"]]
            self.assertGreater(len(arrays), 0)
            for one in arrays:
                shape = f"{one['dtype']} [{', '.join(map(str, one['shape']))}]"
                self.assertIn(shape, picture.texts)
                self.assertTrue(any(one["name"].endswith(text) for text in picture.texts if text), one["name"])
        small = next(one for one in listed["states"] if one["bytes"] < 1000)
        self.assertIn(f"{small['bytes']} B", picture.texts)

    def test_every_value_that_is_read_has_an_edge(self):
        listed = self.listed(MODEL)["ops"]
        writers = {op["outputs"] for op in listed}
        drawn = [op for op in listed if not op["name"].startswith("layers.") or op["name"].startswith("layers.0.")]
        edges = sum(len({value.split("[")[0] for value in op["inputs"].split(", ")} & writers) for op in drawn)
        self.assertEqual(len(self.draw(MODEL).edges), edges)

    def test_layers_that_alternate(self):
        model = self.model("hybrid", {**TINY, "num_layers": 7, "attention": [RFA, SOFTMAX, RFA, SOFTMAX, RFA, SOFTMAX, RFA]})
        picture = self.draw(model)
        self.assertIn("layers 0 to 5: 3 times", picture.bold())
        self.assertIn("layer 6", picture.bold())
        self.assertIn("0: attn", picture.bold())
        self.assertIn("1: attn", picture.bold())

    def test_two_programs(self):
        picture = self.draw(self.model("seq2seq", SEQ2SEQ))
        self.assertIn("program encode", picture.bold())
        self.assertIn("program decode", picture.bold())
        self.assertNotIn("other tensors", picture.bold())  # embeddings that the programs share are beside the ops that read them

    def test_a_tensor_is_beside_every_op_that_reads_it(self):
        model = self.model("tied", {**TINY, "num_layers": 3, "attention": RFA})
        picture, listed = self.draw(model), self.listed(model)
        embeddings, = [one["name"] for one in listed["tensors"] if "embed" in one["name"] and len(one["shape"]) == 2 and one["shape"][0] == 256]
        self.assertIn(embeddings.removeprefix("model."), picture.texts)  # of lm_head, by its whole name
        self.assertIn("layers 0 to 2: 3 times", picture.bold())
        once = [one for one in listed["tensors"] if "layers." not in one["name"] or "layers.0." in one["name"]]
        self.assertGreaterEqual(len(picture.boxes("tensor")), len(once) + 1)

    def test_layers_that_read_the_same_value_are_drawn_once(self):
        picture = self.draw(self.model("deep", {**SEQ2SEQ, "encoder_layers": 2, "decoder_layers": 3}))
        layers = [name for name in picture.bold() if "layer" in name]
        self.assertEqual(layers, ["encoder.layers 0 to 1: 2 times", "decoder.layers 0 to 2: 3 times", "decoder.layers 0 to 2: 3 times"])

    def test_boxes_do_not_overlap(self):
        for model in MODEL, self.model("seq2seq", SEQ2SEQ):
            picture = self.draw(model)
            width, height = float(picture.root.get("width")), float(picture.root.get("height"))
            boxes = [box for style in ("op", "state", "tensor") for box in picture.boxes(style)]
            for i, (left, top, right, bottom) in enumerate(boxes):
                self.assertTrue(0 <= left < right <= width and 0 <= top < bottom <= height)
                for other in boxes[:i]:
                    self.assertTrue(right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (boxes[i], other))

    def test_names_of_the_file_are_text(self):
        path = self.path("named.tarn")
        self.make("twelve", {**TINY, "attention": RFA})
        subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", self.path("twelve.json"), "-o", path, "--name",
                        "<script>&\x1b\"'" + "\u00e9" * 200], check=True, stdout=subprocess.DEVNULL)
        title = self.draw(path).texts[0]
        self.assertTrue(title.startswith("<script>&\\x1b\"'\u00e9"), title)
        self.assertTrue(title.endswith("\u00e9..."), title)

    def test_what_is_printed_beside_it(self):
        self.draw(MODEL)
        self.assertIn("memory (1 sequence", self.out)
        self.assertNotIn("layers.0", self.out)
        self.draw(MODEL, "--states")
        self.assertIn("layers.0.attn.S", self.out)

    def test_errors(self):
        self.fails(2, "no model", "inspect", "--cpu", "--graph", self.path("graph.svg"))
        self.fails(1, "is an input of this command", "inspect", self.path("ids.tarn"), "--graph", self.path("ids.tarn"))
        self.fails(2, "--graph: is '-', expected a file", "inspect", MODEL, "--graph", "-")
        self.fails(1, "none/graph.svg", "inspect", MODEL, "--graph", self.path("none/graph.svg"))


if __name__ == "__main__":
    unittest.main()
