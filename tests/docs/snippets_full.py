#!/usr/bin/env python3
"""Everything that the documentation prints is run: the fenced blocks of every Markdown file.

bash and sh run in a copy of the tree with the programs of this build; console as well, and what a command prints must be what stands
below it ("..." stands for any text). c is compiled, and linked if it has a main; python runs; cmake is configured; java and kotlin are
compiled; json is parsed, and a config.json is converted with random weights. Blocks of a page share a folder, in their order.

Above a block:  <!-- snippet: skip, REASON -->       not run; the reason is in the report
                <!-- snippet: file NAME -->          written to a file for the blocks after it
                <!-- snippet: run ARGUMENTS -->      a C program is run, too
                <!-- snippet: fails -->              the commands of a console may fail

  snippets_full.py [-v] [FILE...]      TARN_BUILD is the build folder
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import markdown
import snippet_code
import snippet_shell

RUNNERS = {"bash": snippet_shell.run, "sh": snippet_shell.run, "console": snippet_shell.compare, "c": snippet_code.c,
           "python": snippet_code.python, "cmake": snippet_code.cmake, "java": snippet_code.java, "kotlin": snippet_code.kotlin,
           "json": snippet_code.json_text}
NOT_CODE = {"text", "diff", "mermaid", "xml", "ini", "make", "toml", "yaml", "groovy", "cpp"}


class Page:
    """The blocks of one file, and the folder they run in."""

    def __init__(self, file, folder):
        self.file, self.folder = file, pathlib.Path(folder)
        self.tree = None
        self.program = None  # the page's last whole program in C, which commands compile under any name
        self.environment = dict(os.environ, TARN_PACKED_CACHE="none", TMPDIR=str(folder))
        self.ran, self.skipped, self.failed = [], [], []

    def skip(self, where, reason):
        self.skipped.append(f"{where}: {reason}")

    def block(self, block):
        where = f"{self.file}:{block.number}"
        kind, _, rest = block.comment.removeprefix("snippet:").strip().partition(" ") if block.comment.startswith("snippet:") else ("", "", "")
        text = "\n".join(block.lines) + "\n"
        if kind in ("skip", "skip,"):
            self.skip(where, rest or "no reason given")
            return
        if kind == "file":
            snippet_shell.tree(self)
            (self.tree / rest).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / rest).write_text(text, encoding="utf-8")
        if block.language in NOT_CODE:
            return
        try:
            reason = RUNNERS[block.language](self, where, text, {"run": rest, "fails": True}.get(kind))
        except (snippet_shell.Failure, OSError, subprocess.SubprocessError) as failure:
            self.failed.append(f"{where} ({block.language}): {failure}")
            return
        if reason:
            self.skip(where, reason)
        else:
            self.ran.append(where)


def run_page(file):
    with tempfile.TemporaryDirectory(prefix="tarn-docs-") as folder:
        page = Page(file, folder)
        for block in markdown.parse(markdown.read(file))[1]:
            page.block(block)
        return page


def main():
    verbose = "-v" in sys.argv[1:]
    names = [pathlib.Path(name) for name in sys.argv[1:] if name != "-v"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pages = list(pool.map(run_page, names or markdown.files()))
    skipped = [line for page in pages for line in page.skipped]
    failed = [line for page in pages for line in page.failed]
    if verbose:
        print("".join(f"ran {where}\n" for page in pages for where in page.ran), end="")
    print("".join(f"skipped {line}\n" for line in skipped), end="")
    print("".join(f"FAILED {line}\n" for line in failed), end="")
    print(f"{sum(len(page.ran) for page in pages)} snippets ran, {len(skipped)} skipped, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
