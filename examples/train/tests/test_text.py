"""Tokenizers, the held-out text, the order of windows."""

import pytest
import torch
from tokenizers.processors import TemplateProcessing

from tarn_train import text
from tarn_train.settings import LEAST_PIECES

WORDS = "The water of a tarn runs through it, and its size does not change.\n" * 30 + "Über 10,000 €, 日本語 🙂\n"


def test_a_trained_tokenizer_writes_every_text():
    tokenizer = text.Pieces(text.trained_tokenizer([WORDS], 300))
    assert tokenizer.size == 300 and text.Pieces(text.trained_tokenizer([WORDS], LEAST_PIECES)).size == LEAST_PIECES
    for sample in WORDS, "\0\n \t unseen: ñ 漢 🎉", "":
        assert tokenizer.tokenizer.decode(tokenizer.encode(sample), skip_special_tokens=False) == sample
    assert len(tokenizer.encode(WORDS)) < len(WORDS) / 2
    a, b = tokenizer.encode("a"), tokenizer.encode("b")
    assert text.packed(tokenizer, ["a", "b"]).tolist() == [*a, tokenizer.end, *b, tokenizer.end]


@pytest.mark.parametrize("template", ["<s> $A", f"<s> $A {text.END}"])
def test_texts_begin_as_the_tokenizer_says(template):
    tokenizer = text.trained_tokenizer([WORDS], 300)
    tokenizer.add_special_tokens(["<s>"])
    plain = text.Pieces(tokenizer)
    a, b, begin, end = plain.encode("a"), plain.encode("b"), tokenizer.token_to_id("<s>"), plain.end
    tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=[("<s>", begin), (text.END, end)])
    assert text.packed(text.Pieces(tokenizer), ["a", "b"]).tolist() == [begin, *a, end, begin, *b, end]


def test_held_out_text_is_the_end_of_each_text_from_a_line_on():
    texts = ["a\nb\nc\nd\n" * 5, "one line without an end"]
    train, held_out = text.split(texts, 0.25)
    assert train[0].endswith("\n") and len(train[0]) == 30
    assert held_out == texts[0][30:] + texts[1][len(train[1]) :]
    assert [t for t in text.split(texts, 0)[0]] == texts


@pytest.mark.parametrize("whole, share, begins, most", [
    ("A title\n" + "word " * 2000, 0.05, "word ", 505),  # a line far back
    ("A title\n" + "x" * 10_000, 0.05, "x", 501),  # and no words
    ("short line\n" * 100 + "word " * 20, 0.05, "word ", 120),
    ("short line\n" * 100, 0.05, "short line\n", 66),
    ("ab", 0.5, "b", 1)])
def test_a_long_line_holds_out_no_more_than_twice_what_was_asked_for(whole, share, begins, most):
    (train,), held_out = text.split([whole], share)
    assert train + held_out == whole and held_out.startswith(begins)
    assert share * len(whole) - len("short line\n") < len(held_out) <= most


def test_a_tokenizer_that_cuts_and_pads_texts_does_not_do_so_here(tmp_path):
    """The runtime reads neither field."""
    tokenizer = text.trained_tokenizer([WORDS], 300)
    whole = tokenizer.encode(WORDS).ids
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=2 * len(whole))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert text.Pieces(text.read_tokenizer(tmp_path / "tokenizer.json")).encode(WORDS) == whole


def test_windows_of_an_epoch_are_all_different_and_a_step_alone_decides_them():
    tokens = torch.arange(1003)
    windows = text.Windows(tokens, context=50, batch=3, seed=1)
    batches = [windows.batch(step) for step in range(12)]
    begins = [int(row[0]) for batch in batches for row in batch]
    epoch = begins[: windows.count]
    assert windows.count == 19 and len({begin // 50 for begin in epoch}) == len(set(epoch)) == 19
    assert epoch != sorted(epoch) and begins[19:38] != epoch[: len(begins[19:38])]
    for batch in batches:
        assert batch.shape == (3, 51) and (batch[:, 1:] == batch[:, :-1] + 1).all()
    for step in 11, 0, 7, 6:
        assert text.Windows(tokens, 50, 3, 1).batch(step).equal(batches[step])
    assert not text.Windows(tokens, 50, 3, 2).batch(0).equal(batches[0])
    with pytest.raises(ValueError, match="expected at least 2001"):
        text.Windows(tokens, 1000, 1, 1)


def test_blocks_score_each_token_but_the_first_of_a_block():
    rows = [row for batch in text.blocks(torch.arange(23), 5, 2) for row in batch.tolist()]
    assert rows == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19], [20, 21, 22]]
    assert len(list(text.blocks(torch.arange(21), 5, 4))) == 1
