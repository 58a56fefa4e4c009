"""tarn-train from end to end: what it learns, what it writes, and that killing it changes nothing."""

import contextlib
import fcntl
import json
import math
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import xml.etree.ElementTree

import pytest
import torch

from tarn_train import checkpoint, compare, main, report
from tarn_train.model import LanguageModel
from tarn_train.settings import TransferSettings
from tarn_train.tensors import read_safetensors
from tarn_train.text import Windows, trained_tokenizer
from tarn_train.trainer import Trainer, make_optimizer, read_state
from variants import CASES, TINY, random_model

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
TOKENIZERS = PACKAGE.parents[1] / "tests" / "data" / "tokenizers"
SMALL = ["--threads", "1", "--hidden-size", "16", "--num-layers", "2", "--num-heads", "2", "--intermediate-size", "32",
         "--vocab-size", "300", "--context", "32", "--batch", "4", "--warmup", "5", "--evaluate-every", "10"]


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    generator, path = random.Random(1), tmp_path_factory.mktemp("text") / "text.txt"
    words = ["water", "stone", "tarn", "river", "cloud", "of", "the", "and", "runs", "under"]
    path.write_text("".join(" ".join(generator.choices(words, k=8)) + ".\n" for _ in range(400)), encoding="utf-8")
    return path


