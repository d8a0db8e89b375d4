"""Bundles: saved and loaded as a directory and as one file, without a compiler; what is damaged, missing or too new is said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import BundleError
from tilelang_min.runtime.bundle import FORMAT, Bundle, load_bundle


@T.prim_func
def doubled(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
    with T.Kernel(2, threads=64) as bx:
        S = T.alloc_shared((64,), "float32")
        T.copy(A[bx * 64], S)
        for i in T.Parallel(64):
            B[bx * 64 + i] = S[i] * 2.0


@pytest.fixture(scope="module")
def kernel() -> Any:
    return tilelang.compile(doubled, "cpu", cache=False)


@pytest.fixture(params=["directory", "file.tlk"])
def saved(request: pytest.FixtureRequest, kernel: Any, tmp_path: Path) -> Path:
    """The kernel in each of the two forms."""
    path: Path = kernel.save(tmp_path / "deep" / request.param)
    assert path == tmp_path / "deep" / request.param
    return path


def test_everything_comes_back(saved: Path, kernel: Any) -> None:
    loaded = tilelang.load(saved)
    assert loaded.bundle_record() == kernel.bundle_record()
    assert loaded.metadata == kernel.metadata
    assert loaded.operations == kernel.operations
    assert loaded.parameters == kernel.parameters
    assert loaded.source() == kernel.source()
    assert loaded.assembly() == kernel.assembly()
    assert loaded.listing.instructions == kernel.listing.instructions
    assert loaded.target == kernel.target
    assert loaded.bundle.shared == kernel.bundle.shared
    a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    loaded(a, b)
    assert np.array_equal(b, 2 * a)
    assert np.array_equal(loaded.simulate(a, b).outputs["B"], 2 * a)


def test_files_of_a_directory(kernel: Any, tmp_path: Path) -> None:
    path = kernel.save(tmp_path / "bundle")
    assert sorted(item.name for item in path.iterdir()) == [
        "binary.so",
        "kernel.json",
        "listing.json",
        "listing.s",
        "source.ll",
        "thread_program.json",
    ]
    record = json.loads((path / "kernel.json").read_text())
    assert record["format"] == FORMAT
    assert record["launch"] == {"shared_bytes_dynamic": 0, "cluster": [1, 1, 1], "tensor_maps": []}
    assert record["sources"] == {__file__: Path(__file__).read_text()}
    assert record["parameters"][1] == {"name": "B", "dtype": "float32", "shape": [100], "access": "out"}
    assert set(record["digests"]) == {item.name for item in path.iterdir()} - {"kernel.json"}
    assert oct(path.stat().st_mode & 0o777) == "0o755"


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_bundles_of_gpu_kernels(target: str, tmp_path: Path) -> None:
    made = tilelang.compile(doubled, target, cache=False)
    loaded = tilelang.load(made.save(tmp_path / "gpu.tlk"))
    assert loaded.metadata == made.metadata
    assert loaded.bundle.binary == made.bundle.binary
    a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    assert np.array_equal(loaded.simulate(a, b).outputs["B"], 2 * a)
    made.analyse()
    again = tilelang.load(made.save(tmp_path / "analysed"))
    assert again.analyse().counts == made.analyse().counts


def test_launching_needs_no_compiler(saved: Path) -> None:
    """In a process of its own: neither TVM nor torch nor pandas is imported."""
    program = f"""
import sys
import numpy as np
import tilelang_min as tilelang
kernel = tilelang.load({str(saved)!r})
a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
kernel(a, b)
assert np.array_equal(b, 2 * a)
kernel.metadata, kernel.operations, kernel.source(), kernel.listing
assert "tvm" not in sys.modules
print(sorted(name for name in ("tvm", "tvm_ffi", "torch", "pandas") if name in sys.modules))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(tilelang.__file__).parent.parent)}
    ran = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[]"


def test_saving_again_replaces(saved: Path, kernel: Any) -> None:
    kernel.save(saved)
    assert tilelang.load(saved).metadata == kernel.metadata
    assert [item.name for item in saved.parent.iterdir()] == [saved.name]  # nothing temporary is left


