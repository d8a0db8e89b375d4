"""PC samples of an AMD GPU joined with a bundle: which tile operation a wavefront stood at, and why it waited there.

The listing of the bundle has the offset of each instruction in the kernel; a sample has its place in the code object.  Which of the
two ways of counting that place a version of rocprofv3 uses is found out by the instructions themselves: with the right one they
are those of the listing.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tileprof.analyse.join import UNATTRIBUTED, agreement_of, finder, listing_rows, member, sums_of
from tileprof.collect.ncu_file import MeasuredInstruction
from tileprof.collect.pc_samples import Sample, count, place
from tileprof.errors import ProfileFormatError
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance


@dataclass(frozen=True)
class JoinedSamples:
    """Samples by tile operation.  ``key`` is ``offset`` (exact) or ``line``; ``notes`` are for the report."""

    metrics: tuple[Metric, ...]
    key: str
    notes: tuple[str, ...]


def join_samples(samples: Sequence[Sample], bundle: Path, provenance: Provenance) -> JoinedSamples:
    """``stall.samples`` and, where the samples know them, ``stall.<reason>`` of each operation and of the kernel.

    ``bundle`` is a directory or a zip file.  Raises ProfileFormatError where it has no listing.
    """
    try:
        kernel, listing = (json.loads(member(bundle, name)) for name in ("kernel.json", "listing.json"))
        begins = _begins(member(bundle, kernel["binary"]["file"]), kernel["symbol"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ProfileFormatError(f"{bundle} is no bundle with a listing: {error}") from None
    rows, notes = listing_rows(listing, _word), list[str]()
    tries = [_instructions(samples, begin) for begin in begins]
    best = max(tries, key=lambda found: agreement_of(found, rows, _word))
    key, _, find = finder(best, kernel, rows, notes, _word)
    metrics: list[Metric] = []
    totals: dict[str, float] = defaultdict(float)
    for (name, operation, _), value in sums_of(best, find).items():
        totals[name] += value
        if operation is None:
            metrics += _one(make(name, value, provenance, access=UNATTRIBUTED, launch=0, flag=UNATTRIBUTED))
        else:
            metrics += _one(make(name, value, provenance, operation=operation, launch=0))
    for name, value in totals.items():
        metrics += _one(make(name, value, provenance, launch=0))
    return JoinedSamples(tuple(metrics), key, tuple(notes))


def _begins(binary: bytes, symbol: str) -> tuple[int, ...]:
    """Where the kernel's code begins: its address in the code object, its place in the file, and 0."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf: Any = ELFFile(io.BytesIO(binary))
        for section in elf.iter_sections("SHT_SYMTAB"):
            for found in section.get_symbol_by_name(symbol) or ():
                if found["st_info"]["type"] == "STT_FUNC":
                    code = elf.get_section(found["st_shndx"])
                    address = int(found["st_value"])
                    return address, address - int(code["sh_addr"]) + int(code["sh_offset"]), 0
    except ELFError as error:
        raise ValueError(f"its binary cannot be read: {error}") from None
    raise ValueError(f"its binary has no kernel {symbol}")


def _word(text: str) -> str:
    """The mnemonic of AMD's assembly: its first word."""
    return text.split(maxsplit=1)[0] if text.strip() else ""


def _instructions(samples: Iterable[Sample], begin: int) -> list[MeasuredInstruction]:
    """Samples counted by instruction, whose offsets are from ``begin``; one without a place has offset -1."""
    counts: dict[tuple[int, str, str], dict[str, float]] = defaultdict(dict)
    for sample in samples:
        offset = -1 if sample.offset is None else sample.offset - begin
        count(counts[offset, sample.instruction, sample.comment], sample)
    return [
        MeasuredInstruction(offset, text, *place(comment, as_is=True), None, values)
        for (offset, text, comment), values in counts.items()
    ]


def _one(metric: Metric | None) -> Iterator[Metric]:
    if metric is not None:
        yield metric
