"""Which binaries run on which GPU."""

from __future__ import annotations

import pytest

from tilelang_min.targets import processor_name, runs_on


@pytest.mark.parametrize(
    ("arch", "device", "runs"),
    [
        ("sm_80", "sm_80", True), ("sm_80", "sm_86", True), ("sm_86", "sm_80", False), ("sm_80", "sm_90a", False),
        ("sm_90a", "sm_90a", True), ("sm_90a", "sm_90", True), ("sm_90", "sm_90a", True), ("sm_100a", "sm_103a", False),
        ("gfx942", "gfx942", True), ("gfx942", "gfx950", False), ("gfx942", "sm_80", False), ("sm_80", "", False),
    ],
)  # fmt: skip
def test_binaries_run_on_their_revision(arch: str, device: str, runs: bool) -> None:
    assert runs_on(arch, device) is runs


def test_the_processor_has_a_name() -> None:
    assert processor_name()
