"""Deflated text in a page: what a reader looks at second takes a seventh of its room and is unpacked by the page's script.

The figures that answer the first questions stand in the page as they are, for readers without JavaScript.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from markupsafe import Markup, escape

LEAST = 1500
"""Characters from which a part of the page is worth packing; a note takes its place for readers without JavaScript."""


def pack(value: Any) -> str:
    """A value as base64 of deflated JSON.  Raises ValueError for numbers that JSON does not have."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


class Parts:
    """Parts of a page that stand packed in its data, with holders where the script puts them back."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def hold(self, what: str, caller: Callable[[], str]) -> Markup:
        """For ``{% call packed("what it is") %}`` in a template: the holder of a part, or the part where it is short."""
        text = caller()
        if len(text) < LEAST:
            return Markup(text)
        self.texts.append(text)
        return Markup(
            f'<div class="packed" data-part="{len(self.texts) - 1}"><p class="empty">{escape(what)}: packed in this file; shown by '
            "JavaScript in browsers since 2023.</p></div>"
        )
