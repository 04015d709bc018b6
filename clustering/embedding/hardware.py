"""What the machine really lends this process: cores, and a fast bfloat16."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of cores that this process may keep busy, at least 1.

    The smaller of its CPU affinity and its control group's quota: a container that is given two
    of 64 cores sees all 64, and 64 threads on two cores are slower than two.
    """
    cores = min(len(os.sched_getaffinity(0)), cgroup_cores(CGROUP))
    return max(1, math.floor(cores + 0.5))


def cgroup_cores(root: Path) -> float:
    """Return the CPU quota of the control group mounted at `root`, in cores.

    Args:
        root: the mount point, of version 2 (`cpu.max`) or 1 (`cpu/cpu.cfs_quota_us`).

    Returns:
        Cores, possibly a fraction; infinity where there is no quota or it cannot be read.
    """
    try:
        return parse_quota(*(root / "cpu.max").read_text().split()[:2])
    except (OSError, ValueError, TypeError):
        pass
    try:
        folder = root / "cpu"
        quota, period = (folder / f"cpu.cfs_{part}_us" for part in ("quota", "period"))
        return parse_quota(quota.read_text(), period.read_text())
    except (OSError, ValueError):
        return math.inf


def parse_quota(quota: str, period: str) -> float:
    """Return a quota in cores.

    Args:
        quota: microseconds of CPU time in a period; `max` or a negative number for no limit.
        period: microseconds.

    Returns:
        Cores; infinity for no limit.

    Raises:
        ValueError: one of the two is no number.
    """
    if quota.strip() == "max" or int(quota) < 0:
        return math.inf
    return int(quota) / int(period)


def has_fast_bfloat16(flags: str | None = None) -> bool:
    """Tell whether the CPU multiplies bfloat16 matrices in hardware (AMX or AVX512-BF16).

    Elsewhere bfloat16 is emulated and slower than float32.

    Args:
        flags: the CPU's features, as in `/proc/cpuinfo`; read from there where None.

    Returns:
        True when either is present, and that file can be read.
    """
    known = _cpu_flags() if flags is None else set(flags.split())
    return bool(known & {"amx_bf16", "avx512_bf16"})


def _cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()[2:]}
