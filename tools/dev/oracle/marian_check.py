#!/usr/bin/env python3
"""Compares the forward pass of marian_fixtures.py, and the converter's models, with Marian itself.

    npm install --prefix build/bergamot @browsermt/bergamot-translator@0.4.9
    marian_check.py build/bergamot/node_modules/@browsermt/bergamot-translator [build]

Models of random weights with a SentencePiece vocabulary of this repository's pages translate sentences of these pages, with a beam of 1.
Marian gives log-probabilities of its words (five digits), which are compared with those of marian_fixtures.py. A model in 8 bits, whose
products Marian rounds, shows that both read the same file. Some models have a shortlist, random lists for every token. With a build of
tarn, its texts are compared with Marian's. Needs numpy, safetensors, sentencepiece 0.2 and node.
"""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import marian_fixtures as marian
import numpy as np
import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests/convert"))

import marian_lists  # noqa: E402

SENTENCES = 40
SIZES = {"dim-vocabs": [256, 256], "dim-emb": 32, "transformer-heads": 4, "transformer-dim-ffn": 64}
OWN_HEAD = {"tied-embeddings-all": False, "tied-embeddings-src": True}
CASES = {
    "tied": {},
    "head": OWN_HEAD,
    "deep": {"enc-depth": 4, "transformer-ffn-activation": "swish", "transformer-postprocess-emb": "nd",
             "transformer-postprocess-top": "n", "transformer-tied-layers": [1, 1]},
    "output": {**OWN_HEAD, "transformer-postprocess": "nda", "transformer-no-projection": True},
    "attention": {**OWN_HEAD, "transformer-decoder-autoreg": "self-attention"},
    # Only with a shortlist: two vocabularies, which tarn does not read.
    "two": {"tied-embeddings-all": False, "tied-embeddings": True},
}  # fmt: skip
FIRST, BEST = 13, 6  # of shortlists


def pages():
    texts = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))[:12]]
    return re.sub(r"[^\w .,\n]", " ", "\n".join(texts))


def vocabulary(folder, text):
    (folder / "text.txt").write_text(text, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "vocab"), vocab_size=SIZES["dim-vocabs"][0],
        character_coverage=1.0, eos_id=0, unk_id=1, bos_id=-1, pad_id=-1, minloglevel=2)  # fmt: skip
    (folder / "vocab.model").rename(folder / "vocab.spm")
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.spm"))


def translate(package, folder, lines, precision):
    more = [folder / file for file in ("lex.bin", "trgvocab.spm") if (folder / file).exists()]
    command = ["node", HERE / "marian_translate.mjs", package, folder / "model.bin", folder / "vocab.spm", precision, *more]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def words_of(marked):
    """Words and their scores, the means over their pieces."""
    return [(html.unescape(word), float(score)) for score, word in re.findall(r'word-score="([^"]*)">([^<]*)<', marked)]


def plain(marked):
    return html.unescape(re.sub("<[^>]*>", "", marked))


def decode(model, pieces, line, limit, lists, shared):
    """Greedy: ids, and the means of their log-probabilities by word."""
    source, target, words = [*pieces.encode(line), 0], [], []
    tokens = model.o["dim-vocabs"][1]
    can_follow = marian_lists.allowed(source, tokens, FIRST, lists, shared) if lists else range(tokens)
    never = [token for token in range(tokens) if token not in can_follow]
    for _ in range(limit):
        logits = model.logits(source, np.array(target, int))[-1]
        logits[never] = -np.inf
        best = int(logits.argmax())
        if best == 0:
            break
        target.append(best)
        if len(target) == 1 or pieces.id_to_piece(best).startswith("\u2581"):
            words.append([])
        words[-1].append(logits[best] - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
    return target, [float(np.mean(scores)) for scores in words]


def tarn_texts(folder, lines, limit):
    """None without a build, and of a model whose vocabularies it does not read."""
    if len(sys.argv) < 3 or (folder / "trgvocab.spm").exists():
        return None
    tarn, convert = (pathlib.Path(sys.argv[2]).resolve() / "bin" / name for name in ("tarn", "tarn-convert"))
    subprocess.run([convert, folder, "-o", folder / "m.tarn", "--quant", "f32"], check=True, capture_output=True)
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run([tarn, "run", "-m", folder / "m.tarn", "-f", folder / "lines.txt", "-n", str(limit), "-q"],
                          check=True, capture_output=True, text=True)  # fmt: skip
    return done.stdout.split("\n")


def check(name, package, root, pieces, lines, precision, listed=False, limit=40):
    options = {**marian.OPTIONS, **SIZES, **CASES[name]}
    parameters = marian.random_parameters(options, list(CASES).index(name))
    parameters["decoder_ff_logit_out_b"][0, 0] += -0.5 if name == "two" else 1  # the end of a text: neither at once nor never
    folder = root / f"{name}-{precision}-{listed}"
    folder.mkdir()
    shutil.copy(root / "vocab.spm", folder)
    if name == "two":
        shutil.copy(root / "vocab.spm", folder / "trgvocab.spm")
    lists = marian_lists.random_lists(*options["dim-vocabs"], BEST, 5) if listed else None
    if lists:
        (folder / "lex.bin").write_bytes(marian_lists.shortlist(FIRST, lists))
    eight = precision != "float32"
    marian.write_bin(folder / "model.bin", parameters, options, eight)
    found = translate(package, folder, lines, precision)
    model = marian.Model(marian.dequantized(parameters) if eight else parameters, options)
    largest = words = same = whole = 0
    ours = tarn_texts(folder, lines, limit)
    for number, (line, marked) in enumerate(zip(lines, found)):
        expected = words_of(marked)
        target, scores = decode(model, pieces, line, limit, lists, name != "two")
        count = len(scores) - (len(target) == limit)  # the last word may go on
        texts = pieces.decode(target).split(" ")[:count]
        agree = next((i for i, (word, (theirs, _)) in enumerate(zip(texts, expected)) if word != theirs), min(count, len(expected)))
        ends = len(target) < limit
        same += agree == count and (len(expected) == count or not ends)
        words += agree
        largest = max([largest, *(abs(a - b[1]) for a, b in zip(scores[:agree], expected))])
        if ours:
            text = plain(marked).rstrip()  # a line of tarn has no spaces at its end
            whole += ours[number].rstrip() == text or (not ends and text.startswith(ours[number].rstrip()))
    print(f"{name:<10} {precision:<18} {'shortlist' if listed else '':<10} {same}/{len(lines)} texts of the forward pass, {words} words until texts differ, "
          f"scores differ by at most {largest:.1e}" + (f"; {whole}/{len(lines)} texts of tarn" if ours else ""))  # fmt: skip


def main():
    package = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        text = pages()
        pieces = vocabulary(root, text)
        lines = re.findall(r"\b[A-Z][a-z ]{20,60}\b", text)[:SENTENCES]
        for listed in False, True:
            for name in CASES if listed else list(CASES)[:-1]:
                check(name, package, root, pieces, lines, "float32", listed)
            for name in "tied", "deep":
                check(name, package, root, pieces, lines, "int8shiftAlphaAll", listed)


if __name__ == "__main__":
    main()
