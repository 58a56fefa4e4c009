"""Causal language models in float64, one token at a time: what `tarn` has to compute, written to be read.

From the checkpoint format and the papers alone: random feature attention (RFA, Peng et al. 2021), attention with bounded-memory
control (ABC, Peng et al. 2022), softmax attention, and some relatives of each. No stabilised recurrences, no fused layers, no
tensor of more than two dimensions: sums are formed as the equations have them, float64 has the range for it.

    model = CausalLm(config, tensors)      # the dict of config.json; name -> Tensor
    logits = model.step(token)             # list of vocab_size floats; model.reset() begins a new sequence

`precision` ("f32", "f16", "int8", "int4") is that of dense layers and embeddings: weights are rounded to it, and activations of
int8 and int4 layers per token.
"""

from lm_config import complete
from reference_layers import Norm
from reference_model import Embedder, Head, Layer, Weights


class CausalLm:
    def __init__(self, config, tensors, precision="f32"):
        self.c = c = complete(config)
        weights = Weights(config, tensors, precision)
        table = "model.embeddings.weight"
        self.embed = Embedder(c, weights, "model.", table)
        self.layers = [Layer(c, weights, f"model.layers.{i}.", a) for i, a in enumerate(c["attention"])]
        self.norm = Norm(c, weights, "model.norm") if c["final_norm"] else None
        self.head = Head(c, weights, table)
        self.reset()

    def reset(self):
        self.position = self.c["first_position"]
        for layer in self.layers:
            layer.attention.reset()

    def step(self, token):
        """The logits after one more token."""
        x = self.embed(token, self.position)
        for layer in self.layers:
            x = layer.attention_block(x, lambda row, attention=layer.attention: attention(row, self.position))
            x = layer.mlp_block(x, layer.mlp)
        self.position += 1
        return self.head(self.norm(x) if self.norm else x)
