#!/usr/bin/env python3
"""Citations of the mathematics meet sections of docs/mathematics.md, in the one form that is found here."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
MATHEMATICS = "docs/mathematics.md"
SECTION = r"\d+(?:\.\d+)*"
# A citation: sections, families of section 0.1 ("F1"), items ("a") and quoted paragraphs, in a list
CITED = re.compile(rf"\bMATH\b((?:(?:,| and|, and)?\s(?:{SECTION}(?![\w(])|F[123]\b|[ab]\b(?=[);])|\"[^\"\n]*\"))*)")
# Citations in other forms, and documents that are not in the repository
ELSEWHERE = re.compile(r"\bmathematics\.md \d|\b(?:MATH|CHECKPOINT|TOKENIZERS|CROSS|DESIGN)\.md\b|\bspec/[A-Z]+")
COMMENT_BREAK = re.compile(r"\n[ \t]*(?://|#|\*)?[ \t]*")  # a citation may go on in the next line of its comment


def tracked():
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, check=True, text=True).stdout
    return [file for file in listed.split("\0") if file and (ROOT / file).is_file()]


def sections_of(page):
    """Numbers of headings, each behind an anchor of its number."""
    found, errors = set(), []
    for anchor, number in re.findall(rf'(?:<a id="([^"]*)"></a>\n\n)?^#+ ({SECTION})\.? ', page, re.MULTILINE):
        expected = "math-" + number.replace(".", "-")
        if anchor != expected:
            errors.append(f"{MATHEMATICS}: section {number} has the anchor '{anchor}', expected {expected}")
        if number in found:
            errors.append(f"{MATHEMATICS}: two sections {number}")
        found.add(number)
    return found, errors


def check(file, text, sections):
    errors, count = [], 0
    flat = COMMENT_BREAK.sub(" ", text)
    for cited in CITED.finditer(flat):
        numbers = re.findall(rf"(?<![\w.]){SECTION}(?![\w])", re.sub(r'"[^"]*"', "", cited.group(1)))
        count += len(numbers)
        errors += [f"{file}: cites section {number}, which {MATHEMATICS} does not have" for number in numbers if number not in sections]
        if not cited.group(1).strip():
            errors.append(f"{file}: a citation without a section: {flat[cited.start():cited.end() + 20]}")
    errors += [f"{file}: {other.group(0)}: cite {MATHEMATICS} as MATH and a section" for other in ELSEWHERE.finditer(text)]
    return errors, count


def main():
    files = tracked()
    sections, errors = sections_of((ROOT / MATHEMATICS).read_text(encoding="utf-8"))
    citations = 0
    for file in files:
        if file == "tests/docs/citations_test.py":
            continue
        try:
            text = (ROOT / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text
        wrong, count = check(file, text, sections)
        errors += wrong
        citations += count
    if citations < 100:
        errors.append(f"{citations} citations found, at least 100 expected: does the pattern still fit?")
    print("\n".join(errors) or f"{citations} citations, {len(sections)} sections")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
