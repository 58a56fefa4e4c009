"""Text as tokens: files, the held-out part of each, tokenizers, and windows in an order that a seed decides."""

import hashlib
import pathlib

import numpy
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"


def read_texts(paths):
    texts = []
    for path in paths:
        try:
            text = pathlib.Path(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: byte {error.start} is no UTF-8") from None
        if text:
            texts.append(text)
    if not texts:
        raise ValueError("the text is empty")
    return texts


def fingerprint(texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def split(texts, share):
    """The beginnings of the texts, and what is held out: their ends, from the beginning of a line on. Where lines are so long that
    this would be more than twice the share: from the beginning of a word on; where words are, too: exactly the share."""
    train, held_out = [], []
    for text in texts:
        mark = int(len(text) * (1 - share))
        first = max(0, 2 * mark - len(text))
        places = (text.rfind(end, first, mark + 1) + 1 for end in "\n ")
        cut = next(filter(None, places), mark)
        train.append(text[:cut])
        held_out.append(text[cut:])
    return train, "".join(held_out)


class Bytes:
    """A token is a byte."""

    name, size, end = "bytes", 256, None

    def encode(self, text):
        return list(text.encode())


class Pieces:
    """A tokenizer.json of the tokenizers package"""

    name = "tokenizer.json"

    def __init__(self, tokenizer, end=None):
        """end: the id of the token behind each text, if it is not END"""
        self.tokenizer, self.end = tokenizer, tokenizer.token_to_id(END) if end is None else end
        self.size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text):
        """With the tokens that the tokenizer puts before and after every text, as the runtime reads texts"""
        return self.tokenizer.encode(text).ids


def trained_tokenizer(texts, size):
    """Byte-level BPE: every text can be written in it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def read_tokenizer(path):
    """As the runtime reads it, which neither cuts nor pads a text"""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing more special
        raise ValueError(f"cannot read the tokenizer {path}: {' '.join(str(error).split())}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def packed(tokenizer, texts):
    """All texts one after the other, with the end token behind each: int64 [N]"""
    ids = []
    for text in texts:
        ids += tokenizer.encode(text)
        ids += [] if tokenizer.end is None or ids[-1:] == [tokenizer.end] else [tokenizer.end]
    return torch.tensor(ids, dtype=torch.long)


class Windows:
    """Batches of windows, context + 1 tokens each. A step alone decides its batch, so that training can go on anywhere.

    In each epoch the windows begin at other places, and come in another order.
    """

    def __init__(self, tokens, context, batch, seed):
        self.tokens, self.context, self.size, self.seed = tokens, context, batch, seed
        self.count = (len(tokens) - 1) // context - 1  # windows of an epoch, wherever it begins
        if self.count < 1:
            raise ValueError(f"the text has {len(tokens)} tokens to train on, expected at least {2 * context + 1}: "
                             "more text, or a smaller context")
        self.epoch, self.order = None, None

    def begin(self, number):
        """Where window `number` begins, counted over all epochs"""
        epoch, place = divmod(number, self.count)
        if epoch != self.epoch:
            generator = numpy.random.Generator(numpy.random.PCG64([self.seed, epoch]))
            self.epoch, self.order = epoch, generator.integers(self.context) + self.context * generator.permutation(self.count)
        return int(self.order[place])

    def batch(self, step):
        """int64 [batch, context + 1] of a step, counted from 0"""
        begins = [self.begin(step * self.size + i) for i in range(self.size)]
        return torch.stack([self.tokens[begin : begin + self.context + 1] for begin in begins])


def blocks(tokens, context, batch):
    """Batches of the held-out text, each token but the first of a block scored once; the last block may be short."""
    whole = len(tokens) // context * context
    rows = tokens[:whole].view(-1, context)
    yield from rows.split(batch)
    if len(tokens) - whole > 1:
        yield tokens[None, whole:]
