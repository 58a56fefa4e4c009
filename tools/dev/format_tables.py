#!/usr/bin/env python3
"""Writes the reference of the graph in docs/file-format.md: format_tables.py [PAGE], `make format-tables`.

Comments, fields and defaults come from schema/tarn.fbs, numbers of entries from the lists of variants/, so that nothing stands twice.
"""

import pathlib
import re
import sys
import textwrap

import markers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "schema/tarn.fbs"
DEFINITION = re.compile(r"((?:^//[^\n]*\n)*)^(table|struct|enum) (\w+)[^{\n]*\{(.*?)\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"((?:^ *//[^\n]*\n)*)^[ ]*(\w+): ([\w\[\]]+)(?: = ([^;]+?))?(?: (\(required\)))?;[ \t]*(?://[ \t]*([^\n]*))?",
                   re.MULTILINE)
COLUMNS = 118
FULL_LINE = 95  # a longer one, without an end, goes on in the next
ITEM = re.compile(r"(?:inputs?|tensors?|states?)\b")  # what begins a line of its own


def lines_of(comment):
    return [re.sub(r"^ *// ?(---- )?| -+$", "", line) for line in comment.splitlines()]


def joined(lines):
    """Lines as they were before they were broken."""
    whole, goes_on = [], False
    for line in lines:
        if goes_on and not ITEM.match(line):
            whole[-1] += " " + line.strip()
        else:
            whole.append(line)
        goes_on = len(line) >= FULL_LINE and line[-1] not in ".:"
    return whole


def wrapped(lines):
    for line in joined(lines):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        yield from textwrap.wrap(line, COLUMNS, subsequent_indent=indent)


class Schema:
    def __init__(self, text):
        self.tables, self.enums, comments = {}, {}, {}
        for comment, keyword, name, body in DEFINITION.findall(text):
            if keyword == "enum":
                self.enums[name] = re.findall(r"(\w+) = (\d+)", re.sub(r"//.*", "", body))
                comments[name] = lines_of(comment)
                continue
            fields = FIELD.findall(body.replace("; ", ";\n") if "\n" not in body else body)
            # An enumeration is explained where it is first used.
            shared = [line for field in fields for line in comments.pop(field[2], [])]
            self.tables[name] = (shared + lines_of(comment), fields)
        self.ops = re.findall(r"\w+", re.search(r"^union OpAttributes \{(.*?)\}", text, re.MULTILINE | re.DOTALL).group(1))

    def default(self, kind, default, required):
        if required:
            return "required"
        if default:
            return default
        if kind in self.enums:
            return self.enums[kind][0][0]
        return "" if kind == "string" or kind.startswith("[") or kind in self.tables else "0"

    def text(self, heading, name):
        comment, fields = self.tables[name]
        lines = ["", heading, ""]
        lines += ["```text", *wrapped(comment), "```"] if comment else []
        if fields:
            lines += ["", "| field | type | default | meaning |", "|---|---|---|---|"] if comment else \
                     ["| field | type | default | meaning |", "|---|---|---|---|"]
        for above, field, kind, default, required, behind in fields:
            meaning = " ".join([*lines_of(above), behind]).strip().replace("|", "\\|")
            lines.append(f"| `{field}` | {kind} | {self.default(kind, default, required)} | {meaning} |")
        return lines


def entry_of(text):
    """Name and description of an entry: its first string, and its last or the comment behind it."""
    strings, comment = re.findall(r'"([^"\n]*)"', text), re.search(r"/\*\s*(.*?)\s*\*/", text)
    return strings[0], strings[-1] if len(strings) > 1 else comment.group(1) if comment else ""


def lists_of(headers):
    """Lists of variants -> their entries, which stand at the places that files store."""
    lists = {}
    for header in headers:
        text = header.read_text(encoding="utf-8")
        for name, macros, body in re.findall(r"^#define (TARN_\w+)\(([A-Z, ]+)\)((?:.*\\\n)*.*)$", text, re.MULTILINE):
            begin = re.compile(rf'\b(?:{"|".join(macros.split(", "))})\(\w+,\s*(?=")')
            entries = [entry_of(piece) for piece in begin.split(body.replace("\\\n", " "))[1:]]
            if entries and not name.endswith("_ATTRIBUTES"):
                lists[name] = entries
    return lists


def reference():
    schema = Schema(SCHEMA.read_text(encoding="utf-8"))
    lines = ["### Tables of the graph"]
    for name in schema.tables:
        if name not in schema.ops:
            lines += schema.text(f"#### {name}", name)
    lines += ["", "### Ops"]
    for number, name in enumerate(schema.ops, 1):
        lines += schema.text(f"#### {number}. {name}", name)
    lines += ["", "### Numbers", "", "| enumeration | numbers |", "|---|---|"]
    for name, values in schema.enums.items():
        lines.append(f"| {name} | " + ", ".join(f"{number} {value}" for value, number in values) + " |")
    for name, entries in lists_of(sorted((ROOT / "variants").glob("*.h"))).items():
        lines += ["", f"#### {name}", "", "| number | name | what it computes |", "|---|---|---|"]
        lines += [f"| {number} | {entry} | {what.replace('|', chr(92) + '|')} |" for number, (entry, what) in enumerate(entries)]
    return "\n".join(lines)


def main():
    page = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/file-format.md"
    text = markers.replaced(page.read_text(encoding="utf-8"), "reference", f"\n{reference()}\n\n", str(page))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
