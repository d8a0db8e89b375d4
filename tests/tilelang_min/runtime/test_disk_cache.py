"""The disk cache under use by several processes and threads, under kill -9, and at its size limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
from tilelang_min import cache as command
from tilelang_min.driver import versions
from tilelang_min.errors import BundleError
from tilelang_min.runtime import cache
from tilelang_min.runtime.bundle import Bundle
from tilelang_min.runtime.later import Later

ROOT = Path(tilelang.__file__).parent.parent

KERNELS = """
import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit(target="cpu")
def scaled(n, by):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * by
    return main
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TILELANG_CACHE_SIZE", raising=False)
    cache._unchecked.clear()
    (tmp_path / "cached_kernels.py").write_text(KERNELS)
    return tmp_path / "cache"


def python(tmp_path: Path, program: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def bundle(size: int, key: str) -> Bundle:
    """A bundle whose file has about ``size`` bytes; no kernel."""
    names = ("format", "name", "symbol", "target", "parameters", "grid", "threads", "launch", "operations", "metadata")
    record: dict[str, Any] = dict.fromkeys(names, 0)
    record |= {"binary": {"file": "binary.so"}, "source": "source.ll", "listing": "listing.s", "hash": key}
    files = {"binary.so": os.urandom(size), "source.ll": b"", "listing.s": b"", "listing.json": b""}
    return Bundle(record, {**files, "thread_program.json": b""})


def keys() -> list[str]:
    return [entry.key[:2] for entry in cache.entries()]


# -- several at once -----------------------------------------------------------------------------------------------------


def test_processes_fill_one_cache_at_once(tmp_path: Path, folder: Path) -> None:
    """Three processes, the same three kernels each, in different orders: every result is right, every entry sound."""
    program = """
    import sys, numpy as np, cached_kernels
    start = int(sys.argv[1]) if len(sys.argv) > 1 else {start}
    for number in range(3):
        by = float((start + number) % 3 + 2)
        a, b = np.ones(100, np.float32), np.zeros(100, np.float32)
        cached_kernels.scaled(100, by)(a, b)
        assert (b == by).all(), b
    """
    running = [python(tmp_path, program.replace("{start}", str(start))) for start in range(3)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert len(cache.entries()) == 3
    assert all(cache.fetch(entry.key) is not None for entry in cache.entries())
    assert not list(folder.glob("??/.tlk-*"))


def test_threads_that_want_one_kernel_build_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang_min.driver import build

    monkeypatch.syspath_prepend(str(tmp_path))
    import cached_kernels

    built: list[str] = []
    original = build.build
    monkeypatch.setattr(build, "build", lambda *args: built.append(args[0].name) or original(*args))
    results: list[Any] = []

    def ask(target: str, by: float) -> None:
        results.append(cached_kernels.scaled.for_target(target)(64, by))

    wanted = [("cpu", 2.0), ("cuda:sm_80", 2.0), ("hip:gfx942", 2.0), ("cpu", 3.0)]
    threads = [threading.Thread(target=ask, args=item) for item in wanted * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(built) == 4
    assert len(results) == 12
    for kernel in results:
        assert kernel.metadata.instructions["total"]
        assert kernel.assembly()
    for kernel in results:
        if kernel.target.kind == "cpu":
            b = np.zeros(64, np.float32)
            kernel(np.ones(64, np.float32), b)
            assert b[0] in (2.0, 3.0)
    assert len(cache.entries()) == 4


def test_readers_while_an_entry_is_replaced_and_removed() -> None:
    """Whoever reads finds a whole entry or none."""
    key = "ab" * 32
    made = bundle(5_000, key)
    content = made.files["binary.so"]
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            cache.store(key, made)
            cache.clear()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    found = 0
    deadline = time.monotonic() + 30
    while found < 10 and time.monotonic() < deadline:
        entry = cache.fetch(key)
        if entry is not None:
            found += 1
            assert entry.binary == content  # read after the file may be gone
    stop.set()
    for writer in writers:
        writer.join()
    assert found == 10


def test_a_process_killed_while_it_writes(tmp_path: Path, folder: Path) -> None:
    """Killed at many moments of a loop that stores: what is there is sound, and what was left behind is removed later."""
    program = """
    import sys
    sys.path.insert(0, {here!r})
    from test_disk_cache import bundle
    from tilelang_min.runtime import cache
    made = bundle(2_000_000, "cd" * 32)
    print("ready", flush=True)
    while True:
        cache.store("cd" * 32, made)
    """.replace("{here!r}", repr(str(Path(__file__).parent)))
    for number in range(4):
        process = python(tmp_path, program)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05 + 0.037 * number)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        (folder / "cd").mkdir(parents=True, exist_ok=True)
        found = cache.fetch("cd" * 32)
        assert found is None or len(found.binary) == 2_000_000
        assert {path.name for path in (folder / "cd").glob("*")} - {f"{'cd' * 32}.tlk"} == {
            path.name for path in (folder / "cd").glob(".tlk-*")
        }
    left = folder / "cd" / ".tlk-left"
    left.write_bytes(b"half")
    cache.trim(cache.DEFAULT_SIZE)
    assert left.exists()  # it may be being written
    os.utime(left, (time.time() - 2 * cache.ABANDONED_S,) * 2)
    cache.trim(cache.DEFAULT_SIZE)
    assert not left.exists()


# -- size ----------------------------------------------------------------------------------------------------------------


def test_what_was_not_used_for_longest_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_SIZE", "35K")
    for number, name in enumerate(("aa", "bb", "cc")):
        cache.store(name * 32, bundle(10_000, name * 32))
        os.utime(cache.entry_path(name * 32), (1000 + number, 1000 + number))
    assert keys() == ["aa", "bb", "cc"]
    assert cache.fetch("aa" * 32) is not None  # used: now the youngest
    assert keys() == ["bb", "cc", "aa"]
    cache.store("dd" * 32, bundle(10_000, "dd" * 32))
    assert sorted(keys()) == ["aa", "cc", "dd"]
    assert cache.fetch("bb" * 32) is None
    assert sum(entry.size for entry in cache.entries()) <= 35 * 1024


def test_a_limit_of_zero_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_SIZE", "0")
    cache.store("aa" * 32, bundle(100, "aa" * 32))
    assert not folder.exists()
    assert cache.fetch("aa" * 32) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 1 << 30), ("123", 123), ("2k", 2048), ("1.5M", 3 << 19), ("3 GiB", 3 << 30), ("1TB", 1 << 40)],
)
def test_how_the_limit_is_written(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_SIZE", text)
    assert cache.size_limit() == size


def test_a_limit_that_is_none_is_said_before_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_SIZE", "plenty")
    monkeypatch.syspath_prepend(str(tmp_path))
    import cached_kernels

    with pytest.raises(BundleError, match="TILELANG_CACHE_SIZE is 'plenty', which is no size") as caught:
        cached_kernels.scaled(64, 2.0)
    assert caught.value.remedy == "give bytes, or a number with K, M or G: TILELANG_CACHE_SIZE=500M"


def test_the_command(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.main(["list"]) == 0
    assert capsys.readouterr().out == "the cache is empty\n"
    made = bundle(10_000, "aa" * 32)
    made.record |= {"name": "gemm", "target": "cuda:sm_80", "grid": [4, 2, 1]}
    cache.store("aa" * 32, made)
    cache.entry_path("bb" * 32).parent.mkdir()
    cache.entry_path("bb" * 32).write_bytes(b"nonsense")
    assert command.main([]) == 0
    shown = capsys.readouterr().out
    assert f"folder   {folder}\nkernels  2\n" in shown
    assert "limit 1.0 GiB (TILELANG_CACHE_SIZE)" in shown
    assert command.main(["list"]) == 0
    shown = capsys.readouterr().out
    assert "cuda:sm_80     gemm grid 4x2x1" in shown
    assert "bbbbbbbbbbbb    8 bytes" in shown
    assert "damaged: it is rebuilt when it is asked for" in shown
    assert command.main(["path"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    assert command.main(["clear"]) == 0
    assert capsys.readouterr().out == f"2 kernels removed from {folder}\n"
    assert cache.entries() == []
    monkeypatch.setenv("TILELANG_CACHE_SIZE", "-1")
    assert command.main([]) == 2
    assert "which is no size" in capsys.readouterr().err


# -- versions and threads ----------------------------------------------------------------------------------------------


def test_an_edited_compiler_has_another_version(tmp_path: Path, folder: Path) -> None:
    """Also where size and time of the file stay; files touched or copied keep theirs."""
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    file = package / "room" / "module.py"
    file.write_text("x = 1\n")
    (package / "__init__.py").write_text("")
    first = versions.version_of(package)
    assert versions.version_of(package) == first
    notes = list((folder / "versions").iterdir())
    assert [note.read_text() for note in notes] == [first]
    before = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert versions.version_of(package) != first
    file.write_text("x = 1\n")
    assert versions.version_of(package) == first
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "module.pyc").write_bytes(b"code")
    assert versions.version_of(package) == first
    (package / "room" / "table.json").write_text("{}")
    assert versions.version_of(package) != first
    for note in (folder / "versions").iterdir():
        note.write_text("no digest")
    (package / "room" / "table.json").unlink()
    assert versions.version_of(package) == first


def test_versions_of_packages_are_those_of_their_metadata() -> None:
    from importlib import metadata

    for name in ("apache-tvm", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm", "ziglang", "numpy", "capstone"):
        assert versions.tool_versions()[name] == metadata.version(name)
    assert set(versions.TOOLS) < set(versions.tool_versions())


def test_values_that_come_later() -> None:
    go = threading.Event()
    value = Later(lambda: go.wait(30) and 7)
    assert not value.done
    go.set()
    assert value.result() == 7
    assert value.done
    assert value.result() == 7

    def fail() -> int:
        raise ValueError("no such thing")

    broken = Later(fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            broken.result()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_computes_for_itself() -> None:
    """Its parent's thread does not exist there."""
    go = threading.Event()
    value = Later(lambda: os.getpid() if go.is_set() else (go.wait(60), os.getpid())[1])
    child = os.fork()
    if child == 0:
        go.set()
        os._exit(0 if value.result() == os.getpid() else 1)
    _, status = os.waitpid(child, 0)
    go.set()
    assert os.waitstatus_to_exitcode(status) == 0
    assert value.result() == os.getpid()
