#!/usr/bin/env python3
"""Writes what the tools know of Unicode: unicode_data.cc, normal_data.cc, grapheme_data.cc and script_data.cc of
tools/convert/tokenizer, and tools/tarn/column_data.cc.

    unicode_tables.py [-o FOLDER]

The data is that of the npm packages @unicode/unicode-*, at the versions below: `npm pack` fetches them, `node` reads them. Unicode 8.0,
9.0, 16.0 and 17.0 are the versions that the parts of the `tokenizers` package use. Decompositions and columns are those of PyPI's
unicodedata2; what is assigned in 9.0 decomposes in 16.0 as it did, by Unicode's stability policy.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"8": "8.0.0@2.0.7", "9": "9.0.0@2.0.7", "16": "16.0.0@2.0.7", "17": "17.0.0@2.1.0"}
UNICODEDATA = "unicodedata2==16.0.0"
CATEGORIES = {
    "Cn": "Unassigned", "Cc": "Control", "Cf": "Format", "Co": "Private_Use", "Cs": "Surrogate", "Ll": "Lowercase_Letter",
    "Lm": "Modifier_Letter", "Lo": "Other_Letter", "Lt": "Titlecase_Letter", "Lu": "Uppercase_Letter", "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark", "Mn": "Nonspacing_Mark", "Nd": "Decimal_Number", "Nl": "Letter_Number", "No": "Other_Number",
    "Pc": "Connector_Punctuation", "Pd": "Dash_Punctuation", "Pe": "Close_Punctuation", "Pf": "Final_Punctuation",
    "Pi": "Initial_Punctuation", "Po": "Other_Punctuation", "Ps": "Open_Punctuation", "Sc": "Currency_Symbol",
    "Sk": "Modifier_Symbol", "Sm": "Math_Symbol", "So": "Other_Symbol", "Zl": "Line_Separator", "Zp": "Paragraph_Separator",
    "Zs": "Space_Separator",
}
# Of GraphemeClass, from 1 on.
GRAPHEMES = ["Grapheme_Cluster_Break/" + name for name in ("CR", "LF", "Control", "Prepend", "L", "V", "T", "LV", "LVT", "SpacingMark",
                                                           "Regional_Indicator", "ZWJ", "Extend")]
GRAPHEMES += ["Binary_Property/Extended_Pictographic", "Indic_Conjunct_Break/Consonant", "Indic_Conjunct_Break/Linker"]
POINTS = 0x110000
# Reads sets of code points as ranges, and maps as pairs, from modules of a package.
READ = """
const out = {};
for (const name of process.argv.slice(2)) {
  const data = (await import(name)).default;
  out[name] = data instanceof Map ? [...data] : data.map(r => [r.begin, r.end]);
}
console.log(JSON.stringify(out));
"""
HEADER = """\
// Made by tools/dev/unicode_tables.py from the Unicode character database: do not edit. Its licence is Unicode-3.0
// (https://www.unicode.org/license.txt), Copyright (c) 1991-2025 Unicode, Inc.
#include "%s"

