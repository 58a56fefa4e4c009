"""What the tests of the documentation need of Markdown: files, lines outside code, fenced blocks, headings, links."""

import collections
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(os.environ.get("TARN_SOURCE") or pathlib.Path(__file__).resolve().parents[2])

# language and attributes of a fence, its lines, the number of its first line, the HTML comment above it
Block = collections.namedtuple("Block", "language lines number comment")

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+-]*)\s*$")
_COMMENT = re.compile(r"^\s*<!--\s*(.*?)\s*-->\s*$")


def files():
    """Every Markdown file that git knows of or would add."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0")
    return [pathlib.Path(name) for name in sorted(filter(None, names)) if (ROOT / name).is_file()]


def read(file):
    return (ROOT / file).read_text(encoding="utf-8")


def parse(text):
    """(prose, blocks): prose as (number, line), a fenced block as a Block; one that is not closed goes to the end."""
    prose, blocks, opened, comment, lines = [], [], None, "", []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if opened:
            if fence and fence[2].startswith(opened[2]) and not fence[3]:
                blocks.append(Block(opened[3], lines, first, comment))
                opened, comment = None, ""
            else:
                lines.append(line[len(opened[1]):] if line.startswith(opened[1]) else line.lstrip())
        elif fence:
            opened, lines, first = fence, [], number + 1
        else:
            found = _COMMENT.match(line)
            comment = found[1] if found else comment if not line.strip() else ""
            prose.append((number, line))
    if opened:
        blocks.append(Block(opened[3], lines, first, comment))
    return prose, blocks


def without_code(line):
    """A line without its code spans, so that brackets in them are no links."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)


def links(text):
    """(number, target) of every link and picture, in Markdown and in HTML."""
    prose = parse(text)[0]
    for number, line in prose:
        line = without_code(line)
        for found in re.finditer(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", line):
            yield number, found[1]
        for found in re.finditer(r"^\s*\[[^\]]+\]:\s*(\S+)\s*$|\b(?:src|href)=\"([^\"]+)\"", line):
            yield number, found[1] or found[2]


def anchors(text):
    """The anchors of a page by GitHub's rules: headings, and ids in HTML."""
    found, used = set(), collections.Counter()
    for _, line in parse(text)[0]:
        found |= set(re.findall(r"<\w+\s[^>]*\b(?:id|name)=\"([^\"]+)\"", line))
        heading = re.match(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]+>", "", heading[1]))
            anchor = re.sub(r"[^\w\- ]", "", re.sub(r"(?<!\w)_|_(?!\w)", "", title).lower()).replace(" ", "-")
            found.add(f"{anchor}-{used[anchor]}" if used[anchor] else anchor)
            used[anchor] += 1
    return found
