"""The table of make transfer-demo: transfer_table DIR NAME...

DIR has teacher, and for each attention NAME-transferred and NAME-from-nothing.
"""

import json
import pathlib
import sys


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def shown(loss):
    return "not finite, or not measured" if loss is None else f"{loss:.4f}"


def row(folder, name):
    losses = read(folder / f"{name}-transferred" / "transfer.json")["held_out_nats_per_token"]
    nothing = read(folder / f"{name}-from-nothing" / "training.json")["held_out_nats_per_token"]
    return [name, *(shown(losses[stage]) for stage in ("exchanged", "matched", "fine_tuned")), f"{nothing:.4f}"]


def main():
    folder = pathlib.Path(sys.argv[1])
    teacher = read(folder / "teacher" / "training.json")["held_out_nats_per_token"]
    print(f"The teacher: {teacher:.4f} nats per token.\n")
    print("| attention | exchanged | matched | fine-tuned | as many steps from nothing |\n|---|--:|--:|--:|--:|")
    for name in sys.argv[2:]:
        print(f"| {' | '.join(row(folder, name))} |")


if __name__ == "__main__":
    main()
