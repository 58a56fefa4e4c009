"""Encoders, classifiers, masked and sequence to sequence models in float64: what `tarn` has to compute, written to be read.

Attention over a whole sequence is its causal form with another order of things: first every token is written, then all of them read
(RFA eq. 5, ABC eq. 2, softmax). Cross attention writes the encoder's rows, and the decoder's read.

    MaskedLm(config, tensors).logits(tokens)           # a row per token
    Classifier(config, tensors).logits(tokens)         # one row
    Seq2Seq(config, tensors).logits(source, tokens)    # a row per token of the target, the first one included
"""

import math

from lm_config import complete, embedding_tables
from reference_layers import Linear, Norm
from reference_model import Embedder, Head, Layer, Weights


class Encoder:
    def __init__(self, c, weights, prefix, table, attention):
        self.first = c["first_position"]
        self.embed = Embedder(c, weights, prefix, table)
        self.layers = [Layer(c, weights, f"{prefix}layers.{i}.", a) for i, a in enumerate(attention)]
        self.norm = Norm(c, weights, prefix + "norm") if c["final_norm"] else None

    def rows(self, tokens):
        xs = [self.embed(token, self.first + t) for t, token in enumerate(tokens)]
        for layer in self.layers:
            block, attention = layer.attention_block, layer.attention
            inner = [block.inner(x) for x in xs]
            attention.reset()
            for t, row in enumerate(inner):
                attention.write(row, self.first + t)
            xs = [block.outer(x, attention.read(row, self.first + t)) for t, (x, row) in enumerate(zip(xs, inner))]
            xs = [layer.mlp_block(x, layer.mlp) for x in xs]
        return [self.norm(x) for x in xs] if self.norm else xs


class MaskedLm:
    def __init__(self, config, tensors):
        c, table = complete(config), "model.embeddings.weight"
        weights = Weights(config, tensors, "f32")
        self.encoder = Encoder(c, weights, "model.", table, c["attention"])
        self.head = Head(c, weights, table)

    def logits(self, tokens):
        return [self.head(x) for x in self.encoder.rows(tokens)]


class Classifier:
    def __init__(self, config, tensors):
        self.c = c = complete(config)
        weights = Weights(config, tensors, "f32")
        self.encoder = Encoder(c, weights, "model.", "model.embeddings.weight", c["attention"])
        self.dense = Linear(weights, "classifier.dense") if c["classifier_transform"] else None
        self.head = Linear(weights, "classifier")

    def logits(self, tokens):
        rows = self.encoder.rows(tokens)
        pool = {"first": lambda column: column[0], "mean": lambda column: sum(column) / len(column), "max": max}[self.c["pooling"]]
        x = [pool(column) for column in zip(*rows)]
        if self.dense:
            x = [math.tanh(u) for u in self.dense(x)]
        return self.head(x)


class Seq2Seq:
    def __init__(self, config, tensors):
        self.c = c = complete(config)
        weights = Weights(config, tensors, "f32")
        source_table, table = embedding_tables(c)
        self.encoder = Encoder(c, weights, "model.encoder.", source_table, c["encoder_attention"])
        self.embed = Embedder(c, weights, "model.decoder.", table)
        attentions = enumerate(zip(c["decoder_attention"], c["cross_attention"]))
        self.layers = [Layer(c, weights, f"model.decoder.layers.{i}.", a, cross) for i, (a, cross) in attentions]
        self.norm = Norm(c, weights, "model.decoder.norm") if c["final_norm"] else None
        self.head = Head(c, weights, table)

    def encode(self, source):
        """The decoder begins anew."""
        rows = self.encoder.rows(source)
        self.position = self.c["first_position"]
        for layer in self.layers:
            layer.attention.reset()
            layer.cross.reset()
            for row in rows:
                layer.cross.write(row, None)

    def step(self, token):
        """The logits after one more token of the target."""
        x = self.embed(token, self.position)
        for layer in self.layers:
            x = layer.attention_block(x, lambda row, attention=layer.attention: attention(row, self.position))
            x = layer.cross_block(x, lambda row, cross=layer.cross: cross.read(row, None))
            x = layer.mlp_block(x, layer.mlp)
        self.position += 1
        return self.head(self.norm(x) if self.norm else x)

    def logits(self, source, tokens):
        self.encode(source)
        return [self.step(token) for token in tokens]
