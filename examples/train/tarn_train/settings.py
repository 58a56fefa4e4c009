"""What a training run is asked for: a preset, then a YAML file, then flags; each overrides what was there before."""

import argparse
import dataclasses
import math
import pathlib
import re

import yaml

from .attentions import ATTENTIONS, LOCAL

PRESETS = {
    "tiny": dict(hidden_size=128, num_layers=4, num_heads=4, intermediate_size=384, vocab_size=1024, context=256, batch=8,
                 steps=1500, learning_rate=3e-3, warmup=100, evaluate_every=100),
    "small": dict(hidden_size=384, num_layers=8, num_heads=6, intermediate_size=1024, vocab_size=8192, context=512, batch=32,
                  steps=20_000, learning_rate=1e-3, warmup=500, evaluate_every=500),
    "base": dict(hidden_size=768, num_layers=12, num_heads=12, intermediate_size=2048, vocab_size=16_384, context=1024, batch=64,
                 steps=100_000, learning_rate=6e-4, warmup=2000, evaluate_every=1000),
}
POSITIONS = ("none", "sinusoidal", "rope")
PRECISIONS = ("auto", "f32", "bf16")
GRAPHS = ("auto", "off")
ROUNDED = ("int8", "int4", "int3", "int2")
MEASURED = ("int3", "int2")  # tarn-convert wants to show what they cost
QUANTS = ("f32", "f16", *ROUNDED)
LEAST_PIECES = 257  # of a trained tokenizer: the bytes, and the end of a text


def option(help_text, default=None, **more):
    return dataclasses.field(default=default, metadata={"help": help_text, **more})


@dataclasses.dataclass
class Training:
    """What every training is asked for. `positive`: the names of numbers that cannot be 0."""

    positive = ("context", "batch", "steps", "evaluate_every")

    attention: str = option("attention variant; in a YAML file also an attention object of docs/models.md, or a list of those",
                            "rfa_arccos_gate", choices=tuple(ATTENTIONS))
    context: int = option("tokens of a training window")
    batch: int = option("windows of a step")
    steps: int = option("steps of the optimizer")
    learning_rate: float = option("largest learning rate; it rises over the warm-up, then falls along a cosine to a tenth")
    warmup: int = option("steps of the warm-up")
    weight_decay: float = option("of matrices, AdamW", 0.1)
    clip: float = option("largest norm of the gradients; 0: they are not clipped", 1.0)
    dropout: float = option("probability that a number which a layer adds to the residual is 0 in a step", 0.0)
    held_out: float = option("share of each text, at its end, that is only evaluated; 0: none", 0.05)
    evaluate_every: int = option("steps between two evaluations on the held-out text")
    evaluate_windows: int = option("windows of the held-out text that are evaluated, from its beginning; 0: all", 256)
    patience: int = option("stop after so many evaluations without a better one; 0: never", 0)
    save_seconds: float = option("seconds between two saves of what resuming needs", 60.0)
    seed: int = option("of weights and of the order of windows", 1)
    threads: int = option("threads of PyTorch; 0: as many as it chooses", 0)
    device: str = option("device of PyTorch; auto: a GPU if there is one", "auto")
    precision: str = option("bf16: autocast; auto: bf16 on a GPU that has it", "auto", choices=PRECISIONS)
    graph: str = option("auto: on a GPU the gradients are a CUDA graph, recorded once; off: needs less memory", "auto", choices=GRAPHS)
    quant: str = option("type of matrices in the .tarn file", "int8", choices=QUANTS)
    round_steps: int = option("the last steps train with weights and inputs rounded as the .tarn file has them (int8, int4, int3, int2)", 0)

    def check(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)) and not 0 <= value < math.inf:
                raise ValueError(f"{field.name} is {value}, expected 0 or more, and finite")
        for name in self.positive:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")
        if self.context < 2:
            raise ValueError(f"context is {self.context}, expected 2 or more: the first token of a window is not predicted")
        if not re.fullmatch("auto|cpu|cuda(:(0|[1-9][0-9]?))?", self.device):
            raise ValueError(f"device is {self.device}, expected auto, cpu or cuda, or one of several GPUs as cuda:1: others have no "
                             "float64")
        if self.dropout >= 1:
            raise ValueError(f"dropout is {self.dropout}, expected less than 1")
        if self.held_out > 0.5:
            raise ValueError(f"held_out is {self.held_out}, expected at most 0.5")
        if self.patience and not self.held_out:
            raise ValueError(f"patience is {self.patience} and held_out 0: early stop needs held-out text")
        if self.round_steps > self.steps:
            raise ValueError(f"round_steps is {self.round_steps}, expected at most steps = {self.steps}")
        if self.round_steps and self.quant not in ROUNDED:
            raise ValueError(f"round_steps is {self.round_steps} and quant {self.quant}, expected {', '.join(ROUNDED)}")
        if self.round_steps and self.patience:
            raise ValueError(f"round_steps is {self.round_steps} and patience {self.patience}, expected 0: an early stop has no last steps")
        if self.quant in MEASURED and not self.held_out:
            raise ValueError(f"quant is {self.quant} and held_out 0: tarn-convert shows what {self.quant} costs on held-out text")
        return self


