"""A report's page as its script makes it: what stands packed in the data is put where its holders are."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

DATA = re.compile(r'(<script type="text/plain" id="data">)([A-Za-z0-9+/=]+)(</script>)')
HOLDER = re.compile(r'<div class="packed" data-part="(\d+)"><p class="empty">[^<]*</p></div>')


def data_of(text: str) -> dict[str, Any]:
    """The page's data; fails where anything but base64 stands in their place."""
    (found,) = DATA.finditer(text)
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[2], validate=True)))
    return data


def unpacked(text: str) -> str:
    """The page with all its parts; fails where a part has no holder or two."""
    parts = data_of(text)["parts"]
    held = []
    while holder := HOLDER.search(text):
        held.append(int(holder[1]))
        text = text[: holder.start()] + parts[held[-1]] + text[holder.end() :]
    assert sorted(held) == list(range(len(parts)))
    return text
