#!/usr/bin/env python3
"""Makes the golden files of slots whose values have a control of their own: Linformer with E and F, ABC-MLP with two logits.

make_value_control.py OUT_DIR
"""

import math
import pathlib
import random
import sys

from golden_writer import dot, f32, matrix, softmax, write

ACTIVATIONS = {"exp": math.exp, "relu": lambda x: max(x, 0.0), "sigmoid": lambda x: 1 / (1 + math.exp(-x))}


def shares(logits, activation, normalization, t):
    """What share each of the tokens 0 .. t has in a slot of these logits at token t, and the sum of the controls."""
    if activation == "exp":  # in logarithms, as exp(200) has no place in f32
        def log_sum(last):
            top = max(logits[: last + 1])
            return top + math.log(math.fsum(math.exp(s - top) for s in logits[: last + 1]))
        sums = [log_sum(i) for i in range(t + 1)]
        ends = sums if normalization == "frozen" else [sums[t]] * (t + 1)
        return [math.exp(s - end) for s, end in zip(logits, ends)], sums[t]
    alpha = [ACTIVATIONS[activation](s) for s in logits[: t + 1]]
    sums = [math.fsum(alpha[: i + 1]) for i in range(t + 1)]
    ends = sums if normalization == "frozen" else [sums[t]] * (t + 1)
    return [a / end if end > 0 else 0.0 for a, end in zip(alpha, ends)], sums[t]


def slots_at(weights, rows):
    """weights: of each slot a weight per token; rows: of the tokens."""
    return [[math.fsum(w * row[e] for w, row in zip(of_slot, rows)) for e in range(len(rows[0]))] for of_slot in weights]


class Case:
    def __init__(self, seed, tokens, heads, kv_heads, d, dv, slots, queries=None):
        self.rng = random.Random(seed)
        self.tokens, self.heads, self.kv_heads, self.d, self.dv, self.slots = tokens, heads, kv_heads, d, dv, slots
        sizes = (queries or tokens, heads, d), (tokens, kv_heads, d), (tokens, kv_heads, dv)
        self.q, self.k, self.v = (matrix(self.rng, *size) for size in sizes)
        self.scale = d ** -0.5
        self.attributes = {"num_slots": slots, "own_value_control": True, "num_heads": heads, "num_kv_heads": kv_heads,
                           "head_dim": d, "value_dim": dv}
        self.inputs = {"q": self.q, "k": self.k, "v": self.v}

    def attend(self, causal, weights_at):
        """weights_at(h, t): weights of the tokens 0 .. t in the slots of K~ and of V~, and which slots are masked."""
        o, keys, values = [], [None] * self.kv_heads, [None] * self.kv_heads
        for row in range(len(self.q)):
            outputs = []
            for head in range(self.heads):
                h, t = head * self.kv_heads // self.heads, row if causal else self.tokens - 1
                of_keys, of_values, masked = weights_at(h, t)
                keys[h] = slots_at(of_keys, [k[h] for k in self.k[: t + 1]])
                values[h] = slots_at(of_values, [v[h] for v in self.v[: t + 1]])
                seen = [j for j in range(self.slots) if not masked[j]]
                p = softmax([self.scale * dot(self.q[row][head], keys[h][j]) for j in seen]) if seen else []
                outputs.append([dot(p, [values[h][j][e] for j in seen]) for e in range(self.dv)])
            o.append(outputs)
        return {"o": o, "state_K": keys, "state_V": values}


def linformer(folder, name, causal, max_len, case):
    weights = [matrix(case.rng, case.slots, max_len, scale=0.5) for _ in range(2)]

    def weights_at(h, t):
        return *([row[: t + 1] for row in weight] for weight in weights), [False] * case.slots

    expected = case.attend(causal, weights_at)
    tensors = {**case.inputs, "linformer_weight": weights[0], "linformer_value_weight": weights[1], **expected}
    attributes = {"system": "linformer", "max_len": max_len, **case.attributes}
    write(folder / (name + ".safetensors"), name, name.split(".")[0], attributes, [1, 4, 7, case.tokens] if causal else [], tensors)


