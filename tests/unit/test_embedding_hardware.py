"""What the machine lends: quotas in real files, CPU features as text."""

from __future__ import annotations

import math
import os

import pytest

from clustering.embedding import hardware


def test_cores_are_at_least_one_and_at_most_the_affinity():
    assert 1 <= hardware.usable_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [
        ("max", "100000", math.inf),
        ("-1", "100000", math.inf),
        ("150000", "100000", 1.5),
        ("200000\n", "100000\n", 2.0),
    ],
)
def test_quota_in_cores(quota, period, cores):
    assert hardware.parse_quota(quota, period) == cores


def test_quota_of_version_two_is_read(tmp_path):
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert hardware.cgroup_cores(tmp_path) == 0.5


def test_quota_of_version_one_is_read(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("300000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert hardware.cgroup_cores(tmp_path) == 3


@pytest.mark.parametrize("content", [None, "", "nonsense 100000", "max"])
def test_quota_that_cannot_be_read_is_none(tmp_path, content):
    if content is not None:
        (tmp_path / "cpu.max").write_text(content)
    assert hardware.cgroup_cores(tmp_path) == math.inf


@pytest.mark.parametrize(("content", "cores"), [("50000 100000", 1), ("1000 100000", 1)])
def test_a_part_of_a_core_counts_as_one(tmp_path, monkeypatch, content, cores):
    (tmp_path / "cpu.max").write_text(content)
    monkeypatch.setattr(hardware, "CGROUP", tmp_path)
    assert hardware.usable_cores() == cores


@pytest.mark.parametrize(
    ("flags", "fast"),
    [
        ("fpu avx512f avx512_vnni", False),
        ("fpu avx512f avx512_bf16", True),
        ("amx_tile amx_bf16 amx_int8", True),
        ("amx_bf16x", False),
        ("", False),
    ],
)
def test_fast_bfloat16_by_feature(flags, fast):
    assert hardware.has_fast_bfloat16(flags) is fast


def test_fast_bfloat16_of_this_machine_is_what_torch_says():
    import torch

    asked = [
        getattr(torch.cpu, f"_is_{name}_supported", bool) for name in ("amx_tile", "avx512_bf16")
    ]
    assert hardware.has_fast_bfloat16() == any(ask() for ask in asked)
