#!/usr/bin/env python3
"""Writes what follows from the help texts of tarn and tarn-convert: the generated blocks of docs/cli.md, and in tools/shell the
completions for bash, zsh and fish (cli_shell.py) and the manual pages (cli_man.py).

    cli_page.py [--build BUILD] [--check]

A block stands between two markers, <!-- NAME --> and <!-- /NAME -->: "tarn" is the list of commands, "tarn COMMAND" the options of a
command, "runtime options" those that the commands share, "tarn-convert" those of the converter. --check writes nothing; its exit
status is 1 if a block or a file is not what the programs say.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cli_man
import cli_shell
from markers import split

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/cli.md"
SHELL = ROOT / "tools/shell"
RUNTIME = "Runtime"  # the heading of the options that the commands share
HEADING = re.compile(r"^([A-Z][^:]*):$")
NOTE = re.compile(r" (Needs|Excludes): (--?\S+(?: --?\S+)*)")
FLAG = re.compile(r"(?<![\w`-])(--?[a-zA-Z][\w-]*)")
WIDTH = 120


@dataclasses.dataclass
class Option:
    names: list  # ["-n", "--n-predict"]; of a positional ["model"]
    value: str  # "N", or empty
    required: bool
    note: str  # "needs --eval", or empty
    text: str

    def row(self):
        names = ", ".join(f"`{name}`" for name in self.names)
        value = f"`{self.value}`".replace("|", "\\|") if self.value else ""
        notes = ", ".join(filter(None, ["required" if self.required else "", markdown(self.note)]))
        return f"| {names} | {value} | {markdown(self.text)}{f' ({notes})' if notes else ''} |"


@dataclasses.dataclass
class Help:
    purpose: str
    usage: str
    sections: dict  # heading -> [Option]; of "Subcommands" the names and texts alone
    footer: list  # lines


def markdown(text):
    """Plain text as Markdown of a table cell: names of options are code, and what stands between backticks stays as it is."""
    parts = text.replace("|", "\\|").split("`")
    for i in range(0, len(parts), 2):
        parts[i] = FLAG.sub(r"`\1`", parts[i]).replace("<", "&lt;").replace("*", "\\*")
        parts[i] = re.sub(r"\b\w+_\w+\b", lambda word: f"`{word[0]}`", parts[i])
    return "`".join(parts).replace("``", "")


def parse_option(left, text):
    note = ", ".join(f"{kind.lower()} {' and '.join(names.split())}" for kind, names in NOTE.findall(left))
    words = NOTE.sub("", left).split()
    required, repeated = "REQUIRED" in words, "..." in words
    words = [word for word in words if word not in ("REQUIRED", "...")]
    value = " ".join(words[1:])
    return Option(words[0].split(","), value, required, note, text + ("; may be several" if repeated and "repeatable" not in text else ""))


def parse(text):
    """A help text as CLI11 prints it: purpose, usage, sections of options, footer."""
    lines = text.splitlines()
    usage = next(line for line in lines if line.startswith("Usage: "))
    help_text = Help(" ".join(lines[: lines.index(usage)]), usage.removeprefix("Usage: "), {}, [])
    column = next((line.index("Print this help") for line in lines if line.startswith("  -h,--help")), 0)
    section = None
    for i in range(lines.index(usage) + 1, len(lines)):
        line = lines[i]
        heading = HEADING.match(line)
        if heading and not line.startswith("Examples"):
            section = help_text.sections.setdefault(heading[1], [])
        elif re.match(r"  \S", line) and section is not None:
            # The text of an option whose name does not fit stands in the next line.
            end = len(line) if lines[i + 1:] and lines[i + 1].startswith("      ") else column
            left, described = line[:end].strip(), line[end:]
            section.append(parse_option(left, described.strip()))
        elif line.startswith("      ") and section:
            section[-1].text = line.strip() + section[-1].text
        elif line:
            help_text.footer = lines[i:]
            break
    return help_text


def read(program, *arguments):
    return parse(subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout)


def options_of(help_text):
    """heading -> options, without --help, a positional together with the option of its name."""
    positionals = {option.names[0] for option in help_text.sections.get("Positionals", [])}
    sections = {}
    for heading, options in help_text.sections.items():
        if heading in ("Positionals", "Subcommands"):
            continue
        for option in options:
            own = option.names[-1].removeprefix("--")
            names = [own] if own in positionals else []
            positionals -= {own}
            if "--help" not in option.names:
                sections.setdefault(heading, []).append(dataclasses.replace(option, names=names + option.names))
    alone = [option for option in help_text.sections.get("Positionals", []) if option.names[0] in positionals]
    return {"Options": [*alone, *sections.pop("Options", [])], **sections} if alone else sections


def table(options):
    return ["| option | value | meaning |", "|---|---|---|", *(option.row() for option in options)]


def footer(lines):
    """Sentences, wrapped, and the examples as they stand there."""
    first = next((i for i, line in enumerate(lines) if line.startswith("Examples")), len(lines))
    prose = textwrap.wrap(re.sub(FLAG, r"`\1`", " ".join(lines[:first])), WIDTH, break_on_hyphens=False)
    examples = [line for line in lines[first:] if line]
    return [*prose, *([""] if prose and examples else []), *(["```text", *examples, "```"] if examples else [])]


def command_block(help_text, shared):
    """The options of a command; those that it shares with others by name only."""
    lines = [f"`{help_text.usage}`", ""]
    for heading, options in options_of(help_text).items():
        if heading == RUNTIME and shared is not None:
            strange = [option.names for option in options if option not in shared]
            if strange:
                sys.exit(f"cli_page: {help_text.usage}: {strange} differ from the {RUNTIME} options of tarn run")
            names = ", ".join(f"`{option.names[-1]}`" for option in options)
            lines += textwrap.wrap(f"[Runtime options](#runtime-options): {names}.", WIDTH, break_on_hyphens=False) + [""]
            continue
        lines += ([f"{heading}:", ""] if heading != "Options" else []) + table(options) + [""]
    return "\n".join(lines + footer(help_text.footer)).strip()


@dataclasses.dataclass
class Programs:
    summary: Help  # of tarn
    helps: dict  # of its commands: name -> Help
    convert: Help
    version: str


def read_programs(build):
    tarn = build / "bin/tarn"
    summary = read(tarn, "help")
    names = [option.names[0] for option in summary.sections["Subcommands"]]
    version = subprocess.run([tarn, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return Programs(summary, {name: read(tarn, "help", name) for name in names}, read(build / "bin/tarn-convert", "--help"), version)


def blocks(programs):
    helps, names = programs.helps, list(programs.helps)
    shared = options_of(helps["run"])[RUNTIME]
    rows = [f"| [`tarn {name}`](#tarn-{name}) | {markdown(helps[name].purpose)} |" for name in names]
    return {
        "tarn": "\n".join(["| command | what it does |", "|---|---|", *rows]),
        "runtime options": "\n".join(table(shared)),
        **{f"tarn {name}": command_block(helps[name], shared) for name in names},
        "tarn-convert": command_block(programs.convert, None),
    }


def shell_files(programs, page):
    """Name -> text of the files in tools/shell."""
    files = {}
    for program, summary, helps in (("tarn", programs.summary, programs.helps), ("tarn-convert", programs.convert, {"": programs.convert})):
        files[f"{program}.bash"] = cli_shell.bash(program, helps)
        files[f"{program}.zsh"] = cli_shell.zsh(program, helps)
        files[f"{program}.fish"] = cli_shell.fish(program, helps)
        files.update(cli_man.pages(program, summary, helps, programs.version, page))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help="the build directory (default: build)")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    programs = read_programs(arguments.build)
    page = PAGE.read_text(encoding="utf-8")
    for name, block in blocks(programs).items():
        before, stated, after = split(page, name, "docs/cli.md")
        if arguments.check and stated != block + "\n":
            sys.exit(f"cli_page: docs/cli.md: the block '{name}' is not what the program says: run tools/dev/cli_page.py --build BUILD")
        page = f"{before}{block}\n{after}"
    files = {SHELL / name: text for name, text in shell_files(programs, page).items()}
    strange = [path for path in SHELL.iterdir() if path.suffix != ".md" and path not in files]
    for path, text in {PAGE: page, **files}.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments.check:
            sys.exit(f"cli_page: {path.relative_to(ROOT)} is not what the programs say: run tools/dev/cli_page.py --build BUILD")
        path.write_text(text, encoding="utf-8")
    for path in strange:
        if arguments.check:
            sys.exit(f"cli_page: {path.relative_to(ROOT)}: no program or command has this name; delete it")
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
