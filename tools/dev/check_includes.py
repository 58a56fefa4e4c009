#!/usr/bin/env python3
"""Holds every #include against the graph of who may see whom, and finds cycles between folders.

    check_includes.py [ROOT]

The graph is the table below. Tests may include anything and are not read.
"""

import pathlib
import re
import sys

# Layers of the library: each sees itself and what the line says.
CORE = {"core", "tarn/status.h"}  # the public status table is also the library's own
PLATFORM = CORE | {"runtime/platform"}
MODEL = PLATFORM | {"runtime/model", "schema"}
OPS = MODEL | {"runtime/planner", "runtime/ops", "kernels"}
# Interpreter and session name kernels too: the table of kernels and the dense layers of a model are chosen once, by the
# session, and handed down to the ops.
INTERPRETER = OPS | {"runtime/interpreter"}
SESSION = INTERPRETER | {"runtime/session"}
PUBLIC = {"tarn/status.h", "tarn/tarn.h", "tarn/sampler.h", "tarn/snapshot.h", "tarn/tokenizer.h", "tarn/chat.h", "tarn/text_stream.h",
          "tarn/grammar.h", "tarn/checkpoints.h", "tarn/speculation.h", "tarn/inspect.h"}

# Layers of the converter, likewise.
CONVERT = PUBLIC | {"tools/common", "tools/convert/json", "schema", "flatbuffers/", "nlohmann/", "xxhash.h"}
CONVERT_CHECKPOINT = CONVERT | {"tools/convert/checkpoint", "core/visible.h"}
CONVERT_GRAPH = CONVERT_CHECKPOINT | {"tools/convert/graph", "variants", "core/planes.h"}
CONVERT_ATTENTION = CONVERT_GRAPH | {"tools/convert/attention"}
CONVERT_CONFIG = CONVERT_ATTENTION | {"tools/convert/config"}

# Folder -> what its files may include besides the standard library. The longest matching folder counts.
MAY_INCLUDE = {
    "runtime/include": PUBLIC,
    "core": CORE,
    "runtime/platform": PLATFORM | {"cpuinfo.h"},
    "runtime/model": MODEL | {"runtime/text", "flatbuffers/", "xxhash.h"},  # the tables of the tokenizer
    "runtime/planner": CORE | {"runtime/planner"},  # a pure function: sees neither schema nor kernels
    "variants": {"variants"},  # plain data, for all that follows
    "runtime/ops": OPS | {"variants"},
    "runtime/interpreter": INTERPRETER,
    "runtime/session": SESSION | {"xxhash.h"},
    "runtime/text": CORE | {"runtime/text"},
    "runtime/grammar": CORE | {"runtime/text", "runtime/grammar"},
    "runtime/generation": SESSION | {"runtime/text", "runtime/grammar", "runtime/generation"},
    "runtime/capi": SESSION | PUBLIC | {"runtime/capi", "runtime/text", "runtime/grammar", "runtime/generation"},
    "kernels": CORE | {"kernels", "variants", "hwy/"},
    "kernels/reference": CORE | {"kernels/reference", "kernels/kernels.h", "kernels/quantization.h", "kernels/slot_limits.h",
                                 "kernels/features/features.h", "kernels/slot_controls/slot_controls.h"},
    "kernels/dense": PLATFORM | {"kernels", "variants", "hwy/", "xnnpack.h", "pthreadpool.h", "cpuinfo.h"},
    # visible.h is pure and inline: what a message of the library and one of a tool may show is said once.
    "tools/common": PUBLIC | {"tools/common", "CLI/", "core/visible.h"},
    "tools/json_schema": {"tools/common", "tools/json_schema", "nlohmann/"},
    "tools/tarn": PUBLIC | {"tools/common", "tools/json_schema", "tools/tarn", "nlohmann/"},
    "tools/cmake": set(),
    "tools/convert/json": CONVERT,
    "tools/convert/checkpoint": CONVERT_CHECKPOINT | {"core/span.h"},
    "tools/convert/graph": CONVERT_GRAPH,
    # system_table.cc compares the tables of kernels.
    "tools/convert/attention": CONVERT_ATTENTION | {"core/span.h", "kernels/kernels.h", "kernels/op_kernels.h"},
    "tools/convert/families": CONVERT_CHECKPOINT | {"tools/convert/families", "variants/limits.h"},
    "tools/convert/config": CONVERT_CONFIG | {"tools/convert/tokenizer/files.h"},
    "tools/convert/build": CONVERT_CONFIG | {"tools/convert/build"},
    # The layouts of tables that the runtime reads in place, and their hashes and limits.
    "tools/convert/tokenizer": CONVERT | {"tools/convert/tokenizer", "runtime/text", "core"},
    "tools/convert/chat": CONVERT | {"tools/convert/chat", "tools/convert/tokenizer", "runtime/text", "core"},
    "tools/convert/writer": CONVERT_GRAPH | {"tools/convert/writer"},
    # Runs programs that a session would refuse, with the values in their middle as outputs.
    "tools/convert/calibrate": CONVERT_GRAPH | {"tools/convert/calibrate", "tools/convert/writer", "runtime/interpreter", "runtime/model",
                                                "runtime/platform", "kernels/kernels.h", "kernels/dense/dense.h"},
    "tools/convert": CONVERT_CONFIG | {"tools/convert/calibrate", "tools/convert/build", "tools/convert/writer",
                                      "tools/convert/tokenizer", "tools/convert/chat", "tools/convert/families", "tools/convert/published.h",
                                      "tools/convert/field_list.h", "tools/convert/measure.h", "tools/convert/summary.h",
                                      "tools/convert/tensor_list.h", "tools/convert/conversion.h", "tools/convert/auto_precision.h",
                                      "kernels/kernels.h"},
    "examples": PUBLIC,
    # A project of its own, with its headers beside its files.
    "examples/server": PUBLIC | {"http.h", "read_request.h", "scheduler.h", "state_folder.h", "nlohmann/"},
}

