"""The models of a config.json as PyTorch modules: sequence to sequence, classification, language models.

Names and shapes of the parameters are those of the checkpoint, so that state_dict() is the file. Only what the configs of this
directory ask for is here: blocks with the norm first, LayerNorm, sinusoidal positions or none, tokens that are bytes.
"""

import json
import math
import pathlib

import torch
from torch import nn

from attention import attention
from tarn_train import tensors
from tarn_train.positions import sinusoidal

ACTIVATIONS = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}


def norm(c):
    return nn.LayerNorm(c["hidden_size"], eps=c["norm_eps"])


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.act = ACTIVATIONS[c["hidden_act"]]
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=c["mlp_bias"])
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=c["mlp_bias"])

    def forward(self, x):
        return self.down_proj(self.act(self.up_proj(x)))


class Block(nn.Module):
    """x + f(norm x) for self attention, for attention to `memory` in a decoder, for the MLP."""

    def __init__(self, c, own, causal=False, cross=None):
        super().__init__()
        self.attn_norm, self.attn = norm(c), attention(c, own, causal)
        self.cross_attn_norm, self.cross_attn = (norm(c), attention(c, cross)) if cross else (None, None)
        self.mlp_norm, self.mlp = norm(c), Mlp(c)

    def forward(self, x, keep, memory=None, memory_keep=None):
        normed = self.attn_norm(x)
        x = x + self.attn(normed, normed, keep)
        if self.cross_attn:
            x = x + self.cross_attn(self.cross_attn_norm(x), memory, memory_keep)
        return x + self.mlp(self.mlp_norm(x))


class Stack(nn.Module):
    """Blocks and the norm after the last of them."""

    def __init__(self, c, layers, own, **options):
        super().__init__()
        self.layers = nn.ModuleList(Block(c, own, **options) for _ in range(layers))
        self.norm = norm(c)

    def forward(self, x, *masks_and_memory):
        for layer in self.layers:
            x = layer(x, *masks_and_memory)
        return self.norm(x)


class Embeddings(nn.Embedding):
    def __init__(self, c):
        super().__init__(c["vocab_size"], c["hidden_size"])
        self.scale = math.sqrt(c["hidden_size"]) if c["scale_embeddings"] else 1.0
        self.positions = c["position_embedding"] == "sinusoidal"
        nn.init.normal_(self.weight, std=1 / self.scale)

    def forward(self, tokens):
        x = super().forward(tokens) * self.scale
        return x + sinusoidal(tokens.shape[1], self.embedding_dim, self.weight) if self.positions else x


class Seq2Seq(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.model = c, nn.Module()
        self.model.embeddings = Embeddings(c)
        self.model.encoder = Stack(c, c["encoder_layers"], c["encoder_attention"])
        self.model.decoder = Stack(c, c["decoder_layers"], c["decoder_attention"], causal=True, cross=c["cross_attention"])

    def encode(self, source):
        """source [B, S], padded with pad_token_id -> what the decoder attends to"""
        keep = source != self.c["pad_token_id"]
        return self.model.encoder(self.model.embeddings(source), keep), keep

    def decode(self, tokens, memory, memory_keep):
        """tokens [B, T], begin token first -> logits [B, T, V] of the token after each"""
        keep = torch.ones_like(tokens, dtype=torch.bool)  # padding stands behind, where no token looks
        x = self.model.decoder(self.model.embeddings(tokens), keep, memory, memory_keep)
        return nn.functional.linear(x, self.model.embeddings.weight)

    def forward(self, source, tokens):
        return self.decode(tokens, *self.encode(source))

    def greedy(self, source, limit):
        """Tokens [B, <= limit] without the begin token; pad_token_id after the end token."""
        memory = self.encode(source)
        tokens = torch.full((len(source), 1), self.c["bos_token_id"])
        ended = torch.zeros(len(source), dtype=torch.bool)
        while tokens.shape[1] <= limit and not ended.all():
            best = self.decode(tokens, *memory)[:, -1].argmax(-1).masked_fill(ended, self.c["pad_token_id"])
            tokens = torch.cat([tokens, best[:, None]], 1)
            ended |= best == self.c["eos_token_id"]
        return tokens[:, 1:]


class Classifier(nn.Module):
    PAD = 0

    def __init__(self, c):
        super().__init__()
        self.c, self.model = c, Stack(c, c["num_layers"], c["attention"])
        self.model.embeddings = Embeddings(c)
        self.classifier = nn.Linear(c["hidden_size"], c["num_labels"])

    def forward(self, tokens):
        """tokens [B, T], padded with PAD -> logits [B, num_labels] of the mean over the tokens"""
        keep = tokens != self.PAD
        x = self.model(self.model.embeddings(tokens), keep) * keep[:, :, None]
        return self.classifier(x.sum(1) / keep.sum(1, keepdim=True))


class LanguageModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.model = c, Stack(c, c["num_layers"], c["attention"], causal=True)
        self.model.embeddings = Embeddings(c)

    def forward(self, tokens):
        """tokens [B, T] -> logits [B, T, V] of the token after each"""
        x = self.model(self.model.embeddings(tokens), torch.ones_like(tokens, dtype=torch.bool))
        return nn.functional.linear(x, self.model.embeddings.weight)


def build(c):
    return {"seq2seq": Seq2Seq, "classification": Classifier, "causal_lm": LanguageModel}[c["task"]](c)


def save(model, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors.write_atomically(folder / "config.json", (json.dumps(model.c, indent=2) + "\n").encode())
    tensors.write_safetensors(folder / "model.safetensors", {n: t.detach().numpy() for n, t in model.state_dict().items()})


def load(folder):
    folder = pathlib.Path(folder)
    model = build(json.loads((folder / "config.json").read_text()))
    state = tensors.read_safetensors(folder / "model.safetensors")
    model.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return model.eval()