def start(text, folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tarn_train.main", text, "-o", folder, *SMALL, *arguments]
    return subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def train(text, folder, *arguments, status=0):
    process = start(text, folder, *arguments)
    out, error = process.communicate()
    assert process.returncode == status, error
    return out, error


def trained(folder):
    """The bits of the checkpoint, of the losses and of the optimizer"""
    state = read_state(folder / "training" / "state.pt")
    averages = [entry["exp_avg"].numpy().tobytes() for entry in state["optimizer"].values()]
    return ((folder / "model.safetensors").read_bytes(), (folder / "config.json").read_bytes(), state["done"]["losses"],
            state["done"]["evaluations"], averages)


def steps_saved(folder):
    try:
        return read_state(folder / "training" / "state.pt")["done"]["step"]
    except FileNotFoundError:
        return 0


def test_killed_at_any_moment_it_goes_on_to_the_same_bits(text, tmp_path):
    common = ["--no-convert", "--steps", "60", "--save-seconds", "0.02", "--round-steps", "20", "--dropout", "0.1"]
    train(text, tmp_path / "whole", *common)
    generator, stops = random.Random(2), []
    for wanted in 5, 25, 45:
        process = start(text, tmp_path / "parts", *common)
        while steps_saved(tmp_path / "parts") < wanted and process.poll() is None:
            time.sleep(0.01)
        time.sleep(generator.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        stops.append(steps_saved(tmp_path / "parts"))
    assert stops[0] >= 5 and stops == sorted(stops) and stops[0] < 60
    _, error = train(text, tmp_path / "parts", *common)
    assert f"goes on after step {stops[-1]}" in error
    assert trained(tmp_path / "parts") == trained(tmp_path / "whole")


def test_ctrl_c_saves_the_step_under_way(text, tmp_path):
    process = start(text, tmp_path / "model", "--no-convert", "--steps", "100000", "--save-seconds", "2")
    while not steps_saved(tmp_path / "model") and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)  # steps that only Ctrl-C saves
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    done = steps_saved(tmp_path / "model")
    assert process.returncode == 130 and done > 0 and f"stopped after step {done}; the same command goes on" in error


@pytest.mark.parametrize("attention, message", [
    ("{system: rfa, feature_map: gauss}", "did you mean gaussian?"), ("{system: abc_mlp, num_slots: many}", "is not an integer"),
    ("{system: sliding_window, window: 0}", "0 is outside 1")])
def test_the_converter_refuses_an_attention_before_it_is_trained(attention, message, text, tmp_path, programs):
    yaml = tmp_path / "settings.yaml"
    yaml.write_text(f"attention: {attention}\n")
    _, error = train(text, tmp_path / "model", "--config", yaml, "--converter", programs / "tarn-convert", status=2)
    assert message in error and error.count("\n") == 1 and not (tmp_path / "model" / "training" / "state.pt").exists()


def test_a_run_that_saved_nothing_leaves_no_tokenizer(text, tmp_path):
    """Neither its text nor its settings say what another one in the same directory trains."""
    other = tmp_path / "other.txt"
    other.write_text(text.read_text(encoding="utf-8").replace("water", "quartz"), encoding="utf-8")
    common = ["--no-convert", "--steps", "2"]
    _, error = train(other, tmp_path / "model", *common, "--context", "100000", status=2)
    assert "tokens to train on" in error
    train(text, tmp_path / "model", *common)
    train(text, tmp_path / "clean", *common)
    assert trained(tmp_path / "model") == trained(tmp_path / "clean")


def test_from_text_to_a_model_that_runs(text, tmp_path, programs):
    folder = tmp_path / "model"
    out, error = train(text, folder, "--steps", "120", "--converter", programs / "tarn-convert", "--quant", "int8")
    assert "step 120/120" in error and "tokens/s" in error and "left" in error
    result = json.loads((folder / "training.json").read_text())
    assert result["steps"] == 120 and result["tokens"] == 120 * 4 * 32
    assert result["held_out_nats_per_token"] < 0.8 * math.log(300)
    done = subprocess.run([programs / "tarn", "run", f"{folder}.tarn", "-p", "the river", "-n", "5", "-s", "1", "-q"],
                          capture_output=True, check=True)
    assert done.stdout.startswith(b"the river")
    largest, count = compare.difference(folder, folder / "held-out.txt", programs)
    assert count > 150 and largest < compare.TOLERANCE
    command = [programs / "tarn", "eval", f"{folder}.tarn", "-f", folder / "held-out.txt", "--block", "32", "--json"]
    measured = subprocess.run(command, capture_output=True, check=True)
    assert abs(json.loads(measured.stdout)["nats_per_token"] - result["held_out_nats_per_token"]) < 0.01  # of int8
    curve = xml.etree.ElementTree.parse(folder / "loss.svg").getroot()
    assert len(curve.findall("{http://www.w3.org/2000/svg}polyline")) == 2


def test_a_tokenizer_that_begins_texts_does_so_in_training_too(text, tmp_path, programs):
    folder = tmp_path / "model"
    train(text, folder, "--no-convert", "--steps", "5", "--tokenizer", TOKENIZERS / "llama3" / "tokenizer.json")
    largest, count = compare.difference(folder, folder / "held-out.txt", programs)
    assert count == compare.TOKENS and largest < compare.TOLERANCE


@pytest.mark.parametrize("kind", ["int4", "int3", "int2"])
def test_rounded_steps_train_what_the_file_is(kind, text, tmp_path, programs):
    folder = tmp_path / "model"
    arguments = ["--steps", "60", "--round-steps", "20", "--quant", kind, "--hidden-size", "32", "--tokenizer", "bytes"]
    train(text, folder, *arguments, "--converter", programs / "tarn-convert")
    command = [programs / "tarn", "eval", f"{folder}.tarn", "-f", folder / "held-out.txt", "--block", "32", "--json", "-t", "1"]
    measured = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["nats_per_token"]
    assert abs(measured - json.loads((folder / "training.json").read_text())["held_out_nats_per_token"]) < 1e-3


def test_another_attention_goes_on_only_as_it_began(text, tmp_path):
    yaml = tmp_path / "settings.yaml"
    yaml.write_text("tokenizer: bytes\nsteps: 3\n"
                    "attention: [{system: sliding_window, window: 8}, {system: abc_mlp, num_slots: 8}]\n")
    train(text, tmp_path / "model", "--no-convert", "--config", yaml)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert [a["system"] for a in config["attention"]] == ["sliding_window", "abc_mlp"] and config["vocab_size"] == 256
    before = read_safetensors(tmp_path / "model" / "model.safetensors")
    _, error = train(text, tmp_path / "model", "--no-convert", "--config", yaml, "--seed", "2", status=2)
    assert "was trained with seed 1, not 2" in error
    held_out, other = (tmp_path / "model" / "held-out.txt").read_bytes(), tmp_path / "other.txt"
    other.write_text("another text\n" * 300, encoding="utf-8")
    _, error = train(other, tmp_path / "model", "--no-convert", "--config", yaml, status=2)
    assert "was trained with another text" in error
    assert (tmp_path / "model" / "held-out.txt").read_bytes() == held_out
    train(text, tmp_path / "model", "--no-convert", "--config", yaml)
    after = read_safetensors(tmp_path / "model" / "model.safetensors")
    assert all((before[name] == after[name]).all() for name in before)


def test_a_damaged_save_is_an_error_of_one_line(text, tmp_path):
    (tmp_path / "model" / "training").mkdir(parents=True)
    (tmp_path / "model" / "training" / "state.pt").write_bytes(b"no state")
    _, error = train(text, tmp_path / "model", "--no-convert", "--steps", "1", status=2)
    assert error.count("\n") == 1 and "state.pt" in error and "remove it" in error


def test_a_held_out_loss_that_is_no_number_is_an_error_of_one_line(text, tmp_path):
    rate = ["--learning-rate", "1e15", "--warmup", "0", "--evaluate-every", "1"]  # the first step leaves weights of this size
    _, error = train(text, tmp_path / "model", "--no-convert", "--steps", "1", *rate, status=2)
    last = error.splitlines()[-1]
    assert re.match("tarn-train: error: the held-out loss after step 1 is (nan|inf): choose a smaller learning_rate ", last), error
    assert not (tmp_path / "model" / "training.json").exists()


def trainer(folder, kind=Trainer, name="t2r", **settings):
    """Of a few steps, all of which are saved"""
    s = TransferSettings(**{"context": 16, "batch": 2, "steps": 3, "warmup": 0, "device": "cpu", "save_seconds": 0.0, **settings}).check()
    tokens = torch.randint(0, 256, (400,), generator=torch.Generator().manual_seed(1))
    torch.manual_seed(1)
    return kind(s, CASES[name], Windows(tokens, s.context, s.batch, s.seed), None, folder, {})


def all_finite(folder):
    return all(weight.isfinite().all() for weight in read_state(folder / "training" / "state.pt")["model"].values())


def test_weights_that_are_not_finite_are_never_written(text, tmp_path):
    """The loss of the last step is that of the weights before it."""
    rate = ["--learning-rate", "1e15", "--weight-decay", "1e20", "--warmup", "0", "--held-out", "0", "--save-seconds", "0"]
    _, error = train(text, tmp_path / "model", "--no-convert", "--steps", "2", *rate, status=2)
    assert error.count("tarn-train: error: ") == 1 and "choose a smaller learning_rate" in error.splitlines()[-1], error
    assert not (tmp_path / "model" / "model.safetensors").exists()
    assert steps_saved(tmp_path / "model") == 1 and all_finite(tmp_path / "model")


def test_gradients_that_are_not_finite_end_a_training(tmp_path):
    class Steep(Trainer):
        def loss(self, tokens, reduction="mean"):
            loss = super().loss(tokens, reduction)
            return loss + (0 * loss).sqrt() if self.done["step"] == 2 else loss  # sqrt is infinitely steep at 0

    steep = trainer(tmp_path, Steep)
    with pytest.raises(ValueError, match="the norm of the gradients of step 3 is nan: choose a smaller learning_rate"):
        steep.run(None)
    assert steps_saved(tmp_path) == 2 and all_finite(tmp_path) and not (tmp_path / "model.safetensors").exists()


def test_a_model_that_is_not_finite_replaces_no_checkpoint(tmp_path):
    good = trainer(tmp_path)
    good.run(None)
    before = (tmp_path / "model.safetensors").read_bytes()
    with torch.no_grad():
        good.model.model.embeddings.weight[0, 0] = math.inf
    for write in good.save, lambda: good.keep(None):
        with pytest.raises(ValueError, match="model.embeddings.weight has numbers that are not finite after step 3"):
            write()
    assert (tmp_path / "model.safetensors").read_bytes() == before and all_finite(tmp_path)


def test_a_save_that_dies_leaves_the_tokenizer_whole(tmp_path, monkeypatch):
    """os.replace is the last thing that a whole save does."""
    (tmp_path / "tokenizer.json").write_text("new")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.json").write_text("old")
    monkeypatch.setattr(os, "replace", lambda part, path: None)
    checkpoint.save(random_model(CASES["gla"], 3), tmp_path / "model", tmp_path / "tokenizer.json")
    assert (tmp_path / "model" / "tokenizer.json").read_text() == "old"


@pytest.mark.parametrize("count, device, seen", [(0, "cuda", "cpu"), (2, "cuda:2", "cpu, cuda:0, cuda:1")])
def test_a_gpu_that_is_not_there_is_an_error_of_one_line(count, device, seen, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(ValueError) as error:
        trainer(tmp_path, device=device)
    assert str(error.value) == f"device is {device}, expected one that PyTorch {torch.__version__} sees: {seen}"


def test_a_gpu_without_bf16_trains_in_float32(tmp_path, monkeypatch):
    """Autocast stands for PyTorch 1.13, is_bf16_supported for 2.4: it counts emulation."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: pytest.fail("no bf16"))
    some = trainer(tmp_path)
    with some.autocast():
        some.device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    for capability, bf16 in ((7, 5), False), ((8, 0), True), ((12, 0), True):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        assert some.choose_bf16() == bf16
    some.s.precision = "bf16"
    assert some.choose_bf16()
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(ValueError, match="precision is bf16, expected auto or f32: cuda has no bf16"):
        some.choose_bf16()


def test_clip_0_does_not_clip(tmp_path):
    for clip in 0.0, 1e9, 1e-3:
        trainer(tmp_path / str(clip), clip=clip, learning_rate=1e-3).run(None)
    weights = [(tmp_path / str(clip) / "model.safetensors").read_bytes() for clip in (0.0, 1e9, 1e-3)]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize("name, still", [("t2r", ["feature_bias"]), ("rfa_gaussian_forget", ["sigma", "g_proj.bias"]), ("linformer", []),
                                         ("rfa_arccos", ["sigma", "q_proj.bias", "up_proj.bias", "attn_norm.bias"])])
def test_matrices_decay_and_nothing_else(name, still):
    model = LanguageModel(CASES[name])
    names = {weight: name for name, weight in model.named_parameters()}
    decaying, others = ({names[weight] for weight in group["params"]} for group in make_optimizer(model, TransferSettings()).param_groups)
    assert {"model.embeddings.weight", "model.layers.0.attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight"} <= decaying
    assert {name for name in names.values() if name.endswith(("feature_weight", "linformer_weight"))} <= decaying
    assert "model.norm.weight" in others
    for end in still:
        assert any(name.endswith(end) for name in others) and not any(name.endswith(end) for name in decaying)


def test_a_save_with_another_order_of_weights_is_an_error_of_one_line(tmp_path):
    first = trainer(tmp_path)
    first.run(None)
    state = torch.load(tmp_path / "training" / "state.pt")
    moments = list(state["optimizer"].values())
    state["optimizer"] = dict(enumerate([moments[-1], *moments[:-1]]))
    torch.save(state, tmp_path / "training" / "state.pt")
    with pytest.raises(ValueError, match="state.pt is from an older version, .*: remove it to begin anew"):
        trainer(tmp_path).resume()


@pytest.mark.parametrize("saved, now, message", [
    ({"steps": 3}, {"steps": 3, "dropout": 0.0}, None), ({"steps": 3}, {"dropout": 0.1}, "with dropout 0.0, not 0.1: give 0.0 again"),
    ({}, {"tokenizer_file": "hash"}, None), ({"tokenizer_file": "hash"}, {"tokenizer_file": None}, "another tokenizer.json: give the same"),
    ({"round_steps": 0}, {"quant": "int4", "round_steps": 2}, "with round_steps 0, not 2"),  # before, quant did not count
    ({"model": {"a": {"b": 1, "c": 2}}}, {"model": {"a": {"b": 1, "c": 3}}}, "with model.a.c 2, not 3"),
])
def test_what_a_save_is_compared_by(saved, now, message, tmp_path):
    """A setting that is newer than the save had its default then; what else is newer is not known."""
    first, again = trainer(tmp_path), trainer(tmp_path)
    first.identity, again.identity = saved, now
    first.run(None)
    if message is None:
        assert again.resume()
        return
    with pytest.raises(ValueError, match="state.pt was trained with .*, or choose another directory") as error:
        again.resume()
    assert message in str(error.value)


def test_another_tokenizer_of_the_same_name_is_refused(text, tmp_path, capsys):
    file, words = tmp_path / "tokenizer.json", text.read_text(encoding="utf-8")
    arguments = list(map(str, [text, "-o", tmp_path / "model", *SMALL, "--no-convert", "--steps", "1", "--tokenizer", file]))
    trained_tokenizer([words], 270).save(str(file))
    assert main.main(arguments) == 0 == main.main(arguments)
    trained_tokenizer([words[::-1]], 270).save(str(file))
    with pytest.raises(SystemExit):
        main.main(arguments)
    assert "was trained with another tokenizer.json: give the same file" in capsys.readouterr().err


def test_a_window_longer_than_a_sequence_is_refused_before_it_is_trained(text, tmp_path):
    yaml = tmp_path / "settings.yaml"
    yaml.write_text("attention: {system: softmax, max_context: 16}\n")
    _, error = train(text, tmp_path / "model", "--no-convert", "--config", yaml, status=2)
    assert "context is 32, expected at most 16: the model takes no longer sequences" in error and error.count("\n") == 1


@pytest.mark.parametrize("shape", [{"attention": {"system": "softmax", "max_context": 24}},
                                   {"attention": [{"system": "gla"}, {"system": "linformer", "num_slots": 8, "max_len": 24}]},
                                   {"attention": {"system": "gla"}, "position_embedding": "learned", "max_positions": 24}])
def test_logits_are_compared_over_the_longest_sequence_that_a_model_takes(shape, text, tmp_path, programs, capsys):
    checkpoint.save(random_model({**TINY, **shape}, 3), tmp_path / "model")
    assert compare.main([str(tmp_path / "model"), "--text", str(text), "--bin", str(programs)]) == 0
    assert capsys.readouterr().out.startswith("24 tokens: ")


def test_errors_of_the_comparison_are_one_line(text, tmp_path, programs, capsys):
    checkpoint.save(random_model(CASES["gla"], 3), tmp_path / "model")
    (tmp_path / "empty.txt").write_bytes(b"")
    for folder, of, where, message in ((tmp_path / "nowhere", text, programs, "No such file"), (tmp_path / "model", text, tmp_path, "No such file"),
                                       (tmp_path / "model", tmp_path / "empty.txt", programs, "has 0 tokens")):
        with pytest.raises(SystemExit) as stopped:
            compare.main([str(folder), "--text", str(of), "--bin", str(where)])
        shown = capsys.readouterr().err
        assert stopped.value.code == 2 and shown.count("\n") == 1 and shown.startswith("compare: error: ") and message in shown, shown


def test_early_stop_keeps_the_best_model(text, tmp_path):
    rate = ["--learning-rate", "0.5", "--clip", "100", "--warmup", "0"]  # far too large: the loss soon rises
    train(text, tmp_path / "model", "--no-convert", "--steps", "400", "--evaluate-every", "2", "--patience", "3", *rate)
    state = read_state(tmp_path / "model" / "training" / "state.pt")["done"]
    losses = [loss for _, loss in state["evaluations"]]
    assert state["step"] < 400 and min(losses) == losses[-4] == state["best"]
    assert json.loads((tmp_path / "model" / "training.json").read_text())["held_out_nats_per_token"] == min(losses)


def test_dropout_is_for_training_alone():
    config = {"task": "causal_lm", "vocab_size": 64, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32,
              "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "bytes", "attention": {"system": "gla"}}
    language, tokens = LanguageModel(config), torch.arange(32)[None]
    whole = language(tokens)
    language.drop(0.5)
    assert not torch.equal(language(tokens), whole) and torch.equal(language.eval()(tokens), whole)


@pytest.mark.parametrize("columns, shown", [(20, 19), (0, 79), (200, 77)])
def test_progress_stays_on_one_line_of_a_terminal_and_ends_it(columns, shown):
    """At width 0 the terminal does not say how wide it is."""
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(writer, "w") as out:
        with pytest.raises(ValueError), report.Progress(0, 1_000_000, 2, out) as progress:
            progress.held_out, progress.begin = 2.5, time.monotonic() - 1000
            progress.step(1_000_000, 3.25)
            raise ValueError
        out.write("an error")
        out.flush()
        seen = ""
        while "an error" not in seen:
            seen += os.read(reader, 1000).decode()
    line = "step 1000000/1000000  loss 3.2500  held-out 2.5000  2,000 tokens/s  0:00 left"
    assert len(line) == 77 and seen == f"\r{line[:shown]}\x1b[K\r\nan error"
    os.close(reader)


def test_nothing_ends_a_line_of_progress_that_is_not_there(capsys):
    with report.Progress(0, 10, 2, sys.stderr) as progress:
        progress.say("one")
    assert capsys.readouterr().err == "one\n"


def test_clock_and_curve():
    assert [report.clock(seconds) for seconds in (0, 61.4, 3600)] == ["0:00", "1:01", "1:00:00"]
    assert report.means([1.0, 2.0]) == [(1, 1.0), (2, 2.0)]
    assert report.means([1.0] * 600 + [3.0])[-1] == (601, 3.0)
    xml.etree.ElementTree.fromstring(report.svg([2.0], [], 1))
