#!/usr/bin/env python3
"""Trains small tokenizers with the `tokenizers` package and writes them with its answers: tests/data/tokenizers.

    tokenizer_fixtures.py TEXT [FOLDER [NAME...]]

TEXT is what they are trained on; NAME: only these. Every folder gets tokenizer.json, and answers.jsonl with lines {"text", "plain", "template", "ids",
"offsets"} (UTF-8 bytes) and {"ids", "keep", "text"}. Needs requirements.txt beside this script.
"""

import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import tokenizer_kinds
import tokenizer_texts

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
            r"\s*[\r\n]+|\s+(?!\S)|\s+"]
ADDED = [AddedToken("<|sep|>", special=True, normalized=False),
         AddedToken("<mask>", special=True, normalized=False, lstrip=True),
         AddedToken("<right>", special=False, normalized=False, rstrip=True),
         AddedToken("both", special=False, normalized=True, lstrip=True, rstrip=True),
         AddedToken("   ", special=False, normalized=True),
         AddedToken("caf\u00e9", special=False, normalized=True),
         AddedToken("caf", special=False, normalized=False)]
SINGLE_WORDS = [AddedToken("you", single_word=True, normalized=False), AddedToken("the", single_word=True, lstrip=True),
                AddedToken("'s", single_word=True, rstrip=True)]
MORE_TEXT = ("na\u00efve caf\u00e9 co\u00f6perate \u5317\u4eac\u5927\u5b66\u751f \u306b\u307b\u3093\u3054 "
             "\u30ab\u30bf\u30ab\u30ca \ud55c\uad6d\uc5b4 \u041f\u0440\u0438\u0432\u0435\u0442 123456 3.14 1,000,000 don't I'LL "
             "we've\r\n\r\n  x = y + z;\n\treturn (a[0] != b);")


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, **options})


def splits(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns] +
                                   [byte_level(use_regex=False)])


def sequence(*parts):
    return pre_tokenizers.Sequence([*parts, byte_level(use_regex=False)])


FALCON = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(False),
                                  pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
# Name -> pre-tokenizer, post-processor, options: "words": words that no merges make are tokens, "few": bytes that were not seen have no
# token, "unknown": they have one, "single": some added tokens are single words.
CASES = {
    "gpt2": (byte_level(), processors.ByteLevel(trim_offsets=False), ""),
    "gpt2_trimmed": (byte_level(), processors.ByteLevel(trim_offsets=True), ""),
    "roberta": (byte_level(add_prefix_space=True), "roberta", ""),
    "llama3": (splits(LLAMA3), "template", "words"),
    "qwen2": (splits(QWEN2), processors.ByteLevel(trim_offsets=False), ""),
    "qwen35": (splits(QWEN35), None, ""),
    "deepseek": (splits(*DEEPSEEK), "template", ""),
    "digits": (pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()]), None, ""),
    "few_bytes": (byte_level(), processors.ByteLevel(trim_offsets=True), "few"),
    "unknown": (byte_level(add_prefix_space=True), processors.ByteLevel(trim_offsets=True), "few unknown"),
    "no_split": (byte_level(use_regex=False), None, ""),
    "metaspace": (sequence(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()), processors.ByteLevel(trim_offsets=True), ""),
    "metaspace_first": (sequence(pre_tokenizers.Metaspace(prepend_scheme="first"), pre_tokenizers.Punctuation("merged_with_previous")),
                        None, "single few"),
    "falcon": (FALCON, processors.ByteLevel(trim_offsets=False), ""),
    "whitespace": (sequence(pre_tokenizers.Whitespace(), pre_tokenizers.FixedLength(4)), None, "single"),
    "scripts": (sequence(pre_tokenizers.UnicodeScripts(), pre_tokenizers.Digits(True)), "template first", "few"),
    "bert_words": (sequence(pre_tokenizers.BertPreTokenizer()), "template", ""),
}


def post_processor(kind, tokenizer):
    begin, end = ("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>"))
    if kind == "template first":
        parts = [processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[begin, end]), processors.ByteLevel(trim_offsets=True)]
        return processors.Sequence(parts)
    if kind == "template":
        template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[begin])
        return processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    if kind == "roberta":
        return processors.RobertaProcessing(end, begin, trim_offsets=True, add_prefix_space=True)
    return kind


def train(name, paragraphs):
    """tokenizer.json as text."""
    pre_tokenizer, post, options = CASES[name]
    unknown = "unknown" in options
    model = models.BPE(unk_token="<unk>", fuse_unk=True) if unknown else models.BPE(ignore_merges="words" in options)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    few = "few" in options
    trainer = trainers.BpeTrainer(vocab_size=600, show_progress=False, initial_alphabet=[] if few else sorted(byte_level().alphabet()),
                                  special_tokens=["<unk>"] * unknown + ["<s>", "</s>"])
    tokenizer.train_from_iterator(paragraphs[:500] if few else paragraphs + [MORE_TEXT] * 20, trainer)
    tokenizer.add_tokens(ADDED + SINGLE_WORDS * ("single" in options))
    if post is not None:
        tokenizer.post_processor = post_processor(post, tokenizer)
    text = tokenizer.to_str()
    if "words" in options:
        read = json.loads(text)
        read["model"]["merges"] = [merge for i, merge in enumerate(read["model"]["merges"]) if i % 5]
        text = json.dumps(read, ensure_ascii=False)
    return text


def answers(tokenizer, generator, count, marks=()):
    for _ in range(count):
        text = tokenizer_texts.random_text(generator, marks)
        plain, template = generator.random() < 0.2, generator.random() < 0.7
        tokenizer.encode_special_tokens = plain
        try:
            encoding = tokenizer.encode(text, add_special_tokens=template)
        except BaseException as error:
            if type(error).__name__ == "PanicException":  # of the package, at two spaces in "spaces_taken"
                continue
            raise
        yield {"text": text, "plain": plain, "template": template, "ids": encoding.ids,
               "offsets": tokenizer_texts.byte_ranges(text, encoding.offsets)}
        ids, keep = [generator.randrange(tokenizer.get_vocab_size()) for _ in range(generator.randint(0, 9))], generator.random() < 0.5
        yield {"ids": ids, "keep": keep, "text": tokenizer.decode(ids, skip_special_tokens=not keep)}


def main():
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "tests/data/tokenizers")
    paragraphs = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")[:200000].split("\n\n")
    for name in sys.argv[3:] or [*CASES, *tokenizer_kinds.KINDS]:
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        is_byte_level = name in CASES
        text = train(name, paragraphs) if is_byte_level else tokenizer_kinds.KINDS[name](paragraphs[:300] + [MORE_TEXT])
        (target / "tokenizer.json").write_text(text, encoding="utf-8")
        lines = answers(Tokenizer.from_str(text), random.Random(name), 60, () if is_byte_level else tokenizer_kinds.MARKS)
        (target / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")


if __name__ == "__main__":
    main()
