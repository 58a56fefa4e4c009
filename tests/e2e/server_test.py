"""examples/server with many clients: every answer is that of tarn run, whatever others ask, cancel or wait for; memory stays."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["TARN_SOURCE"])
BUILD = pathlib.Path(os.environ["TARN_BUILD"])
SERVER, TARN = BUILD / "bin/tarn_server", BUILD / "bin/tarn"
MODEL = SOURCE / "examples/models/shakespeare-rfa-gate-int8.tarn"
# A longer run: CLIENTS=100 REQUESTS=50 in the environment.
CLIENTS, REQUESTS = int(os.environ.get("CLIENTS", 12)), int(os.environ.get("REQUESTS", 8))
LINES = ["ROMEO:", "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\n", "JULIET:\nO ", "KING HENRY:"]


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)  # waits where many connect at once
        self.sock.settimeout(self.timeout)


def request(seed):
    """A request that depends on nothing but `seed`; there are few, so that each has one call of tarn run."""
    draw = random.Random(seed)
    prompt = draw.choice(LINES) + draw.choice(["", "What light ", "x" * draw.choice([1, 63, 64, 65, 150])])
    return {"prompt": prompt, "max_tokens": draw.choice([1, 5, 40, 90]), "temperature": draw.choice([0, 0.8, 1.1]), "seed": seed,
            "top_k": draw.choice([0, 40]), "presence_penalty": draw.choice([0, 0.5])}


def answer_of_tarn_run(body):
    command = [TARN, "run", MODEL, "-q", "--no-echo", "--raw", "-t", 1, "-p", body["prompt"], "-n", body["max_tokens"],
               "--temp", body["temperature"], "--seed", body["seed"], "--top-k", body["top_k"],
               "--presence-penalty", body["presence_penalty"]]
    text = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout.decode()
    return text[:-1] if text.endswith("\n") else text


def fnv_1a(content):
    value = 0xcbf29ce484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


class Server:
    def __init__(self, folder, *options):
        self.path = str(pathlib.Path(folder) / "socket")
        self.process = subprocess.Popen([str(SERVER), str(MODEL), "--socket", self.path, *map(str, options)], stdout=subprocess.PIPE)
        assert self.process.stdout.readline().startswith(b"ready")

    def post(self, body, key=None):
        """(status, answer)."""
        connection = Connection(self.path)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Idempotency-Key": key} if key else {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, json.loads(content)

    def raw(self, head, body=b""):
        """(status, answer) for the bytes of a request; its head is without the last line breaks."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(self.path)
            connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status, json.loads(response.read())

    def stream(self, body, most=None):
        """The text of a stream, of which `most` pieces are read."""
        connection = Connection(self.path)
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}))
        response = connection.getresponse()
        text, pieces, last = "", 0, ""
        while response.status == 200 and (line := response.readline()):
            if not line.startswith(b"data: "):
                continue
            last = line[6:].strip().decode()
            if last == "[DONE]":
                break
            text += json.loads(last)["choices"][0]["text"]
            pieces += 1
            if most is not None and pieces >= most:
                break
        response.close()
        connection.close()
        return response.status, text, last

    def anonymous_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0])

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(30)
        self.process.stdout.close()


