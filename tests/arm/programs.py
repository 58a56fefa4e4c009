"""Programs that must succeed, and where they are."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"  # this machine's; those of other targets lie inside
HOST_TARN = BUILD / "bin/tarn"
TIMEOUT_SECONDS = 1800  # several times what the slowest takes under emulation: a program that hangs fails


class Failure(Exception):
    """What went wrong, for people."""


def run(*command, **environment):
    """Standard output and standard error, as bytes. A program that fails is a Failure that ends with what it printed."""
    try:
        done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, check=False, timeout=TIMEOUT_SECONDS,
                              env={**os.environ, "TARN_SOURCE": str(ROOT), "TARN_PACKED_CACHE": "none", **environment})
    except subprocess.TimeoutExpired as expired:
        printed = ((expired.stdout or b"") + (expired.stderr or b"")).decode(errors="replace")[-6000:]
        raise Failure(f"no end after {TIMEOUT_SECONDS} s: {' '.join(map(str, command))}\n{printed}") from expired
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).decode(errors="replace")[-6000:]
        raise Failure(f"exit status {done.returncode} of {' '.join(map(str, command))}\n{printed}")
    return done.stdout, done.stderr


def sysroot(architecture):
    """The folder of the libraries that the target's programs are linked with."""
    return pathlib.Path(run(ROOT / "tools/dev/sysroot.sh", architecture, "--prefix")[0].decode().strip())
