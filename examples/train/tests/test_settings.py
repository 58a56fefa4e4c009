"""Presets, YAML and flags; errors are one line that names the setting."""

import pathlib

import pytest

from tarn_train import command
from tarn_train.main import main, parse
from tarn_train.settings import PRESETS, settings


def flags(*arguments):
    return parse(["text", "-o", "out", *arguments])[1]


def test_flags_override_yaml_and_yaml_the_preset(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("preset: small\nlearning_rate: 1e-3\nsteps: 7\n"
                    "attention: {system: rfa, feature_map: arccos, num_features: 8}\n")
    s = settings(flags("--steps", "9", "--seed", "3"), file)
    assert (s.preset, s.hidden_size, s.learning_rate, s.steps, s.seed) == ("small", 384, 1e-3, 9, 3)
    assert s.attention == {"system": "rfa", "feature_map": "arccos", "num_features": 8}
    for name in PRESETS:
        assert settings(flags("--preset", name)).hidden_size == PRESETS[name]["hidden_size"]


def test_off_is_a_word_in_yaml_too(tmp_path):
    (tmp_path / "settings.yaml").write_text("graph: off\n")
    assert settings(flags(), tmp_path / "settings.yaml").graph == "off"


def test_the_least_vocabulary_is_of_a_tokenizer_that_is_trained():
    assert settings(flags("--vocab-size", "257")).vocab_size == 257
    assert settings(flags("--vocab-size", "5", "--tokenizer", "bytes")).vocab_size == 5  # which nobody reads


@pytest.mark.parametrize("line, message", [
    ("vocab_size: 256", "vocab_size is 256, expected 257 or more, or tokenizer bytes: "),
    ("device: cuda:x", "device is cuda:x, expected auto, cpu or cuda, or one"), ("device: cuda:300", "device is cuda:300"),
    ("graph: on", "graph is True, expected str"), ("precision: off", "precision is False, expected str"),
    ("{steps: 3, round_steps: 4}", "round_steps is 4, expected at most"), ("{round_steps: 4, quant: f16}", "expected int8, int4, int3, int2"),
    ("steps: 1.5", "steps is 1.5, expected int"),
    ("stepz: 3", "stepz is no setting"), ("steps: many", "steps is 'many', expected int"), ("steps: 0", "steps is 0"),
    ("attention: rnn", "attention is 'rnn', expected one of softmax"), ("- 1", "expected lines NAME: VALUE"),
    ("hidden_size: 90", "hidden_size is 90, expected a multiple of 2"), ("held_out: 0.9", "held_out is 0.9"),
    ("{round_steps: 4, patience: 2}", "and patience 2, expected 0"),
    ("{held_out: 0, patience: 2}", "early stop needs held-out text"), ("clip: -1", "clip is -1"), ("steps: [1]", "expected int"),
    ("clip: .inf", "clip is inf, expected 0 or more"), ("learning_rate: .nan", "learning_rate is nan"),
    ("dropout: 1", "dropout is 1.0, expected less than 1"), ("device: mps", "device is mps, expected auto, cpu or cuda"),
    ("{quant: int3, held_out: 0}", "quant is int3 and held_out 0"), ("context: 1", "context is 1, expected 2 or more"),
    ("{quant: int2, held_out: 0}", "quant is int2 and held_out 0"), ("a: [", "cannot read"),
])
def test_wrong_settings(line, message, tmp_path):
    (tmp_path / "settings.yaml").write_text(line + "\n")
    with pytest.raises(ValueError, match=".*") as error:
        settings(flags(), tmp_path / "settings.yaml")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_errors_of_the_command_are_one_line(tmp_path, capsys):
    (tmp_path / "short.txt").write_text("short\n" * 20)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    out = ["-o", str(tmp_path / "out"), "--no-convert"]
    for arguments, message in (([str(tmp_path / "nowhere"), *out], "cannot read"),
                               ([str(tmp_path / "latin.txt"), *out], "byte 3 is no UTF-8"),
                               ([str(tmp_path / "short.txt"), *out, "--tokenizer", "bytes"], "tokens to train on"),
                               ([str(tmp_path / "short.txt"), *out, "--tokenizer", "nowhere"], "cannot read the tokenizer"),
                               ([str(tmp_path / "short.txt"), *out, "--steps", "x"], "invalid int value"),
                               ([str(tmp_path / "short.txt"), *out, "--step", "1"], "unrecognized arguments: --step"),
                               ([str(tmp_path / "short.txt"), "-o", "x", "--converter", "nowhere"],
                                "nowhere is no program: name it with --converter, or say --no-convert (")):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        shown = capsys.readouterr().err
        assert stopped.value.code == 2 and shown.count("\n") == 1
        assert shown.startswith("tarn-train: error: ") and message in shown


@pytest.mark.parametrize("output, file", [("model", "model.tarn"), ("a/model/", "a/model.tarn"), ("link", "link.tarn"),
                                          (".", "{}/here/a.tarn"), ("..", "{}/here.tarn"), ("model/..", "{}/here/a.tarn")])
def test_the_name_of_the_model_file(output, file, tmp_path, monkeypatch):
    (tmp_path / "here" / "a" / "model").mkdir(parents=True)
    (tmp_path / "here" / "a" / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "here" / "a")
    assert command.model_file(pathlib.Path(output)) == file.format(tmp_path.resolve())


@pytest.mark.parametrize("error, shown", [(KeyboardInterrupt("after step 3"), "stopped after step 3; the same command goes on"),
                                          (RuntimeError("KeyboardInterrupt: <EMPTY MESSAGE>"), "stopped; the same command goes on")])
def test_an_interrupt_ends_with_one_line(error, shown, capsys):
    def work():
        raise error

    with pytest.raises(SystemExit) as stopped:
        command.run(command.Parser(prog="tarn-train"), work)
    assert stopped.value.code == 130 and capsys.readouterr().err == f"tarn-train: {shown}\n"


def test_other_errors_are_not_taken_for_an_interrupt():
    def work():
        raise RuntimeError("another one")

    with pytest.raises(RuntimeError):
        command.run(command.Parser(prog="tarn-train"), work)
