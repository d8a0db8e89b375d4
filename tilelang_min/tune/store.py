"""Results of searches on disk, beside the cache of kernels: a JSON file a key, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilelang_min.runtime.cache import cache_directory, size_limit
from tilelang_min.tune.records import Tuned

FORMAT = 1
FOLDER = "tuned"
"""Folder of the results in that of the cache."""


def key_of(kernels: Sequence[str], device: str | None, settings: Any) -> str:
    """The key of a search: the content hashes of all its kernels (source, arguments, values used, target, options, versions), the
    device, and how it measures and checks."""
    content = json.dumps([FORMAT, list(kernels), device, settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def fetch(key: str) -> Tuned | None:
    """What was found before; None without it, or where the file is damaged."""
    if size_limit() == 0:
        return None
    try:
        record = json.loads(_path(key).read_text(encoding="utf-8"))
        found = Tuned.from_json(record)
        if found.best.config != found.config or not isinstance(found.latency, (float, int, type(None))):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    found.stored = True
    return found


def store(key: str, tuned: Tuned) -> None:
    """Keep a result.  What cannot be written, or holds values that JSON does not have, is found again next time."""
    if size_limit() == 0:
        return
    try:
        text = json.dumps(tuned.to_json())
        if Tuned.from_json(json.loads(text)).config != tuned.config:  # tuples, say, come back as lists
            return
    except (TypeError, ValueError):
        return
    path = _path(key)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tlk-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)


def _path(key: str) -> Path:
    return cache_directory() / FOLDER / f"{key}.json"
