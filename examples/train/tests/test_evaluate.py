"""evaluate.py: what it reads, and that a wrong file is an error of one line."""

import pathlib
import sys

import pytest
import evaluate

DATES = pathlib.Path(__file__).resolve().parents[1] / "checkpoints" / "dates-softmax"


def run(file, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["evaluate.py", str(DATES), str(file)])
    evaluate.main()


def test_the_share_of_lines_that_are_right(tmp_path, monkeypatch, capsys):
    (tmp_path / "lines.tsv").write_bytes(b"3 March 1998\t1998-03-03\r\n4 May 2001\t2001-05-04\n5 May 2001\t1900-01-01")
    run(tmp_path / "lines.tsv", monkeypatch)
    assert capsys.readouterr().out == "66.67\n"


@pytest.mark.parametrize("content, message", [
    (b"", " is empty, expected lines of two texts with a tab between them"),
    (b"a\tb\n3 March 1998\n", ": line 2 is '3 March 1998', expected two texts with a tab between them"),
    (b"a\tb\tc\n", ": line 1 is 'a\\tb\\tc', expected two texts"), (b"a\tb\n\n", ": line 2 is '', expected two texts"),
    (b"a\t\n", ": line 1 is 'a\\t', expected two texts"),
    (b"a\tb\n3 M\xc3\xa4rz\t1998-03-03\n", ": line 2 has the byte 0xc3, expected ASCII")])
def test_a_file_of_other_lines_is_an_error_of_one_line(content, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "lines.tsv").write_bytes(content)
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path / "lines.tsv", monkeypatch)
    shown = capsys.readouterr().err
    assert stopped.value.code == 2 and shown.count("\n") == 1 and f"{tmp_path / 'lines.tsv'}{message}" in shown
