"""Snippets of code: compiled, configured or parsed."""

import importlib.util
import json
import os
import re
import shutil
import subprocess

import markdown
from snippet_shell import BUILD, Failure, execute, tree

WARNINGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
HEADERS = "".join(f"#include <{name}>\n" for name in ("errno.h", "math.h", "pthread.h", "signal.h", "stdint.h", "stdio.h", "stdlib.h",
                                                      "string.h", "tarn/tarn.h", "tarn/tokenizer.h", "tarn/chat.h", "tarn/text_stream.h",
                                                      "tarn/grammar.h", "tarn/checkpoints.h", "tarn/speculation.h",
                                                      "tarn/inspect.h"))
# What a fragment of C may use without declaring it.
NAMES = {"tarn_source": ["source"], "tarn_model_config": ["model_config"], "tarn_session_config": ["config", "session_config"],
         "tarn_memory": ["memory"], "tarn_error": ["error"], "tarn_model*": ["model"], "tarn_session*": ["session", "other"],
         "tarn_sampler*": ["sampler"], "tarn_beam*": ["beam"], "tarn_checkpoints*": ["checkpoints"],
         "tarn_speculation*": ["speculation"], "tarn_sampler_config": ["sampler_config"], "tarn_beam_config": ["beam_config"],
         "tarn_model_info": ["info"], "tarn_status": ["status"], "tarn_text_decoder": ["decoder"], "const float*": ["logits"],
         "int32_t*": ["tokens", "sources", "prompt_tokens"], "int32_t": ["token"], "size_t": ["count", "stride", "length", "size_of_text"],
         "const size_t*": ["lengths"], "float": ["score"], "uint32_t": ["rank"], "void*": ["block", "snapshot"],
         "uint64_t": ["size"], "const char*": ["path", "text", "prompt"]}
# Of these names a fragment may mean another thing: the output of a beam search.
OTHER_NAMES = {"uint32_t": ["source", "rank"], "const int32_t*": ["tokens"], "double": ["score"]}
IMPORTS = "import java.io.*;\nimport java.nio.file.*;\nimport java.util.*;\nimport tarn.*;\n"


def call(command, what, **options):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300, **options)
    if done.returncode:
        raise Failure(f"{what} failed\n{done.stdout[-3000:]}")
    return done.stdout


def c(page, _, text, arguments):
    """A whole program is linked, declarations are compiled, statements are compiled in a function."""
    tree(page)
    source, program = page.folder / "snippet.c", page.tree / "hello"
    include = ["-I", markdown.ROOT / "runtime/include"]
    if re.fullmatch(r"\s*#define \w+\s*", text):
        return "a constant of the header, without its value"
    if re.search(r"\bmain\s*\(", text):
        page.program = text
        source.write_text(text, encoding="utf-8")
        call(["gcc", *WARNINGS, *include, source, "-o", program, "-L", BUILD / "lib", f"-Wl,-rpath,{BUILD / 'lib'}", "-ltarn", "-lm",
              "-pthread"], "gcc")
        if arguments is not None:
            execute(page, f"./hello {arguments}")
        return None
    compiler = ["gcc", *WARNINGS, *include, "-fsyntax-only", source]
    attempts = [HEADERS + text, _function(text, NAMES)]
    others = {name for names in OTHER_NAMES.values() for name in names}
    kept = {kind: [name for name in names if name not in others] for kind, names in NAMES.items()}
    attempts.append(_function(text, {**kept, **{kind: kept.get(kind, []) + names for kind, names in OTHER_NAMES.items()}}))
    messages = []
    for attempt in attempts:
        source.write_text(attempt, encoding="utf-8")
        try:
            call(["gcc", *WARNINGS, *include, "-fsyntax-only", source], "gcc")
            return None
        except Failure as failure:
            messages.append(failure)
    raise messages[1]


def _function(text, names):
    """Statements as a function in which the names of the documentation are variables."""
    variables = "".join(f"  {kind} {name}; memset(&{name}, 0, sizeof {name});\n" for kind, group in names.items() for name in group)
    includes = "".join(line + "\n" for line in text.splitlines() if line.startswith("#include"))
    body = "".join(line + "\n" for line in text.splitlines() if not line.startswith("#include"))
    return f"{HEADERS}{includes}int snippet(void);\nint snippet(void) {{\n{variables}  {{\n{body}\n  }}\n  return 0;\n}}\n"


def python(page, _, text, __):
    tree(page)
    imported = re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.MULTILINE)
    missing = [name for name in imported if not (page.tree / f"{name}.py").exists() and not importlib.util.find_spec(name)]
    if missing:
        return f"no Python module {missing[0]} here"
    (page.tree / "snippet.py").write_text(text, encoding="utf-8")
    execute(page, "python3 snippet.py")
    return None


def cmake(page, _, text, __):
    """Configured as a project of its own, beside an installed tarn and with this tree as third_party/tarn."""
    if "GIT_REPOSITORY" in text or re.search(r"\bURL\b", text):
        return "needs the network"
    tree(page)
    project = page.folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    (project / "third_party").mkdir(parents=True)
    (project / "third_party/tarn").symlink_to(markdown.ROOT)
    (project / "main.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    head = "" if "cmake_minimum_required" in text else "cmake_minimum_required(VERSION 3.25)\nproject(snippet LANGUAGES C CXX)\n"
    made = set(re.findall(r"add_(?:executable|library)\((\w+)", text))
    head += "".join(f"add_executable({name} main.c)\n" for name in sorted(set(re.findall(r"target_\w+\((\w+)", text)) - made))
    for name in re.findall(r"\b([\w-]+\.(?:c|cc|cpp|S))\b", text):
        shutil.copy(project / "main.c", project / name) if name != "main.c" else None
    (project / "CMakeLists.txt").write_text(head + text, encoding="utf-8")
    prefix = page.folder / "prefix"
    if "find_package" in text and not prefix.exists():
        call(["cmake", "--install", BUILD, "--prefix", prefix], "cmake --install")
    call(["cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DTARN_BUILD_TESTS=OFF", "-DTARN_BUILD_TOOLS=OFF"],
         "cmake")
    return None


def _class_path():
    classes = BUILD / "test-android/classes/library"
    jars = sorted((BUILD / "test-android/jars").glob("*.jar"))
    return ":".join(map(str, [classes, *jars])) if classes.exists() and jars else None


def java(page, _, text, __):
    path = _class_path()
    if not path or not shutil.which("javac"):
        return "needs javac and the classes of make test-android"
    source = page.folder / "Snippet.java"
    imports = "".join(line + "\n" for line in text.splitlines() if line.startswith("import "))
    body = "".join(line + "\n" for line in text.splitlines() if not line.startswith("import "))
    source.write_text(f"{IMPORTS}{imports}class Snippet {{\n  void show(String text) {{}}\n"
                      f"  void snippet(String path, android.content.Context context) throws Exception {{\n{body}  }}\n}}\n", encoding="utf-8")
    call(["javac", "--release", "11", "-cp", path, "-d", page.folder / "classes", source], "javac")
    return None


def kotlin(*_):
    return "no Kotlin compiler in Debian; examples/android compiles the same calls in Java"


def json_text(page, _, text, __):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Failure(f"no JSON: {error}") from None
    if isinstance(value, dict) and "hidden_size" in value and "attention" in value:
        config = page.folder / "config.json"
        config.write_text(text, encoding="utf-8")
        call([BUILD / "bin/tarn-convert", "--random-weights", "1", config, "-o", page.folder / "random.tarn"], "tarn-convert")
        os.unlink(page.folder / "random.tarn")
    return None
