#!/usr/bin/env python3
"""Draws the pictures of docs/architecture.md: `make drawings` writes them into docs/architecture.

    architecture_drawings.py [FOLDER]
"""

import pathlib
import sys

from drawings import BLUE, EMPTY, GREEN, ORANGE, ROOT, Picture

FULL, HALF = 760, 340
LEFT, RIGHT = 40, 420


def chain(picture, x, y, width, boxes, step=64):
    """Boxes of (words, note, fill), one below the other, with arrows between them."""
    for place, (words, note, fill) in enumerate(boxes):
        top = y + place * step
        picture.box(x, top, width, 44, fill)
        picture.text(x + width / 2, top + (19 if note else 27), words)
        if note:
            picture.note(x + width / 2, top + 36, note)
        if place:
            picture.arrow((x + width / 2, top - step + 45), (x + width / 2, top - 2))


def token():
    picture = Picture(FULL, 560, "The path of a token through a call of prefill or step")
    picture.text(LEFT + HALF / 2, 30, "a call", bold=True)
    picture.text(RIGHT + HALF / 2 - 10, 30, "one chunk in Program::Run", bold=True)
    chain(picture, LEFT, 50, 300, [
        ("token ids [batch, count]", "tarn_session_prefill, tarn_session_step", BLUE),
        ("check ids, limits and the token bound", "runtime/capi, runtime/session", EMPTY),
        ("cut into chunks of max_chunk", "a step is a chunk of one token", EMPTY),
        ("run program \"decode\" on each chunk", "runtime/interpreter", ORANGE),
        ("count the tokens", "the position of the next one", EMPTY),
        ("logits of the last token [batch, vocab]", "in the session's arena, until the next call", BLUE),
    ], step=84)
    chain(picture, RIGHT, 50, 300, [
        ("embedding, positions", "ids -> rows of the hidden width", EMPTY),
        ("norm, dense layer for q, k, v", "kernels/pointwise, kernels/dense", EMPTY),
        ("attention", "step kernel for a token, else chunk kernel", GREEN),
        ("dense layers, activation, add", "the rest of the layer", EMPTY),
        ("select outputs", "last chunk only: rows that need logits", EMPTY),
        ("head", "hidden rows -> logits", EMPTY),
    ], step=84)
    picture.arrow((LEFT + 302, 324), (RIGHT - 24, 324), (RIGHT - 24, 72), (RIGHT - 3, 72))
    picture.note(RIGHT + 150, 546, "attention reads and writes its states")
    return picture


def model_file():
    picture = Picture(FULL, 480, "The life of a model file, from checkpoint to session")
    picture.text(LEFT + 160, 30, "tarn-convert, once", bold=True)
    picture.text(RIGHT + 150, 30, "libtarn, at every start", bold=True)
    chain(picture, LEFT, 50, 300, [
        ("checkpoint", "config.json, *.safetensors", BLUE),
        ("graph", "tools/convert/config, build", EMPTY),
        ("quantized weights", "tools/convert/graph, row by row", EMPTY),
        (".tarn file", "tools/convert/writer", ORANGE),
    ], step=100)
    chain(picture, RIGHT, 50, 300, [
        ("mapped and checked", "header, hash, graph: runtime/model", EMPTY),
        ("weights verified and packed", "runtime/session: LoadedModel::Pack", EMPTY),
        ("tarn_model", "immutable, shared by threads", GREEN),
        ("plan for the session's limits", "Prepare, PlanArena, Bind: runtime/interpreter", EMPTY),
        ("tarn_session", "one block of memory", GREEN),
    ], step=92)
    picture.arrow((LEFT + 302, 372), (RIGHT - 40, 372), (RIGHT - 40, 72), (RIGHT - 3, 72))
    return picture


def block():
    picture = Picture(FULL, 300, "The layout of a session's block of memory")
    parts = [("Session", 70, EMPTY), ("Instance", 76, EMPTY), ("programs", 84, EMPTY), ("dense, constants", 120, EMPTY),
             ("state", 110, GREEN), ("arena", 110, BLUE), ("scratch", 110, ORANGE)]
    x, y = 40, 60
    places = {}
    for words, width, fill in parts:
        picture.box(x, y, width, 50, fill, words, radius=0)
        places[words] = x
        x += width
    picture.note(215, y - 14, "program_bytes")
    picture.note(places["state"] + 55, y - 14, "state_bytes")
    picture.note(places["arena"] + 55, y - 14, "arena_bytes")
    picture.note(places["scratch"] + 55, y - 14, "scratch_bytes")

    state = places["state"]
    picture.arrow((state + 30, y + 52), (240, 170))
    x = 60
    for words, width in ("tokens seen", 100), ("tokens of each source", 160), ("state 0", 70), ("state 1", 70), ("...", 40):
        picture.box(x, 174, width, 36, GREEN, words, radius=0)
        x += width
    picture.note(280, 230, "carried from call to call: what a snapshot holds")

    arena = places["arena"]
    picture.arrow((arena + 80, y + 52), (630, 158))
    picture.box(560, 162, 80, 26, BLUE, "value 1", radius=0)
    picture.box(640, 162, 80, 26, BLUE, "value 4", radius=0)
    picture.box(560, 188, 50, 26, BLUE, "3", radius=0)
    picture.box(610, 188, 110, 26, BLUE, "value 2", radius=0)
    picture.note(640, 234, "values whose lives do not overlap")
    picture.note(640, 250, "share bytes; ops run from left to right")
    picture.note(380, 284, "Every piece begins at a multiple of 64 bytes. Nothing is allocated after the session is created.")
    return picture


PICTURES = {"token": token, "model-file": model_file, "session-block": block}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/architecture"
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw().save(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
