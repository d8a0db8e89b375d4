"""The lock of a GPU: one holder at a time, freed by the holder's death, and said to those who wait."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tilelang_min import targets
from tileprof.errors import MeasurementInvalid
from tileprof.execute import gpu_lock
from tileprof.execute.gpu_lock import first_device, held

_HOLDER = """
import sys, threading, time
from pathlib import Path
from tileprof.execute.gpu_lock import held
with held("gpu", threading.Event(), folder=Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(60)
"""


def other_holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", _HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    return process


def test_a_dead_holder_lets_go_and_its_number_was_said(tmp_path: Path) -> None:
    with other_holder(tmp_path) as other:
        heard: list[str] = []
        threading.Timer(0.5, other.kill).start()
        start = time.monotonic()
        with held("gpu", threading.Event(), heard.append, tmp_path) as mine:
            assert mine
        assert time.monotonic() - start >= 0.4
    assert heard == [f"another run measures on this GPU (process {other.pid}): waiting for it"]


def test_stopping_while_waiting_ends_without_the_lock(tmp_path: Path) -> None:
    with other_holder(tmp_path) as other:
        stop = threading.Event()
        stop.set()
        with held("gpu", stop, folder=tmp_path) as mine:
            assert not mine
        other.kill()


def test_a_hung_holder_is_named_in_the_error(tmp_path: Path) -> None:
    with other_holder(tmp_path) as other:
        with (
            pytest.raises(MeasurementInvalid, match=f"held by process {other.pid} for 0.1 s"),
            held("gpu", threading.Event(), folder=tmp_path, longest_s=0.1),
        ):
            pass
        other.kill()


def test_two_gpus_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with (
        held("nvidia-0", threading.Event(), folder=tmp_path) as one,
        held("nvidia-1", threading.Event(), folder=tmp_path) as two,
    ):
        assert (one, two) == (True, True)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    heard: list[str] = []
    with held("gpu", threading.Event(), heard.append, tmp_path / "missing") as mine:
        assert mine
    assert "cannot be written" in heard[0]


def test_the_first_visible_device_has_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_lock, "_nvidia_uuids", lambda: {0: "GPU-aa", 3: "GPU-dd"})
    assert first_device("nvidia", {}) == "nvidia-GPU-aa"
    assert first_device("nvidia", {"CUDA_VISIBLE_DEVICES": "3,0"}) == "nvidia-GPU-dd"
    assert first_device("nvidia", {"CUDA_VISIBLE_DEVICES": "GPU-dd"}) == "nvidia-GPU-dd"
    assert first_device("amd", {"HIP_VISIBLE_DEVICES": "1"}) == "amd-1"


def test_an_amd_gpu_is_known_by_its_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    def gpu(node: int, unique: str) -> targets.KfdGpu:
        return targets.KfdGpu(node, "gfx942", "MI300X", f"0000:{node:02x}:00", unique, 304, 8)

    monkeypatch.setattr(targets, "amd_gpus", lambda: (gpu(4, "00ab"), gpu(5, "00cd"), gpu(6, "")))
    assert first_device("amd", {}) == "amd-00ab"
    assert first_device("amd", {"HIP_VISIBLE_DEVICES": "1"}) == "amd-00cd"
    assert first_device("amd", {"ROCR_VISIBLE_DEVICES": "GPU-00cd,0", "HIP_VISIBLE_DEVICES": "1"}) == "amd-00ab"
    assert first_device("amd", {"HIP_VISIBLE_DEVICES": "2"}) == "amd-6", "its number, where the chip has none"
    monkeypatch.setattr(targets, "amd_gpus", lambda: ())
    assert first_device("amd", {"HIP_VISIBLE_DEVICES": "3"}) == "amd-3"


def test_a_link_in_the_folder_of_all_leads_nowhere(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    (tmp_path / "tileprof-gpu.lock").symlink_to(own)
    heard: list[str] = []
    with held("gpu", threading.Event(), heard.append, tmp_path) as mine:
        assert mine
    assert own.read_text() == "mine"
    assert len(heard) == 1
    assert "cannot be written, so other runs on this GPU are not kept away" in heard[0]
