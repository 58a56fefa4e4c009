#!/usr/bin/env python3
"""Writes docs/c-api-reference.md from the comments of the public headers; --check says whether it is up to date.

Every function, type, field, enumerator and macro of runtime/include/tarn must have a comment, but for fields that need
none (PLAIN_FIELDS). A fast test (tests/docs/c_api_test.py) calls this with --check.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "runtime/include/tarn"
PAGE = ROOT / "docs/c-api-reference.md"
HEADERS = ["tarn.h", "sampler.h", "snapshot.h", "tokenizer.h", "chat.h", "text_stream.h", "grammar.h", "checkpoints.h", "speculation.h",
           "inspect.h", "status.h"]
COLUMNS = 120
# TARN_STATUS_TABLE stands for the enum that is made from it.
WITHOUT_PAGE = re.compile(r"#define TARN_STATUS_ENUMERATOR|typedef enum tarn_status ")
# what needs no words of its own
PLAIN_FIELDS = {
    "struct_size": "`sizeof` the struct", "name": "its name", "vocab_size": "the number of token ids",
    "tokenizer": "the tokenizer of the model", "task": "the task of the model", "seed": "the seed of the draw",
    "weights_verified": "whether the weights were verified",
}

OPENING = """# C API reference

Every declaration of the public headers, with its comment. `tools/dev/api_page.py` writes this page from
[`tarn.h`](../runtime/include/tarn/tarn.h), [`sampler.h`](../runtime/include/tarn/sampler.h),
[`snapshot.h`](../runtime/include/tarn/snapshot.h),
[`tokenizer.h`](../runtime/include/tarn/tokenizer.h), [`chat.h`](../runtime/include/tarn/chat.h),
[`text_stream.h`](../runtime/include/tarn/text_stream.h), [`grammar.h`](../runtime/include/tarn/grammar.h),
[`checkpoints.h`](../runtime/include/tarn/checkpoints.h), [`speculation.h`](../runtime/include/tarn/speculation.h),
[`inspect.h`](../runtime/include/tarn/inspect.h) and
[`status.h`](../runtime/include/tarn/status.h). [The walk through the API](c-api.md) says in which order to use them.
"""


class Item:
    """A declaration with the comment before it. `kind`: function, struct, enum, type, macro, prose."""

    def __init__(self, kind, name, code, comment):
        self.kind, self.name, self.code, self.comment = kind, name, code, comment
        self.initialiser = None


def comment_text(comment):
    """The lines of a comment without its stars."""
    lines = comment.strip()[2:-2].splitlines()
    return [re.sub(r"^\s*\* ?", "", line).rstrip() if i else line.strip() for i, line in enumerate(lines)]


def declaration_end(text, start):
    """Where the declaration that begins at `start` ends: after its `;`, or its `};`, or the lines of a macro."""
    if text.startswith("#", start):
        return re.compile(r"(?:.*\\\n)*.*").match(text, start).end()
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if text[i] == ";" and depth == 0:
            end = text.find("\n", i)
            return end
    raise ValueError(text[start:start + 80])


def classify(code):
    for kind, pattern in (("function", r"TARN_API [^(]*?(\w+)\("), ("enum", r"typedef enum (\w+) \{"),
                          ("struct", r"typedef struct (\w+) \{"), ("type", r"typedef struct (\w+) \w+;"),
                          ("macro", r"#define (\w+)")):
        found = re.match(pattern, code)
        if found:
            return kind, found[1]
    raise ValueError(f"neither a function nor a type: {code[:80]}")


def parse(text):
    """The items of a header, in their order."""
    text = re.sub(r"#if defined\(_WIN32\)\n.*?#endif\n", "", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    text = re.sub(r"^#(?:ifndef|endif|include|undef|define \w+_H_$).*\n", "", text, flags=re.M)
    items, at, comment = [], 0, None
    while at < len(text):
        if text[at] == "\n":
            if comment is not None and text[at:at + 2] == "\n\n":
                items.append(Item("prose", "", "", comment))
                comment = None
            at += 1
        elif text.startswith("/*", at):
            end = text.index("*/", at) + 2
            comment, at = comment_text(text[at:end]), end
        else:
            end = declaration_end(text, at)
            code, at = text[at:end], end
            if not WITHOUT_PAGE.match(code):
                items.append(Item(*classify(code), code, comment))
            if not code.startswith("#define") or text[at:at + 2] == "\n\n":  # macros side by side share a comment
                comment = None
    return join(items)


def join(items):
    """TARN_X_INIT belongs to the struct before it."""
    kept = []
    for item in items:
        if item.kind == "macro" and item.name.endswith("_INIT") and kept and kept[-1].kind == "struct":
            kept[-1].initialiser = item.name
        else:
            kept.append(item)
    return kept


def members(item):
    """(name, type or value, comment) of the fields of a struct or the values of an enum."""
    body = item.code[item.code.index("{") + 1:item.code.rindex("}")]
    found, above, at = [], None, 0
    statement = re.compile(r"[^,/]+,?" if item.kind == "enum" else r"[^;/]+;")
    while body[at:].strip():
        space = re.compile(r"\s*").match(body, at)
        at = space.end()
        if body.startswith("/*", at):
            end = body.index("*/", at) + 2
            comment = " ".join(comment_text(body[at:end]))
            if found and "\n" not in space[0]:
                found[-1][2] = comment
            else:
                above = comment
        else:
            end = statement.match(body, at).end()
            found.append([*name_and_type(" ".join(body[at:end].rstrip(",; \n").split())), above])
            above = None
        at = end
    return [(name, value, comment or PLAIN_FIELDS.get(name)) for name, value, comment in found]


def name_and_type(code):
    """Of `float x[4]`: ("x", "float[4]"); of an enumerator its value."""
    if " = " in code:
        return code.split(" = ")
    pointer = re.match(r"(.*)\(\*(\w+)\)(\(.*\))$", code)
    if pointer:
        return pointer[2], f"{pointer[1]}(*){pointer[3]}"
    plain = re.match(r"(.*?)(\w+)((?:\[\w+\])?)$", code)
    return plain[2], plain[1].strip() + plain[3]


class Prose:
    """Comments as Markdown: code spans, links to what the page has, paragraphs of 120 columns."""

    def __init__(self, names):
        self.names = names

    def inline(self, text):
        spans = []

        def keep(span):
            spans.append(span)
            return f"\0{len(spans) - 1}\0"

        def word(match):
            name = match[1]
            linked = name in self.names and match[0] in (name, name + "()")
            return keep(f"[`{match[0]}`](#{name})" if linked else f"`{match[0]}`")

        def code(match):
            return keep(f"`{match[0]}`")

        text = re.sub(r"`[^`]+`", lambda match: keep(match[0]), text)
        text = re.sub(r"\"[^\"]*\"", code, text)
        text = re.sub(r"\b(tarn_[a-z0-9_]+)(?:\.\w+|\(\))?", word, text)
        text = re.sub(r"\b(?:TARN_[A-Z0-9_]+|UINT64_MAX)\b", code, text)
        text = re.sub(r"\b\w+\[\w+\]|\[[\w *,.+()]+\]|\b\w*[a-z0-9]_\w+(?:\(\))?", code, text)
        text = text.replace("<", "&lt;").replace("*", "\\*").replace("|", "\\|")
        while "\0" in text:
            text = re.sub("\0(\\d+)\0", lambda match: spans[int(match[1])], text)
        return text

    def wrap(self, text, first="", rest=""):
        glued = re.sub(r" (>=|&lt;=|&lt;|>|=|\+|-|\\\*|/|\d+\.) ", "\1\\1\1", self.inline(text))
        glued = re.sub(r" ([-+>]|\d+[.)])", "\1\\1", glued)
        lines = textwrap.wrap(glued, COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                              break_on_hyphens=False)
        return "\n".join(lines).replace("\1", " ")

    def blocks(self, lines):
        """The paragraphs, lists and code of a comment."""
        paragraphs, code = [], False
        for line in lines:
            listed = re.match(r"(?:- | ?\d+\. )", line)
            mark = re.match(r"(Errors|Thread safety): ", line)
            if re.match(r" {2,}\S", line) and not listed and (code or not paragraphs or not paragraphs[-1]):
                if not code:
                    paragraphs.append(["code"])
                paragraphs[-1].append(line[2:])
                code = True
            elif not line:
                paragraphs.append([])
                code = False
            elif listed or mark or not paragraphs or code:
                paragraphs.append([line.strip()])
                code = False
            else:
                paragraphs[-1].append(line.strip())
        return [paragraph for paragraph in paragraphs if paragraph]

    def marked(self, mark, text):
        """What a call says of its errors or of threads: several statuses are a list."""
        listed, _, rest = text.partition(". ")
        statuses = re.split(r", (?=TARN_)(?![^()]*\))", listed.rstrip("."))
        if len(statuses) > 1 and text.startswith("TARN_"):
            items = "\n".join(self.wrap(status, "- ", "  ") for status in statuses)
            return [f"**{mark}:**", items, *([self.wrap(rest)] if rest else [])]
        return [self.wrap(f"**{mark}:** {text}".replace("**", "\2\3")).replace("\2\3", "**")]

    def markdown(self, lines):
        out = []
        for paragraph in self.blocks(lines):
            if paragraph[0] == "code":
                out.append("```c\n" + "\n".join(paragraph[1:]) + "\n```")
                continue
            text = " ".join(paragraph)
            number = re.match(r"(\d+\.|-) +(.*)", text)
            mark = re.match(r"(.*?)\b(Errors|Thread safety): (.*)", text)
            if number:
                out.append(self.wrap(number[2], number[1] + " ", " " * (len(number[1]) + 1)))
            elif mark and mark[1] == "":
                out += self.marked(mark[2], mark[3])
            else:
                out.append(self.wrap(text))
        return "\n\n".join(out)


def render_members(item, prose, errors):
    rows = []
    for name, value, comment in members(item):
        if not comment:
            errors.append(f"{item.name}.{name} has no comment")
        rows.append(f"| `{name}` | `{value}` | {prose.inline(comment or '')} |")
    head = "| Field | Type | Meaning |" if item.kind == "struct" else "| Name | Value | Meaning |"
    return "\n".join([head, "|---|---|---|", *rows])


def status_table(code):
    rows = re.findall(r"X\((\w+), (\d+), \"([^\"]*)\"\)", code)
    return "\n".join(["| Name | Value | `tarn_status_string()` |", "|---|---|---|",
                      *(f"| `TARN_{name}` | {number} | {text} |" for name, number, text in rows)])


def render(item, prose, errors):
    if item.kind == "prose":
        title = re.match(r"---- (.*?) -+$", item.comment[0])
        rest = prose.markdown(item.comment[1:] if title else item.comment)
        return (f"## {title[1]}\n\n{rest}" if title else rest).strip()
    if not item.comment and item.kind != "type":
        errors.append(f"{item.name} has no comment")
    if item.name == "TARN_STATUS_TABLE":
        return f"### tarn_status\n\n{status_table(item.code)}"
    parts = [f"### {item.name}"]
    if item.kind == "function":
        code = " ".join(item.code.replace("TARN_API ", "").split())
        code = re.sub(r"(?<!,) ", "\1", code)  # a line ends after a parameter
        code = textwrap.fill(code, COLUMNS, subsequent_indent=" " * (code.index("(") + 1), break_on_hyphens=False)
        parts.append("```c\n" + code.replace("\1", " ") + "\n```")
    elif item.kind == "type":
        code, _, comment = item.code.partition(" /*")
        parts.append(f"```c\n{code.strip()}\n```")
        item.comment = comment_text("/*" + comment) if comment else item.comment
        if not item.comment:
            errors.append(f"{item.name} has no comment")
    elif item.kind == "macro":  # a release changes the value of some
        code = f"#define {item.name}" if item.name.startswith("TARN_VERSION_") else item.code
        parts.append(f"```c\n{code}\n```")
    if item.comment:
        text = prose.markdown(item.comment)
        ended = text.endswith((".", "`", ":")) or text.splitlines()[-1].startswith("- ")
        parts.append(text[0].upper() + text[1:] + ("" if ended else "."))
    if item.kind in ("struct", "enum"):
        if item.initialiser:
            parts.append(f"Initialise it with `{item.initialiser}`.")
        parts.append(render_members(item, prose, errors))
    return "\n\n".join(parts)


def page():
    """The text of the page, and what lacks a comment."""
    headers = {name: parse((FOLDER / name).read_text(encoding="utf-8")) for name in HEADERS}
    prose = Prose({item.name for items in headers.values() for item in items if item.name} | {"tarn_status"})
    errors, parts = [], [OPENING.strip()]
    for name, items in headers.items():
        opening, rest = items[0], items[1:]
        parts.append(f"## The header {name}\n\n{prose.markdown(opening.comment)}")
        parts += [render(item, prose, errors) for item in rest]
    return "\n\n".join(parts) + "\n", errors


def main():
    text, errors = page()
    if errors:
        print("\n".join(f"runtime/include/tarn: {error}" for error in errors))
        return 1
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            print("docs/c-api-reference.md is not what the headers say: run tools/dev/api_page.py")
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
