"""Makes charsmaps of the normalizer Precompiled, as SentencePiece writes them."""

import struct

# What a charsmap replaces. A single byte is the beginning of many characters.
REPLACED = {"\x01": "", "\x02": "", "\u200b": " ", "\u2003": " ", "\r\n": " ", "\u2460": "1", "\ufb01": "fi", "\ufb01\u0301": "no",
            "a\u0301": "\u00e1", "o\u0302": "\u00f4", "o\u0302\u0301": "\u1ed1", "\u00f4\u0301": "\u1ed1", "\u00a9": "(c)",
            "\u0958": "\u0915\u093c", "\u304b\u3099": "\u304c", "\uff76": "\u30ab", "\u0130": "i\u0307", "\u1161": "A", "\u0345": "",
            "\u0344": "\u0308\u0301", "A": "a", "e\u0301x": "y", "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647", "\u0600": "P"}


def charsmap(replaced):
    """The bytes of SentencePiece's charsmap for {bytes: text}."""
    texts, begins, children = b"", {}, {}
    for key, text in replaced.items():
        begins[key] = len(texts)
        texts += text.encode() + b"\0"
        for i, byte in enumerate(key):
            children.setdefault(key[:i], set()).add(byte)
    units, nodes, bases = {0: 0}, [(0, b"")], set()
    while nodes:
        node, key = nodes.pop()
        labels = sorted(children.get(key, ())) + [0] * (key in begins)
        base = next(base for base in range(1, 1 << 20) if base not in bases and not any(base ^ label in units for label in labels))
        bases.add(base)
        units[node] |= (node ^ base) << 10 | (key in begins) << 8
        for label in labels:
            units[base ^ label] = label or 1 << 31 | begins[key]
            nodes += [(base ^ label, key + bytes([label]))] * (label > 0)
    size = (max(bases) | 255) + 1
    return struct.pack(f"<{size + 1}I", 4 * size, *(units.get(i, 0) for i in range(size))) + texts


def few():
    return charsmap({key.encode(): text for key, text in REPLACED.items()})
