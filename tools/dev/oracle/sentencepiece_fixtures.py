#!/usr/bin/env python3
"""Trains small models with the `sentencepiece` package and writes them with answers: tests/data/tokenizers/sentencepiece_*.

    sentencepiece_fixtures.py TEXT [FOLDER]

TEXT is what they are trained on. The answers are those of the `tokenizers` package after the conversion that the package
`transformers` makes. The ids of the lines of TEXT must be those of `sentencepiece`. Needs requirements.txt beside this script.
"""

import io
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import tokenizer_texts
from charsmaps import REPLACED
from tokenizer_fixtures import MORE_TEXT, answers

SPACE = "\u2581"
# Name -> options of the trainer, of tokenizer_config.json.
CASES = {
    "unigram": ({"model_type": "unigram", "user_defined_symbols": ["<sep>"]}, {"add_eos_token": True}),
    "unigram_phrases": ({"model_type": "unigram", "split_by_whitespace": False, "add_dummy_prefix": False}, {}),
    "unigram_bytes": ({"model_type": "unigram", "byte_fallback": True, "remove_extra_whitespaces": False,
                       "normalization_rule_name": "identity"}, {}),
    "bpe": ({"model_type": "bpe", "byte_fallback": True, "remove_extra_whitespaces": False, "normalization_rule_name": "identity",
             "split_digits": True, "user_defined_symbols": ["<|user|>"]}, {"add_bos_token": True}),
    "bpe_collapsed": ({"model_type": "bpe"}, {}),
}


def rules(folder):
    """A file of few rules: the charsmaps of SentencePiece are large."""
    codes = lambda text: " ".join(f"{ord(character):X}" for character in text)
    path = pathlib.Path(folder, "rules.tsv")
    path.write_text("".join(f"{codes(key)}\t{codes(text)}\n" for key, text in REPLACED.items()), encoding="ascii")
    return str(path)


def train(lines, options):
    """The bytes of the model."""
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        if "normalization_rule_name" not in options:
            options = {**options, "normalization_rule_tsv": rules(folder)}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, minloglevel=2, num_threads=1,
                                                 vocab_size=600, hard_vocab_limit=False, **options)
    return model.getvalue()


def merges(pieces):
    """As generate_merges() of `transformers`."""
    ids, found = {piece.piece: id for id, piece in enumerate(pieces)}, []
    for piece in pieces:
        splits = [(piece.piece[:at], piece.piece[at:]) for at in range(1, len(piece.piece))]
        known = [(left, right) for left, right in splits if left in ids and right in ids]
        found += [(left, right, piece.score) for left, right in sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]]))]
    return [merge[:2] for merge in sorted(found, key=lambda merge: (merge[2], len(merge[0]), len(merge[1])), reverse=True)]


def convert(data, config):
    """As SpmConverter and LlamaConverter of `transformers`."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(data)
    trainer, normalizer, pieces = proto.trainer_spec, proto.normalizer_spec, proto.pieces
    if trainer.model_type == trainer.UNIGRAM:
        model = models.Unigram([(piece.piece, piece.score) for piece in pieces], trainer.unk_id, trainer.byte_fallback)
    else:
        vocab = {piece.piece: id for id, piece in enumerate(pieces)}
        model = models.BPE(vocab, merges(pieces), unk_token=trainer.unk_piece, fuse_unk=True, byte_fallback=trainer.byte_fallback)
    tokenizer = Tokenizer(model)
    tokenizer.add_tokens([AddedToken(piece.piece, normalized=False, special=piece.type != piece.USER_DEFINED) for piece in pieces
                          if piece.type in (piece.UNKNOWN, piece.CONTROL, piece.USER_DEFINED)])
    prefix = normalizer.add_dummy_prefix
    scheme = "always" if prefix else "never"
    steps = [normalizers.Precompiled(normalizer.precompiled_charsmap)] if normalizer.precompiled_charsmap else []
    if normalizer.remove_extra_whitespaces:
        steps += [normalizers.Strip(left=not prefix), normalizers.Replace(Regex(" {2,}"), SPACE)]
        phrases = any(piece.type == piece.NORMAL and SPACE in piece.piece[1:] for piece in pieces)
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, scheme, split=not phrases)
    else:
        steps += [normalizers.Prepend(SPACE)] * prefix + [normalizers.Replace(" ", SPACE)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    bytes_steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()] + [decoders.Strip(" ", 1, 0)] * prefix
    tokenizer.decoder = decoders.Sequence(bytes_steps) if trainer.byte_fallback else decoders.Metaspace(SPACE, scheme)
    template = ["<s>"] * config.get("add_bos_token", False) + ["$A"] + ["</s>"] * config.get("add_eos_token", False)
    if len(template) > 1:
        ids = [(name, tokenizer.token_to_id(name)) for name in template if name != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=" ".join(template), special_tokens=ids)
    return tokenizer


def compare(name, data, tokenizer, texts):
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    different = [text for text, encoding in zip(texts, encodings) if encoding.ids != processor.encode(text)]
    print(f"{name}: {len(texts)} lines, {len(different)} differ from sentencepiece", *map(repr, different[:3]))
    return bool(different)


def main():
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "tests/data/tokenizers")
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split("\n")
    failed = False
    for name, (options, config) in CASES.items():
        data = train([line for line in lines[:4000] if line] + [MORE_TEXT] * 20, options)
        tokenizer = convert(data, config)
        failed |= compare(name, data, tokenizer, lines + ["  " + line.replace(" ", "   ") + "  " for line in lines[:2000]])
        target = folder / ("sentencepiece_" + name)
        target.mkdir(parents=True, exist_ok=True)
        (target / "tokenizer.model").write_bytes(data)
        (target / "tokenizer_config.json").write_text(json.dumps(config) + "\n", encoding="ascii")
        marks = [SPACE, SPACE * 2, "<0x41>", "<unk>", "<sep>", "<|user|>", "a" + SPACE + "b"]
        texts = answers(tokenizer, random.Random(name), 60, marks)
        (target / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in texts), encoding="ascii")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
