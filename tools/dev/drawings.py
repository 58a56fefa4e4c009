#!/usr/bin/env python3
"""Draws the pictures of docs/concepts.md: `make drawings` writes them into docs/img.

    drawings.py [FOLDER]

The pictures have a light panel of their own, so that they can be read on a white and on a dark page.
"""

import pathlib
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FONT = 'font-family="-apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"'
INK, FAINT, LINE, PANEL = "#1f2933", "#5b6673", "#8a94a0", "#f7f9fb"
BLUE, ORANGE, GREEN, EMPTY = "#7fb2e5", "#f2b279", "#86cfae", "#ffffff"
CELL = 18


class Picture:
    """Shapes on a panel of `width` by `height`; y grows downwards."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.shapes = []

    def text(self, x, y, words, anchor="middle", size=13, color=INK, bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.shapes.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{color}"{weight}>'
                           f"{escape(words)}</text>")

    def note(self, x, y, words, anchor="middle"):
        self.text(x, y, words, anchor, size=12, color=FAINT)

    def box(self, x, y, width, height, fill=EMPTY, words="", radius=3):
        self.shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" fill="{fill}" '
                           f'stroke="{LINE}"/>')
        if words:
            self.text(x + width / 2, y + height / 2 + 4.5, words)

    def grid(self, x, y, rows, columns, fill, cell=CELL):
        for row in range(rows):
            for column in range(columns):
                self.box(x + column * cell, y + row * cell, cell, cell, fill, radius=0)

    def arrow(self, *points):
        path = "L".join(f"{x} {y}" for x, y in points)
        self.shapes.append(f'<path d="M{path}" fill="none" stroke="{FAINT}" stroke-width="1.5" '
                           f'marker-end="url(#head)"/>')

    def save(self, path):
        shapes = "\n".join(self.shapes)
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" {FONT}>\n<title>{escape(self.title)}</title>\n'
            f'<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{FAINT}"/></marker></defs>\n'
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PANEL}"/>\n{shapes}\n</svg>\n',
            encoding="utf-8")


def growth():
    picture = Picture(760, 300, "A KV cache grows with every token, a state of fixed size does not")
    for left, title, fixed in (0, "KV cache", False), (380, "State of fixed size", True):
        picture.text(left + 190, 30, title, bold=True)
        for place, tokens in enumerate((2, 6, 12)):
            x, rows = left + 60 + 110 * place, 4 if fixed else tokens
            picture.grid(x, 232 - rows * 15, rows, 4, GREEN if fixed else ORANGE, cell=15)
            picture.note(x + 30, 250, f"{tokens} tokens")
    picture.note(190, 278, "one more row of keys and values for each token")
    picture.note(570, 278, "each token changes the values, never the size")
    return picture


def linear_state():
    rows, columns, cell = 6, 5, 24
    picture = Picture(760, 330, "Linear state: a token writes an outer product, a query reads a weighted sum of rows")
    x, y = 170, 100
    picture.text(x + columns * cell / 2, 30, "write", bold=True)
    picture.grid(x, 50, 1, columns, BLUE, cell)
    picture.text(x + columns * cell + 16, 67, "u", "start")
    picture.grid(x - 60, y, rows, 1, BLUE, cell)
    picture.text(x - 48, y + rows * cell + 20, "φ(k)")
    picture.grid(x, y, rows, columns, GREEN, cell)
    picture.text(x + columns * cell / 2, y + rows * cell + 20, "S")
    picture.note(x + columns * cell / 2, 300, "S ← A S + φ(k) ⊗ u")
    picture.arrow((x - 34, y + rows * cell / 2), (x - 4, y + rows * cell / 2))
    picture.arrow((x + columns * cell / 2, 76), (x + columns * cell / 2, y - 4))

    x = 500
    picture.text(x + columns * cell / 2, 30, "read", bold=True)
    picture.grid(x - 60, y - 30, rows, 1, ORANGE, cell)
    picture.text(x - 48, y - 30 + rows * cell + 20, "φ(q)")
    picture.grid(x, y - 30, rows, columns, GREEN, cell)
    picture.text(x + columns * cell + 16, y - 30 + rows * cell / 2 + 5, "S", "start")
    picture.arrow((x - 34, y - 30 + rows * cell / 2), (x - 4, y - 30 + rows * cell / 2))
    picture.arrow((x + columns * cell / 2, y - 28 + rows * cell), (x + columns * cell / 2, 238))
    picture.grid(x, 242, 1, columns, ORANGE, cell)
    picture.text(x + columns * cell + 16, 259, "o", "start")
    picture.note(x + columns * cell / 2, 300, "o = φ(q)ᵀ S / den")
    return picture


def slot_memory():
    slots, width, y = 4, 5, 110
    middle = y + slots * CELL / 2
    picture = Picture(860, 270, "Slot memory: a control decides how much of a token each slot takes")
    picture.text(45, middle + 5, "token")
    picture.arrow((70, middle), (98, middle))
    picture.box(100, middle - 18, 76, 36, BLUE, "control")
    picture.arrow((178, middle), (206, middle))
    for place, name in enumerate("ab"):
        picture.grid(210 + 28 * place, y, slots, 1, BLUE)
        picture.text(219 + 28 * place, y - 10, name)
    picture.arrow((262, middle), (298, middle))
    for x, name in (302, "K̃"), (600, "Ṽ"):
        picture.grid(x, y, slots, width, GREEN)
        picture.text(x + width * CELL / 2, y - 10, name)
    picture.text(347, 40, "q")
    picture.arrow((347, 48), (347, y - 30))
    picture.arrow((396, middle), (432, middle))
    picture.box(436, middle - 18, 76, 36, ORANGE, "softmax")
    picture.arrow((514, middle), (540, middle))
    picture.grid(544, y, slots, 1, ORANGE)
    picture.arrow((566, middle), (596, middle))
    picture.arrow((694, middle), (730, middle))
    picture.grid(734, middle - CELL / 2, 1, width, ORANGE)
    picture.text(734 + width * CELL / 2, middle - 18, "o")
    picture.note(219, y + slots * CELL + 26, "for each slot: how much stays (a), how much comes (b)")
    picture.note(347, y + slots * CELL + 52, "K̃ ← a K̃ + b ⊗ k, and Ṽ with v", "middle")
    picture.note(665, y + slots * CELL + 52, "o = Ṽᵀ softmax(K̃ q)")
    return picture


def cache_policies():
    tokens, left = 20, 250
    picture = Picture(680, 250, "Cache: a policy says which rows stay")
    recent = set(range(14, 20))
    kept = {
        "softmax, max_context 24": set(range(tokens)),
        "sliding_window": recent,
        "dilated_window": set(range(9, 20, 2)),
        "strided_window": recent | {3, 7, 11},
        "l2g_window": recent | {0, 1, 2},
    }
    picture.text(left, 32, "rows that token 20 sees", "start", bold=True)
    for place, (name, rows) in enumerate(kept.items()):
        y = 50 + place * 34
        picture.text(left - 14, y + 14, name, "end")
        for token in range(tokens):
            fill = EMPTY if token not in rows else BLUE if token == tokens - 1 else GREEN
            picture.box(left + token * CELL, y, CELL, CELL, fill, radius=0)
    picture.note(left, 236, "token 1", "start")
    picture.note(left + tokens * CELL, 236, "token 20", "end")
    return picture


def phases():
    picture = Picture(760, 210, "A prompt is read in chunks, then each step reads and writes one token")
    picture.text(160, 30, "prefill: a prompt of 150 tokens", bold=True)
    picture.text(560, 30, "decode: one step for each token", bold=True)
    for x, words in (20, "64 tokens"), (115, "64 tokens"), (210, "22 tokens"):
        picture.box(x, 50, 90, 36, BLUE, words)
        picture.arrow((x + 45, 88), (x + 45, 126))
    picture.box(20, 130, 720, 30, GREEN, "state: the same bytes from the first token to the last")
    for x in (375, 500, 625):
        picture.box(x, 50, 60, 36, BLUE, "token")
        picture.arrow((x + 30, 88), (x + 30, 126))
        picture.arrow((x + 62, 68), (x + 92, 68))
        picture.note(x + 78, 58, "next")
    picture.note(735, 72, "…")
    picture.note(330, 72, "sampler")
    picture.arrow((354, 68), (371, 68))
    picture.note(160, 190, "a chunk reads the weights once for all its tokens")
    picture.note(560, 190, "a step reads the weights once for one token")
    return picture


def memory_classes():
    picture = Picture(760, 320, "Classes of memory in tarn_memory")
    picture.text(200, 30, "per model", bold=True)
    picture.text(570, 30, "per session: one block", bold=True)
    file_backed = [("mapped_bytes", "the model file"), ("packed_file_bytes", "packed weights in a cache file")]
    anonymous = [("model_bytes", "the model's own tables"),
                 ("packed_anonymous_bytes", "packed weights without a cache file")]
    session = [("state_bytes", "what the sequences remember"), ("arena_bytes", "values between the ops"),
               ("scratch_bytes", "working memory of the ops, per thread"), ("program_bytes", "the prepared program")]
    for x, y, rows, fill in (30, 50, file_backed, BLUE), (30, 186, anonymous, ORANGE), (400, 50, session, GREEN):
        for place, (name, meaning) in enumerate(rows):
            picture.box(x, y + 56 * place, 340, 48, fill)
            picture.text(x + 14, y + 56 * place + 20, name, "start", bold=True)
            picture.text(x + 14, y + 56 * place + 38, meaning, "start", size=12)
    picture.box(392, 42, 356, 232, "none", radius=6)
    picture.note(200, 173, "above: file-backed; below: anonymous")
    picture.note(570, 298, "session_bytes is the sum of the four")
    return picture


def encoder():
    picture = Picture(760, 270, "A source is encoded once; its beams read the same source state")
    picture.box(20, 105, 90, 40, BLUE, "source")
    picture.arrow((112, 125), (138, 125))
    picture.box(142, 105, 96, 40, EMPTY, "encoder")
    picture.arrow((240, 125), (266, 125))
    picture.box(270, 85, 130, 80, GREEN, "source state")
    for beam in range(4):
        y = 50 + beam * 44
        picture.arrow((402, 125), (446, y + 16))
        picture.box(450, y, 80, 32, BLUE, f"beam {beam + 1}")
        picture.arrow((532, y + 16), (566, y + 16))
        picture.box(570, y, 160, 32, ORANGE, "sequence state")
    picture.note(335, 190, "written once, then only read")
    picture.note(740, 248, "a beam that takes over from another copies a state of fixed size", "end")
    return picture


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "img"
    folder.mkdir(parents=True, exist_ok=True)
    for draw in growth, linear_state, slot_memory, cache_policies, phases, memory_classes, encoder:
        draw().save(folder / (draw.__name__.replace("_", "-") + ".svg"))


if __name__ == "__main__":
    main()
