#!/usr/bin/env python3
"""Trains small models with the `sentencepiece` package and writes them with answers: tests/data/tokenizers/sentencepiece_*.

    sentencepiece_fixtures.py TEXT [FOLDER]

TEXT is what they are trained on. The answers are those of the `tokenizers` package after a conversion like that of the package
`transformers`, which has the prefix of a text and user-defined pieces where `sentencepiece` has them. The ids of the lines of TEXT must be those of `sentencepiece`; of models of fairseq, where `transformers` is
installed, those of its own classes. Needs requirements.txt beside this script.
"""

import io
import json
import pathlib
import random
import re
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
LANGUAGES = ["ar_AR", "de_DE", "en_XX", "fr_XX"]
# Name -> model type, tokenizer_config.json, what stands around a text, tokens behind the pieces. transformers has lists of languages of
# its own: there, all languages of the class are named.
FAIRSEQ = {
    "xlmr": ("unigram", {"tokenizer_class": "XLMRobertaTokenizerFast"}, "<s> $A </s>", ["<mask>"]),
    "mbart50": ("bpe", {"tokenizer_class": "MBart50Tokenizer", "src_lang": "de_DE", "additional_special_tokens": LANGUAGES},
                "de_DE $A </s>", LANGUAGES + ["<mask>"]),
    "m2m100": ("bpe", {"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": ["__af__", "__de__", "__en__"]},
               "__en__ $A </s>", ["__af__", "__de__", "__en__"]),
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
    """As SpmConverter and LlamaConverter of `transformers`. User-defined pieces are found in normalized text."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(data)
    trainer, normalizer, pieces = proto.trainer_spec, proto.normalizer_spec, proto.pieces
    if trainer.model_type == trainer.UNIGRAM:
        model = models.Unigram([(piece.piece, piece.score) for piece in pieces], trainer.unk_id, trainer.byte_fallback)
    else:
        vocab = {piece.piece: id for id, piece in enumerate(pieces)}
        model = models.BPE(vocab, merges(pieces), unk_token=trainer.unk_piece, fuse_unk=True, byte_fallback=trainer.byte_fallback)
    tokenizer = Tokenizer(model)
    tokenizer.add_tokens([AddedToken(piece.piece, normalized=piece.type == piece.USER_DEFINED, special=piece.type != piece.USER_DEFINED)
                          for piece in pieces if piece.type in (piece.UNKNOWN, piece.CONTROL, piece.USER_DEFINED)])
    prefix = normalizer.add_dummy_prefix
    steps = [normalizers.Precompiled(normalizer.precompiled_charsmap)] if normalizer.precompiled_charsmap else []
    removes = normalizer.remove_extra_whitespaces
    steps += [normalizers.Strip(left=not prefix)] * removes + [normalizers.Prepend(" " if removes else SPACE)] * prefix
    if removes:
        steps.append(normalizers.Replace(Regex(" {2,}"), SPACE))
        if not any(piece.type == piece.NORMAL and SPACE in piece.piece[1:] for piece in pieces):
            tokenizer.pre_tokenizer = pre_tokenizers.Split(SPACE, "merged_with_next")
    steps.append(normalizers.Replace(" ", SPACE))
    symbols = [piece.piece for piece in pieces if piece.type == piece.USER_DEFINED]
    if symbols and prefix:  # the package looks for what it makes of a symbol alone, which must be the symbol
        steps.append(normalizers.Replace(Regex(r"\A" + SPACE + r"(?=(?:" + "|".join(map(re.escape, symbols)) + r")\z)"), ""))
    tokenizer.normalizer = normalizers.Sequence(steps)
    bytes_steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()] + [decoders.Strip(" ", 1, 0)] * prefix
    tokenizer.decoder = decoders.Sequence(bytes_steps) if trainer.byte_fallback else decoders.Metaspace(SPACE, "always" if prefix else "never")
    template = ["<s>"] * config.get("add_bos_token", False) + ["$A"] + ["</s>"] * config.get("add_eos_token", False)
    if len(template) > 1:
        ids = [(name, tokenizer.token_to_id(name)) for name in template if name != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=" ".join(template), special_tokens=ids)
    return tokenizer


def fairseq_order(data, last, ids=None):
    """The model with the pieces where fairseq's dictionaries have them."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(data)
    piece, first = proto.SentencePiece, [("<s>", 3), ("<pad>", 3), ("</s>", 3), ("<unk>", 2)]
    pieces = [piece(piece=text, score=0, type=type) for text, type in first] + list(proto.pieces[3:])
    if ids is not None:
        pieces.sort(key=lambda piece: ids[piece.piece])
    pieces += [piece(piece=text, score=0, type=3) for text in last]
    del proto.pieces[:]
    proto.pieces.extend(pieces)
    proto.trainer_spec.unk_id = [piece.piece for piece in pieces].index("<unk>")
    return proto.SerializeToString()


def convert_fairseq(data, template, last, ids):
    read = json.loads(convert(fairseq_order(data, last, ids), {}).to_str())
    for token in read["added_tokens"]:
        token["lstrip"] = token["content"] == "<mask>"
    tokenizer = Tokenizer.from_str(json.dumps(read))
    specials = [(name, tokenizer.token_to_id(name)) for name in template.split() if name != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=specials)
    return tokenizer


def compare_with_transformers(name, data, config, ids, texts, folder):
    """True where the classes of the package have other ids for texts."""
    try:
        import transformers  # pylint: disable=import-outside-toplevel
    except ImportError:
        return False
    own = getattr(transformers, config["tokenizer_class"].removesuffix("Fast"))
    path = pathlib.Path(folder, "sentencepiece.bpe.model")
    path.write_bytes(data)
    files = {"vocab_file": str(path)}
    if name == "m2m100":
        pathlib.Path(folder, "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
        files = {"vocab_file": str(pathlib.Path(folder, "vocab.json")), "spm_file": str(path)}
    package = own(**files, **({"src_lang": config["src_lang"]} if "src_lang" in config else {}))
    last = {"xlmr": ["<mask>"], "m2m100": list(package.lang_token_to_id) if name == "m2m100" else []}.get(name)
    if last is None:
        last = sorted(package.lang_code_to_id, key=package.lang_code_to_id.get) + ["<mask>"]
    template = FAIRSEQ[name][2]
    tokenizer = convert_fairseq(data, template, last, ids)
    different = [text for text in texts if tokenizer.encode(text).ids != package(text)["input_ids"]]
    print(f"{name}: {len(texts)} lines, {len(different)} differ from {own.__name__}", *map(repr, different[:3]))
    return bool(different)


def write(folder, name, files, tokenizer):
    target = folder / ("sentencepiece_" + name)
    target.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (target / file).write_bytes(data if isinstance(data, bytes) else (json.dumps(data) + "\n").encode())
    marks = [SPACE, SPACE * 2, "<0x41>", "<unk>", "<sep>", "<|user|>", "a" + SPACE + "b"]
    if name in FAIRSEQ:
        marks += ["de_DE", " <mask>", "__af__", "<pad>"]
    texts = answers(tokenizer, random.Random(name), 60, marks)
    (target / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in texts), encoding="ascii")


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
        symbols = [line.replace(" ", mark, 2) for line in lines[:2000] for symbol in options.get("user_defined_symbols", [])
                   for mark in (symbol, f"  {symbol} ")]
        failed |= compare(name, data, tokenizer,
                          lines + ["  " + line.replace(" ", "   ") + "  " for line in lines[:2000]] + symbols)
        write(folder, name, {"tokenizer.model": data, "tokenizer_config.json": config}, tokenizer)
    for name, (model_type, config, template, last) in FAIRSEQ.items():
        data = train([line for line in lines[:4000] if line] + [MORE_TEXT] * 20, {"model_type": model_type})
        ids = None
        if name == "m2m100":  # in an order of its own
            pieces = [piece.piece for piece in sentencepiece_model_pb2.ModelProto.FromString(data).pieces[3:]]
            names = ["<s>", "<pad>", "</s>", "<unk>"] + sorted(pieces, key=lambda piece: (len(piece), piece))
            ids = {piece: id for id, piece in enumerate(names)}
        with tempfile.TemporaryDirectory() as into:
            failed |= compare_with_transformers(name, data, config, ids, [line for line in lines[:3000] if line.strip()], into)
        files = {"sentencepiece.bpe.model": data, "tokenizer_config.json": config, **({"vocab.json": ids} if ids else {})}
        write(folder, name, files, convert_fairseq(data, template, last, ids))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