@dataclasses.dataclass
class Settings(Training):
    """Of tarn-train: also the model and its tokenizer"""

    positive = (*Training.positive, "vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size")

    preset: str = option("sizes to begin with", "tiny", choices=tuple(PRESETS))
    position_embedding: str = option("how positions enter the model", choices=POSITIONS)
    tokenizer: str = option("train: a byte-level BPE, trained on the text; bytes: a token is a byte; or a tokenizer.json", "train")
    vocab_size: int = option("pieces of a tokenizer that is trained, at most")
    hidden_size: int = option("width of the model")
    num_layers: int = option("layers")
    num_heads: int = option("heads of the attention")
    intermediate_size: int = option("inner width of the MLP")

    def check(self):
        super().check()
        if self.hidden_size % (2 * self.num_heads):
            raise ValueError(f"hidden_size is {self.hidden_size}, expected a multiple of 2 * num_heads = {2 * self.num_heads}")
        if self.tokenizer == "train" and self.vocab_size < LEAST_PIECES:
            raise ValueError(f"vocab_size is {self.vocab_size}, expected {LEAST_PIECES} or more, or tokenizer bytes: a trained tokenizer "
                             "has all bytes, and the end of a text")
        return self


@dataclasses.dataclass
class TransferSettings(Training):
    """Of tarn-transfer: the model is the teacher's; what is said of steps and rates is for the fine-tuning."""

    context: int = option("tokens of a training window", 256)
    batch: int = option("windows of a step", 8)
    steps: int = option("steps of the fine-tuning", 500)
    learning_rate: float = option("largest learning rate of the fine-tuning", 5e-4)
    warmup: int = option("steps of the warm-up", 50)
    evaluate_every: int = option("steps between two evaluations on the held-out text", 100)
    match_steps: int = option("steps that match the attention of each layer to the teacher's, before the fine-tuning", 500)
    match_learning_rate: float = option("largest learning rate of these steps", 2e-3)
    dropout: float = option("of the fine-tuning: probability that a number which a layer adds to the residual is 0 in a step", 0.0)
    distill: float = option("share of the loss that is the distance from the teacher's distribution; the rest is that of the text", 0.5)

    def check(self):
        if self.distill > 1:
            raise ValueError(f"distill is {self.distill}, expected at most 1")
        return super().check()

    def matching(self):
        """The settings of the first stage"""
        return dataclasses.replace(self, steps=self.match_steps, learning_rate=self.match_learning_rate, patience=0, round_steps=0)


