"""tarn-transfer: what the student inherits, that its attention learns the teacher's, and that killing it changes nothing."""

import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from tarn_train import checkpoint, compare, draft_main, transfer_main, transfer_table
from tarn_train.attention import Attention
from tarn_train.model import LanguageModel, checked
from tarn_train.settings import TransferSettings
from tarn_train.tensors import read_safetensors
from tarn_train.transfer import Distilling, Matching, attended, student, student_config
from tarn_train.trainer import read_state
from variants import TINY, random_model

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
TEACHER = {**TINY, "position_embedding": "rope", "attention": {"system": "softmax", "max_context": 128}}
FLAGS = ["--threads", "1", "--context", "32", "--batch", "4", "--warmup", "2", "--evaluate-every", "5"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("the river runs under the stone, and the tarn is still.\n" * 60, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def teacher_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher") / "teacher"
    checkpoint.save(random_model(TEACHER, 3), folder)
    return folder


def start(programs, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tarn_train.transfer_main", *arguments, "--converter", programs / "tarn-convert"]
    return subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def transfer(programs, *arguments, status=0):
    process = start(programs, *arguments)
    out, error = process.communicate()
    assert process.returncode == status, error
    return out, error


def tokens(count, seed=5):
    return torch.randint(0, 256, (2, count), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("bias", [{"distance_bias": "model"}, {"distance_slopes": [0.5, 0.25]}])
def test_a_teacher_with_a_bias_by_distance_is_refused(bias):
    with pytest.raises(ValueError, match="there is no module for it"):
        checked({**TEACHER, "attention": {**TEACHER["attention"], **bias}})


def test_with_softmax_again_the_student_is_the_teacher():
    teacher = random_model({**TEACHER, "attention": {"system": "softmax", "max_context": 128, "scale": 0.3}}, 3)
    config = student_config(teacher.c, "softmax", 64)
    assert [a["scale"] for a in config["attention"]] == [0.3, 0.3]
    same, some = student(teacher, config, tokens(16), 1), tokens(48)
    assert torch.equal(same(some), teacher(some))


@pytest.mark.parametrize("attention, field", [("abc_gate", "scale"), ("abc", "scale"), ("t2r", "q_input_scale"), ("window", "scale")])
def test_logits_begin_with_the_scale_of_the_teachers(attention, field):
    """Whether it is said there or not: that of abc_gate is 1 by default, that of softmax d^-0.5."""
    for scale, found in ({}, 8**-0.5), ({"scale": 0.3}, 0.3):
        teacher = {**TEACHER, "attention": {**TEACHER["attention"], **scale}}
        assert [a[field] for a in student_config(teacher, attention, 32)["attention"]] == [found, found]
    assert student_config(TEACHER, "gla", 32)["attention"] == [{"system": "gla"}] * 2
    own = [{"system": "gsa", "num_slots": 8, "scale": 0.5}] * 2
    assert student_config(TEACHER, own, 32)["attention"] == own


def test_what_a_variant_has_of_its_own_begins_by_q_and_k():
    """sigma^2 is the scale times the lengths of q and k; controls of ABC lie in the space of the keys of their head."""
    teacher, some = random_model(TEACHER, 3), tokens(32)
    rfa = student(teacher, student_config(teacher.c, "rfa", 32), some, 1)
    for layer, of, (inputs, _) in zip(rfa.model.layers, teacher.model.layers, attended(teacher, some)):
        q, k, _ = of.attn.project(inputs, 0)
        expected = (of.attn.scale * q.norm(dim=-1).mean((0, 2)) * k.norm(dim=-1).mean((0, 2))).sqrt().clamp(0.5, 2.0)
        assert torch.allclose(layer.attn.sigma, expected[:, None].expand_as(layer.attn.sigma))
    abc = student(teacher, student_config(teacher.c, "abc", 32), some, 1)
    attn = abc.model.layers[0].attn
    keys, control = (weight.detach().unflatten(0, (attn.kv_heads, -1)) for weight in (attn.k_proj.weight, attn.control_proj.weight))
    solution = torch.linalg.lstsq(keys[0].T, control[0].T).solution
    assert torch.allclose(keys[0].T @ solution, control[0].T, atol=1e-4)
    assert type(attn).inherit is not Attention.inherit


@pytest.mark.parametrize("attention", ["rfa", "t2r", "abc", "abc_gate", "gla"])
def test_matching_brings_attention_near_the_teachers(attention, tmp_path):
    torch.manual_seed(1)
    teacher, some = random_model(TEACHER, 3), tokens(33)
    s = TransferSettings(attention=attention, context=32, batch=2, match_steps=40, threads=1, warmup=2).check()
    config = student_config(teacher.c, attention, s.context)
    trainer = Matching(teacher, student(teacher, config, some[:, :-1], 1), s.matching(), config, None, None, tmp_path, {})
    before = trainer.loss(some).item()
    for number in range(40):
        trainer.windows, trainer.done["step"] = type("Same", (), {"batch": staticmethod(lambda number: some)}), number
        trainer.step()
    assert trainer.loss(some).item() < 0.7 * before
    frozen = dict(teacher.named_parameters())
    for name, weight in trainer.model.named_parameters():
        if name in frozen and ".attn." not in name:
            assert torch.equal(weight, frozen[name])


def test_from_a_checkpoint_to_a_model_that_runs(programs, text, teacher_folder, tmp_path):
    folder = tmp_path / "student"
    out, error = transfer(programs, teacher_folder, text, "-o", folder, *FLAGS, "--attention", "rfa", "--match-steps", "10", "--steps",
                          "30", "--quant", "f32")
    losses = json.loads((folder / "transfer.json").read_text())["held_out_nats_per_token"]
    assert list(losses) == ["teacher", "exchanged", "matched", "fine_tuned"] and losses["fine_tuned"] < losses["exchanged"]
    assert "matching: " in error and "fine-tuning: " in error and f"fine tuned {losses['fine_tuned']:.4f}" in out
    done = subprocess.run([programs / "tarn", "run", f"{folder}.tarn", "-p", "the river", "-n", "5", "-s", "1", "-q"],
                          capture_output=True, check=True)
    assert done.stdout.startswith(b"the river")
    largest, count = compare.difference(folder, folder / "held-out.txt", programs, 64)
    assert count == 64 and largest < compare.TOLERANCE


def test_a_hybrid_by_a_list_of_layers(programs, text, teacher_folder, tmp_path):
    yaml = tmp_path / "settings.yaml"
    yaml.write_text("attention: [{system: sliding_window, window: 8}, {system: gla}]\nmatch_steps: 2\nsteps: 2\n")
    transfer(programs, teacher_folder, text, "-o", tmp_path / "student", *FLAGS, "--config", yaml, "--no-convert")
    config = json.loads((tmp_path / "student" / "config.json").read_text())
    assert [a["system"] for a in config["attention"]] == ["sliding_window", "gla"] and config["position_embedding"] == "rope"


@pytest.mark.parametrize("name", ["gpt2_a", "gpt2_b", "llama_a", "llama_d", "qwen2_b", "qwen3_a", "mistral_b"])
@torch.no_grad()
def test_published_teachers_have_the_logits_of_their_originals(name, programs, tmp_path):
    """tests/data/families: made with transformers, in float64"""
    folder = PACKAGE.parents[1] / "tests" / "data" / "families" / name
    command = [programs / "tarn-convert", folder, "--write-checkpoint", "-o", tmp_path / "teacher"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    model, expected = checkpoint.load(tmp_path / "teacher"), read_safetensors(folder / "expected.safetensors")
    found = model(torch.tensor(expected["input_ids"][None].astype("int64")))[0]
    wanted = torch.tensor(expected["logits"])
    assert (found - wanted).norm() < 1e-5 * wanted.norm()


def step_of(folder):
    try:
        return read_state(folder / "training" / "state.pt")["done"]["step"]
    except FileNotFoundError:
        return 0


def test_killed_in_either_stage_it_goes_on_to_the_same_bits(programs, text, teacher_folder, tmp_path):
    common = [*FLAGS, "--attention", "t2r", "--match-steps", "25", "--steps", "25", "--save-seconds", "0.02", "--no-convert"]
    transfer(programs, teacher_folder, text, "-o", tmp_path / "whole", *common)
    parts = tmp_path / "parts"
    for where in parts / "matched", parts:
        process = start(programs, teacher_folder, text, "-o", parts, *common)
        while step_of(where) < 8 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert 8 <= step_of(where) < 25
    _, error = transfer(programs, teacher_folder, text, "-o", parts, *common)
    assert "goes on after step 25" in error  # of the matching, which is done
    for name in "model.safetensors", "transfer.json", "matched/model.safetensors":
        assert (parts / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("given, out", [("project", "project"), ("project/teacher", "project"), ("project/matched", "project"),
                                        ("link", "project"), ("project/training/teacher", "elsewhere/.."), ("project/link", "project")])
def test_a_teacher_in_the_output_directory_is_left_as_it_was(given, out, programs, text, teacher_folder, tmp_path):
    for place in "project", "project/teacher", "project/matched", "project/training/teacher", "elsewhere", "other":
        shutil.copytree(teacher_folder, tmp_path / place)
    (tmp_path / "link").symlink_to("project/teacher")
    (tmp_path / "project" / "link").symlink_to("../other")
    before = files_of(tmp_path)
    _, error = transfer(programs, tmp_path / given, text, "-o", tmp_path / out, *FLAGS, "--match-steps", "1", "--steps", "1", status=2)
    assert "which is or contains the given" in error and error.count("\n") == 1 and files_of(tmp_path) == before


def test_no_directory_of_the_user_is_taken_for_the_copy_of_the_teacher(programs, text, teacher_folder, tmp_path):
    """Not even where another model than the teacher has that name. A copy stays until the next one is whole."""
    shutil.copytree(teacher_folder, tmp_path / "project" / "teacher")
    before = files_of(tmp_path / "project" / "teacher")
    steps = ["--match-steps", "0", "--steps", "1", "--no-convert"]
    transfer(programs, teacher_folder, text, "-o", tmp_path / "project", *FLAGS, *steps)
    assert files_of(tmp_path / "project" / "teacher") == before
    copy = files_of(tmp_path / "project" / "training" / "teacher")
    _, error = transfer(programs, tmp_path / "nowhere", text, "-o", tmp_path / "project", *FLAGS, *steps, status=2)
    assert "nowhere" in error and files_of(tmp_path / "project" / "training" / "teacher") == copy


@pytest.mark.parametrize("losses", [[math.nan, 3.0], [3.0, math.nan, 2.0], [3.0, math.inf, 2.0]])
def test_a_loss_that_is_no_number_is_null_and_that_of_a_teacher_refused(losses, programs, text, teacher_folder, tmp_path, monkeypatch, capsys):
    values = iter(losses)
    monkeypatch.setattr(Distilling, "held_out_loss", lambda self, model: next(values))
    arguments = [teacher_folder, text, "-o", tmp_path / "student", *FLAGS, "--match-steps", "1", "--steps", "1", "--no-convert",
                 "--converter", programs / "tarn-convert"]
    if len(losses) == 2:
        with pytest.raises(SystemExit):
            transfer_main.main(list(map(str, arguments)))
        shown = capsys.readouterr().err
        assert f"the held-out loss of {teacher_folder} is nan, expected a finite number" in shown and shown.count("\n") == 1
        return
    assert transfer_main.main(list(map(str, arguments))) == 0
    written = json.loads((tmp_path / "student" / "transfer.json").read_text(), parse_constant=pytest.fail)["held_out_nats_per_token"]
    assert written["teacher"] == 3.0 and written["exchanged"] is None and written["matched"] == 2.0
    assert transfer_table.shown(written["exchanged"]) == "not finite, or not measured"


@pytest.mark.parametrize("shape", [{"position_embedding": "learned", "max_positions": 16}, {"attention": {"system": "softmax", "max_context": 16}}])
def test_a_context_beyond_the_teachers_positions_is_an_error_of_one_line(shape, programs, text, tmp_path):
    checkpoint.save(random_model({**TEACHER, **shape}, 3), tmp_path / "teacher")
    _, error = transfer(programs, tmp_path / "teacher", text, "-o", tmp_path / "out", *FLAGS, status=2)
    assert "context is 32, expected at most 16: " in error and error.count("\n") == 1


@pytest.mark.parametrize("change, message", [
    ({"norm_eps": 0.01}, "model.norm_eps 1e-05, not 0.01"),
    ({"attention": {**TEACHER["attention"], "soft_cap": 2.0}}, "teacher_config.attention.soft_cap None, not 2.0")])
def test_a_teacher_with_the_same_weights_and_another_config_is_refused(change, message, programs, text, tmp_path, capsys):
    arguments = list(map(str, [tmp_path / "teacher", text, "-o", tmp_path / "out", *FLAGS, "--attention", "t2r", "--match-steps", "0",
                               "--steps", "1", "--no-convert", "--converter", programs / "tarn-convert"]))
    checkpoint.save(random_model(TEACHER, 3), tmp_path / "teacher")
    assert transfer_main.main(arguments) == 0 == transfer_main.main(arguments)
    checkpoint.save(random_model({**TEACHER, **change}, 3), tmp_path / "teacher")
    with pytest.raises(SystemExit):
        transfer_main.main(arguments)
    assert f"was trained with {message}: give " in capsys.readouterr().err


@pytest.mark.parametrize("start", [transfer_main.main, draft_main.main])
def test_no_convert_is_no_way_to_do_without_a_converter(start, tmp_path, capsys):
    """It reads the given checkpoint, too."""
    with pytest.raises(SystemExit):
        start(["given", "text", "-o", str(tmp_path / "out"), "--converter", "nowhere", "--no-convert"])
    assert "error: nowhere is no program: name it with --converter (see" in capsys.readouterr().err


def test_errors_are_one_line(programs, text, teacher_folder, tmp_path):
    rfa = tmp_path / "rfa"
    checkpoint.save(LanguageModel({**TINY, "attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 8}}), rfa)
    out = ["-o", tmp_path / "out", *FLAGS]
    yaml = tmp_path / "settings.yaml"
    yaml.write_text("attention: [{system: gla}]\n")
    for arguments, message in (([tmp_path / "nowhere", text, *out], "nowhere"), ([rfa, text, *out], "attention 'rfa', expected softmax"),
                               ([teacher_folder, text, *out, "--config", yaml], "expected one for each of the teacher's 2 layers"),
                               ([teacher_folder, text, *out, "--distill", "2"], "distill is 2.0, expected at most 1")):
        _, error = transfer(programs, *arguments, status=2)
        assert error.count("\n") == 1 and error.startswith("tarn-transfer: error: ") and message in error
