"""Programs that must succeed, and where they are."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"  # this machine's; those of other targets lie inside
HOST_TARN = BUILD / "bin/tarn"


class Failure(Exception):
    """What went wrong, for people."""


def run(*command, **environment):
    """Standard output and standard error, as bytes. A program that fails is a Failure that ends with what it printed."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "TARN_SOURCE": str(ROOT), "TARN_PACKED_CACHE": "none", **environment})
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).decode(errors="replace")[-6000:]
        raise Failure(f"exit status {done.returncode} of {' '.join(map(str, command))}\n{printed}")
    return done.stdout, done.stderr


def sysroot(architecture):
    """The folder of the libraries that the target's programs are linked with."""
    return pathlib.Path(run(ROOT / "tools/dev/sysroot.sh", architecture, "--prefix")[0].decode().strip())
