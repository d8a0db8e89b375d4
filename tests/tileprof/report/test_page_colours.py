"""Contrast of the page's colours, light and dark, by the formula of WCAG 2.2."""

from __future__ import annotations

import re
from importlib import resources

import pytest

STYLE = (resources.files("tileprof.report") / "assets" / "report.css").read_text(encoding="utf-8")
COLOURS = dict(re.findall(r"--([\w-]+): light-dark\((#\w+, #\w+)\)", STYLE))
TEXT = (
    "ink",
    "mute",
    "accent",
    "good",
    "plain",
    "warn",
    "bad",
    "measured",
    "simulated",
    "static",
    "derived",
    "datasheet",
)
CODE = ("c-k", "c-s", "c-c", "c-n", "measured")
KINDS = ("workload", "kernel", "loop", "copy", "gemm", "parallel", "fill", "store", "barrier", "unattributed")


def luminance(colour: str) -> float:
    """Relative luminance of #rgb or #rrggbb."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str, scheme: int) -> float:
    bright, dark = sorted((luminance(COLOURS[name].split(", ")[scheme]) for name in (first, second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_the_formula_itself() -> None:
    COLOURS["black"], COLOURS["white"] = "#000, #000000", "#fff, #ffffff"
    assert contrast("black", "white", 0) == pytest.approx(21.0)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [(t, g) for t in TEXT for g in ("page", "card")]
    + [("ink", "sunk"), ("mute", "sunk"), ("warn", "warn-bg"), ("bad", "bad-bg"), ("ink", "bad-bg")]
    + [(c, "card") for c in CODE]
    + [("k-ink", f"k-{kind}") for kind in KINDS],
)
def test_text_is_readable(text: str, ground: str, scheme: int) -> None:
    assert contrast(text, ground, scheme) >= 4.5


def test_every_kind_of_operation_has_a_colour() -> None:
    for kind in KINDS:
        assert f".k-{kind} {{" in STYLE
