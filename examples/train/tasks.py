"""The tasks: their models, how they are trained, how texts become batches, and what counts as right."""

import random
import typing

import torch

import dates
import listops

TEST_LINES, TEST_SEED = 5000, 1
SYSTEMS = ("softmax", "rfa", "abc", "rfa_gate")


def attention(system, slots, features):
    return {
        "softmax": {"system": "softmax", "max_context": 256},
        "rfa": {
            "system": "rfa",
            "feature_map": "gaussian",
            "num_features": features,
            "gate": "none",
            "normalize_qk": True,
            "norm_eps": 1e-3,
            "den_mode": "clamp_min",
            "den_eps": 1e-2,
        },
        "rfa_gate": {
            "system": "rfa",
            "feature_map": "arccos",
            "num_features": features,
            "gate": "forget",
            "normalize_qk": True,
            "norm_eps": 1e-3,
            "den_mode": "clamp_min",
            "den_eps": 1e-3,
        },
        "abc": {
            "system": "abc_mlp",
            "num_slots": slots,
            "activation": "exp",
            "normalization": "renorm",
            "control_sharing": "layer",
        },
    }[system]


def base_config(task, hidden_size, intermediate_size, hidden_act):
    return {
        "task": task,
        "vocab_size": 256,
        "hidden_size": hidden_size,
        "num_heads": 4,
        "intermediate_size": intermediate_size,
        "hidden_act": hidden_act,
        "norm": "layernorm",
        "norm_eps": 1e-5,
        "norm_position": "pre",
        "final_norm": True,
        "mlp_bias": True,
        "position_embedding": "sinusoidal",
        "first_position": 0,
        "tokenizer": "bytes",
    }


def padded(texts):
    """I64 [B, longest] of their bytes, 0 behind them: a byte that no text has."""
    rows = [torch.tensor(list(text.encode())) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


class Plan(typing.NamedTuple):
    """How to train: `steps` (of each system) batches of about `batch_symbols` bytes, Adam at `rate` after a linear warm-up, then
    down a cosine."""

    steps: dict
    batch_symbols: int
    rate: float
    warmup: int
    examples: int  # distinct ones, drawn with `seed`
    seed: int


class Dates:
    lines = staticmethod(dates.lines)
    plan = Plan(
        steps={"softmax": 3000, "rfa": 3000, "abc": 2000}, batch_symbols=2048, rate=2e-3, warmup=200, examples=200_000, seed=1
    )
    metric = "exact match of the greedy output"
    longest = 16  # bytes that greedy decoding may write

    @staticmethod
    def config(system):
        mixer = attention(system, slots=16, features=64)
        return {
            **base_config("seq2seq", hidden_size=64, intermediate_size=256, hidden_act="relu"),
            "encoder_layers": 2,
            "decoder_layers": 2,
            "attention_bias": True,
            "scale_embeddings": True,
            "share_embeddings": True,
            "tie_word_embeddings": True,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "pad_token_id": 0,
            "encoder_attention": mixer,
            "decoder_attention": mixer,
            "cross_attention": mixer,
        }

    @staticmethod
    def text(line):
        return line[0]

    @staticmethod
    def targets(model, batch):
        """Tokens that the decoder reads and tokens that it is to write: begin + text, text + end."""
        bos, eos = chr(model.c["bos_token_id"]), chr(model.c["eos_token_id"])
        return padded([bos + target for _, target in batch]), padded([target + eos for _, target in batch])

    @staticmethod
    def loss(model, batch):
        read, write = Dates.targets(model, batch)
        logits = model(padded([source for source, _ in batch]), read)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), write.flatten(), ignore_index=model.c["pad_token_id"])

    @staticmethod
    def right(model, batch):
        """How many of the batch the model gets right."""
        end = chr(model.c["eos_token_id"])
        output = model.greedy(padded([source for source, _ in batch]), Dates.longest).tolist()
        return sum(bytes(row).decode("latin-1").partition(end)[0] == target for row, (_, target) in zip(output, batch))

    @staticmethod
    def golden(model, batch):
        source = padded([source for source, _ in batch])
        read, _ = Dates.targets(model, batch)
        return {"source": source, "tokens": read, "logits": model(source, read), "greedy": model.greedy(source, Dates.longest)}


