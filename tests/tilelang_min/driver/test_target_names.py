"""Which target a user means, on machines with and without a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tilelang_min as tilelang
from tilelang_min.driver import target_names
from tilelang_min.errors import TargetError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Notices are given once a process: each test starts anew."""
    target_names._say_once.cache_clear()
    yield
    target_names._say_once.cache_clear()


def on(monkeypatch: pytest.MonkeyPatch, gpu: str | None) -> None:
    monkeypatch.setattr(target_names, "gpu_architecture", lambda: gpu)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    on(monkeypatch, None)
    assert tilelang.get_backend() == "cpu"
    assert tilelang.get_target_arch().startswith("x86-64-v")
    assert target_names.choose_target(None).kind == "cpu"
    assert target_names.choose_target("auto").kind == "cpu"
    assert capsys.readouterr().err == ""
    assert target_names.choose_target("cuda").name == "cuda:sm_80"
    assert target_names.choose_target("cuda").name == "cuda:sm_80"
    assert capsys.readouterr().err == "tilelang: no NVIDIA GPU here: target 'cuda' means cuda:sm_80\n"
    assert target_names.choose_target("hip").name == "hip:gfx942"
    assert target_names.choose_target("rocm:gfx90a").name == "hip:gfx90a"


def test_with_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    on(monkeypatch, "cuda:sm_90a")
    assert tilelang.get_backend() == "cuda"
    assert tilelang.get_target_arch() == "sm_90a"
    for name in (None, "auto", "cuda"):
        assert target_names.choose_target(name).name == "cuda:sm_90a"
    assert target_names.choose_target("cuda:sm_80").name == "cuda:sm_80"
    assert target_names.choose_target("cpu").kind == "cpu"
    assert capsys.readouterr().err == ""


def test_a_target_is_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    target = tilelang.targets.resolve("hip:gfx950")
    assert target_names.choose_target(target) is target


@pytest.mark.parametrize(
    ("name", "near"), [("cuda:sm_81", "sm_80"), ("hip:gfx94", "gfx942"), ("cud", "cuda"), ("gpu", "")]
)
def test_misspelt_targets(name: str, near: str) -> None:
    with pytest.raises(TargetError) as caught:
        target_names.choose_target(name)
    assert name.split(":")[-1] in str(caught.value)
    assert near in str(caught.value)
