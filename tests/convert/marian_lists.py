"""Binary shortlists of Marian (lex*.bin), and the tokens that one allows a source: after src/data/shortlist.cpp of Marian, for tests."""

import random
import struct

MAGIC = 0xF11A48D5013417F5
HEADER = struct.Struct("<6Q")  # magic, hash, first, best, offsets, targets


def hash_of(data):
    """Of the bytes behind the hash: hash_combine of u64."""
    value = 0
    for (word,) in struct.iter_unpack("<Q", data[16 : len(data) // 8 * 8]):
        value ^= (word + 0x9E3779B9 + (value << 6) + (value >> 2)) % 2**64
    return value


def rehashed(data):
    return data[:8] + struct.pack("<Q", hash_of(data)) + data[16:]


def shortlist(first, lists):
    """The bytes of a file: `lists` has the targets of each token of a source."""
    offsets = [0]
    for targets in lists:
        offsets.append(offsets[-1] + len(targets))
    header = HEADER.pack(MAGIC, 0, first, max(map(len, lists)), len(offsets), offsets[-1])
    targets = [target for one in lists for target in sorted(one)]
    return rehashed(header + struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(targets)}I", *targets))


def random_lists(words, tokens, best, seed):
    """For each of `words` tokens of a source at most `best` of `tokens`; a few have none. The last one has some, as Marian expects."""
    generator = random.Random(seed)
    sizes = [generator.choice((0, 1, best // 2, best)) for _ in range(words - 1)] + [best]
    return [generator.sample(range(tokens), size) for size in sizes]


def allowed(source, tokens, first, lists, shared):
    """The set for one source, its end included. `shared`: source and target have one vocabulary."""
    found = set(range(min(first, tokens)))
    for token in source:
        found |= set(lists[token]) | ({token} if shared else set())
    for token in range(first, tokens):
        if len(found) % 8 == 0:
            break
        found.add(token)
    return found