// clang-format off
namespace %s {
"""


class Package:
    """One version of the database."""

    def __init__(self, folder, version):
        number, release = PACKAGES[version].split("@")
        name = subprocess.run(["npm", "pack", "--silent", f"@unicode/unicode-{number}@{release}"], cwd=folder, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()[-1]
        self.folder = pathlib.Path(folder, version)
        self.folder.mkdir()
        subprocess.run(["tar", "xzf", pathlib.Path(folder, name).resolve(), "-C", self.folder], check=True)
        (self.folder / "read.mjs").write_text(READ, encoding="utf-8")

    def read(self, names):
        paths = [f"./package/{name}.mjs" for name in names]
        text = subprocess.run(["node", "read.mjs"] + paths, cwd=self.folder, check=True, text=True, stdout=subprocess.PIPE).stdout
        return dict(zip(names, json.loads(text).values()))

    def partition(self, names, default):
        """The index of the set of `names` that has each code point."""
        values = [default] * POINTS
        for index, ranges in enumerate(self.read([name + "/ranges" for name in names]).values()):
            for begin, end in ranges:
                values[begin:end] = [index] * (end - begin)
        return values

    def categories(self):
        return self.partition([f"General_Category/{name}" for name in CATEGORIES.values()], None)

    def scripts(self):
        folders = (self.folder / "package/Script").iterdir()
        return sorted(path.name for path in folders if path.is_dir() and path.name not in ("Unknown", "Common", "Inherited"))

    def mapping(self, name):
        return self.read([name + "/code-points"])[name + "/code-points"]


def wrapped(items, width=126):
    """C++ initializers in lines."""
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) + 2 > width:
            lines.append("")
        lines[-1] += ("" if not lines[-1] else " ") + item + ","
    return "\n    ".join(lines)


def runs(values):
    """(first, value) of each run of equal values."""
    return [(i, value) for i, value in enumerate(values) if i == 0 or values[i - 1] != value]


def table(name, kind, items):
    return f"\nconst {kind} {name}[] = {{\n    {wrapped(items)}\n}};\n"


def counted(name, items):
    return f"const size_t {name} = {len(items)};\n"


def mapped_runs(pairs):
    """(first, count, stride, delta): code points first, first + stride, ... map to themselves plus delta."""
    found = []
    for point, image in sorted(pairs):
        delta = image - point
        if found:
            first, count, stride, last_delta = found[-1]
            gap = point - (first + (count - 1) * stride)
            if delta == last_delta and gap <= 2 and (count == 1 or gap == stride):
                found[-1] = (first, count + 1, gap, delta)
                continue
        found.append((point, 1, 1, delta))
    return ["{%d, %d, %d, %d}" % run for run in found]


def properties(packages):
    """Ranges of code points that all versions agree on."""
    scripts = packages["16"].scripts()
    of = list(zip(*[packages[version].categories() for version in PACKAGES],
                  packages["16"].partition(["Binary_Property/Alphabetic"], -1),
                  packages["16"].partition([f"Script/{name}" for name in scripts], -1)))
    distinct = sorted(set(of))
    index = {value: i for i, value in enumerate(distinct)}
    ranges = runs([index[value] for value in of])
    rows = ["{{%d, %d, %d, %d}, %d, %d}" % (*value[:4], value[4] + 1, value[5] + 1) for value in distinct]
    ends = [begin for begin, _ in ranges[1:]] + [POINTS]
    lengths = [f"{(end - begin) * 1024 + value}" for (begin, value), end in zip(ranges, ends)]
    assert len(distinct) <= 1024
    names = [f'{{"{short}", "{name}"}}' for short, name in CATEGORIES.items()]
    return (table("kCategoryNames", "CategoryName", names) + table("kPropertyRows", "PropertyRow", rows) + table("kPropertyRuns", "uint32_t", lengths) +
            counted("kPropertyRunCount", lengths) +
            table("kScriptNames", "char* const", [f'"{name}"' for name in scripts]) + counted("kScriptCount", scripts))


def graphemes(package):
    """Classes for the boundaries of grapheme clusters. Linkers are Extend, too; no other two of them meet."""
    ranges = runs([value + 1 for value in package.partition(GRAPHEMES, -1)])
    ends = [begin for begin, _ in ranges[1:]] + [POINTS]
    lengths = [str((end - begin) * 32 + value) for (begin, value), end in zip(ranges, ends)]
    return table("kGraphemeRuns", "uint32_t", lengths) + counted("kGraphemeRunCount", lengths)


def scripts_apart(package):
    """Scripts as the pre-tokenizer UnicodeScripts tells them apart: Japanese is one, and a space has none."""
    names = [*package.scripts(), "Common", "Inherited"]
    values = [value + 1 for value in package.partition([f"Script/{name}" for name in names], -1)]
    han = names.index("Han") + 1
    of = {names.index("Hiragana") + 1: han, names.index("Katakana") + 1: han}
    values = [of.get(value, value) for value in values]
    values[ord(" ")], values[0x30FC] = 0, han
    ranges = runs(values)
    ends = [begin for begin, _ in ranges[1:]] + [POINTS]
    lengths = [str((end - begin) * 256 + value) for (begin, value), end in zip(ranges, ends)]
    assert len(names) < 256
    return table("kScriptRuns", "uint32_t", lengths) + counted("kScriptRunCount", lengths)


def unicodedata(folder):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, UNICODEDATA], check=True)
    sys.path.insert(0, folder)
    import unicodedata2
    return unicodedata2


def normalization(package, unicodedata2):
    """Combining classes, decompositions and compositions of 9.0, Hangul syllables left out."""
    assigned = [category != 0 for category in package.categories()]
    classes = runs([unicodedata2.combining(chr(point)) if assigned[point] else 0 for point in range(POINTS)])
    mappings, composed = [], []
    for point in filter(assigned.__getitem__, range(POINTS)):
        words = unicodedata2.decomposition(chr(point)).split()
        if not words:
            continue
        is_compatibility = words[0].startswith("<")
        parts = [int(word, 16) for word in words if not word.startswith("<")]
        mappings += [point, len(parts) * 2 + is_compatibility] + parts
        if len(parts) == 2 and unicodedata2.normalize("NFC", "".join(map(chr, parts))) == chr(point):
            composed.append(point)
    return (table("kCombiningRuns", "CombiningRun", ["{%d, %d}" % run for run in classes]) + counted("kCombiningRunCount", classes) +
            table("kDecompositions", "uint32_t", map(str, mappings)) + counted("kDecompositionWords", mappings) +
            table("kComposed", "uint32_t", map(str, composed)) + counted("kComposedCount", composed))


def columns(package, unicodedata2):
    """Columns on a terminal, in runs: first code point * 4 + columns."""
    before_numbers = package.partition(["Binary_Property/Prepended_Concatenation_Mark"], -1)  # format characters that are seen

    def of(point):
        category = unicodedata2.category(chr(point))
        if category == "Cn":
            return 2 if 0x20000 <= point <= 0x3FFFD else 1  # as UAX #11 has it for the planes of ideographs
        # Vowels and final consonants of Hangul stand in the columns of the consonant before them.
        is_mark = category in ("Mn", "Me", "Cf") and before_numbers[point] < 0
        if is_mark or 0x1160 <= point <= 0x11FF or 0xD7B0 <= point <= 0xD7FB:
            return 0
        return 2 if unicodedata2.east_asian_width(chr(point)) in "WF" else 1

    found = [f"{first * 4 + value}" for first, value in runs([of(point) for point in range(POINTS)])]
    return table("kColumnRuns", "uint32_t", found) + counted("kColumnRunCount", found)


def write(path, tables, namespace="tarn::convert", header="tools/convert/tokenizer/unicode_data.h"):
    path.write_text(HEADER % (header, namespace) + tables + f"\n}}  // namespace {namespace}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "tools")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = {version: Package(folder, version) for version in PACKAGES}
        folds = mapped_runs(packages["16"].mapping("Case_Folding/C"))
        long_folds = [f"{{{a}, {{{', '.join(map(str, b))}}}}}" for a, b in packages["16"].mapping("Case_Folding/F")]
        lower = mapped_runs(packages["17"].mapping("Simple_Case_Mapping/Lowercase"))
        tokenizer = arguments.output / "convert/tokenizer"
        write(tokenizer / "unicode_data.cc", properties(packages) + table("kFolds", "CaseRun", folds) +
              counted("kFoldCount", folds) + table("kLongFolds", "LongCaseFold", long_folds) + counted("kLongFoldCount", long_folds) +
              table("kLowercase", "CaseRun", lower) + counted("kLowercaseCount", lower))
        unicodedata2 = unicodedata(folder)
        write(tokenizer / "normal_data.cc", normalization(packages["9"], unicodedata2))
        write(tokenizer / "grapheme_data.cc", graphemes(packages["17"]))
        write(tokenizer / "script_data.cc", scripts_apart(packages["9"]))
        write(arguments.output / "tarn/column_data.cc", columns(packages["16"], unicodedata2), "tarn_cli", "tools/tarn/column_data.h")
    return 0


if __name__ == "__main__":
    sys.exit(main())
