"""Trains small tokenizers of the kinds that are not byte-level BPE."""

import json

import charsmaps
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
ADDED = [AddedToken("<|sep|>", special=True, normalized=False),
         AddedToken("both", special=False, normalized=True, lstrip=True, rstrip=True),
         AddedToken("caf", special=False, normalized=False)]
MARKS = ["\u2581", "\u2581\u2581", " \u2581", "##", "##s", "<0x41>", "</w>", "<unk>", "_"]  # what texts for these kinds have, too


def mark_spaces(prepend=True):
    steps = [normalizers.Prepend("\u2581")] * prepend + [normalizers.Replace(" ", "\u2581")]
    return normalizers.Sequence(steps)


def charsmap():
    """As T5's."""
    return normalizers.Sequence([normalizers.Precompiled(charsmaps.few()), normalizers.Strip(left=False),
                                 normalizers.Replace(Regex(" {2,}"), "\u2581")])


def split_words():
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\s+"), "removed"),
                                    pre_tokenizers.Split(Regex(r"[^\s\p{L}\p{N}]"), "isolated")])


def decode_bytes(strip=True):
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + [decoders.Strip(" ", 1, 0)] * strip)


def metaspace(scheme="always"):
    return decoders.Metaspace("\u2581", scheme)


def lines(paragraphs):
    return [line for paragraph in paragraphs for line in paragraph.split("\n")]


def finish(tokenizer, normalizer, pre_tokenizer, decoder, change=None):
    """tokenizer.json as text. Training needs words, which some tokenizers do without."""
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
    if pre_tokenizer is None:
        read = json.loads(tokenizer.to_str())
        read["normalizer" if normalizer is None else "pre_tokenizer"] = None
        tokenizer = Tokenizer.from_str(json.dumps(read))
    tokenizer.add_tokens(ADDED)
    if tokenizer.token_to_id("<s>") is not None:
        begin = ("<s>", tokenizer.token_to_id("<s>"))
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[begin])
    read = json.loads(tokenizer.to_str())
    # Bytes are tokens of the model, and are not found in texts.
    read["added_tokens"] = [token for token in read["added_tokens"] if token["content"] not in BYTES]
    if change is not None:
        change(read)
    return json.dumps(read, ensure_ascii=False)


def bpe(paragraphs, normalizer, decoder, fallback=True, unknown=True, fuse=True, words=False):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>" if unknown else None, fuse_unk=fuse, byte_fallback=fallback,
                                     ignore_merges=words))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    trainer = trainers.BpeTrainer(vocab_size=300 + 256 * fallback, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>"] + BYTES * fallback)
    tokenizer.train_from_iterator(lines(paragraphs), trainer)

    def drop_merges(read):
        read["model"]["merges"] = [merge for i, merge in enumerate(read["model"]["merges"]) if i % 5 or not words]

    return finish(tokenizer, normalizer, None, decoder, drop_merges)


def gemma(paragraphs):
    """The tab is a token as such, and not as a byte."""
    read = json.loads(bpe(paragraphs, mark_spaces(False), decode_bytes(False)))
    vocab = read["model"]["vocab"]
    vocab["<unused>"] = vocab.pop("\t")
    vocab["\t"] = vocab.pop("<0x09>")
    return json.dumps(read, ensure_ascii=False)


def unigram(paragraphs, normalizer, pre_tokenizer, decoder, fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    trainer = trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>",
                                      special_tokens=["<pad>", "</s>", "<unk>"])
    tokenizer.train_from_iterator(lines(paragraphs), trainer)
    read = json.loads(tokenizer.to_str())
    read["model"]["vocab"] += [[byte, 0.0] for byte in BYTES] * fallback
    read["model"]["byte_fallback"] = fallback
    return finish(Tokenizer.from_str(json.dumps(read)), normalizer, pre_tokenizer, decoder)


def clip(paragraphs):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    pattern = Regex(r"""<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+""")
    pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "removed", invert=True),
                                             pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"], end_of_word_suffix="</w>",
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(paragraphs, trainer)
    steps = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    return finish(tokenizer, normalizers.Sequence(steps), pre_tokenizer, decoders.ByteLevel())


