"""From softmax attention to a memory of constant size: the weights of a trained model stay, its attention is exchanged.

    student      the teacher's weights with another attention; what that has of its own begins by q, k and v (Attention.inherit)
    Matching     the attention of every layer learns the outputs of the teacher's from the teacher's inputs, all layers at once
    Distilling   the whole model learns the text and the teacher's distribution of the next token

Kasai et al. 2021, "Finetuning Pretrained Transformers into RNNs" (T2R), exchange the attention and train all at once; Peng et al.
2021 (RFA, appendix C.4) do so with random features. The matching before it is that of Zhang et al. 2024 ("The Hedgehog & the
Porcupine").
"""

import torch
from torch.nn import functional

from . import cache, slots
from .attentions import choose
from .model import LanguageModel, attention_objects
from .trainer import Trainer


def student_attention(a, scale):
    """The attention object with the scale of the teacher's logits, where a variant has one: not all have the same default."""
    names = {"t2r": "q_input_scale", **dict.fromkeys([*slots.SYSTEMS, *cache.SYSTEMS], "scale")}
    name = names.get(a["system"])
    return a if name is None or name in a else {**a, name: scale}


def student_config(c, attention, context):
    """c: config.json of the teacher; attention: as in Settings"""
    d = c.get("head_dim", c["hidden_size"] // c["num_heads"])
    chosen = choose(attention, d, context)[0]
    objects = chosen if isinstance(chosen, list) else [chosen] * c["num_layers"]
    if len(objects) != c["num_layers"]:
        raise ValueError(f"attention has {len(objects)} objects, expected one for each of the teacher's {c['num_layers']} layers")
    given = attention_objects(c)
    for a in given:
        if a["system"] not in cache.SYSTEMS:
            raise ValueError(f"the teacher has attention {a['system']!r}, expected softmax: {', '.join(cache.SYSTEMS)}")
    return {**c, "attention": [student_attention(a, of.get("scale", d**-0.5)) for a, of in zip(objects, given)]}


def attended(model, tokens):
    """(input, output) of the attention of each layer, [B, T, E] each"""
    x, pairs = model.embed(tokens, 0), []
    for layer in model.model.layers:
        inputs = layer.attn_norm(x)
        outputs = layer.attn(inputs)
        pairs.append((inputs, outputs))
        x = x + outputs
        x = x + layer.mlp(layer.mlp_norm(x))
    return pairs


@torch.no_grad()
def student(teacher, config, tokens, seed):
    """A model of `config` with what it can inherit from the teacher; tokens [B, T]: some text"""
    torch.manual_seed(seed)
    model = LanguageModel(config)
    own = model.state_dict()
    for name, value in teacher.state_dict().items():
        if name in own and own[name].shape == value.shape:
            own[name].copy_(value)
    for layer, of, (inputs, _) in zip(model.model.layers, teacher.model.layers, attended(teacher, tokens)):
        q, k, _ = of.attn.project(inputs, 0)
        layer.attn.inherit(q, k, of.attn.scale)
    return model


def of_attention(name):
    return ".attn." in name or "control_proj" in name


class FromTeacher(Trainer):
    """Trains `model`, which is there already."""

    def __init__(self, teacher, model, *arguments):
        self.given = model
        super().__init__(*arguments)
        self.teacher = teacher.to(self.device).eval()

    def make_model(self, config):
        for name, weight in self.given.named_parameters():
            weight.requires_grad_(self.trains(name))
        return self.given

    def trains(self, name):
        return True

    def held_out_loss(self, model):
        """Nats per token"""
        mine, self.model = self.model, model.to(self.device)
        with torch.no_grad():
            loss = self.evaluate()
        self.model = mine
        return loss


class Matching(FromTeacher):
    """The error of a token is the square of what its attention differs by, over the mean square of the teacher's, of all layers."""

    measure = "error_of_attention"

    def trains(self, name):
        return of_attention(name)

    def loss(self, tokens, reduction="mean"):
        tokens = tokens.to(self.device)[:, :-1]
        with self.autocast():
            with torch.no_grad():
                pairs = attended(self.teacher, tokens)
            outputs = [layer.attn(inputs) for layer, (inputs, _) in zip(self.model.model.layers, pairs)]
        errors = [(output - wanted).float().square().mean(-1) / wanted.float().square().mean()
                  for output, (_, wanted) in zip(outputs, pairs)]
        error = torch.stack(errors).mean(0)
        return error.mean() if reduction == "mean" else error.sum()


class Distilling(FromTeacher):
    """(1 - distill) cross entropy + distill KL(teacher || student); the held-out text is judged by its cross entropy alone."""

    def loss(self, tokens, reduction="mean"):
        share = self.s.distill
        if reduction == "sum" or share == 0:
            return super().loss(tokens, reduction)
        tokens = tokens.to(self.device)
        with self.autocast():
            logits = self.model(tokens[:, :-1])
            with torch.no_grad():
                wanted = self.teacher(tokens[:, :-1])
        logits, wanted = logits.float().flatten(0, 1), wanted.float().flatten(0, 1)
        divergence = functional.kl_div(logits.log_softmax(-1), wanted.log_softmax(-1), reduction="batchmean", log_target=True)
        return (1 - share) * functional.cross_entropy(logits, tokens[:, 1:].flatten()) + share * divergence
