"""Kernels by content hash: from the disk cache, from a thread that is still finishing one, or built, once for all threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tilelang_min.runtime import cache as disk_cache
from tilelang_min.runtime.bundle import Bundle

Build = Callable[[Callable[[Bundle], None]], Bundle]
"""Builds a bundle, and calls its argument with the whole of it (see :func:`tilelang_min.driver.build.build`)."""


class _Shared:
    """What the threads of this process know of each other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.building: dict[str, tuple[threading.Lock, int]] = {}  # lock, and how many hold it or wait for it
        self.unfinished: dict[str, Bundle] = {}


_shared = _Shared()


def _forget() -> None:
    """In a forked child: its parent's threads do not exist there, and would hold their locks for ever."""
    global _shared
    _shared = _Shared()


os.register_at_fork(after_in_child=_forget)


def cached(key: str, build: Build) -> Bundle:
    """The bundle with content hash ``key``.  Threads that ask for the same one at once get it from one build.

    Processes do not wait for each other: two that miss at the same time both build, and the later one's entry stays.
    """
    found = _find(key)
    if found is not None:
        return found
    with _one_at_a_time(key):
        return _find(key) or _built(key, build)


def _find(key: str) -> Bundle | None:
    unfinished = _shared.unfinished.get(key)
    if unfinished is not None and unfinished.rest is not None and not unfinished.rest.done:
        return unfinished
    return disk_cache.fetch(key)


def _built(key: str, build: Build) -> Bundle:
    def finished(whole: Bundle) -> None:
        disk_cache.store(key, whole)
        _shared.unfinished.pop(key, None)

    bundle = build(finished)
    if bundle.rest is not None:
        _shared.unfinished[key] = bundle
        if bundle.rest.done:  # finished before it was noted here
            _shared.unfinished.pop(key, None)
    return bundle


@contextmanager
def _one_at_a_time(key: str) -> Iterator[None]:
    """Threads of this process pass one after another for each key."""
    shared = _shared
    with shared.lock:
        own, users = shared.building.get(key, (threading.Lock(), 0))
        shared.building[key] = own, users + 1
    try:
        with own:
            yield
    finally:
        with shared.lock:
            own, users = shared.building[key]
            if users == 1:
                del shared.building[key]
            else:
                shared.building[key] = own, users - 1
