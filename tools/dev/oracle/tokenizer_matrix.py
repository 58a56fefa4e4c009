#!/usr/bin/env python3
"""Trains tokenizers of many combinations of model, normalizer, pre-tokenizer and post-processor with the `tokenizers` package, and
compares what `tarn tokenize` makes of texts with what the package makes of them.

    tokenizer_matrix.py TEXTS COUNT SEED [NAME...]

TEXTS is a folder with *.txt: they train, and every combination reads all of them, whole and by lines, and COUNT random texts. NAME:
combinations whose names have it. Prints a line for each combination; exit status 1 if one differs, or is refused that ought not to
be. Needs requirements.txt beside this script, and build/bin. To add a kind: a line in MODELS, NORMALIZERS, PRE_TOKENIZERS or
POST_PROCESSORS.
"""

import functools
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import charsmaps
import tokenizer_fuzz
import tokenizer_kinds
import tokenizer_texts
from tokenizer_fixtures import ADDED, DEEPSEEK, LLAMA3, MORE_TEXT, QWEN35, SINGLE_WORDS

ROWS = 48  # for each model
MOST_TEXT = 300000  # characters of each file that train
SPECIAL = ["<unk>", "<s>", "</s>"]


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, **options})


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


# Name -> model, trainer, what stands last in its pre-tokenizer (None: nothing), decoder.
MODELS = {
    "bpe": (lambda: models.BPE(), trainers.BpeTrainer, lambda: byte_level(use_regex=False), decoders.ByteLevel),
    "bpe_words": (lambda: models.BPE(unk_token="<unk>", fuse_unk=True), trainers.BpeTrainer, lambda: byte_level(use_regex=False),
                  decoders.ByteLevel),
    "characters": (lambda: models.BPE(unk_token="<unk>", fuse_unk=True), trainers.BpeTrainer, None, decoders.Metaspace),
    "unigram": (lambda: models.Unigram(), functools.partial(trainers.UnigramTrainer, unk_token="<unk>"), None, decoders.Metaspace),
    "wordpiece": (lambda: models.WordPiece(unk_token="<unk>"), trainers.WordPieceTrainer, None, decoders.WordPiece),
}
NORMALIZERS = {
    "none": [],
    "nfc": [normalizers.NFC()],
    "nfd": [normalizers.NFD()],
    "nfkc": [normalizers.NFKC()],
    "nfkd_lower": [normalizers.NFKD(), normalizers.Lowercase()],
    "accents": [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()],
    "llama": [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")],
    "bert": [normalizers.BertNormalizer()],
    "bert_cased": [normalizers.BertNormalizer(lowercase=False)],
    "bert_accents": [normalizers.BertNormalizer(strip_accents=False, handle_chinese_chars=False)],
    "bert_only_accents": [normalizers.BertNormalizer(clean_text=False, lowercase=False, strip_accents=True)],
    "strip": [normalizers.Strip()],
    "strip_left": [normalizers.Strip(right=False)],
    "runs": [normalizers.Strip(left=False), normalizers.Replace(Regex(" {2,}"), "\u2581")],
    "nmt": [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")],
    "t5": [tokenizer_kinds.charsmap()],
    "charsmap": [normalizers.Precompiled(charsmaps.few()), normalizers.Lowercase()],
    "albert": [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
               normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")],
}
PRE_TOKENIZERS = {
    "none": [],
    "gpt2": [split(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")],
    "llama3": [split(LLAMA3)],
    "qwen": [split(QWEN35)],
    "deepseek": [split(pattern) for pattern in DEEPSEEK],
    "metaspace": [pre_tokenizers.Metaspace()],
    "metaspace_first": [pre_tokenizers.Metaspace(prepend_scheme="first")],
    "metaspace_never": [pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Digits(True)],
    "metaspace_whole": [pre_tokenizers.Metaspace(split=False), pre_tokenizers.Punctuation()],
    "t5": [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()],
    "bert": [pre_tokenizers.BertPreTokenizer()],
    "whitespace": [pre_tokenizers.Whitespace()],
    "space_split": [pre_tokenizers.WhitespaceSplit()],
    "punctuation": [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(False)],
    "punctuation_previous": [pre_tokenizers.Punctuation("merged_with_previous")],
    "punctuation_next": [pre_tokenizers.Punctuation("merged_with_next")],
    "punctuation_removed": [pre_tokenizers.Punctuation("removed")],
    "inverted": [split(r"\p{L}+|\p{N}", "merged_with_next", True)],
    "delimiter": [pre_tokenizers.CharDelimiterSplit("e")],
    "fixed": [pre_tokenizers.FixedLength(5)],
    "scripts": [pre_tokenizers.UnicodeScripts()],
    "xlm": [pre_tokenizers.UnicodeScripts(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()],
}


def template(begin, end):
    return processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A <s> $B", special_tokens=[begin, end])


# Name -> post-processor of the begin and the end token.
POST_PROCESSORS = {
    "none": lambda begin, end: None,
    "bytes": lambda begin, end: processors.ByteLevel(trim_offsets=False),
    "template": template,
    "trimmed": lambda begin, end: processors.ByteLevel(trim_offsets=True),
    "roberta": lambda begin, end: processors.RobertaProcessing(end, begin, trim_offsets=True, add_prefix_space=False),
    "bert": lambda begin, end: processors.BertProcessing(end, begin),
    "both": lambda begin, end: processors.Sequence([processors.ByteLevel(trim_offsets=True), template(begin, end)]),
}


def combinations():
    """Every normalizer, pre-tokenizer and post-processor, each beside others."""
    for model in MODELS:
        for i in range(ROWS):
            yield (model, list(NORMALIZERS)[i % len(NORMALIZERS)], list(PRE_TOKENIZERS)[(i + i // len(NORMALIZERS)) % len(PRE_TOKENIZERS)],
                   list(POST_PROCESSORS)[i % len(POST_PROCESSORS)])


def train(combination, paragraphs):
    model, normalizer, pre_tokenizer, post = combination
    make, trainer, last, decoder = MODELS[model]
    tokenizer = Tokenizer(make())
    if NORMALIZERS[normalizer]:
        tokenizer.normalizer = normalizers.Sequence(NORMALIZERS[normalizer])
    parts = PRE_TOKENIZERS[pre_tokenizer] + ([last()] if last else [])
    if parts:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    tokenizer.decoder = decoder()
    tokenizer.train_from_iterator(paragraphs, trainer(vocab_size=800, show_progress=False, special_tokens=SPECIAL))
    # The package panics where a normalizer leaves nothing of a token.
    tokenizer.add_tokens([token for token in ADDED + SINGLE_WORDS
                          if not tokenizer.normalizer or tokenizer.normalizer.normalize_str(token.content)])
    made = POST_PROCESSORS[post](("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>")))
    if made is not None:
        tokenizer.post_processor = made
    return tokenizer


def check(combination, paragraphs, texts):
    """True where the package and tarn differ."""
    name = "-".join(combination)
    tokenizer = train(combination, paragraphs)
    with tempfile.TemporaryDirectory() as into:
        folder = pathlib.Path(into, "from")
        folder.mkdir()
        tokenizer.save(str(folder / "tokenizer.json"))
        try:
            model = tokenizer_fuzz.make_model(folder, tokenizer.get_vocab_size() + 3, pathlib.Path(into))
        except subprocess.CalledProcessError as error:
            print(f"{name}: refused: {error.stderr}")
            return True
        given = [{"text": text} for text in texts]
        encodings = tokenizer.encode_batch(texts)
        expected = [{"ids": encoding.ids, "offsets": tokenizer_texts.byte_ranges(text, encoding.offsets)}
                    for text, encoding in zip(texts, encodings)]
        return tokenizer_fuzz.compare(name, given, expected, tokenizer_fuzz.run(model, given))


def main():
    files = [path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(sys.argv[1]).glob("*.txt"))]
    count, generator, names = int(sys.argv[2]), random.Random(int(sys.argv[3])), sys.argv[4:]
    paragraphs = [paragraph for text in files for paragraph in text[:MOST_TEXT].split("\n\n")] + [MORE_TEXT] * 20
    texts = files + [line for text in files for line in text.split("\n")]
    texts += [tokenizer_texts.random_text(generator) for _ in range(count)]
    found = [check(combination, paragraphs, texts) for combination in combinations()
             if not names or any(name in "-".join(combination) for name in names)]
    print(f"{len(found)} combinations, {sum(found)} with differences; {len(texts)} texts each")
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    main()
