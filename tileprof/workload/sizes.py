"""What can be wrong with the names and sizes of runtime dimensions before a kernel is compiled.

Problems are (path below the kernel, message, whether the place is a key); the empty path is what the kernel is made from.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import tilelang_min as tilelang
from tileprof.workload.functions import Signature
from tileprof.workload.problems import nearest, unknown

Found = tuple[tuple[str | int, ...], str, bool]


def check_dimensions(
    function: str, signature: Signature, entries: Sequence[Sequence[str]], given: Collection[str]
) -> Iterator[Found]:
    """Problems of a factory's ``sizes``, whose ``entries`` are the names in each.

    A size may be that of a runtime dimension in the source, or of a parameter of the factory, for which it is then called with
    ``T.dynamic``.  ``given`` are the constants of the workload.
    """
    known = signature.dimensions
    if known is None:
        return
    parameters = () if signature.is_kernel else signature.names
    options = [*known.names, *(name for name in parameters if name not in given)]
    for index, names in enumerate(entries):
        for name in names:
            if signature.is_kernel and name in signature.names:
                message = f"'{name}' of {function} is known when it is compiled: give it in args, shapes or tiles"
                yield ("sizes", index, name), message, True
            elif name not in options and name not in given:  # else it stands twice, which is said elsewhere
                near = options if nearest(name, options) or not known.names else known.names
                yield ("sizes", index, name), unknown(f"runtime dimension of {function}", name, near), True
        missing = [name for name in known.required if name not in names]
        if missing:
            yield _missing(function, missing, index, written=any(entries))


def _missing(what: str, missing: Sequence[str], index: int, *, written: bool) -> Found:
    words = ", ".join(missing)
    if written:
        return ("sizes", index), f"no size for {words}, known at launch alone in {what}", False
    example = ", ".join(f"{name}: [1, 128]" for name in missing)
    return (), f"{words} of {what} is known at launch alone: say how large, sizes: [{{{example}}}]", False


def check_bundle_sizes(bundle: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    """Problems of the sizes of a bundle, which knows its runtime dimensions; none where it cannot be read."""
    try:
        kernel = tilelang.load(bundle)
    except (tilelang.errors.TileLangError, OSError):
        return  # said when the case is run
    for index, entry in enumerate(entries):
        for name in entry:
            if name not in kernel.sizes:
                yield ("sizes", index, name), unknown(f"runtime dimension of {kernel.name}", name, kernel.sizes), True
        missing = [name for name in kernel.sizes if name not in entry]
        if missing:
            yield _missing(kernel.name, missing, index, written=any(entries))
            continue
        values = [value if isinstance(value, list) else [value] for value in entry.values()]
        for combination in itertools.product(*values):
            sizes = {name: size for name, size in zip(entry, combination) if name in kernel.sizes}
            try:
                kernel.parameters_for(sizes)
            except tilelang.errors.LaunchError as error:
                yield ("sizes", index), str(error), False
                break
