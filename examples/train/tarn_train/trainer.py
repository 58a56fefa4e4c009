"""The training loop. Everything that a later step depends on is in one file, so that a run can be killed at any moment: the next
one goes on from the last save, and ends with the bits of a run that nobody stopped (on the same machine, with as many threads).
"""

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import time

import torch

from . import checkpoint, report, tensors
from .dense import round_as
from .graph import RecordedGradients
from .interrupt import Interrupt
from .model import LanguageModel, check_context
from .text import blocks

BETAS = (0.9, 0.95)
LEAST_RATE = 0.1  # of the largest, where the cosine ends
OTHER_FILES = {  # what is saved as a hash, which tells a reader nothing
    "text": "another text: give the same files, or, if another version of this program cut them elsewhere",
    "tokenizer_file": "another tokenizer.json: give the same file",
    "teacher": "another teacher: give the same checkpoint", "target": "another target: give the same checkpoint",
}


def rate_factor(s, step):
    """Of the step with this number, from 0"""
    if step < s.warmup:
        return (step + 1) / s.warmup
    share = min(1.0, (step - s.warmup) / max(1, s.steps - s.warmup))
    return LEAST_RATE + (1 - LEAST_RATE) * (0.5 + 0.5 * math.cos(math.pi * share))


def make_optimizer(model, s):
    """AdamW; weights of matrices decay. Norms and biases do not, also those with a row for each head, as sigma of RFA has."""
    decaying, others = [], []
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            (decaying if name.endswith("weight") and weight.dim() >= 2 else others).append(weight)
    groups = [{"params": decaying, "weight_decay": s.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=s.learning_rate, betas=BETAS)


def first_difference(name, before, now):
    """(name, value before, value now) of a setting; of two config.json: of the first field that differs"""
    if isinstance(before, dict) and isinstance(now, dict):
        for field in {**before, **now}:
            if before.get(field) != now.get(field):
                return first_difference(f"{name}.{field}", before.get(field), now.get(field))
    return name, before, now


def read_state(path):
    """What Trainer.save wrote"""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        return {**state, **json.loads(state.pop("rest"))}
    except OSError:
        raise
    except Exception as error:  # of many types, by what is damaged
        raise ValueError(f"cannot read {path}: {type(error).__name__}: remove it to begin anew") from None


class Trainer:
    """Trains the model of `config` on `windows` (text.Windows), and writes its best checkpoint into `folder`.

    folder/training/state.pt is what resuming needs, `identity` what has to be the same then: name -> value. What a training
    minimises is its own: tarn_train.transfer has others.
    """

    measure = "nats_per_token"  # what a loss is

    def __init__(self, settings, config, windows, held_out, folder, identity):
        self.s, self.windows, self.held_out, self.folder = settings, windows, held_out, pathlib.Path(folder)
        self.state_file, self.identity = self.folder / "training" / "state.pt", identity
        scored = settings.evaluate_windows * settings.context
        self.scored = held_out[:scored] if held_out is not None and scored else held_out
        self.device = self.choose_device()
        self.bf16 = self.choose_bf16()
        torch.manual_seed(settings.seed)
        self.model = self.make_model(config).to(self.device)
        check_context(self.model.c, settings.context, "the model")
        self.model.drop(settings.dropout)
        self.optimizer = make_optimizer(self.model, settings)
        self.rounding, self.recorded = None, None
        self.done = {"step": 0, "losses": [], "evaluations": [], "best": math.inf, "worse": 0, "seconds": 0.0}

    def make_model(self, config):
        """The model before the first step; parameters that need no gradient are not trained."""
        return LanguageModel(config)

    def choose_device(self):
        if self.s.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        device, count = torch.device(self.s.device), torch.cuda.device_count()
        if device.type == "cuda" and (device.index or 0) >= count:
            raise ValueError(f"device is {device}, expected one that PyTorch {torch.__version__} sees: cpu"
                             + "".join(f", cuda:{number}" for number in range(count)))
        return device

    def choose_bf16(self):
        """auto: where a GPU computes bf16 itself. PyTorch since 2.4 says yes to a GPU that it emulates bf16 on; before, autocast
        refuses such a GPU."""
        if self.s.precision == "auto":
            return self.device.type == "cuda" and torch.cuda.get_device_capability(self.device)[0] >= 8
        if self.s.precision == "bf16" and self.device.type == "cuda":
            with torch.cuda.device(self.device):  # it is asked of the current one
                if not torch.cuda.is_bf16_supported():
                    raise ValueError(f"precision is bf16, expected auto or f32: {self.device} has no bf16")
        return self.s.precision == "bf16"

    def resume(self):
        """True if there was something to go on from"""
        if not self.state_file.exists():
            return False
        state = read_state(self.state_file)
        self.check_identity(state["identity"])
        self.check_moments(state["optimizer"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state["optimizer"]})
        self.done = state["done"]
        return True

    def check_identity(self, saved):
        """A setting that is newer than the file had its default; what else is newer was not saved. What the file has comes first: it
        is why other settings count or do not."""
        defaults = {field.name: field.default for field in dataclasses.fields(self.s)}
        for name in sorted(self.identity, key=lambda name: name not in saved):
            value = self.identity[name]
            of, before, now = first_difference(name, saved.get(name, defaults.get(name, value)), value)
            if before == now:
                continue
            if name in OTHER_FILES:
                raise ValueError(f"{self.state_file} was trained with {OTHER_FILES[name]}, or choose another directory")
            raise ValueError(f"{self.state_file} was trained with {of} {before!r}, not {now!r}: give {before!r} again, or choose "
                             "another directory")

    def check_moments(self, saved):
        """The order of the weights is part of the file: PyTorch does not compare it."""
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        if any(moments["exp_avg"].shape != weights[place].shape for place, moments in saved.items()):
            raise ValueError(f"{self.state_file} is from an older version, whose weight decay was another: remove it to begin anew")

    def check_weights(self):
        """Before anything is replaced by them"""
        for name, weight in self.model.state_dict().items():
            if not weight.isfinite().all():
                raise ValueError(f"{name} has numbers that are not finite after step {self.done['step']}: choose a smaller learning_rate")

    def keep(self, tokenizer):
        """The model as the checkpoint of `folder`"""
        self.check_weights()
        checkpoint.save(self.model, self.folder, tokenizer)

    def save(self):
        self.check_weights()
        rest = json.dumps({"identity": self.identity, "done": self.done})  # PyTorch 1.13 loads no numbers from an untrusted file
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()["state"], "rest": rest}
        data = io.BytesIO()
        torch.save(state, data)
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        tensors.write_atomically(self.state_file, data.getvalue())

    def autocast(self):
        """Rounded numbers have more digits than bf16. PyTorch 1.13 refuses bf16 on a GPU without it also where it is not enabled."""
        if not self.bf16 or self.rounding is not None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def loss(self, tokens, reduction="mean"):
        """Of windows [B, context + 1]; "sum": over their tokens, what the held-out text is judged by"""
        tokens = tokens.to(self.device)
        with self.autocast():
            logits = self.model(tokens[:, :-1])
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction=reduction)

    def round(self, number):
        """The last steps train what the .tarn file will be. Losses of before do not compare: the best model is of these steps."""
        first = self.s.steps - self.s.round_steps
        self.rounding = self.s.quant if self.s.round_steps and number >= first else None
        round_as(self.model, self.rounding)
        if self.s.round_steps and number == first:
            self.recorded = None
            self.done.update(best=math.inf, worse=0)

    def gradients(self, tokens):
        """The loss of windows on the device, and the norm of its gradients, which are in the parameters afterwards, clipped."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(tokens)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.s.clip or math.inf)
        return loss.detach(), norm

    def step(self):
        """The loss of one more step"""
        number = self.done["step"]
        for group in self.optimizer.param_groups:
            group["lr"] = self.s.learning_rate * rate_factor(self.s, number)
        self.round(number)
        tokens = self.windows.batch(number).to(self.device)
        if self.device.type == "cuda" and self.s.graph == "auto" and self.recorded is None:
            self.recorded = RecordedGradients(self.gradients, tokens)
        torch.manual_seed((self.s.seed * 1_000_003 + number) % 2**63)  # what dropout leaves out depends on the step alone
        loss, norm = (self.recorded or self.gradients)(tokens)
        self.optimizer.step()
        for name, value in ("loss", loss.item()), ("norm of the gradients", norm.item()):
            if not math.isfinite(value):
                raise ValueError(f"the {name} of step {number + 1} is {value}: choose a smaller learning_rate")
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        """The mean loss of the held-out text, of its first evaluate_windows windows"""
        self.model.eval()
        total, count = 0.0, 0
        for rows in blocks(self.scored, self.s.context, self.s.batch):
            total += self.loss(rows, "sum").item()
            count += rows.shape[0] * (rows.shape[1] - 1)
        self.model.train()
        return total / count

    def judge(self, tokenizer):
        """Evaluates, and keeps the model if it is the best so far. What it writes is written again if the process dies here."""
        loss = self.evaluate()
        if not math.isfinite(loss):  # never the best one
            raise ValueError(f"the held-out loss after step {self.done['step']} is {loss}: choose a smaller learning_rate")
        self.done["evaluations"].append([self.done["step"], loss])
        if loss < self.done["best"]:
            self.done.update(best=loss, worse=0)
            self.keep(tokenizer)
        else:
            self.done["worse"] += 1
        return loss

    def finished(self):
        return self.done["step"] >= self.s.steps or bool(self.s.patience and self.done["worse"] >= self.s.patience)

    def run(self, tokenizer):
        """tokenizer: path of the tokenizer.json, or None. Ctrl-C: saves after the step, then KeyboardInterrupt, which says so"""
        self.model.train()
        with Interrupt() as interrupt, report.Progress(self.done["step"], self.s.steps, self.s.batch * self.s.context) as progress:
            self.train(tokenizer, interrupt, progress)
        if self.held_out is None:
            self.keep(tokenizer)
        self.write_curve()
        return self.write_report()

    def train(self, tokenizer, interrupt, progress):
        saved = time.monotonic()
        while not self.finished():
            begin = time.monotonic()
            loss = self.step()
            self.done["step"] += 1
            self.done["losses"].append(loss)
            if self.held_out is not None and (self.done["step"] % self.s.evaluate_every == 0 or self.done["step"] == self.s.steps):
                progress.held_out = self.judge(tokenizer)
                self.write_curve()
            self.done["seconds"] += time.monotonic() - begin
            progress.step(self.done["step"], loss)
            if time.monotonic() - saved >= self.s.save_seconds or self.finished() or interrupt.asked:
                self.save()
                saved = time.monotonic()
            if interrupt.asked:
                raise KeyboardInterrupt(f"after step {self.done['step']}")

    def write_curve(self):
        picture = report.svg(self.done["losses"], self.done["evaluations"], self.s.steps, self.measure.replace("_", " "))
        tensors.write_atomically(self.folder / "loss.svg", picture.encode())

    def write_report(self):
        done = self.done
        result = {
            "settings": dataclasses.asdict(self.s), "steps": done["step"], "tokens": done["step"] * self.s.batch * self.s.context,
            "parameters": sum(weight.numel() for weight in self.model.parameters()), "seconds": round(done["seconds"]),
            f"last_training_{self.measure}": done["losses"][-1],
            f"held_out_{self.measure}": None if self.held_out is None else done["best"],
            "device": str(self.device), "bf16": self.bf16, "cores": os.cpu_count(), "pytorch": str(torch.__version__),
        }
        tensors.write_atomically(self.folder / "training.json", (json.dumps(result, indent=2, allow_nan=False) + "\n").encode())
        return result