@unittest.skipUnless(SERVER.exists(), "libcpp-httplib-dev is not installed")
class ServerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, *options):
        server = Server(self.folder.name, *options)
        self.addCleanup(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        return server

    def wait_until_only(self, states, names):
        """The server forgets a request once its answer is written."""
        deadline = time.monotonic() + 10
        while len(list(states.iterdir())) > len(names) and time.monotonic() < deadline:
            time.sleep(0.002)
        self.assertEqual([path.name for path in states.iterdir()], names)

    def test_every_answer_is_that_of_a_single_session(self):
        seeds = range(24)
        wanted = {seed: answer_of_tarn_run(request(seed)) for seed in seeds}
        server = self.start("--places", 8, "--waiting", CLIENTS // 3)

        def client(number):
            draw, counts = random.Random(number), {"refused": 0, "cancelled": 0}
            for _ in range(REQUESTS):
                seed = draw.choice(seeds)
                kind = draw.random()
                if kind < 0.2:
                    server.stream({**request(seed), "max_tokens": 1000}, most=draw.choice([0, 1, 5]))
                    counts["cancelled"] += 1
                    continue
                end = time.monotonic() + 120
                while time.monotonic() < end:
                    if kind < 0.6:
                        status, text, last = server.stream(request(seed))
                        self.assertIn(last, ("[DONE]", ""))
                    else:
                        status, answer = server.post(request(seed))
                        text = answer["choices"][0]["text"] if status == 200 else ""
                    if status != 429:
                        break
                    counts["refused"] += 1
                    time.sleep(0.05)
                self.assertEqual((status, text), (200, wanted[seed]), f"seed {seed}")
            return counts

        def all_clients():
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                return list(pool.map(client, range(CLIENTS)))

        all_clients()
        before = server.anonymous_kb()
        counts = all_clients()
        refused, cancelled = sum(c["refused"] for c in counts), sum(c["cancelled"] for c in counts)
        growth = server.anonymous_kb() - before
        print(f"{CLIENTS} clients x {REQUESTS} requests: {refused} refused, {cancelled} cancelled, {growth} KB of growth, "
              f"{before} KB before")
        self.assertLess(growth, 1024)  # 96 requests that leave the room of 5,120 tokens behind would be 1,920
        self.assertGreater(cancelled, 0)
        server.end()
        self.assertEqual(server.process.returncode, 0)

    def test_at_the_limit_clients_are_sent_away(self):
        server = self.start("--places", 1, "--waiting", 1)
        body = {"prompt": "ROMEO:", "max_tokens": 1000, "temperature": 0}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            statuses = sorted(status for status, _ in pool.map(lambda _: server.post(body), range(6)))
        self.assertEqual(statuses[:2], [200, 200])
        self.assertEqual(statuses[-1], 429)

    def test_a_killed_server_goes_on(self):
        body = {"prompt": "JULIET:", "max_tokens": 1000, "temperature": 1.0, "seed": 5, "top_k": 40, "presence_penalty": 0}
        wanted = answer_of_tarn_run(body)
        states = pathlib.Path(self.folder.name) / "states"
        for number in signal.SIGKILL, signal.SIGTERM:
            server = self.start("--state", states, "--snapshot-every", 50)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pending = pool.submit(server.post, body, "the-same")
                saved = states / "the-same.request"
                while not saved.exists():
                    self.assertFalse(pending.done(), "the text was made before it could be stopped")
                    time.sleep(0.002)
                server.end(number)
                pending.exception()
            self.assertTrue(saved.exists())
        server = self.start("--state", states)
        status, answer = server.post(body, "the-same")
        self.assertEqual((status, answer["choices"][0]["text"]), (200, wanted))
        self.assertEqual(answer["usage"]["completion_tokens"], 1000)
        self.wait_until_only(states, [])

    def test_a_stopped_server_saves_what_runs(self):
        body = {"prompt": "JULIET:", "max_tokens": 1000, "temperature": 1.0, "seed": 5, "top_k": 40, "presence_penalty": 0}
        states = pathlib.Path(self.folder.name) / "states"
        server = self.start("--state", states, "--snapshot-every", 1_000_000)
        connection = Connection(server.path)
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}), {"Idempotency-Key": "the-same"})
        connection.getresponse().readline()  # the first piece is there
        server.end()
        connection.close()
        self.assertTrue((states / "the-same.request").exists())
        answer = self.start("--state", states).post(body, "the-same")[1]
        self.assertEqual(answer["choices"][0]["text"], answer_of_tarn_run(body))

    def test_a_socket_belongs_to_the_server_that_listens(self):
        first = self.start()
        done = subprocess.run([SERVER, MODEL, "--socket", first.path], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"--socket {first.path}: another server listens there", done.stderr)
        self.assertEqual(first.post({"prompt": "x", "max_tokens": 1})[0], 200)
        first.end(signal.SIGKILL)
        self.start()  # in the place of one that is gone

    def test_a_server_ends_as_soon_as_it_is_ready(self):
        for _ in range(10):
            self.start().end()

    def test_what_cannot_be_answered_is_named(self):
        server = self.start("--max-prompt", 20)
        integer = "expected an integer of 0 to 4294967295"
        for body, words in (({}, "prompt: none"), ({"prompt": 5}, "prompt: 5, expected a string"), ([], "body: array"),
                            ({"prompt": "x" * 21}, "21 tokens, at most 20 expected"),
                            ({"max_tokens": 0}, "max_tokens: 0, expected 1 to 1024"), ({"n": 2}, "n, best_of: 2, expected 1"),
                            ({"max_tokens": 2**32 + 4}, f"max_tokens: 4294967300, {integer}"), ({"max_tokens": True}, integer),
                            ({"max_tokens": 4.5}, f"max_tokens: 4.5, {integer}"), ({"top_k": -3}, f"top_k: -3, {integer}"),
                            ({"seed": -1}, "expected an integer of 0 to 18446744073709551615"), ({"top_p": 2}, "top_p"),
                            ({"temperature": "hot"}, 'temperature: "hot", expected a number'), ({"min_p": 1e39}, "min_p: 1e+39"),
                            ({"stop": 5}, "stop: 5, expected a string or an array"), ({"stop": ["a", None]}, "stop[1]: none"),
                            ({"stream": 1}, "stream: 1, expected true or false"), ({"echo": True}, "echo: not supported"),
                            ({"repeat_penalty": 1.3}, "repeat_penalty: not supported"), ({"max_token": 5}, "max_token: not"),
                            ({"logit_bias": {"50": 1}}, "logit_bias: not supported")):
            status, answer = server.post({"prompt": "x", **body} if body and "prompt" not in body else body)
            self.assertEqual((status, answer["error"]["code"]), (400, 400), body)
            self.assertIn(words, answer["error"]["message"], body)
        self.assertEqual(server.post({"prompt": "x"}, "no/key")[0], 400)
        connection = Connection(server.path)
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read())
        connection.close()
        self.assertEqual((health["status"], health["model"]), ("ok", "shakespeare-rfa-gate"))

    def test_fields_that_clients_send_and_that_change_nothing(self):
        body = {"prompt": "ROMEO:", "max_tokens": 5, "temperature": 0}
        server = self.start()
        status, answer = server.post(body)
        self.assertEqual(status, 200)
        more = {"model": "tarn", "user": "u", "stream_options": {"include_usage": True}, "n": 1, "logit_bias": {}, "echo": False,
                "system_fingerprint": ""}
        absent = dict.fromkeys(("top_k", "top_p", "seed", "stop", "stream", "best_of", "logprobs", "suffix", "grammar"))
        status, same = server.post({**body, **more, **absent})
        self.assertEqual((status, same.get("choices")), (200, answer["choices"]))

    def test_bodies_that_are_no_requests(self):
        server = self.start()
        head = "POST /v1/completions HTTP/1.1\nHost: x\nContent-Length: "
        fields = json.dumps({f"f{i}": 0 for i in range(90000)}, separators=(",", ":")).encode()
        for body, words in ((b'{"prompt": "\xff"}', "body: expected a JSON object"), (b"", "JSON"), (b'{"top_k": 1e999}', "1e999"),
                            (b'{"prompt": "\xc3\xa9' + b"\xc3" * 100000, "JSON"),
                            (b'{"prompt": ' + b"[" * 400000 + b"]" * 400000 + b"}", "prompt: array, expected a string"),
                            (fields, "prompt: none, expected a string")):
            began = time.monotonic()
            status, answer = server.raw(head + str(len(body)), body)
            self.assertEqual((status, answer["error"]["code"]), (400, 400), body[:20])
            self.assertIn(words, answer["error"]["message"])
            self.assertLess(len(answer["error"]["message"]), 600)
            self.assertLess(time.monotonic() - began, 10)  # that the fields take a time that grows as their number does

    def test_the_length_of_a_body_is_known_and_has_a_limit(self):
        server = self.start("--max-prompt", 20)
        head = "POST /v1/completions HTTP/1.1\nHost: x\n"
        body = json.dumps({"prompt": "x", "max_tokens": 1}).encode()
        chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n"
        length = f"Content-Length: {len(body)}"
        for headers, sent, expected in (
                ("Transfer-Encoding: chunked", chunk + b"0\r\n\r\n", 411), ("Transfer-Encoding: chunked", chunk, 411),
                (f"Content-Encoding: gzip\n{length}", body, 415), ("Content-Encoding: gzip\nTransfer-Encoding: chunked", chunk, 411),
                (f"Content-Type: multipart/form-data; boundary=b\n{length}", body, 415), ("Accept: */*", b"", 411),
                ("Content-Length: -1", body, 411), ("Content-Length: 1048577", b"", 413), ("Content-Length: " + "9" * 30, b"", 413),
                ("Expect: 100-continue\nContent-Length: 1048577", b"", 413), (length, body, 200)):
            status, answer = server.raw(head + headers, sent)
            self.assertEqual(status, expected, headers)
            self.assertEqual(answer.get("error", {}).get("code", 200), expected)
        # curl -d calls every body a form; cpp-httplib reads at most 8 KiB of one.
        form = json.dumps({"prompt": "x" * 10000}).encode()
        status, answer = server.raw(f"{head}Content-Type: application/x-www-form-urlencoded\nContent-Length: {len(form)}", form)
        self.assertEqual(status, 400)
        self.assertIn("prompt: 10000 tokens, at most 20 expected", answer["error"]["message"])
        for line, expected in (("PUT /v1/completions HTTP/1.1", 405), ("GET /v1/nothing HTTP/1.1", 404), ("no HTTP", 400)):
            status, answer = server.raw(f"{line}\nHost: x\nTransfer-Encoding: chunked" if expected == 405 else line, b"")
            self.assertEqual((status, answer["error"]["code"]), (expected, expected), line)

    def test_a_damaged_state_is_not_used(self):
        body = {"prompt": "JULIET:", "max_tokens": 1000, "temperature": 1.0, "seed": 5, "top_k": 40, "presence_penalty": 0}
        states = pathlib.Path(self.folder.name) / "states"
        states.mkdir()
        (states / "of others.part").write_bytes(b"kept")
        server = self.start("--state", states, "--snapshot-every", 20)
        saved = states / "k.request"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pending = pool.submit(server.post, body, "k")
            while not saved.exists():
                self.assertFalse(pending.done(), "the text was made before it could be stopped")
                time.sleep(0.002)
            server.end()
            pending.exception()
        whole = saved.read_bytes()
        (states / "k.request.part").write_bytes(whole[:100])
        start = 15 + 8 + struct.unpack_from("<Q", whole, 15)[0]  # of the piece with the tokens that were drawn
        tokens = whole[start + 8:start + 8 + struct.unpack_from("<Q", whole, start)[0]]
        changed = bytes([tokens[0] ^ 1]) + tokens[1:]

        def file(drawn, keeps_hash=False):
            content = whole[:start] + struct.pack("<Q", len(drawn)) + drawn + whole[start + 8 + len(tokens):-8]
            return content + (whole[-8:] if keeps_hash else struct.pack("<Q", fnv_1a(content)))

        truth = answer_of_tarn_run(body)
        self.assertEqual(file(tokens), whole)
        for content, is_used in ((file(changed), True), (file(changed, True), False), (file(changed + b"\0"), False),
                                 (file(changed) + b"\0", False), (file(changed)[:-1], False),
                                 (file(struct.pack("<i", -5) + tokens[4:]), False)):
            saved.write_bytes(content)
            server = self.start("--state", states)
            status, answer = server.post(body, "k")
            self.assertEqual((status, answer["choices"][0]["text"] == truth), (200, not is_used), len(content))
            self.wait_until_only(states, ["of others.part"])
            server.end()

    def test_options_that_cannot_be(self):
        file = pathlib.Path(self.folder.name) / "a file"
        file.write_bytes(b"kept")
        for arguments, words in ((("--places", "0"), "--places: '0', 1 to 4096 expected"), (("--chunk", "-1"), "--chunk: '-1'"),
                                 ((MODEL,), "a second model"),
                                 (("--port", "65536"), "1 to 65535 expected"), (("--socket", file), "a file that is no socket"),
                                 (("--socket", "/nowhere/s"), "--socket /nowhere/s: no server can listen there"),
                                 (("--socket", "/" + 200 * "s"), "201 bytes, at most 107 expected")):
            done = subprocess.run([SERVER, MODEL, *arguments], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        self.assertEqual(file.read_bytes(), b"kept")

    def test_a_text_ends_at_a_stop_string(self):
        server = self.start()
        whole = answer_of_tarn_run({"prompt": "ROMEO:", "max_tokens": 60, "temperature": 0, "seed": 0, "top_k": 40,
                                    "presence_penalty": 0})
        stop = whole[20:24]
        status, answer = server.post({"prompt": "ROMEO:", "max_tokens": 60, "temperature": 0, "stop": ["never there", stop]})
        choice = answer["choices"][0]
        self.assertEqual((status, choice["finish_reason"], choice["text"]), (200, "stop", whole[:whole.index(stop)]))


if __name__ == "__main__":
    unittest.main()
