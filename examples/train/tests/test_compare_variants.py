"""compare_variants.py on small models: every run is made, the runtime has PyTorch's losses, and a second start trains nothing again."""

import sys

import pytest
import compare_variants


@pytest.fixture
def small(monkeypatch):
    for name, value in (("OBJECTS", {name: compare_variants.OBJECTS[name] for name in ("softmax", "abc", "rfa_gate")}), ("TRANSFERRED", ("abc",)),
                        ("STEPS", 4), ("MATCH", 2), ("TUNE", 3), ("COMMON", {**compare_variants.COMMON, "batch": 2, "held_out": 0.2}),
                        ("MODEL", {"hidden_size": 32, "num_layers": 1, "num_heads": 1, "intermediate_size": 32, "vocab_size": 300})):
        monkeypatch.setattr(compare_variants, name, value)


def test_the_table(small, programs, tmp_path, monkeypatch, capsys):
    text, folder = tmp_path / "text.txt", tmp_path / "runs"
    text.write_text("".join(f"{i * i % 977} stones and {i * 7 % 89} rivers\n" for i in range(400)), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["compare_variants.py", str(text), "-o", str(folder), "--jobs", "2", "--seeds", "1", "--bin", str(programs)])
    compare_variants.main()
    first = capsys.readouterr().out
    rows = {cells[1]: [float(cell.split()[0]) for cell in cells[2:-1]]
            for cells in ([cell.strip() for cell in line.split("|")] for line in first.splitlines()[2:])}
    assert set(rows) == {"softmax", "abc", "rfa_gate", "abc-short", "abc-from-softmax"}
    for name, (pytorch, f32, *quantized) in rows.items():
        assert abs(pytorch - f32) < 2e-4, name  # printed with four digits
        assert quantized and all(abs(loss - f32) < 0.05 for loss in quantized), name
    weights = {path: path.stat().st_mtime_ns for path in folder.glob("*/model.safetensors")}
    compare_variants.main()
    assert capsys.readouterr().out == first
    assert weights and all(path.stat().st_mtime_ns == time for path, time in weights.items())


def test_bad_arguments(tmp_path, monkeypatch, capsys):
    for arguments, words in ((["--jobs", "0"], "0, expected 1 or more"), (["--bin", str(tmp_path)], "is no program")):
        monkeypatch.setattr(sys, "argv", ["compare_variants.py", str(tmp_path / "text"), "-o", str(tmp_path / "runs"), *arguments])
        with pytest.raises(SystemExit):
            compare_variants.main()
        assert words in capsys.readouterr().err and not (tmp_path / "runs").exists()
