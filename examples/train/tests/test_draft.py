"""tarn-draft: what the target writes, what the draft model learns, and that stopping a training changes nothing."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

from tarn_train import checkpoint
from tarn_train.draft import Pools, drawn
from tarn_train.draft_main import draft_config, main, parse
from tarn_train.settings import draft_settings
from tarn_train.text import Bytes
from tarn_train.trainer import read_state
from variants import TINY, random_model

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
TARGET = {**TINY, "attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 8, "gate": "forget"}}
FLAGS = ["--threads", "1", "--context", "32", "--batch", "4", "--pool", "8", "--pool-uses", "2", "--warmup", "2", "--evaluate-every", "5",
         "--evaluate-windows", "4", "--hidden-size", "16", "--intermediate-size", "32"]


def settings(*arguments):
    return draft_settings(parse(["target", "text", "-o", "out", *FLAGS, *arguments])[1])


def run(programs, *arguments, status=0):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tarn_train.draft_main", *arguments, "--converter", programs / "tarn-convert"]
    done = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Directory of the target, text file"""
    folder = tmp_path_factory.mktemp("draft")
    checkpoint.save(random_model(TARGET, 3), folder / "target")
    (folder / "text.txt").write_text("the river runs under the stone, and the tarn is still.\n" * 60, encoding="utf-8")
    return folder / "target", folder / "text.txt"


def test_windows_go_on_as_the_target_does():
    target, s = random_model(TARGET, 3), settings()
    tokens = torch.randint(0, 256, (2000,), generator=torch.Generator().manual_seed(5))
    pools = Pools(target, tokens, s, torch.device("cpu"))
    windows = pools.windows.batch(0)
    made = pools.continued(windows, 7)
    assert torch.equal(made[:, :8], windows[:, :8])
    with torch.no_grad():
        best = target(made[:4, :-1])[:, 7:].argmax(-1)
    assert torch.equal(made[:4, 8:], best)
    assert not torch.equal(made[4:, 8:], windows[4:, 8:])
    assert torch.equal(pools.continued(windows, 7), made)
    # A step alone decides its batch: four steps with a pool.
    batches = [pools.batch(step) for step in range(9)]
    again = Pools(target, tokens, s, torch.device("cpu"))
    assert all(torch.equal(again.batch(step), batches[step]) for step in (8, 3, 0))
    assert all(any(torch.equal(row, of) for of in made_rows) for made_rows in [pools.continued(windows, s.seed * 1_000_003)]
               for row in batches[0])


def test_draws_are_those_of_the_sampler():
    """Probabilities are those of the tokens that top-p and min-p leave, at the temperature."""
    logits = torch.tensor([4.0, 3.0, 2.0, 0.0, -1.0, -9.0])
    p = logits.softmax(0)
    kept = [i for i in range(6) if p[:i].sum() < 0.95 and p[i] >= 0.05 * p[0]]
    assert kept == [0, 1, 2]
    wanted = (logits[kept] / 0.8).softmax(0)
    count = 40_000
    tokens = drawn(logits.expand(count, 6), 0.8, torch.Generator().manual_seed(1))
    seen = torch.bincount(tokens, minlength=6) / count
    assert seen[3:].sum() == 0
    assert (seen[:3] - wanted).abs().max() < 4 * (0.25 / count) ** 0.5


def test_the_draft_model_has_the_tokens_of_the_target():
    config = draft_config(settings("--num-layers", "3"), {"vocab_size": 300, "eos_token_id": 7}, Bytes())
    assert (config["vocab_size"], config["eos_token_id"], config["num_layers"]) == (300, 7, 3)
    assert [a["system"] for a in config["attention"]] == ["sliding_window", "rfa", "rfa"]
    assert draft_config(settings("--attention", "gla"), {"vocab_size": 300}, Bytes())["attention"] == {"system": "gla"}


