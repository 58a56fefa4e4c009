"""Attention over compressed rows, one key/value head at a time, as reference_attention.py has the other systems."""

from reference_attention import Softmax
from reference_layers import Linear, dot, softmax, weighted_rows, zeros


class MemoryCompressed(Softmax):
    """Over a learned row, and over blocks of tokens that a convolution makes one row once they are complete."""

    def __init__(self, c, a, weights, layer, head):
        super().__init__(c, a, weights, layer, head)
        d, self.factor = c["head_dim"], a["compression_factor"]
        rows = weights.matrix(layer + "conv_weight")[head * d * d : (head + 1) * d * d]  # [output channel, input channel], taps
        self.taps = [[[rows[o * d + i][tap] for i in range(d)] for o in range(d)] for tap in range(self.factor)]
        self.bias = weights.vector(layer + "conv_bias")[head * d : (head + 1) * d]
        self.null = [weights.matrix(layer + name)[head] for name in ("null_k", "null_v")]

    def blocks(self, rows):
        for begin in range(0, len(rows) - self.factor + 1, self.factor):
            taps = zip(self.taps, rows[begin:])
            yield [sum(parts) for parts in zip(self.bias, *([dot(w, row) for w in tap] for tap, row in taps))]

    def read(self, q):
        K, V = ([null, *self.blocks(rows)] for null, rows in zip(self.null, (self.K, self.V)))
        return weighted_rows(softmax([self.scale * dot(k, q) for k in K]), V)


class CompressiveTransformer:
    """Over this segment, a memory of the hidden rows before it and the means of those that have left the memory, projected anew.

    A full segment moves into the memory. What the memory has no room for becomes means of `compression_ratio` rows, with rows
    of zeros before the first. Of a convolution, every tap is given as what the projections make of it.
    """

    def __init__(self, c, a, weights, layer, head):
        self.a, d, dv = a, c["head_dim"], c["value_head_dim"]
        self.k = Linear(weights, layer + "k_proj", slice(head * d, (head + 1) * d))
        self.v = Linear(weights, layer + "v_proj", slice(head * dv, (head + 1) * dv))
        if a["compression"] == "conv":
            first = [tap * c["num_kv_heads"] + head for tap in range(a["compression_ratio"])]
            self.taps = [[Linear(weights, f"{layer}{name}_compress_proj", slice(i * size, (i + 1) * size)) for i in first]
                         for name, size in (("k", d), ("v", dv))]
            self.biases = [weights.vector(f"{layer}{name}_compress_bias")[head * size : (head + 1) * size]
                           for name, size in (("k", d), ("v", dv))]
        self.reset()

    def reset(self):
        self.segment, self.memory, self.compressed = [], [], []

    def compress(self, group):
        if self.a["compression"] == "mean":
            mean = [sum(column) / len(group) for column in zip(*group)]
            return self.k(mean), self.v(mean)
        return tuple([sum(parts) for parts in zip(bias, *(tap(row) for tap, row in zip(taps, group)))]
                     for bias, taps in zip(self.biases, self.taps))

    def move(self):
        rows, ratio = self.memory + self.segment, self.a["compression_ratio"]
        left = max(0, len(rows) - self.a["mem_len"])
        gone, self.memory, self.segment = rows[:left], rows[left:], []
        gone = zeros(left % ratio if self.a["pad"] == "left_remainder" else -left % ratio, len(rows[0])) + gone
        self.compressed += [self.compress(gone[i : i + ratio]) for i in range(0, len(gone) - ratio + 1, ratio)]
        self.compressed = self.compressed[-self.a["cmem_len"] :]

    def write(self, x, k, v):
        if len(self.segment) == self.a["segment_len"]:
            self.move()
        self.segment.append(x)
        rows = self.memory + self.segment
        self.K = [k for k, _ in self.compressed] + [self.k(row) for row in rows]
        self.V = [v for _, v in self.compressed] + [self.v(row) for row in rows]

    def read(self, q):
        return weighted_rows(softmax([self.a["scale"] * dot(k, q) for k in self.K]), self.V)


MEMORIES = {"compressive_transformer": CompressiveTransformer, "memory_compressed": MemoryCompressed}
