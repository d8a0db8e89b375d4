"""Names as they fit on a page: shortened in the middle, breakable at their joints."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

LONGEST_WORD = 16
"""Characters that a narrow column holds without breaking."""


def breakable(text: str) -> Markup:
    """An escaped name that may wrap at its brackets, and at underscores where it is long between them."""
    pieces = []
    for piece in re.split(r"(?=\[)", text):
        long = max((len(word) for word in piece.split()), default=0) > LONGEST_WORD
        pieces.append(Markup("<wbr>").join(re.split("(?=_)", piece)) if long else escape(piece))
    return Markup("<wbr>").join(pieces)


def shorten(text: str, longest: int = 80) -> str:
    """A text cut in the middle, where ids differ least, to at most ``longest`` characters."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head]}…{text[-(longest - head - 1) :]}"