def test_what_cannot_be_saved_leaves_nothing(kernel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full half-way."""

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        kernel.save(tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def rewrite(path: Path, change: Any) -> None:
    """Change the record of a bundle in either form."""
    if path.is_dir():
        place = path / "kernel.json"
        place.write_text(json.dumps(change(json.loads(place.read_text()))))
        return
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["kernel.json"] = json.dumps(change(json.loads(files["kernel.json"]))).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def without(key: str) -> Any:
    return lambda record: {name: value for name, value in record.items() if name != key}


def test_bundles_of_a_later_version(saved: Path) -> None:
    rewrite(saved, lambda record: {**record, "format": FORMAT + 1})
    with pytest.raises(BundleError) as caught:
        tilelang.load(saved)
    assert caught.value.message == f"this bundle has format {FORMAT + 1}, this version reads up to {FORMAT}"
    assert caught.value.remedy == "upgrade tileprof"


def test_records_that_lack_something(saved: Path) -> None:
    rewrite(saved, without("grid"))
    with pytest.raises(BundleError, match=r"kernel\.json of this bundle lacks grid") as caught:
        tilelang.load(saved)
    assert caught.value.remedy == "compile the kernel again"


@pytest.mark.parametrize("record", [[1, 2], "text", None])
def test_records_that_are_no_objects(saved: Path, record: Any) -> None:
    rewrite(saved, lambda _: record)
    with pytest.raises(BundleError, match="is not a bundle or is damaged"):
        tilelang.load(saved)


@pytest.mark.parametrize("name", ["", "."])
def test_a_bundle_needs_a_name(kernel: Any, name: str) -> None:
    with pytest.raises(BundleError, match="names no bundle") as caught:
        kernel.save(name)
    assert "kernel.save(" in (caught.value.remedy or "")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no bundle at") as caught:
        tilelang.load(tmp_path / "nothing")
    assert caught.value.remedy == "give a directory or a .tlk file that kernel.save() wrote"
    with pytest.raises(BundleError, match="there is no bundle at"):
        tilelang.load(tmp_path)  # a directory without a record
    (tmp_path / "text.tlk").write_text("no zip file")
    with pytest.raises(BundleError, match="is not a bundle or is damaged"):
        tilelang.load(tmp_path / "text.tlk")
    with zipfile.ZipFile(tmp_path / "other.tlk", "w") as archive:
        archive.writestr("something", "else")
    with pytest.raises(BundleError, match="is not a bundle or is damaged"):
        tilelang.load(tmp_path / "other.tlk")


def test_damaged_files(kernel: Any, tmp_path: Path) -> None:
    folder = kernel.save(tmp_path / "bundle")
    binary = folder / "binary.so"
    binary.write_bytes(binary.read_bytes()[:-1])
    loaded = tilelang.load(folder)
    assert loaded.source() == kernel.source()  # the others are good
    with pytest.raises(BundleError, match=r"binary\.so is damaged: it is not what was saved"):
        loaded(np.zeros(100, np.float32), np.zeros(100, np.float32))
    binary.unlink()
    with pytest.raises(BundleError, match=r"cannot read .*binary\.so: No such file"):
        tilelang.load(folder).bundle.binary
    cut = tmp_path / "cut.tlk"
    cut.write_bytes(kernel.save(tmp_path / "again.tlk").read_bytes()[:1000])
    with pytest.raises(BundleError, match="is not a bundle or is damaged"):
        tilelang.load(cut)


def test_a_byte_changed_anywhere(kernel: Any, tmp_path: Path) -> None:
    """The kernel comes back as it was (the byte did not matter), or the bundle is refused; nothing else happens."""
    whole = kernel.save(tmp_path / "whole.tlk")
    good = whole.read_bytes()
    refused: list[str] = []
    for place in [*range(0, len(good), len(good) // 150), *range(len(good) - 120, len(good))]:
        data = bytearray(good)
        data[place] ^= 0x5A
        whole.write_bytes(data)
        try:
            loaded = tilelang.load(whole)
        except BundleError as error:
            refused.append(error.message)
        else:
            assert loaded.bundle.binary == kernel.bundle.binary
            assert loaded.metadata == kernel.metadata
    assert len(refused) > 150
    assert all(any(word in text for word in ("damaged", "lacks", "has format")) for text in refused)


def test_thread_programs_of_another_tvm(saved: Path, tmp_path: Path) -> None:
    """Simulating says so; launching does not mind."""
    loaded = load_bundle(saved)
    text = loaded.file("thread_program.json").decode()
    loaded.files["thread_program.json"] = text.replace('"tvm":"', '"tvm":"9.', 1).encode()
    foreign = tilelang.Kernel(Bundle(loaded.record, {name: loaded.file(name) for name in loaded.record["digests"]}))
    a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    foreign(a, b)
    assert np.array_equal(b, 2 * a)
    with pytest.raises(BundleError, match=r"the thread program was written by TVM 9\.") as caught:
        foreign.simulate(a, b)
    assert "launching needs no TVM" in (caught.value.remedy or "")


def test_a_copied_bundle_is_the_same(kernel: Any, tmp_path: Path) -> None:
    """Nothing in it depends on where it lies."""
    folder = kernel.save(tmp_path / "one")
    shutil.copytree(folder, tmp_path / "two")
    b = np.zeros(100, np.float32)
    tilelang.load(tmp_path / "two")(np.ones(100, np.float32), b)
    assert np.array_equal(b, np.full(100, 2, np.float32))
