"""Names as they fit on a page: shortened in the middle, breakable at their joints."""

from __future__ import annotations

import re

from markupsafe import Markup


def breakable(text: str) -> Markup:
    """An escaped name that may wrap at its underscores and brackets."""
    return Markup("").join(Markup("<wbr>") + part if part in "[_" else part for part in re.split(r"([\[_])", text))


def shorten(text: str, longest: int = 80) -> str:
    """A text cut in the middle, where ids differ least, to at most ``longest`` characters."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head]}…{text[-(longest - head - 1) :]}"
