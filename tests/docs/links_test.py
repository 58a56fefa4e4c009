#!/usr/bin/env python3
"""Every Markdown file: links and anchors lead somewhere, lines have at most 120 columns, code stands in fenced blocks with a language.

docs/README.md has every page of docs: the site's navigation is made from it (docs/site/hooks.py).
"""

import os
import pathlib
import re
import sys

import markdown

COLUMNS = 120
LANGUAGES = {"bash", "c", "cmake", "console", "cpp", "diff", "groovy", "ini", "java", "json", "kotlin", "make", "mermaid",
             "python", "sh", "text", "toml", "xml", "yaml"}
AS_PRINTED = {"console", "json", "text"}  # output and files, whose lines nobody may break


def check_links(file, text, pages):
    for number, target in markdown.links(text):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, anchor = target.partition("#")
        path = pathlib.Path(os.path.normpath(file.parent / name)) if name else file
        if path.is_absolute() or path.parts[0] == "..":
            yield f"{file}:{number}: {target}: outside the repository"
        elif not (markdown.ROOT / path).exists():
            yield f"{file}:{number}: {target}: does not exist"
        elif anchor and path not in pages:
            yield f"{file}:{number}: {target}: an anchor in a file that is no page"
        elif anchor and anchor not in pages[path]:
            yield f"{file}:{number}: {target}: {path} has no such anchor"


def check_columns(file, text):
    prose, blocks = markdown.parse(text)
    lines = [(number, line) for number, line in prose if not line.lstrip().startswith("|")]
    for block in blocks:
        if block.language not in AS_PRINTED:
            lines += list(enumerate(block.lines, block.number))
    for number, line in lines:
        if len(line) > COLUMNS and len(line.split()) > 1:
            yield f"{file}:{number}: {len(line)} columns, at most {COLUMNS} expected"


def check_code(file, text):
    prose, blocks = markdown.parse(text)
    for block in blocks:
        if block.language not in LANGUAGES:
            yield f"{file}:{block.number - 1}: a fenced block of language {block.language!r}, one of {', '.join(sorted(LANGUAGES))} expected"
    item, before = 0, (0, "")  # the column of the text of the list item that a line may belong to
    for number, line in prose:
        indent = len(line) - len(line.lstrip())
        marker = re.match(r"\s*(?:[-*+]|\d+[.)])\s+", line)
        blank = not before[1].strip() or before[0] != number - 1
        if line.strip() and blank and indent < item:
            item = 0
        if line.strip() and blank and indent >= item + 4 and not marker:
            yield f"{file}:{number}: indented code: put it into a fenced block with a language"
        if marker:
            item = len(marker[0])
        before = number, line


def check_index(files):
    index = pathlib.Path("docs/README.md")
    linked = {pathlib.Path(os.path.normpath(index.parent / target.partition("#")[0])) for _, target in markdown.links(markdown.read(index))}
    for file in files:
        if file.parts[0] == "docs" and file != index and file not in linked:
            yield f"{index}: does not link to {file}"


def main():
    files = markdown.files()
    texts = {file: markdown.read(file) for file in files}
    pages = {file: markdown.anchors(text) for file, text in texts.items()}
    errors = list(check_index(files))
    for file, text in texts.items():
        errors += check_links(file, text, pages)
        errors += [*check_columns(file, text), *check_code(file, text)]
    print("\n".join(errors) or f"{len(files)} files, {sum(len(list(markdown.links(text))) for text in texts.values())} links")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
