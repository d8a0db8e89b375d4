"""Options and marks that all tests share."""

from __future__ import annotations

import lzma
import os
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Examples are the same in every run, so that a change is judged by what it changes; TILELANG_TEST_RANDOM=1 looks for new ones.
# How quick a shared machine is says nothing about a test.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("random" if os.environ.get("TILELANG_TEST_RANDOM") == "1" else "repeatable")

sys.path.insert(0, str(Path(__file__).parent / "stand_ins"))

GOLDEN = Path(__file__).parent / "golden"
DATA = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the files in tests/golden with what comes out now"
    )


def find_browser() -> str | None:
    """Path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def have_gpu() -> bool:
    """Whether an NVIDIA driver with a device is here; asks the file system only, so that collecting stays cheap."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def have_amd_gpu() -> bool:
    """Whether an AMD GPU that the compiler has a target for is here and open to this process."""
    from tilelang_min import targets

    known = targets.names()
    return targets.kfd.trouble() is None and any(f"hip:{gpu.arch}" in known for gpu in targets.amd_gpus())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_amd = None if have_amd_gpu() else pytest.mark.skip(reason="no AMD GPU here")
    no_gpu = None if have_gpu() else pytest.mark.skip(reason="no NVIDIA GPU here")
    no_browser = None
    if find_browser() is None and os.environ.get("TILEPROF_REQUIRE_BROWSER") != "1":
        no_browser = pytest.mark.skip(reason="no Chromium here (apt-get install chromium)")
    for item in items:
        if no_gpu and item.get_closest_marker("gpu"):
            item.add_marker(no_gpu)
        if no_amd and item.get_closest_marker("amd_gpu"):
            item.add_marker(no_amd)
        if no_browser and item.get_closest_marker("browser"):
            item.add_marker(no_browser)


@pytest.fixture
def browser() -> str:
    """Path of a Chromium; fails where TILEPROF_REQUIRE_BROWSER=1 and there is none."""
    path = find_browser()
    if path is None:
        pytest.fail("TILEPROF_REQUIRE_BROWSER=1, but no Chromium on PATH")
    return path


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function (file name under tests/golden, text): compares, or rewrites the file under --update-golden."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"{path} is missing: run pytest --update-golden, and read what it writes"
        assert text == path.read_text(), f"differs from {path}; if that is meant, run pytest --update-golden"

    return check


@pytest.fixture(scope="session")
def ncu_sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function: name of a report in tests/data/ncu, without its endings -> path of the unpacked file."""
    folder = tmp_path_factory.mktemp("ncu")

    def unpack(name: str) -> Path:
        path = folder / f"{name}.ncu-rep"
        if not path.exists():
            path.write_bytes(lzma.decompress((DATA / "ncu" / f"{name}.ncu-rep.xz").read_bytes()))
        return path

    return unpack


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the real profiles of tests/data/profiles unpacked: ``amd``, ``nvidia`` and ``proton``."""
    folder = tmp_path_factory.mktemp("profiles")
    for name in ("amd", "nvidia"):
        with tarfile.open(DATA / "profiles" / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
    shutil.copytree(DATA / "profiles" / "proton", folder / "proton")
    return folder


@pytest.fixture(scope="session")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like ROCm, with stand-ins of its libraries: see tests/stand_ins/amdhip64.c."""
    from build import make_rocm

    return make_rocm(tmp_path_factory.mktemp("rocm"))
