"""compare_variants.py on small models: every run is made, the runtime has PyTorch's losses, and a second start trains nothing again."""

import sys

import pytest
import compare_variants


@pytest.fixture
def small(monkeypatch):
    for name, value in (("OBJECTS", {name: compare_variants.OBJECTS[name] for name in ("softmax", "abc", "rfa_arccos_gate")}), ("TRANSFERRED", ("abc",)),
                        ("COMMON", {**compare_variants.COMMON, "held_out": 0.2}), ("SCALES", {"tiny": compare_variants.Scale(
                            {"hidden_size": 32, "num_layers": 1, "num_heads": 1, "intermediate_size": 32, "vocab_size": 300}, 2, 4, 2, 3, 1e-3)})):
        monkeypatch.setattr(compare_variants, name, value)


def test_the_table(small, programs, tmp_path, monkeypatch, capsys):
    text, folder = tmp_path / "text.txt", tmp_path / "runs"
    text.write_text("".join(f"{i * i % 977} stones and {i * 7 % 89} rivers\n" for i in range(400)), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["compare_variants.py", str(text), "-o", str(folder), "--jobs", "2", "--seeds", "1", "--bin", str(programs)])
    compare_variants.main()
    first = capsys.readouterr().out
    rows = {cells[1]: [float(cell.split()[0].replace(",", "")) for cell in cells[2:-1]]
            for cells in ([cell.strip() for cell in line.split("|")] for line in first.splitlines()[2:])}
    assert set(rows) == {"softmax", "abc", "rfa_arccos_gate", "abc-short", "abc-from-softmax"}
    for name, (pytorch, f32, int8, int4, int4_calibrated, int3_calibrated, state, speed) in rows.items():
        assert abs(pytorch - f32) < 2e-4, name  # printed with four digits
        assert abs(int8) < 0.01 and all(abs(added) < 0.05 for added in (int4, int4_calibrated, int3_calibrated)), name
        assert speed > 0, name
    assert rows["softmax"][6] > 8 * rows["abc"][6] > 8 * 2 * 16 * 32 * 4  # 256 keys and values; 16 of them, and what sums them
    weights = {path: path.stat().st_mtime_ns for path in folder.glob("*/model.safetensors")}
    compare_variants.main()
    assert [line.rsplit("|", 2)[0] for line in capsys.readouterr().out.splitlines()] == [line.rsplit("|", 2)[0] for line in first.splitlines()]
    assert weights and all(path.stat().st_mtime_ns == time for path, time in weights.items())


def test_bad_arguments(tmp_path, monkeypatch, capsys):
    for arguments, words in ((["--jobs", "0"], "0, expected 1 or more"), (["--bin", str(tmp_path)], "is no program")):
        monkeypatch.setattr(sys, "argv", ["compare_variants.py", str(tmp_path / "text"), "-o", str(tmp_path / "runs"), *arguments])
        with pytest.raises(SystemExit):
            compare_variants.main()
        assert words in capsys.readouterr().err and not (tmp_path / "runs").exists()
