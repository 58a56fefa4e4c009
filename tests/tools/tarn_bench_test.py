"""tarn bench: its rows agree with themselves and with what inspect says, and what it leaves out it names."""

import csv
import io
import json
import os
import re
import signal
import unittest
import xml.etree.ElementTree

from tarn_testing import MODEL, SEQ2SEQ, CliTest, start, tarn

QUICK = ["bench", "--memory-mib", 16]
SVG = "{http://www.w3.org/2000/svg}"


class BenchTest(CliTest):
    def rows(self, *arguments, model=MODEL, threads=1):
        status, out, err = tarn(*QUICK, "-m", model, "-o", "json", "-p", 5, "-n", 3, "-r", 2, "-t", threads, *arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out), err

    def test_rows_agree_with_themselves(self):
        rows, _ = self.rows("-d", "0,7", threads="1,2")
        self.assertEqual([(row["threads"], row["test"], row["depth"]) for row in rows],
                         [(threads, test, depth) for threads in (1, 2) for depth in (0, 7) for test in ("pp5", "tg3")])
        memory = json.loads(tarn("inspect", MODEL, "--json")[1])["memory"]
        weights = sum(memory[key] for key in ("packed_file_bytes", "packed_anonymous_bytes", "in_place_bytes"))
        for row in rows:
            self.assertEqual(len(row["t_s"]), 2)
            mean = sum(row["t_s"]) / 2
            self.assertAlmostEqual(row["t_s_mean"] / mean, 1)
            self.assertAlmostEqual(row["t_s_median"] / mean, 1)
            self.assertAlmostEqual(row["t_s_stddev"], abs(row["t_s"][0] - row["t_s"][1]) / 2**0.5, 3)
            self.assertEqual(row["state_bytes"], memory["state_bytes"])
            self.assertGreater(row["peak_anon_bytes"], row["state_bytes"])
            self.assertLess(row["peak_anon_bytes"], 1 << 30)  # without the buffers of the bandwidth
            self.assertGreater(row["memory_bandwidth_bytes_per_s"], 1e8)
            self.assertNotIn("profile", row)
            if row["test"] == "tg3":
                self.assertEqual(row["bytes_per_token"], weights + 2 * memory["state_bytes"])
                self.assertAlmostEqual(row["bytes_per_s"] / row["bytes_per_token"] / row["t_s_median"], 1)
                self.assertAlmostEqual(row["bandwidth_share"] * row["bandwidth_bytes_per_s"] / row["bytes_per_s"], 1)
                self.assertIsNone(row["first_token_ms"])
            else:
                self.assertAlmostEqual(row["first_token_ms"] * row["t_s_median"] / 5000, 1)
                for key in "bytes_per_token", "bytes_per_s", "bandwidth_bytes_per_s", "bandwidth_share":
                    self.assertIsNone(row[key])

    def test_bounded_models(self):
        rows, err = self.rows("-d", "0,28,29,30", model=self.path("bounded.tarn"))
        self.assertEqual([(row["test"], row["depth"]) for row in rows], [("pp5", 0), ("tg3", 0), ("tg3", 28), ("tg3", 29)])
        left_out = r"(?m)^bench: bounded: (\w+) at depth (\d+) left out: it needs (\d+) tokens, the model takes 32$"
        self.assertEqual(re.findall(left_out, err),
                         [("pp5", "28", "33"), ("pp5", "29", "34"), ("pp5", "30", "35"), ("tg3", "30", "33")])
        row_bytes = 2 * 32 * 4  # keys and values of one layer, f32
        for row in rows:
            self.assertEqual(row["used_state_bytes"], (row["depth"] + int(row["test"][2:])) * row_bytes)
            self.assertGreaterEqual(row["state_bytes"], 32 * row_bytes)
            self.assertIsNone(row["bytes_per_token"])

    def test_profile(self):
        rows, _ = self.rows("--profile", "--chunk", 2)
        ops = json.loads(tarn("inspect", MODEL, "--json")[1])["ops"]
        for row in rows:
            profile = row["profile"]
            runs = {time["kind"]: time["runs"] for time in profile["ops"]}
            self.assertEqual(set(runs), {op["kind"] for op in ops})
            self.assertEqual(runs["linear_state"], 3 * sum(op["kind"] == "linear_state" for op in ops))
            self.assertEqual([time["ns"] for time in profile["ops"]], sorted((time["ns"] for time in profile["ops"]), reverse=True))
            self.assertLessEqual(sum(time["ns"] for time in profile["ops"]), profile["total_ns"])
        self.fails(2, "--profile does not fit -o csv", "bench", "-m", MODEL, "--profile", "-o", "csv")

    def test_tables(self):
        arguments = ["-p", 0, "-n", 2, "-d", "0,7", "-r", 1, "-t", 1]
        status, out, err = tarn(*QUICK, "-m", MODEL, "--profile", *arguments)
        self.assertEqual(status, 0, err)
        text = out.decode()
        self.assertRegex(text, r"^memory: [\d.]+ \wiB are read at [\d.]+ GB/s by 1 thread\n")
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len(table), 4)
        self.assertEqual({len(line) for line in table}, {12})
        self.assertEqual([line[5] for line in table], ["test", "---------------:", "tg2", "tg2 @ d7"])
        self.assertRegex(table[2][6], r"^[\d.]+ \u00b1 0\.00$")
        self.assertRegex(table[2][8], r"^\d+ %$")
        self.assertEqual(len(re.findall(r"(?m)^  everything outside dense layers: [\d.]+ %$", text)), 2)
        status, out, err = tarn(*QUICK, "-m", MODEL, "-o", "csv", *arguments)
        self.assertEqual(status, 0, err)
        rows = list(csv.DictReader(io.StringIO(out.decode())))
        self.assertEqual([(row["test"], row["depth"], row["first_token_ms"]) for row in rows], [("tg2", "0", ""), ("tg2", "7", "")])
        self.assertGreater(float(rows[0]["t_s_mean"]), 0)

    def test_plot(self):
        plot = self.path("plot.svg")
        status, _, err = tarn(*QUICK, "-m", MODEL, "-m", self.path("bounded.tarn"), "-p", 0, "-n", 2, "-d", "0,9,20", "-r", 1,
                              "-t", 1, "--plot", plot)
        self.assertEqual(status, 0, err)
        drawn = xml.etree.ElementTree.parse(plot).getroot()
        lines = [line.get("points").split() for line in drawn.iter(SVG + "polyline")]
        self.assertEqual([len(line) for line in lines], [3] * 4)
        texts = [text.text for text in drawn.iter(SVG + "text")]
        for text in "tokens/s", "memory of a sequence, MiB", "depth, tokens", "20":
            self.assertIn(text, texts)
        # Constant memory is a level line, that of the softmax model climbs.
        heights = [[float(point.split(",")[1]) for point in line] for line in lines]
        self.assertEqual(len(set(heights[2])), 1)
        self.assertEqual(heights[3], sorted(set(heights[3]), reverse=True))

    def test_lists_of_tests(self):
        rows = json.loads(self.bench("-o", "json", "-p", "2,0,5", "-n", "3,4", "-pg", "6,2", "-pg", "1,1", "-d", "0,7"))
        names = ["pp2", "pp5", "tg3", "tg4", "pp6+tg2", "pp1+tg1"]
        self.assertEqual([(row["depth"], row["test"]) for row in rows], [(depth, name) for depth in (0, 7) for name in names])
        for row in rows:
            self.assertGreater(row["t_s_mean"], 0)
            self.assertEqual(row["first_token_ms"] is None, "tg" in row["test"])
            self.assertEqual(row["bytes_per_token"] is None, "pp" in row["test"])
        self.assertEqual([row["test"] for row in json.loads(self.bench("-o", "json", "-p", 0, "-n", 0, "-pg", "2,1"))], ["pp2+tg1"])
        self.assertEqual([row["test"] for row in json.loads(self.bench("-o", "json", "-p", 0, "-n", 0, "-pg=2,1"))], ["pp2+tg1"])
        for value in "5", "5,", ",5", "0,5", "5,0", "5,6,7", "a,b":
            self.fails(2, f"-pg: is '{value}', expected P,N", "bench", MODEL, "-pg", value)

    def test_lists_of_sources(self):
        self.make("translation", SEQ2SEQ)
        rows = json.loads(self.bench("-o", "json", "-p", "4,6", "-n", "2,3", model=self.path("translation.tarn")))
        self.assertEqual([row["test"] for row in rows], ["enc4", "dec2", "dec3", "enc6", "dec2", "dec3"])

    def test_json_lines(self):
        lines = self.bench("-o", "jsonl", "-p", "2,3", "-n", 1).decode().splitlines()
        self.assertEqual([json.loads(line)["test"] for line in lines], ["pp2", "pp3", "tg1"])

    def test_no_threads_are_the_default(self):
        default = json.loads(tarn("inspect", "--cpu", "--json")[1])["cpu"]["default_threads"]
        rows = json.loads(self.bench("-o", "json", "-p", 2, "-n", 0, "-t", "0,1"))
        self.assertEqual([row["threads"] for row in rows], [default, 1])

    def bench(self, *arguments, model=MODEL):
        status, out, err = tarn(*QUICK, model, "-r", 1, *([] if "-t" in arguments else ["-t", 1]), *arguments)
        self.assertEqual(status, 0, err)
        return out

    def test_wrong_command_lines(self):
        self.fails(2, "the model is missing", "bench")
        self.fails(2, "-p and -n are 0", "bench", "-m", MODEL, "-p", 0, "-n", 0)
        self.fails(2, "--output: is 'xml', expected md, csv, json or jsonl", "bench", "-m", MODEL, "-o", "xml")
        for value in "", "1,", ",1", "1, 2", "-1", "x", "1073741825":
            self.fails(2, "--n-depth: is '[^']*', expected an integer from 0 to", "bench", "-m", MODEL, "-d", value)
        for option in "--repetitions", "--chunk":
            self.fails(2, f"{option}: is '0', expected an integer from 1 to", "bench", "-m", MODEL, option, 0)
        self.fails(1, "nowhere.tarn", "bench", "-m", MODEL, "-m", self.path("nowhere.tarn"))
        self.fails(1, "is an input of this command", "bench", "-m", MODEL, "--plot", MODEL)
        self.fails(1, "no/folder", "bench", "-m", MODEL, "--plot", self.path("no/folder/plot.svg"))

    def test_interrupt_keeps_what_was_measured(self):
        process = start(*map(str, QUICK), "-m", MODEL, "-p", "2", "-n", "1000000", "-r", "1", "-o", "json",
                        "--plot", self.path("cut.svg"))
        begin = b""
        while b"}" not in begin:  # the first row
            begin += os.read(process.stdout.fileno(), 1 << 16)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(err, rb"(?m)^tarn: error: interrupted$")
        self.assertEqual([row["test"] for row in json.loads(begin + out)], ["pp2"])
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("cut.svg")], [])

    def test_closed_pipe_ends_it(self):
        process = start(*map(str, QUICK), "-m", MODEL, "-p", "2", "-n", "0", "-r", "1", "-d", ",".join(map(str, range(20000))))
        process.stdout.close()
        self.assertEqual((process.wait(timeout=60), process.stderr.read()), (0, b""))
        process.stderr.close()


if __name__ == "__main__":
    unittest.main()
