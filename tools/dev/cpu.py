"""The CPU of this machine in words, for the tables of the documentation."""

import os
from pathlib import Path

# Cloud machines give CPUs of several generations one name. Vendor, family, first and last model: the public lists of AMD and Intel.
MICROARCHITECTURES = [
    ("AuthenticAMD", 23, 48, 255, "Zen 2"), ("AuthenticAMD", 23, 0, 47, "Zen or Zen+"), ("AuthenticAMD", 25, 0, 15, "Zen 3"),
    ("AuthenticAMD", 25, 16, 31, "Zen 4"), ("AuthenticAMD", 25, 32, 95, "Zen 3"), ("AuthenticAMD", 25, 96, 255, "Zen 4"),
    ("AuthenticAMD", 26, 0, 255, "Zen 5"), ("GenuineIntel", 6, 79, 79, "Broadwell"), ("GenuineIntel", 6, 85, 85, "Skylake or Cascade Lake"),
    ("GenuineIntel", 6, 106, 106, "Ice Lake"), ("GenuineIntel", 6, 143, 143, "Sapphire Rapids"),
    ("GenuineIntel", 6, 207, 207, "Emerald Rapids"), ("GenuineIntel", 6, 173, 174, "Granite Rapids")]


def fields(text: str) -> dict:
    """Of the first processor in /proc/cpuinfo."""
    return dict([part.strip() for part in line.split(":", 1)] for line in text.split("\n\n", maxsplit=1)[0].splitlines() if ":" in line)


def name_of(text: str) -> str:
    """As "AMD EPYC (Zen 3)"."""
    found = fields(text)
    name = found.get("model name", "an unnamed CPU")
    if "cpu family" not in found:
        return name
    family, model = int(found["cpu family"]), int(found["model"])
    for vendor, of_family, first, last, generation in MICROARCHITECTURES:
        if (found.get("vendor_id"), family) == (vendor, of_family) and first <= model <= last:
            return f"{name} ({generation})"
    return name


def cpu_name() -> str:
    return name_of(Path("/proc/cpuinfo").read_text(encoding="utf-8"))


def cores_and_name() -> str:
    """As "2 cores of AMD EPYC (Zen 3)"."""
    return f"{len(os.sched_getaffinity(0))} cores of {cpu_name()}"
