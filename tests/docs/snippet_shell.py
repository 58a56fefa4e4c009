"""Shell snippets: commands in a copy of the tree, and what they print."""

import pathlib
import os
import re
import shutil
import signal
import subprocess

import markdown

BUILD = pathlib.Path(os.environ.get("TARN_BUILD") or markdown.ROOT / "build")
TIMEOUT = 300  # seconds for a block, on a busy machine; over a minute on an idle one is for a skip
LINKED = 65536  # bytes: files from this size on are linked into the copy of the tree

# Commands that a snippet's shell reports instead of running them.
NOT_RUN = {
    "make": "builds or runs tests, for minutes", "sudo": "changes the machine", "apt-get": "installs packages", "apt": "installs packages",
    "pip": "needs the network", "wget": "needs the network", "curl": "needs the network", "ssh": "needs a board", "scp": "needs a board",
    "adb": "needs a phone", "systemctl": "changes the machine", "journalctl": "needs a service", "ldconfig": "changes the machine",
    "mount": "changes the machine", "gdb": "needs a terminal", "qemu-system-arm": "needs the cross build",
    "cmake": "builds for minutes; make test-dist and the fast tests build the examples", "taskset": "needs a board",
    "ctest": "runs in the build folder", "ninja": "builds for minutes"}


# Where a snippet must not write; a block that names one of these needs a comment with the reason why it is skipped.
OUTSIDE = re.compile(r"(?<![\w.$}])/(?:etc|usr|opt|var|home|root|boot)/")


class Failure(Exception):
    """What a snippet did that it should not."""


def tree(page):
    """A copy of the tree for the page, with the programs and libraries of this build in build/."""
    if page.tree:
        return
    page.tree = page.folder / "tarn"
    command = ["git", "-C", str(markdown.ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0"):
        source, copy = markdown.ROOT / name, page.tree / name
        if not name or not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_size >= LINKED:
            copy.symlink_to(source)
        else:
            shutil.copy2(source, copy)
    (page.tree / "build").mkdir()
    for name in ("bin", "fuzz", "lib", "tests"):
        (page.tree / "build" / name).symlink_to(BUILD / name)
    functions = "".join(f'{name}() {{ echo "{name} $*: {reason}" >> "$SNIPPET_SKIPPED"; }}\n' for name, reason in NOT_RUN.items())
    git = 'git() { case $1 in clone|push|fetch|pull) echo "git $1: needs the network" >> "$SNIPPET_SKIPPED" ;; *) command git "$@" ;; esac; }\n'
    (page.folder / "functions").write_text(functions + git, encoding="utf-8")
    page.environment.update(PATH=f"{BUILD / 'bin'}:{page.environment['PATH']}", SNIPPET_SKIPPED=str(page.folder / "skipped"),
                            SNIPPET_STATE=str(page.folder / "state"))
    (page.folder / "state").write_text(f"cd '{page.tree}'\n", encoding="utf-8")


def execute(page, script):
    """Output of a script, which goes on where the page's last one ended: its directory and its variables."""
    tree(page)
    found = OUTSIDE.search(script)
    if found and str(BUILD) not in script:
        raise Failure(f"names {found[0]}, outside the page's folder: skip it with a reason")
    (page.folder / "skipped").write_text("", encoding="utf-8")
    text = (f". '{page.folder}/functions'\nset -a; . \"$SNIPPET_STATE\"\nset -e -o pipefail\n{script}\n"
            'set +x; { export -p | grep -v " BASH\\| SNIPPET"; printf "cd %q\\n" "$PWD"; } > "$SNIPPET_STATE"\n')
    process = subprocess.Popen(["bash", "-c", text], cwd=page.tree, env=page.environment, stdin=subprocess.DEVNULL, text=True,
                               encoding="utf-8", errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output = process.communicate(timeout=TIMEOUT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise Failure(f"still running after {TIMEOUT} s") from None
    if process.returncode:
        raise Failure(f"exit status {process.returncode}\n{script.rstrip()}\n{output[-2000:]}")
    return output


def provide(page, script):
    """What a reader has by then: the program that the page shows, or hello_c, under the name that is compiled; a package in $TARN."""
    tree(page)
    program = page.program or (page.tree / "examples/hello_c/hello.c").read_text(encoding="utf-8")
    for name in re.findall(r"\bg?cc\b.*?(?<!/)\b(\w+\.c)\b", script):
        if not (page.tree / name).exists():
            (page.tree / name).write_text(program, encoding="utf-8")
    if "$TARN/" in script and "TARN" not in page.environment:
        page.environment["TARN"] = str(page.folder / "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", page.environment["TARN"]], stdout=subprocess.DEVNULL, check=True)


def not_run(page, where):
    for line in (page.folder / "skipped").read_text(encoding="utf-8").splitlines():
        page.skip(where, line)


def commands(script):
    """The lines of a script that are commands of their own."""
    return [line for line in script.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def run(page, where, script, _):
    if "pkg-config" in script and not shutil.which("pkg-config"):
        return "needs pkg-config"
    provide(page, script)
    execute(page, script)
    skipped = (page.folder / "skipped").read_text(encoding="utf-8").splitlines()
    if skipped and len(skipped) >= len(commands(script)):
        return skipped[0]
    not_run(page, where)
    return None


def matches(expected, output):
    """Whether the output is what is expected, in which a line of "..." is any lines and "..." in a line any text."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part.rstrip() if last else part) for part, last in _parts(line)) + r"[ \t]*\n"
    return re.fullmatch(pattern, output.rstrip() + "\n")


def _parts(line):
    parts = line.split("...")
    return [(part, number == len(parts) - 1) for number, part in enumerate(parts)]


def compare(page, where, text, may_fail):
    steps = []  # [command, expected output]
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif line.startswith("> ") and steps and not steps[-1][1]:
            steps[-1][0] += "\n" + line[2:]
        elif steps and not steps[-1][1] and steps[-1][0].rstrip().endswith("\\"):
            steps[-1][0] += "\n" + line
        elif steps:
            steps[-1][1] += line + "\n"
    if not steps:
        return "output alone"
    provide(page, text)
    if "pkg-config" in text and not shutil.which("pkg-config"):
        return "needs pkg-config"
    for command, expected in steps:
        failing = may_fail or "error:" in expected
        output = execute(page, f"{command} || true" if failing else command)
        not_run(page, where)
        if expected.strip() and not (page.folder / "skipped").read_text(encoding="utf-8") and not matches(expected, output):
            raise Failure(f"$ {command}\nprinted\n{output}\nexpected\n{expected}")
    return None
