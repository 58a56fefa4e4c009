"""Programs that must succeed, and where they are."""

import os
import pathlib
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"  # this machine's; those of other targets lie inside
HOST_TARN = BUILD / "bin/tarn"
TIMEOUT_SECONDS = 1800  # several times what the slowest takes under emulation: a program that hangs fails


class Failure(Exception):
    """What went wrong, for people."""


def run(*command, **environment):
    """Standard output and standard error, as bytes. A program that fails is a Failure that ends with what it printed."""
    process = subprocess.Popen([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True,
                               env={**os.environ, "TARN_SOURCE": str(ROOT), "TARN_PACKED_CACHE": "none", **environment})
    try:
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        ended = f"exit status {process.returncode}"
    except BaseException as stopped:
        os.killpg(process.pid, signal.SIGKILL)  # what it started, too
        out, err = process.communicate()
        if not isinstance(stopped, subprocess.TimeoutExpired):
            raise
        ended = f"no end after {TIMEOUT_SECONDS} s"
    if process.returncode != 0:
        printed = (out + err).decode(errors="replace")[-6000:]
        raise Failure(f"{ended} of {' '.join(map(str, command))}\n{printed}")
    return out, err


def sysroot(architecture):
    """The folder of the libraries that the target's programs are linked with."""
    return pathlib.Path(run(ROOT / "tools/dev/sysroot.sh", architecture, "--prefix")[0].decode().strip())
