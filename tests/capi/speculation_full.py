#!/usr/bin/env python3
"""A hundred prompts, fifty for each of two models: the text with drafts is that of single steps (speculation.c)."""

import os
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(os.environ["TARN_BUILD"]).resolve() / "tests" / "capi_speculation_tarn"
sys.exit(subprocess.run([PROGRAM, "50"], cwd=os.environ["TARN_SOURCE"]).returncode)
