"""Runs one system's random model through the command line tools and holds it against what it promises."""

import array
import json
import pathlib
import struct
import subprocess

BLOCK = 64  # alignment of a state; also the bytes of the counter of tokens


class Failure(Exception):
    pass


def aligned(count):
    return (count + BLOCK - 1) // BLOCK * BLOCK


def expect(condition, what):
    if not condition:
        raise Failure(what)


def write_ids(path, ids):
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(ids)},), }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.array("i", ids).tobytes())


def last_row(path, width):
    data = path.read_bytes()
    row = array.array("f")
    row.frombytes(data[-4 * width:])
    return row


class Model:
    def __init__(self, build, folder, system, config, quant):
        self.bin = pathlib.Path(build) / "bin"
        self.folder, self.system, self.config = pathlib.Path(folder), system, config
        self.path = self.folder / f"{system.name}.tarn"
        (self.folder / "config.json").write_text(json.dumps(config))
        self.run("tarn-convert", "--random-weights", 1, self.folder / "config.json", "-o", self.path, "--quant", quant)

    def run(self, program, *arguments, code=0):
        done = subprocess.run([str(self.bin / program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        expect(done.returncode == code, f"{program}: exit {done.returncode}, {code} expected: {done.stderr.decode(errors='replace')}")
        return done

    def check_state(self):
        """State bytes are those of the formula, item by item, each aligned, and the counter of tokens."""
        report = json.loads(self.run("tarn", "inspect", "--json", self.path).stdout)
        c = self.config
        d = c["hidden_size"] // c["num_heads"]
        formula = 4 * self.system.elements(d, d) * c["num_kv_heads"] * c["num_layers"]
        items = [state["bytes"] for state in report["states"]]
        expect(sum(items) == formula, f"states have {sum(items)} bytes, the formula of MATH 4.1 says {formula}")
        total = BLOCK + sum(aligned(item) for item in items)
        found = report["memory"]["state_bytes"]
        expect(found == total, f"state_bytes is {found}; {formula} + alignment + counter of {BLOCK} is {total}")
        return formula, found

    def check_chunks(self, tokens, tolerance=1e-3):
        """The token loop and the chunked prefill end with the same logits."""
        ids = self.folder / "ids.npy"
        vocab = self.config["vocab_size"]
        write_ids(ids, [(i * 7919 + i * i * 31) % vocab for i in range(tokens)])
        rows = []
        for chunk in (1, 64):
            out = self.folder / "logits.npy"
            self.run("tarn", "eval", "-m", self.path, "-f", ids, "--chunk", chunk, "-t", 1, "--logits", out)
            rows.append(last_row(out, vocab))
        difference = max(abs(a - b) for a, b in zip(*rows)) / max(abs(b) for b in rows[0])
        expect(difference <= tolerance, f"token loop and chunks differ by {difference:.2e}, {tolerance} allowed")
        return difference

    def check_long_run(self, tokens):
        """`tokens` tokens in constant memory; one that is bounded stops at its bound and says so."""
        stats = self.folder / "stats.json"
        bounded = self.system.bound is not None and self.system.bound < tokens + 1
        done = self.run("tarn", "run", "-m", self.path, "--tokens", "1", "-n", tokens, "-s", 1, "-t", 1, "--json-stats", stats)
        report = json.loads(stats.read_text())
        if bounded:
            message = done.stderr.decode()
            expect(f"context of {self.system.bound} tokens is full" in message, f"the bound is not named: {message}")
            expect(report["stop_reason"] == "max_context", f"ended by {report['stop_reason']}")
            expect(report["generated_tokens"] >= self.system.bound - 1, f"stopped after {report['generated_tokens']} tokens")
        else:
            expect(report["generated_tokens"] == tokens, f"{report['generated_tokens']} tokens generated")
        expect(report["allocations_after_creation"] in (0, None), f"{report['allocations_after_creation']} allocations")
        expect(report["rss_anon_growth_pages"] <= 0, f"anonymous pages grew by {report['rss_anon_growth_pages']}")
        return report
