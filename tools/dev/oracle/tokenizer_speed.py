#!/usr/bin/env python3
"""Measures encoding of whole texts on one core, beside the `tokenizers` package.

    tokenizer_speed.py FOLDER TEXT...     (make tokenizer-speed TOKENIZER=FOLDER TEXTS="TEXT...")

FOLDER has tokenizer.json, or GPT-2's vocab.json and merges.txt. tarn runs in libtarn.so with the default memory, and its ids are
compared with the package's. The package runs on one thread, once on the whole text and once on the list of its lines (its fast
call, without offsets); the faster of the two counts. Both take turns, REPETITIONS times: prints medians in MB/s and their range.
Needs requirements.txt beside this script, and build/.
"""

import ctypes
import os
import pathlib
import statistics
import sys
import tempfile
import time
from ctypes import byref, c_char_p, c_size_t

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

from tokenizers import Tokenizer  # noqa: E402

import tokenizer_fuzz  # noqa: E402
import tokenizer_library_fuzz  # noqa: E402
import vocabularies  # noqa: E402

REPETITIONS = 9


def encode(library, data, take=lambda library: None):
    """Reads the ids of a text in parts; `take` gets the library after each part."""
    options = tokenizer_library_fuzz.Options(ctypes.sizeof(tokenizer_library_fuzz.Options), 1, 0, None, 0)
    library.call("tarn_tokenizer_begin", library.tokenizer, c_char_p(data), c_size_t(len(data)), byref(options))
    library.count.value = len(library.ids)
    while library.count.value == len(library.ids):
        library.call("tarn_tokenizer_read", library.tokenizer, library.ids, None, c_size_t(len(library.ids)), byref(library.count))
        take(library)


def seconds(run, *arguments):
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def compare(library, package, path):
    data = path.read_bytes()
    text = data.decode()
    lines = text.splitlines(keepends=True)
    found = []
    encode(library, data, lambda library: found.extend(library.ids[: library.count.value]))
    if found != package.encode(text, add_special_tokens=False).ids:
        sys.exit(f"{path}: the ids differ")
    ours, theirs = [], []
    for _ in range(REPETITIONS):
        ours.append(len(data) / 1e6 / seconds(encode, library, data))
        theirs.append(len(data) / 1e6 / min(seconds(package.encode, text), seconds(package.encode_batch_fast, lines)))
    median = [f"{statistics.median(speeds):.1f} ({min(speeds):.1f} to {max(speeds):.1f})" for speeds in (ours, theirs)]
    ratio = statistics.median(our / their for our, their in zip(ours, theirs))
    print(f"{path.name}: tarn {median[0]} MB/s, tokenizers {median[1]} MB/s, ratio {ratio:.1f}", flush=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, texts = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
    own = folder / "tokenizer.json"
    package = Tokenizer.from_file(str(own)) if own.exists() else vocabularies.gpt2(folder)
    package.no_truncation()
    package.no_padding()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as into:
        package.save(str(pathlib.Path(into) / "tokenizer.json"))
        size = max(package.get_vocab().values()) + 1
        model = vocabularies.convert(pathlib.Path(into), {**tokenizer_fuzz.CONFIG, "vocab_size": size})
        library = tokenizer_library_fuzz.Library(model)
        for path in texts:
            compare(library, package, path)


if __name__ == "__main__":
    main()