def abc(folder, name, causal, activation, normalization, case, rise=0.0, mask_empty=False, from_heads=False):
    """rise: what the logits of V~ gain from the first token to the last."""
    inputs = dict(case.inputs)
    if from_heads:
        weights = [matrix(case.rng, case.slots, size) for size in (case.d, case.dv)]
        logits = [[[[dot(w, row) for w in weight] for row in token] for token in rows]
                  for weight, rows in zip(weights, (case.k, case.v))]
        inputs.update(control_proj_weight=weights[0], value_control_proj_weight=weights[1])
        case.attributes["control_input"] = "heads"
    else:
        logits = [matrix(case.rng, case.tokens, case.kv_heads, case.slots, scale=2.0) for _ in range(2)]
        logits[1] = [[[f32(s + rise * t / case.tokens) for s in row] for row in token] for t, token in enumerate(logits[1])]
        if mask_empty:  # a slot without keys, one without values
            for t in range(case.tokens):
                logits[0][t][0][1] = logits[1][t][0][2] = -1.0
        inputs.update(control_logit=logits[0], value_control_logit=logits[1])

    def weights_at(h, t):
        parts = [[shares([token[h][j] for token in of], activation, normalization, t) for j in range(case.slots)] for of in logits]
        masked = [mask_empty and activation != "exp" and total <= 0 for _, total in parts[0]]
        return [w for w, _ in parts[0]], [w for w, _ in parts[1]], masked

    expected = case.attend(causal, weights_at)
    if causal:
        for key, of in zip(("", "value_"), logits):
            name_of = "state_" + key + ("lse" if activation == "exp" else "z")
            expected[name_of] = [[shares([token[h][j] for token in of], activation, normalization, case.tokens - 1)[1]
                                  for j in range(case.slots)] for h in range(case.kv_heads)]
    attributes = {"system": "abc_mlp", "activation": activation, "normalization": normalization, "mask_empty": mask_empty,
                  **case.attributes}
    chunks = [1, 4, 7, case.tokens] if causal else []
    write(folder / (name + ".safetensors"), name, name.split(".")[0], attributes, chunks, {**inputs, **expected})


def main():
    folder = pathlib.Path(sys.argv[1])
    linformer(folder, "slots.linformer_values.a", True, 40, Case(1, 23, 4, 2, 7, 5, 9))
    linformer(folder, "noncausal.linformer_values.a", False, 33, Case(2, 21, 4, 2, 9, 6, 5, queries=13))
    abc(folder, "slots.abc_mlp_values_exp.a", True, "exp", "renorm", Case(3, 22, 4, 2, 7, 9, 5))
    abc(folder, "slots.abc_mlp_values_exp_hard.b", True, "exp", "renorm", Case(4, 25, 3, 3, 5, 6, 7), rise=230.0)
    abc(folder, "slots.abc_mlp_values_frozen.a", True, "exp", "frozen", Case(5, 19, 2, 1, 6, 7, 9))
    abc(folder, "slots.abc_mlp_values_relu_masked.b", True, "relu", "renorm", Case(6, 20, 4, 2, 5, 3, 5), mask_empty=True)
    abc(folder, "noncausal.abc_mlp_values_exp.a", False, "exp", "renorm", Case(7, 24, 4, 2, 6, 9, 7, queries=11))
    abc(folder, "noncausal.abc_mlp_values_relu_masked.b", False, "relu", "renorm", Case(8, 17, 3, 3, 9, 4, 5), mask_empty=True)
    abc(folder, "slots.abc_mlp_heads.a", True, "exp", "renorm", Case(9, 26, 4, 2, 6, 7, 5), from_heads=True)
    abc(folder, "noncausal.abc_mlp_heads.a", False, "exp", "renorm", Case(10, 19, 3, 3, 7, 5, 9, queries=8), from_heads=True)


if __name__ == "__main__":
    main()
