#!/usr/bin/env python3
"""Asks jinja2, set up as transformers does, for the texts of conversations: tests/data/chat/answers.jsonl.

    chat_fixtures.py [COUNT]                     # conversations per template (default: 14)
    chat_fixtures.py --fuzz COUNT SEED PROGRAM   # compares with a program that reads questions and writes texts

PROGRAM reads lines {"template", "messages", "generation", "texts"} and writes lines {"text"} or {"error"}.
"""

import json
import pathlib
import random
import subprocess
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "tests/data/chat"
TEXTS = {"bos_token": "<s>", "eos_token": "</s>"}
PARTS = ["hello", "Hello, world!", " ", "\n", "  x ", "\n\n", "<|im_end|>", "</think>", "<think>\nq\n</think>\n\n", "é", "日本",
         "\u3000", "\x1f", "😀", "{{ x }}", "{% if %}", "[INST]", "<<SYS>>", "'", '"', "\\n", "\\", "&lt;<b>", "\t", "a b", "1",
         ".", "<tool_response>", "</tool_response>", "\r\n", "user", "None", "</s>", "<s>"]


class Generation(jinja2.ext.Extension):
    """{% generation %} as transformers has it: the text inside."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

    def _inside(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.globals["raise_exception"] = refuse  # and no strftime_now: see docs/chat.md
    made.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return made


def content(draw, blank):
    while True:
        text = "".join(draw.choice(PARTS) for _ in range(draw.randint(0, 6)))
        if blank or text.strip():
            return text


def conversation(draw):
    if draw.random() < 0.15:
        roles = [draw.choice(["system", "user", "assistant", "tool"]) for _ in range(draw.randint(0, 5))]
        return [{"role": role, "content": content(draw, True)} for role in roles]
    messages = [{"role": "system", "content": content(draw, False)}] if draw.random() < 0.4 else []
    for i in range(draw.randint(1, 7)):
        messages.append({"role": ["user", "assistant"][i % 2], "content": content(draw, False)})
    return messages


def render(template, messages, generation):
    try:
        return template.render(messages=messages, tools=None, documents=None, add_generation_prompt=generation, **TEXTS)
    except Exception:  # noqa: BLE001: whatever a template does wrong
        return None


def questions(count, seed):
    made = environment()
    for path in sorted(FOLDER.glob("*.jinja")):
        draw = random.Random(f"{path.name} {seed}")
        source = path.read_text()
        template = made.from_string(source)
        for _ in range(count):
            messages, generation = conversation(draw), draw.random() < 0.7
            yield path.stem, source, messages, generation, render(template, messages, generation)


def fuzz(count, seed, program):
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    total = texts = differences = refused = 0
    for name, source, messages, generation, wanted in questions(count, seed):
        process.stdin.write(json.dumps({"template": source, "messages": messages, "generation": generation, "texts": TEXTS}) + "\n")
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
        total += 1
        if "text" not in found:
            refused += wanted is not None
            continue
        texts += 1
        if found["text"] != wanted:
            differences += 1
            print(f"{name}: {messages} {generation}\n  {wanted!r}\n  {found['text']!r}")
    print(f"{total} conversations, {texts} texts, {differences} differences, {refused} that only jinja2 renders")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fuzz"]:
        fuzz(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        with open(FOLDER / "answers.jsonl", "w") as file:
            for name, _, messages, generation, text in questions(int(sys.argv[1]) if len(sys.argv) > 1 else 14, 1):
                line = {"template": name, "messages": messages, "generation": generation, "text": text}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
