#!/usr/bin/env python3
"""The completions of tools/shell in the shells themselves, and the manual pages through the programs that show them."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(os.environ["TARN_SOURCE"])
BIN = Path(os.environ["TARN_BUILD"]) / "bin"
SHELL = ROOT / "tools/shell"
sys.path.insert(0, str(ROOT / "tools/dev"))
import cli_page

PROGRAMS = cli_page.read_programs(BIN.parent)
COMMANDS = list(PROGRAMS.helps)
QUANT = ["auto", "f16", "f32", "int2", "int3", "int4", "int8"]
CLEAN = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": "/nonexistent", "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def names_of(help_text):
    options = [option for entries in help_text.sections.values() for option in entries]
    return {name for option in options for name in option.names if name.startswith("--")}


def kernels():
    out = subprocess.run([BIN / "tarn", "inspect", "--cpu"], capture_output=True, text=True, check=True).stdout
    return sorted(out.splitlines()[0].split()[1:])


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, *command, cwd):
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.chdir(cwd)
            os.execvpe(command[0], command, CLEAN)

    def type(self, text, until, seconds=30):
        """Writes keys, and reads until a pattern shows."""
        os.write(self.descriptor, text.encode())
        shown, end = "", time.monotonic() + seconds
        while not re.search(until, shown):
            if not select.select([self.descriptor], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} shows {shown!r}, expected {until!r}")
            shown += os.read(self.descriptor, 4096).decode(errors="replace")
        return shown

    def close(self):
        os.close(self.descriptor)
        os.kill(self.process, 9)
        os.waitpid(self.process, 0)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        for name in ("model.tarn", "a model.tarn", "text.txt"):
            (cls.folder / name).write_text("")
        (cls.folder / "directory").mkdir()

    def check(self, complete):
        """`complete` gives the words that a shell offers for the last word of a line."""
        self.assertEqual(complete("tarn in"), ["inspect"])
        self.assertLessEqual(set(COMMANDS), set(complete("tarn ")))
        self.assertEqual(complete("tarn help to"), ["tokenize"])
        for name in COMMANDS:
            self.assertEqual(set(complete(f"tarn {name} --")), names_of(PROGRAMS.helps[name]), name)
        self.assertEqual(set(complete("tarn-convert --")), names_of(PROGRAMS.convert))
        self.assertEqual(complete("tarn eval m.tarn --str"), ["--stride"])
        self.assertEqual(complete("tarn-convert d --quant "), QUANT)
        self.assertEqual(complete("tarn-convert d --state f"), ["f16", "f32"])
        self.assertEqual(complete("tarn bench m.tarn -o js"), ["json", "jsonl"])
        self.assertEqual(complete("tarn run m.tarn --isa "), kernels())
        self.assertIn("model.tarn", complete("tarn run mod"))
        self.assertIn("model.tarn", complete("tarn eval -m mod"))
        self.assertIn("model.tarn", complete("tarn eval x.tarn --against mod"))
        self.assertIn("text.txt", complete("tarn eval x.tarn -f te"))
        self.assertIn("directory", [name.rstrip("/") for name in complete("tarn run x.tarn --packed-cache d")])
        self.assertEqual(complete("tarn run x.tarn --seed "), [])
        self.assertEqual(complete("tarn state "), ["diff", "info"])
        self.assertEqual(complete("tarn state info te"), ["text.txt"])

    # ---- bash ----

    def bash(self, line):
        program = line.split()[0]
        words = ["" if word == "''" else word for word in re.findall(r"=|[^ =]+|(?<= )$", line)]
        script = f"""source {shlex.quote(str(SHELL / program))}.bash
            COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}
            _{program.replace('-', '_')}
            printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, env=CLEAN, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return sorted(filter(None, done.stdout.splitlines()))

    def test_bash(self):
        self.check(self.bash)
        self.assertEqual(self.bash("tarn run "), ["a model.tarn", "directory", "model.tarn"])
        self.assertEqual(self.bash("tarn-convert d --quant=int"), ["int2", "int3", "int4", "int8"])
        self.assertEqual(self.bash("tarn-convert d --quant="), QUANT)

    def test_bash_on_a_terminal(self):
        shell = Terminal("bash", "--norc", "-i", cwd=self.folder)
        self.addCleanup(shell.close)
        shell.type(f"PS1='> '; for one in {shlex.quote(str(SHELL))}/*.bash; do source $one; done; echo loa''ded\n", r"loaded[\s\S]*> $")
        shell.type("tarn cla\t", r"tarn classify $")
        shell.type("mo\t", r"model\.tarn $")
        shell.type("--top\t", r"--top-k $")
        shell.type("\x15tarn run a\t", r"a\\ model\.tarn $")  # its space is quoted
        shell.type("\x15tarn-convert --quant=f1\t", r"--quant=f16 $")

    # ---- fish ----

    def fish(self, line):
        program = line.split()[0]
        done = subprocess.run(["fish", "--no-config", "-c", f"source {shlex.quote(str(SHELL / program))}.fish; complete -C {shlex.quote(line)}"],
                              cwd=self.folder, env={**CLEAN, "HOME": str(self.folder)}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        found = [one.split("\t")[0] for one in done.stdout.splitlines()]
        return sorted(name for name in found if not line.endswith("-") or name.startswith("--"))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        self.check(self.fish)
        self.assertEqual(self.fish("tarn-convert d --quant=int"), ["--quant=int2", "--quant=int3", "--quant=int4", "--quant=int8"])

    # ---- zsh ----

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        functions = self.folder / "functions"
        functions.mkdir(exist_ok=True)
        for program in ("tarn", "tarn-convert"):
            shutil.copy(SHELL / f"{program}.zsh", functions / f"_{program}")
        shell = Terminal("zsh", "-f", "-i", cwd=self.folder)
        self.addCleanup(shell.close)
        # Its own lists are for eyes: here the function that takes the words writes them.
        shell.type(f"PS1='> '; fpath=({shlex.quote(str(functions))} $fpath); autoload -Uz compinit; compinit -D -u; unset zle_bracketed_paste; LISTMAX=9999; "
                   "bindkey '^I' complete-word; zstyle ':completion:*' list-colors ''; "
                   "compadd() { local -a found; builtin compadd -O found \"$@\"; print -rl -- $found >> words; builtin compadd \"$@\" }; "
                   "echo loa''ded\n", r"loaded[\s\S]*> $")
        words = self.folder / "words"

        def complete(line):
            words.write_text("")
            shell.type(f"\x15{line}\t", ".")
            shell.type("\x15print do''ne\n", r"done[\s\S]*> $")
            found = {word.rstrip("=") for word in words.read_text().splitlines() if word}
            return sorted(word for word in found if not line.endswith("--") or word.startswith("--"))

        self.check(complete)

    # ---- manual pages ----

    def test_every_command_has_a_page(self):
        pages = {path.name for path in SHELL.glob("*.1")}
        self.assertEqual(pages, {"tarn.1", "tarn-convert.1", *(f"tarn-{name}.1" for name in COMMANDS)})

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_pages_show(self):
        for name, help_text in {"tarn-convert": PROGRAMS.convert, **{f"tarn-{name}": PROGRAMS.helps[name] for name in COMMANDS}}.items():
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", SHELL / f"{name}.1"], capture_output=True, text=True,
                                  env={**CLEAN, "MANWIDTH": "100"}, check=True)
            self.assertEqual(done.stderr, "", name)
            text = " ".join(re.sub(r".\x08", "", done.stdout).split())
            for option in names_of(help_text):
                self.assertIn(option, text)
            self.assertIn(f"{name} - {help_text.purpose.rstrip('.')}", text.replace("‐ ", ""))

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_pages_are_clean(self):
        done = subprocess.run(["mandoc", "-T", "lint", *SHELL.glob("*.1")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
