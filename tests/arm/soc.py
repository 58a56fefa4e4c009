"""Folders that look like the /proc and /sys of a board or phone, for `qemu-aarch64 -L FOLDER`.

QEMU's user mode takes every path of the program from under the folder where it is there, and from the host where not. So a program
finds the cores of another system, without root: what cpuinfo, and through it tarn_fast_cores(), reads.
"""

import dataclasses
import pathlib

ARMV8 = "fp asimd evtstrm crc32 cpuid"
ARMV8_2 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
ARMV9 = ARMV8_2 + " sve asimdfhm dit uscat ilrcpc flagm ssbs sve2 svei8mm svebf16 i8mm bf16"
ARMV7 = "half thumb fastmult vfp edsp neon vfpv3 tls vfpv4 idiva idivt vfpd32 lpae"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Cores that are alike, numbered one after the other."""
    cores: int
    part: int  # of the core's identification register
    mhz: int
    l2_kib: int


@dataclasses.dataclass(frozen=True)
class Soc:
    hardware: str
    features: str
    clusters: tuple
    fast_cores: int  # what tarn_fast_cores() must say

    @property
    def bits(self):
        return 32 if self.features == ARMV7 else 64


# The clusters stand in the kernel's order: slow ones first.
SOCS = {
    "rpi2": Soc("BCM2835", ARMV7, (Cluster(4, 0xC07, 900, 512),), 4),
    "rpi3": Soc("BCM2835", ARMV8, (Cluster(4, 0xD03, 1400, 512),), 4),
    "rpi4": Soc("BCM2835", ARMV8, (Cluster(4, 0xD08, 1800, 1024),), 4),
    "rpi5": Soc("BCM2712", ARMV8_2, (Cluster(4, 0xD0B, 2400, 512),), 4),
    "exynos5422": Soc("SAMSUNG EXYNOS", ARMV7, (Cluster(4, 0xC07, 1400, 512), Cluster(4, 0xC0F, 2000, 2048)), 4),
    "octa_a53": Soc("MT6750", ARMV8, (Cluster(4, 0xD03, 1000, 256), Cluster(4, 0xD03, 1500, 512)), 8),
    "big_little": Soc("Qualcomm Technologies, Inc SM7125", ARMV8_2,
                      (Cluster(6, 0xD05, 1800, 128), Cluster(2, 0xD0B, 2300, 256)), 2),
    "a76_a55": Soc("Rockchip RK3588", ARMV8_2, (Cluster(4, 0xD05, 1800, 128), Cluster(4, 0xD0B, 2400, 512)), 4),
    # One prime core, three big ones of another make, four little ones.
    "armv9": Soc("Qualcomm Technologies, Inc SM8450", ARMV9,
                 (Cluster(4, 0xD46, 1780, 256), Cluster(3, 0xD47, 2500, 512), Cluster(1, 0xD48, 3000, 1024)), 4),
}


def write(folder, soc):
    """Writes FOLDER/proc/cpuinfo and FOLDER/sys/devices/system/cpu."""
    folder = pathlib.Path(folder)
    cpus = folder / "sys/devices/system/cpu"
    description, first = "", 0
    for number, cluster in enumerate(soc.clusters):
        last = first + cluster.cores - 1
        siblings = f"{first}-{last}" if last > first else str(first)
        for core in range(first, last + 1):
            description += (f"processor\t: {core}\nBogoMIPS\t: 38.40\nFeatures\t: {soc.features}\nCPU implementer\t: 0x41\n"
                            f"CPU architecture: {7 if soc.bits == 32 else 8}\nCPU variant\t: 0x1\n"
                            f"CPU part\t: {cluster.part:#x}\nCPU revision\t: 0\n\n")
            _write_all(cpus / f"cpu{core}", {
                "cpufreq/cpuinfo_max_freq": cluster.mhz * 1000, "cpufreq/cpuinfo_min_freq": 300000,
                "topology/physical_package_id": number, "topology/core_id": core - first,
                "topology/core_siblings_list": siblings, "topology/cluster_cpus_list": siblings,
                "topology/core_siblings": f"{((1 << cluster.cores) - 1) << first:x}", "topology/thread_siblings_list": core,
                "cache/index0/level": 1, "cache/index0/type": "Data", "cache/index0/size": "32K",
                "cache/index0/shared_cpu_list": core, "cache/index0/coherency_line_size": 64,
                "cache/index1/level": 1, "cache/index1/type": "Instruction", "cache/index1/size": "32K",
                "cache/index1/shared_cpu_list": core, "cache/index1/coherency_line_size": 64,
                "cache/index2/level": 2, "cache/index2/type": "Unified", "cache/index2/size": f"{cluster.l2_kib}K",
                "cache/index2/shared_cpu_list": siblings, "cache/index2/coherency_line_size": 64,
            })
        first = last + 1
    everything = f"0-{first - 1}"
    _write_all(cpus, {"possible": everything, "present": everything, "online": everything})
    _write_all(folder, {"proc/cpuinfo": description + f"Hardware\t: {soc.hardware}"})


LISTS = "kernel_max", "possible", "present", "online"
# Ways of a sandbox to hide a system: nothing is told; the CPU is not described, or not in words that make sense.
NOTHING = {
    "empty": {"proc/cpuinfo": "", **{f"sys/devices/system/cpu/{name}": "" for name in LISTS}},
    "no_cpuinfo": {"proc/cpuinfo": "", **{f"sys/devices/system/cpu/{name}": "0-3" for name in LISTS}},
    "only_the_last": {"proc/cpuinfo": "processor\t: 3\nCPU part\t: 0xd03\n",
                      **{f"sys/devices/system/cpu/{name}": "0-3" for name in LISTS}},
    "no_processor": {"proc/cpuinfo": "processor 0\n::\nprocessor\t: 4294967295\nHardware\t: " + 5000 * "x"},
}


def write_nothing(folder, contents):
    """One of NOTHING."""
    _write_all(pathlib.Path(folder), contents)


def _write_all(folder, contents):
    for name, value in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n" if value != "" else "", encoding="ascii")