def test_fewer_drafts_are_rejected_and_a_stopped_training_goes_on(files, programs, tmp_path):
    out, _ = run(programs, *files, "-o", tmp_path / "whole", *FLAGS, "--steps", "40", "--learning-rate", "1e-2")
    assert "of drafts rejected" in out and (tmp_path / "whole.tarn").exists()
    whole = read_state(tmp_path / "whole" / "training" / "state.pt")
    first, last = whole["done"]["evaluations"][0][1], whole["done"]["best"]
    assert last < 0.8 * first
    # The state of a training that ended after its first half, as far as the settings let it be one of 40 steps.
    script = ("import sys; from tarn_train import draft, draft_main, trainer\n"
              "step = trainer.Trainer.step\n"
              "def stop(self):\n"
              "    if self.done['step'] == 17: self.save(); raise KeyboardInterrupt('after step 17')\n"
              "    return step(self)\n"
              "trainer.Trainer.step = stop\n"
              "sys.exit(draft_main.main(sys.argv[1:]))\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", script, *files, "-o", tmp_path / "halves", *FLAGS, "--steps", "40", "--learning-rate", "1e-2",
               "--converter", programs / "tarn-convert"]
    stopped = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert stopped.returncode == 130 and "after step 17" in stopped.stderr, stopped.stderr
    _, error = run(programs, *files, "-o", tmp_path / "halves", *FLAGS, "--steps", "40", "--learning-rate", "1e-2")
    assert "goes on after step 17" in error
    for name in "model.safetensors", "config.json":
        assert (tmp_path / "halves" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert read_state(tmp_path / "halves" / "training" / "state.pt")["done"]["losses"] == whole["done"]["losses"]


def test_the_file_is_a_draft_model_of_the_target(files, programs, tmp_path):
    run(programs, *files, "-o", tmp_path / "draft", *FLAGS, "--steps", "2")
    convert = [programs / "tarn-convert", files[0], "-o", tmp_path / "target.tarn", "--quant", "int8"]
    subprocess.run(list(map(str, convert)), check=True, stdout=subprocess.DEVNULL)
    command = [programs / "tarn", "run", tmp_path / "target.tarn", "-p", "the", "-n", 20, "--temp", 0, "-q"]
    texts = [subprocess.run(list(map(str, [*command, *more])), check=True, stdout=subprocess.PIPE).stdout
             for more in ([], ["--draft", tmp_path / "draft.tarn", "--speculate", 4])]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("arguments, message", [
    (["--batch", "3"], "batch is 3 and pool 8, expected even numbers"), (["--pool", "2"], "batch is 4 and pool 2"),
    (["--temperature", "0"], "temperature is 0"), (["--context", "4"], "context is 4, expected 8 or more"),
    (["--evaluate-windows", "3"], "evaluate_windows is 3, expected an even number"), (["--pool-uses", "0"], "pool_uses is 0"),
    (["--num-heads", "0"], "num_heads is 0"),
])
def test_wrong_settings(arguments, message):
    with pytest.raises(ValueError) as error:
        settings(*arguments)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["", "target", "training/target"])
def test_a_target_in_the_output_directory_is_left_as_it_was(place, files, programs, tmp_path):
    shutil.copytree(files[0], tmp_path / "project" / place)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    _, error = run(programs, tmp_path / "project" / place, files[1], "-o", tmp_path / "project", *FLAGS, "--steps", "1", status=2)
    assert "which is or contains the given" in error and error.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("whose", ["target", "draft"])
def test_a_short_context_is_found_before_the_target_writes(whose, files, programs, tmp_path, monkeypatch, capsys):
    short = {"system": "softmax", "max_context": 16}
    checkpoint.save(random_model({**TARGET, "attention": short}, 3), tmp_path / "short")
    (tmp_path / "settings.yaml").write_text(f"attention: {json.dumps(short if whose == 'draft' else {'system': 'gla'})}\n")
    monkeypatch.setattr(Pools, "continued", lambda *_: pytest.fail("the target wrote"))
    target = tmp_path / "short" if whose == "target" else files[0]
    arguments = [target, files[1], "-o", tmp_path / "out", *FLAGS, "--config", tmp_path / "settings.yaml", "--converter", programs / "tarn-convert"]
    with pytest.raises(SystemExit):
        main(list(map(str, arguments)))
    assert f"context is 32, expected at most 16: {target if whose == 'target' else 'the model'} takes" in capsys.readouterr().err


def test_a_target_with_the_same_weights_and_another_config_is_refused(files, programs, tmp_path, capsys):
    arguments = list(map(str, [tmp_path / "target", files[1], "-o", tmp_path / "out", *FLAGS, "--steps", "1", "--no-convert", "--converter",
                               programs / "tarn-convert"]))
    checkpoint.save(random_model(TARGET, 3), tmp_path / "target")
    assert main(arguments) == 0 == main(arguments)
    checkpoint.save(random_model({**TARGET, "norm_eps": 0.01}, 3), tmp_path / "target")
    with pytest.raises(SystemExit):
        main(arguments)
    assert "was trained with target_config.norm_eps 1e-05, not 0.01: give " in capsys.readouterr().err


def test_errors_of_the_command_are_one_line(files, programs, tmp_path):
    (tmp_path / "short.txt").write_text("short\n" * 60)
    config = {**TARGET, "position_embedding": "learned", "max_positions": 16}
    checkpoint.save(random_model(config, 3), tmp_path / "short")
    for arguments, message in (([tmp_path / "nowhere", files[1]], "nowhere"), ([tmp_path / "short", files[1]], "expected at most 16"), ([files[0], tmp_path / "none.txt"], "cannot read"),
                               ([files[0], tmp_path / "short.txt"], "the held-out text has")):
        error = run(programs, *arguments, "-o", tmp_path / "out", *FLAGS, status=2)[1]
        assert message in error and error.count("\n") == 1