@dataclasses.dataclass
class DraftSettings(Training):
    """Of tarn-draft: a model of few and narrow layers, which a step of the target costs many times."""

    positive = (*Training.positive, "hidden_size", "num_layers", "num_heads", "intermediate_size", "pool", "pool_uses")

    attention: str = option("local: a window of 16 tokens in the first layer, rfa_gate in the others; or an attention variant", LOCAL,
                            choices=(LOCAL, *ATTENTIONS))
    position_embedding: str = option("how positions enter the draft model", "rope", choices=POSITIONS)
    hidden_size: int = option("width of the draft model", 64)
    num_layers: int = option("its layers", 2)
    num_heads: int = option("its heads", 2)
    intermediate_size: int = option("inner width of its MLP", 128)
    context: int = option("tokens of a training window: the first quarter is text, the target continues it", 256)
    batch: int = option("windows of a step", 32)
    steps: int = option("steps of the optimizer", 3000)
    learning_rate: float = option("largest learning rate; it rises over the warm-up, then falls along a cosine to a tenth", 4e-3)
    warmup: int = option("steps of the warm-up", 200)
    weight_decay: float = option("of matrices, AdamW", 0.01)
    evaluate_every: int = option("steps between two evaluations on the held-out text", 250)
    evaluate_windows: int = option("windows of the held-out text that the target continues for the evaluations", 32)
    pool: int = option("windows that the target continues at once; half of them greedily", 512)
    pool_uses: int = option("how often each of them is trained on, before others take their place", 8)
    temperature: float = option("at which the target draws the tokens of the other half", 0.8)

    def check(self):
        if self.pool < self.batch or self.batch % 2 or self.pool % 2:
            raise ValueError(f"batch is {self.batch} and pool {self.pool}, expected even numbers, batch at most pool")
        if self.context < 8:
            raise ValueError(f"context is {self.context}, expected 8 or more: a quarter is text")
        if self.evaluate_windows < 2 or self.evaluate_windows % 2:
            raise ValueError(f"evaluate_windows is {self.evaluate_windows}, expected an even number, 2 or more")
        if self.temperature == 0:
            raise ValueError("temperature is 0, expected more: half of the windows are continued greedily in any case")
        return super().check()


def types(kind):
    """name -> type of its settings"""
    return {field.name: field.type for field in dataclasses.fields(kind)}


def typed(of, name, value, where):
    """YAML's value as the field's type; YAML 1.1 reads 1e-3 as a text, and the word off as false."""
    kind, choices = types(of)[name], of.__dataclass_fields__[name].metadata.get("choices")
    if name == "attention" and isinstance(value, (dict, list)):
        return value
    if value is False and choices and "off" in choices:
        return "off"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{where}{name} is {value!r}, expected {kind.__name__}")
    try:
        if kind is int and isinstance(value, float):
            raise ValueError
        value = kind(value)
    except ValueError:
        raise ValueError(f"{where}{name} is {value!r}, expected {kind.__name__}") from None
    if choices and value not in choices:
        raise ValueError(f"{where}{name} is {value!r}, expected one of {', '.join(choices)}")
    return value


def read_yaml(of, path):
    try:
        values = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"cannot read {path}: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: is not a list of settings, expected lines NAME: VALUE")
    for name in values:
        if name not in types(of):
            raise ValueError(f"{path}: {name} is no setting, expected one of {', '.join(types(of))}")
    return {name: typed(of, name, value, f"{path}: ") for name, value in values.items()}


def add_flags(parser, of, default="by the preset or the attention"):
    for field in dataclasses.fields(of):
        known = field.metadata.get("choices")
        shown = default if field.default is None else field.default
        parser.add_argument("--" + field.name.replace("_", "-"), dest=field.name, default=argparse.SUPPRESS, choices=known,
                            type=field.type, metavar=None if known else field.type.__name__.upper(),
                            help=f"{field.metadata['help']} (default: {shown})")


def given(of, args, file=None):
    """name -> value of what a YAML file and flags say; args: as parsed with add_flags"""
    flags = {name: value for name, value in vars(args).items() if name in types(of)}
    return {**(read_yaml(of, file) if file else {}), **flags}


def transfer_settings(args, file=None):
    """Of tarn-transfer"""
    return TransferSettings(**given(TransferSettings, args, file)).check()


def draft_settings(args, file=None):
    """Of tarn-draft"""
    return DraftSettings(**given(DraftSettings, args, file)).check()


def settings(args, file=None):
    """Of tarn-train"""
    said = given(Settings, args, file)
    return Settings(**{**PRESETS[said.get("preset", "tiny")], **said}).check()