# Folder -> who alone may include it. The reference is the oracle that the other kernels are tested against: they share no code with
# it, and it sees of them the contracts alone. CLI11 takes seconds to compile in every file that includes it.
RESERVED = {
    "kernels/reference": {"kernels/reference", "kernels/tables/tables_bare.cc"},
    "CLI/": {"tools/common/command_line.cc"},
}

# What counts as one of ours or as a dependency; everything else in <> is the system's.
GUARDED = sorted(set().union(*MAY_INCLUDE.values()) | {"tarn/", "core/", "variants/", "runtime/", "kernels/", "schema/", "tools/", "gtest/", "gmock/"})

TOPS = ("core", "variants", "runtime", "kernels", "schema", "tools", "examples")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".cc", ".c"}


def covers(entry, path):
    """Whether a table entry (a folder, a prefix that ends in '/', or a header) covers an include path."""
    return path == entry or path.startswith(entry if entry.endswith("/") else entry + "/")


def rule_for(file):
    folders = [folder for folder in MAY_INCLUDE if covers(folder, file)]
    return max(folders, key=len, default=None)


def check_file(root, file):
    name = file.relative_to(root).as_posix()
    module = rule_for(name)
    if module is None:
        yield f"{name}:1: no rule for this folder; add one to tools/dev/check_includes.py"
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, path = match.groups()
        for folder, users in RESERVED.items():
            if covers(folder, path) and not any(covers(user, name) for user in users):
                yield f"{name}:{number}: only {', '.join(sorted(users))} may include {path}"
        if any(covers(entry, path) for entry in MAY_INCLUDE[module]):
            continue
        if any(covers(entry, path) for entry in GUARDED):
            yield f"{name}:{number}: {module} may not include {path}"
        elif quote == '"':
            yield f'{name}:{number}: "{path}": paths in quotes begin at the repository root'


def sources(root):
    return [f for top in TOPS for f in sorted((root / top).rglob("*")) if f.suffix in SUFFIXES]


def folder_graph(root):
    """Folder -> the folders that its files include, by the includes as they are."""
    graph = {}
    for file in sources(root):
        folder = file.parent.relative_to(root).as_posix()
        seen = graph.setdefault(folder, set())
        for match in map(INCLUDE.match, file.read_text(encoding="utf-8").splitlines()):
            if not match:
                continue
            path = "runtime/include/" + match.group(2) if match.group(2).startswith("tarn/") else match.group(2)
            if (root / path).is_file() and path.rsplit("/", 1)[0] != folder:
                seen.add(path.rsplit("/", 1)[0])
    for seen in list(graph.values()):
        for folder in seen:
            graph.setdefault(folder, set())
    return graph


def cycle_in(graph):
    """Folders that include each other in a ring, or None."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return None
        path.append(folder)
        found = next(filter(None, map(visit, sorted(graph[folder]))), None)
        path.pop()
        done.add(folder)
        return found

    return next(filter(None, map(visit, sorted(graph))), None)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    files = sources(root)
    errors = [error for file in files for error in check_file(root, file)]
    cycle = cycle_in(folder_graph(root))
    if cycle:
        errors.append("directories include each other: " + " -> ".join(cycle))
    for error in errors:
        print(error, file=sys.stderr)
    print(f"check_includes: {len(files)} files, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
