#!/usr/bin/env python3
"""JSON schemas as grammars: what a random model writes is valid, and no valid text is refused.

    json_schema_test.py [SCHEMAS [SAMPLES [SEED]]]

Python's json reads every sample. Where the `jsonschema` package (python3-jsonschema) is installed, it judges samples and texts as well. The model is one of
bytes; its logits are random numbers. TARN_GRAMMAR_MODEL names another.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import tarn_library
from json_schemas import CASES, Maker, spelled

try:
    import jsonschema
except ImportError:
    jsonschema = None

BUILD = pathlib.Path(os.environ.get("TARN_BUILD", "build"))
SOURCE = pathlib.Path(os.environ.get("TARN_SOURCE", "."))
MODEL = os.environ.get("TARN_GRAMMAR_MODEL", str(SOURCE / "examples/models/shakespeare-rfa-gate-int8.tarn"))
MOST_TOKENS = 6000
MOST_WAYS = 256  # for CASES: one can be read in 16, and behind a number are seven ways to go on in each
OPEN, MAY_END, COMPLETE = range(3)


class Library:
    def __init__(self, path):
        self.tarn, self.model, self.error = ctypes.CDLL(str(tarn_library.LIBRARY)), ctypes.c_void_p(), tarn_library.Error()
        source = tarn_library.Source(struct_size=ctypes.sizeof(tarn_library.Source), path=os.fsencode(path), fd=-1)
        self.call("tarn_model_open", ctypes.byref(source), None, ctypes.byref(self.model))
        self.tarn.tarn_grammar_destroy.argtypes = self.tarn.tarn_grammar_reset.argtypes = [ctypes.c_void_p]
        self.tarn.tarn_grammar_progress_of.argtypes = [ctypes.c_void_p]

    def call(self, name, *arguments):
        if getattr(self.tarn, name)(*arguments, ctypes.byref(self.error)) != 0:
            raise tarn_library.TarnError(self.error.message.decode())

    def tokens(self, text):
        ids, count = (ctypes.c_int32 * (len(text) + 1))(), ctypes.c_size_t()
        self.call("tarn_tokenize", self.model, text, ctypes.c_size_t(len(text)), ids, ctypes.c_size_t(len(ids)), ctypes.byref(count))
        return ids[: count.value]


class GrammarConfig(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("max_depth", ctypes.c_uint32), ("max_stacks", ctypes.c_uint32),
                ("max_states", ctypes.c_uint32), ("allocator", ctypes.c_void_p * 3), ("max_work", ctypes.c_uint64)]


class Grammar:
    """A text of bytes that a grammar constrains."""

    def __init__(self, api, rules, most_ways):
        self.api, self.handle = api, ctypes.c_void_p()
        config = GrammarConfig(struct_size=ctypes.sizeof(GrammarConfig), max_stacks=most_ways)
        api.call("tarn_grammar_create", api.model, rules, ctypes.c_size_t(len(rules)), ctypes.byref(config), ctypes.byref(self.handle))

    def close(self):
        self.api.tarn.tarn_grammar_destroy(self.handle)

    def progress(self):
        return self.api.tarn.tarn_grammar_progress_of(self.handle)

    def refused_at(self, text):
        """Where the grammar stops to take the text, or None: it takes all of it, and may end."""
        self.api.tarn.tarn_grammar_reset(self.handle)
        logits = (ctypes.c_float * 256)()
        for i, token in enumerate(self.api.tokens(text)):
            ctypes.memset(logits, 0, ctypes.sizeof(logits))
            self.api.call("tarn_grammar_mask", self.handle, logits)
            if logits[token] != 0:
                return i
            self.api.call("tarn_grammar_accept", self.handle, ctypes.c_int32(token))
        return len(text) if self.progress() == OPEN else None

    def sample(self, chance):
        """A text that random logits lead to, or None where it does not end."""
        self.api.tarn.tarn_grammar_reset(self.handle)
        text = bytearray()
        while self.progress() != COMPLETE and len(text) < MOST_TOKENS:
            if self.progress() == MAY_END and chance.random() < 0.2:
                return bytes(text)
            logits = (ctypes.c_float * 256)(*[chance.random() for _ in range(256)])
            self.api.call("tarn_grammar_mask", self.handle, logits)
            token = max(range(256), key=logits.__getitem__)
            self.api.call("tarn_grammar_accept", self.handle, ctypes.c_int32(token))
            text.append(token)
        return bytes(text) if self.progress() == COMPLETE else None


def rules_of(schema):
    done = subprocess.run([BUILD / "bin/tarn", "run", "-m", MODEL, "--json-schema", "-", "--print-grammar"], check=True,
                          input=json.dumps(schema).encode(), stdout=subprocess.PIPE)
    return done.stdout


class Case:
    """A schema, its grammar, and jsonschema to judge it."""

    def __init__(self, library, schema, most_ways=0):
        self.where = json.dumps(schema, ensure_ascii=False)[:2000]
        self.judge = jsonschema and jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        self.grammar = Grammar(library, rules_of(schema), most_ways)

    def close(self):
        self.grammar.close()

    def judged(self, value, text, what):
        error = self.judge and next(self.judge.iter_errors(value), None)
        assert not error, f"{what}: {self.where}\n{text!r}: {error.message}"

    def sample(self, chance):
        """Whether it came to an end."""
        text = self.grammar.sample(chance)
        if text is not None:
            self.judged(json.loads(text), text, "allows what is not valid")
        return text is not None

    def take(self, chance, value):
        text = spelled(chance, value).encode()
        self.judged(value, text, "the test is wrong")
        at = self.grammar.refused_at(text)
        assert at is None, f"{self.where}\nrefuses {text!r} at byte {at}"


def check(library, chance, samples):
    maker = Maker(chance)
    schema = maker.document()
    with contextlib.closing(Case(library, schema)) as case:
        finished = 0
        for _ in range(samples):
            if case.sample(chance):
                finished += 1
                case.take(chance, maker.value(schema))
        return finished


def check_cases(library, chance, samples):
    for schema, values in CASES:
        with contextlib.closing(Case(library, schema, MOST_WAYS)) as case:
            for value in values:
                case.take(chance, value)
            assert sum(case.sample(chance) for _ in range(samples)) > 0, case.where


def main():
    if not tarn_library.loads():
        print("skipped: the library is not here, or has AddressSanitizer in it")
        return
    schemas, samples, seed = (int(number) for number in (sys.argv[1:] + ["30", "4", "1"][len(sys.argv) - 1 :]))
    library, chance = Library(MODEL), random.Random(seed)
    check_cases(library, chance, samples)
    finished = sum(check(library, chance, samples) for _ in range(schemas))
    judged = "judged by jsonschema" if jsonschema else "skipped: jsonschema, which is not installed, would judge whether they are valid"
    print(f"{schemas} schemas, {finished} of {schemas * samples} samples finished and valid, as many valid texts taken; {judged}")
    assert finished > 0.9 * schemas * samples


if __name__ == "__main__":
    main()
