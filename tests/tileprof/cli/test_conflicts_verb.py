"""``tileprof conflicts``: figures, the picture of banks with and without colour, and every way to get it wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from tileprof.analyse.banks import bank_phases
from tileprof.cli.bank_picture import print_picture
from tileprof.cli.main import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["conflicts", *arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err + captured.out
        return status, captured.out, captured.err

    return run


def test_rows_of_nine_words_on_amd(call: Call) -> None:
    """Eight rows of 36 bytes, 8 words of each: lanes 29 to 31 come around to the banks of lanes 0 to 2."""
    status, out, _ = call(
        "i*36 + j*4", "--lanes", "i=lane//8, j=lane%8", "--width", "32", "--access", "load", "--target", "hip:gfx942"
    )
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "load of 32 bits a lane by one wavefront on hip:gfx942"
    assert [line.split() for line in lines[1:6]] == [
        ["LDS", "cycles", "4"], ["ideal", "2"], ["conflicts", "2"], ["ways", "2"], ["rule", "known"],
    ]  # fmt: skip
    assert lines[6].startswith("source      AMD ROCm documentation")
    picture = lines[8:13]
    assert picture[0].split() == ["bank", *map(str, range(32))]
    assert picture[1].split()[:11] == ["lanes", "0-31", "0!", "1!", "2!", "3", "4", "5", "6", "7", "·"]
    assert picture[2].split()[:6] == ["pass", "2", "29!", "30!", "31!", "·"]
    assert picture[3].split()[:2] == ["lanes", "32-63"]
    assert "! its bank has several words to serve" in lines[13]
    assert "\x1b" not in out


def test_a_swizzled_tile_by_ldmatrix(call: Call) -> None:
    plain = call("r*128 + c*16", "--lanes", "r=lane%8, c=lane//8", "--access", "ldmatrix")[1]
    status, out, _ = call("r*128 + (c ^ r)*16", "--lanes", "r=lane%8, c=lane//8", "--access", "ldmatrix")
    assert status == 0
    assert [line.split()[1] for line in plain.splitlines()[1:5]] == ["32", "4", "28", "8"]
    assert [line.split()[1] for line in out.splitlines()[1:5]] == ["4", "4", "0", "1"]
    assert "pass 8" in plain
    assert "!" not in out


def test_lanes_left_out_units_and_a_broadcast(call: Call) -> None:
    """Eight lanes of 16 read two floats: one pass, each word for four lanes."""
    arguments = ["r // 4", "--lanes", "r = min(lane, 100)", "--unit", "4", "--active", "lane < 8", "--width", "32"]
    _, out, _ = call(*arguments, "--target", "cuda:sm_80")
    assert ["lanes", "0-31", "0+", "4+", "·"] in [line.split()[:5] for line in out.splitlines()]
    status, out, _ = call(*arguments, "--target", "cuda:sm_80", "--json")
    record = json.loads(out)
    assert status == 0
    assert record["target"] == "cuda:sm_80"
    assert (record["transactions"], record["transactions_ideal"], record["conflicts"], record["rule"]) == (
        1,
        1,
        0,
        "known",
    )
    assert record["addresses"] == [0] * 4 + [4] * 4 + [None] * 24
    (phase,) = record["phases"]
    assert phase["passes"] == 1
    assert phase["banks"][:3] == [[{"word": 0, "lanes": [0, 1, 2, 3]}], [{"word": 1, "lanes": [4, 5, 6, 7]}], []]


def test_an_open_rule_is_called_one(call: Call) -> None:
    """Vectors that are only aligned to words: the compiler would split them."""
    _, out, _ = call("i*36 + j*4", "--lanes", "i=lane//8, j=lane%8", "--target", "hip:gfx942")
    assert "rule        open: a best guess, the hardware's rule is not settled" in out
    assert json.loads(call("lane*16", "--access", "cp_async_bypass", "--source", "lane*16", "--json")[1])["access"] == (
        "cp_async_bypass"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lane*4", "--target", "hip:gfx43"], 'unknown target "hip:gfx43"\n  help: did you mean "hip:gfx942"?'),
        (["lane*4", "--target", "cpu"], "has no banks"),
        (["lane*4", "--access", "lod"], 'unknown access "lod"\n  help: did you mean "load"?'),
        (["lane*4", "--width", "48"], "no counting rule is known for load of 48 bits on sm_90a"),
        (["lane*4", "--width", "wide"], "'wide' is not a valid integer"),
        (["lane*4"], "misaligned LDS.128 at byte 4 (request 0, lane 1)\n  help: its address must be a multiple of 16 bytes"),
        (["lane*4 +", "--width", "32"], "EXPRESSION: not an expression: invalid syntax\n  lane*4 +\n          ^"),
        (["lane*4 + lain", "--width", "32"], "unknown name 'lain'; did you mean 'lane'?\n  lane*4 + lain\n           ^"),
        (["lane / 4"], "only + - * // % ^ & | << and >> are known here\n  lane / 4\n  ^"),
        (["lane ** 4"], "only + - * // %"),
        (["lane * 1.5"], "'1.5' cannot be used here\n  lane * 1.5\n         ^"),
        (["lane.real"], "only plain names can be used here"),
        (["open('x')"], "unknown function 'open'"),
        (["  lane // (lane - lane)"], "division by zero\n    lane // (lane - lane)\n    ^"),
        (["1 << lane * 9 + 60"], "a number grows too large"),
        (["lane - 3", "--width", "32"], "lane 0 is at byte -3\n  help: offsets count from the start of shared memory"),
        (["1 << 62", "--width", "32"], "lane 0 is at byte 4611686018427387904"),
        (["[lane]"], "is [0], and should be a whole number"),
        (["i*4", "--lanes", "i=lane//, j=1"], "--lanes: not an expression: invalid syntax\n  i=lane//, j=1\n"),
        (["i*4", "--lanes", "i=1, lane%8"], "--lanes: expected NAME=EXPRESSION\n  i=1, lane%8\n       ^"),
        (["i*4", "--lanes", "i=1, if=2"], "expected NAME=EXPRESSION"),
        (["i*4", "--lanes", "i=1, i=2"], "'i' has a meaning already\n  i=1, i=2\n       ^"),
        (["i*4", "--lanes", "i=j, j=1"], "unknown name 'j'"),
        (["i*4", "--lanes", "i=min(lane, 1) % (lane-lane)"], "--lanes, i for lane 0: division by zero"),
        (["lane*4", "--active", "lane <"], "--active: not an expression"),
        (["lane*16", "--unit", "0"], "--unit 0 is no size"),
        (["lane*16", "--matrices", "2"], "matrices=2 with load"),
        (["lane*16", "--access", "ldmatrix", "--matrices", "3"], "ldmatrix of 3 matrices"),
        (["lane*16", "--source", "lane*16"], "cp_async_bypass"),
        ([], "Missing argument 'EXPRESSION'"),
    ],
)  # fmt: skip
def test_wrong_usage_has_status_2(call: Call, arguments: list[str], message: str) -> None:
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert message in err


def picture(width: int, *, color: bool, addresses: list[int]) -> str:
    stream = StringIO()
    console = Console(
        file=stream, width=width, force_terminal=color, color_system="standard" if color else None, highlight=False
    )
    print_picture(console, bank_phases("cuda:sm_80", "load", 32, addresses, [True] * 32))
    return stream.getvalue()


def test_a_narrow_terminal_gets_the_banks_in_parts() -> None:
    text = picture(80, color=False, addresses=[lane * 4 for lane in range(32)])
    heads = [line.split()[1:] for line in text.splitlines() if line.strip().startswith("bank")]
    assert heads == [[str(bank) for bank in range(first, first + 16)] for first in (0, 16)]
    assert all(len(line) <= 80 for line in text.splitlines()[:5])


def test_colour_says_nothing_that_the_marks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    addresses = [lane * 128 for lane in range(32)]
    plain, coloured = picture(160, color=False, addresses=addresses), picture(160, color=True, addresses=addresses)
    assert "\x1b[1;31m" in coloured
    assert "\x1b" not in plain
    for code in ("\x1b[1;31m", "\x1b[0m", "\x1b[1m", "\x1b[2m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain
    assert "and 24 more passes" in plain
    assert any(line.split()[:3] == ["lanes", "0-31", "0!"] for line in plain.splitlines())