class ListOps:
    lines = staticmethod(listops.lines)
    plan = Plan(
        steps={"softmax": 1500, "rfa": 1500, "abc": 1500}, batch_symbols=2048, rate=1.5e-3, warmup=200, examples=200_000, seed=1
    )
    metric = "accuracy"

    @staticmethod
    def config(system):
        return {
            **base_config("classification", hidden_size=64, intermediate_size=256, hidden_act="gelu"),
            "num_layers": 3,
            "attention_bias": False,
            "scale_embeddings": False,
            "tie_word_embeddings": False,
            "num_labels": 10,
            "pooling": "mean",
            "attention": attention(system, slots=32, features=64),
        }

    @staticmethod
    def text(line):
        return line[1]

    @staticmethod
    def loss(model, batch):
        logits = model(padded([text for _, text in batch]))
        return torch.nn.functional.cross_entropy(logits, torch.tensor([int(label) for label, _ in batch]))

    @staticmethod
    def right(model, batch):
        best = model(padded([text for _, text in batch])).argmax(-1).tolist()
        return sum(str(output) == label for output, (label, _) in zip(best, batch))

    @staticmethod
    def golden(model, batch):
        tokens = padded([text for _, text in batch])
        return {"tokens": tokens, "logits": model(tokens)}


class Language:
    """The next byte of a text file: a model small enough for a microcontroller."""

    WINDOW = 129  # bytes of a line: each but the last is read, each but the first is to be foretold
    MIN_BYTES = 20 * (WINDOW + 1)  # then a twentieth of the text has more than one window
    file = None  # the text; its first nine tenths train, of the rest one half validates and one tests

    plan = Plan(steps=dict.fromkeys(SYSTEMS, 1500), batch_symbols=2064, rate=4e-3, warmup=100, examples=25_000, seed=1)
    metric = "next byte right"

    @staticmethod
    def lines(split, count, seed):
        data = Language.file.read_bytes().decode("latin-1")
        nine, half = len(data) * 9 // 10, len(data) * 19 // 20
        begin, end = {"train": (0, nine), "validation": (nine, half), "test": (half, len(data))}[split]
        generator = random.Random(f"{split} {seed}")
        for _ in range(count):
            at = generator.randrange(begin, end - Language.WINDOW)
            yield data[at : at + Language.WINDOW]

    @staticmethod
    def config(system):
        return {
            **base_config("causal_lm", hidden_size=64, intermediate_size=256, hidden_act="relu"),
            "num_layers": 3,
            "position_embedding": "none",
            "attention_bias": False,
            "mlp_bias": False,
            "scale_embeddings": True,
            "tie_word_embeddings": True,
            "attention": attention(system, slots=16, features=32),
        }

    @staticmethod
    def text(line):
        return line

    @staticmethod
    def logits(model, batch):
        """[windows, WINDOW - 1, V], and what they should have foretold."""
        tokens = torch.tensor([list(line.encode("latin-1")) for line in batch])
        return model(tokens[:, :-1]), tokens[:, 1:]

    @staticmethod
    def loss(model, batch):
        logits, wanted = Language.logits(model, batch)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())

    @staticmethod
    def right(model, batch):
        logits, wanted = Language.logits(model, batch)
        return (logits.argmax(-1) == wanted).double().mean(-1).sum().item()


TASKS = {"dates": Dates, "listops": ListOps, "language": Language}


def batches(task, lines, symbols):
    """Lines of about the same length together, padded to at most so many bytes."""
    batch, result = [], []
    for line in sorted(lines, key=lambda line: len(task.text(line))):
        if batch and (len(batch) + 1) * len(task.text(line)) > symbols:
            result.append(batch)
            batch = []
        batch.append(line)
    return [*result, batch]


@torch.no_grad()
def accuracy(task, model, lines):
    """In percent"""
    return 100 * sum(task.right(model, batch) for batch in batches(task, lines, 16384)) / len(lines)