def byte_letters(paragraphs):
    """Bytes become letters in the normalizer: the model knows letters alone."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    pre_tokenizer = pre_tokenizers.Split(Regex("\u0120?[^\u0120]+"), "isolated")
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.ByteLevel(), pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=600, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"],
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())[:250])
    tokenizer.train_from_iterator(paragraphs, trainer)
    return finish(tokenizer, normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()]), pre_tokenizer, decoders.ByteLevel())


def wordpiece(paragraphs, cleanup):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]", "<s>", "</s>"])
    tokenizer.train_from_iterator(paragraphs, trainer)
    return finish(tokenizer, normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece("##", cleanup))


def wordlevel(paragraphs):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = split_words()
    tokenizer.train_from_iterator(paragraphs, trainers.WordLevelTrainer(vocab_size=300, show_progress=False,
                                                                        special_tokens=["<unk>"]))
    read = json.loads(finish(tokenizer, None, split_words(), decoders.Fuse()))
    read["decoder"] = None  # tokens joined by spaces
    return json.dumps(read, ensure_ascii=False)


def word_ends(_):
    vocabulary = {"<unk>": 0, "a</w>": 1, "b": 2, "the</w>": 3, "</w>": 4, "d": 5}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    return finish(tokenizer, None, split_words(), decoders.BPEDecoder("</w>"))


def spaces_taken(_):
    """Two tokens for the same space: the one takes the spaces behind it, the other those before it."""
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "a": 2, " ": 3, "<right>": 4}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()  # of a text that it leaves alone ranges are read from the text itself
    tokenizer.add_tokens([AddedToken(" ", lstrip=True), AddedToken("<right>", rstrip=True)])
    return tokenizer.to_str()


def trimmed(text, post):
    """Another tokenizer that trims offsets, and adds no tokens."""
    return json.dumps({**json.loads(text), "post_processor": json.loads(post.__getstate__())}, ensure_ascii=False)


def spaces_kept(paragraphs):
    """Spaces begin and end tokens; characters that are unknown are left out, and merges reach over the gap."""
    tokenizer = Tokenizer(models.BPE())
    pre_tokenizer = pre_tokenizers.Split(Regex(r"\s*\S+\s?"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(paragraphs, trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<s>", "</s>"]))
    return finish(tokenizer, None, pre_tokenizer, decoders.Fuse())


KINDS = {
    "llama2": lambda text: bpe(text, mark_spaces(), decode_bytes()),
    "gemma": lambda text: bpe(text, mark_spaces(False), decode_bytes(False)),
    "gemma_tab": gemma,
    "bpe_unknown": lambda text: bpe(text, mark_spaces(), metaspace(), fallback=False),
    "bpe_unknown_apart": lambda text: bpe(text, mark_spaces(), metaspace("never"), fallback=False, fuse=False),
    "bpe_gaps": lambda text: bpe(text, mark_spaces(False), metaspace(), fallback=False, unknown=False),
    "bpe_words": lambda text: bpe(text, mark_spaces(), decode_bytes(), words=True),
    "unigram": lambda text: unigram(text, None, pre_tokenizers.Metaspace("\u2581", "always"), metaspace()),
    "unigram_unsplit": lambda text: unigram(text, None, pre_tokenizers.Metaspace("\u2581", "first", split=False), metaspace("first")),
    "unigram_whole": lambda text: unigram(text, mark_spaces(), None, metaspace()),
    "unigram_bytes": lambda text: unigram(text, mark_spaces(), None, decode_bytes(), fallback=True),
    "clip": clip,
    "byte_letters": byte_letters,
    "t5": lambda text: unigram(text, charsmap(), pre_tokenizers.Metaspace("\u2581", "always"), metaspace()),
    "wordpiece": lambda text: wordpiece(text, True),
    "wordpiece_raw": lambda text: wordpiece(text, False),
    "wordlevel": wordlevel,
    "word_ends": word_ends,
    "spaces_taken": spaces_taken,
    "trimmed_letters": lambda text: trimmed(byte_letters(text), processors.ByteLevel(trim_offsets=True)),
    "trimmed_gaps": lambda text: trimmed(spaces_kept(text), processors.ByteLevel(trim_offsets=True)),
    "trimmed_unigram": lambda text: trimmed(unigram(text, None, pre_tokenizers.Split(Regex(r"\S+"), "isolated"), metaspace()),
                                            processors.RobertaProcessing(("</s>", 1), ("<pad>", 0), True, False)),
    "trimmed_metaspace": lambda text: trimmed(unigram(text, None, pre_tokenizers.Metaspace("\u0120", "always"), metaspace()),
                                              processors.ByteLevel(trim_offsets=True)),
    "trimmed_wordpiece": lambda text: trimmed(wordpiece(text, False), processors.ByteLevel(trim_offsets=True)),
}
