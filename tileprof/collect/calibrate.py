"""Measures the ceilings of a machine's GPU with the kernels of ``calibration_kernels``, and keeps them for later runs.

A ceiling is the best of several launches: what the machine reached once it can reach again.  They are kept in one file of the user
(``TILEPROF_DATA_DIR``, else ``~/.local/share/tileprof``), by product name and architecture, and take the place of datasheet
figures in every roofline of that machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tilelang_min as tilelang
from tileprof import __version__
from tileprof.collect import calibration_kernels as kernels
from tileprof.collect.ceilings import measure_cpu
from tileprof.errors import ProfileFormatError
from tileprof.store.records import Ceiling, Provenance

FILE = "ceilings.json"
FORMAT = 1

_COPY_BYTES = 1 << 30
_L2_SHARE = 4  # the array read from L2 is this part of it
_LAUNCHES = 10
_BLOCKS_PER_UNIT = 4
_VECTOR_TYPES = ("float32", "float64", "float16")
_MATRIX_TYPES = {
    "float16": "float32",
    "bfloat16": "float32",
    "float8_e4m3": "float32",
    "int8": "int32",
    "float64": "float64",
    "float32": "float32",
}
_BYTES = {"float8_e4m3": 1, "int8": 1, "float32": 4, "float64": 8}
_TILES = ((128, 256, 4, 256), (128, 128, 4, 256), (128, 128, 3, 256), (128, 64, 2, 256), (64, 64, 2, 128))
"""Rows, columns, stages and threads of a whole product, the first that fits into shared memory."""
_STAGING_BYTES = 4096
_MOST_SUMS = 128  # registers of a thread for sums
_PRODUCT_ROWS, _PRODUCT_DEPTH = 4096, 16384  # the depth in bytes of an operand's row
_WITHOUT_MATRIX_UNITS = {"outer", "plain"}
_CLASS_OF = {"float8_e4m3": "float8"}


@dataclass(frozen=True, slots=True)
class Probe:
    """One measurement: ``quantity`` and ``unit_class`` of its ceiling, the kernel with its values, the ``work`` of a launch."""

    quantity: str
    unit_class: str
    kernel: str
    values: dict[str, Any]
    work: float
    detail: str

    @property
    def name(self) -> str:
        """A short name."""
        return self.unit_class or self.quantity.partition(".")[0]

    def compile(self, target: str) -> tilelang.Kernel:
        """The kernel for a target.  Raises TileLangError."""
        made: tilelang.Kernel = getattr(kernels, self.kernel).for_target(target)(**self.values)
        return made


def probes(target: str, units: int, l2_bytes: int) -> Iterator[Probe]:
    """What is measured on a GPU with ``units`` multiprocessors and an L2 cache of ``l2_bytes``."""
    resolved = tilelang.targets.resolve(target)
    blocks = units * _BLOCKS_PER_UNIT
    moved = f"copy of {_COPY_BYTES >> 20} MiB, bytes read and written"
    yield Probe("dram.bytes_per_s", "", "copy", {"N": _COPY_BYTES // 4}, 2.0 * _COPY_BYTES, moved)
    chunk, rounds = 8192, 64
    chunks = max(8, l2_bytes // _L2_SHARE // (4 * chunk))
    values: dict[str, Any] = {"chunks": chunks, "blocks": blocks, "rounds": rounds, "chunk": chunk}
    read = f"reads of {chunks * chunk * 4 >> 20} MiB that stay in L2, {blocks} blocks"
    yield Probe("l2.bytes_per_s", "", "read_around", values, 4.0 * chunk * rounds * blocks, read)
    width, rounds = 1024, 4096
    values = {"blocks": blocks, "rounds": rounds, "width": width}
    read = f"reads of 16 bytes a thread without conflicts, {blocks} blocks"
    yield Probe("shared.bytes_per_s", "", "shared_reads", values, 4.0 * width * rounds * blocks, read)
    width, rounds, unroll = 4096, 512, 16
    for dtype in _VECTOR_TYPES:
        values = {"blocks": blocks, "rounds": rounds, "width": width, "unroll": unroll, "dtype": dtype}
        work = 2.0 * width * rounds * unroll * blocks
        added = f"independent multiply-adds in registers, {blocks} blocks"
        yield Probe("flops_per_s", f"vector.{dtype}", "multiply_adds", values, work, added)
        if dtype == "float16":
            added = f"independent multiply-adds of pairs in registers, {blocks} blocks"
            yield Probe("flops_per_s", f"vector.{dtype}", "paired_multiply_adds", values, work, added)
    known = {instruction.a_dtype for instruction in resolved.instruction_set}
    for dtype, accumulator in _MATRIX_TYPES.items():
        if dtype in known:
            yield from _matrix_probes(resolved, f"matrix.{_CLASS_OF.get(dtype, dtype)}", dtype, accumulator, blocks)


def _matrix_probes(resolved: Any, unit_class: str, dtype: str, accumulator: str, blocks: int) -> Iterator[Probe]:
    """Two kernels for one ceiling, of which the faster counts: the same tiles again and again, and a whole product."""
    types = {"dtype": dtype, "accumulator": accumulator}
    m, n, k, rounds = (64, 64, 32, 512) if dtype == "float64" else (128, 128, 64, 1024)
    values = {"blocks": blocks, "rounds": rounds, "block_M": m, "block_N": n, "block_K": k, **types}
    work = 2.0 * m * n * k * rounds * blocks
    multiplied = f"products of {m}x{n}x{k} tiles in shared memory, {blocks} blocks"
    yield Probe("flops_per_s", unit_class, "matrix_products", values, work, multiplied)
    itemsize = _BYTES.get(dtype, 2)
    k = 128 // itemsize
    fitting = [
        (m, n, stages, threads)
        for m, n, stages, threads in _TILES
        if (m + n) * k * itemsize * stages <= resolved.shared.block_limit - _STAGING_BYTES
        and m * n * (2 if dtype == "float64" else 1) <= _MOST_SUMS * threads
    ]
    if not fitting:
        return
    m, n, stages, threads = fitting[0]
    rows, depth = _PRODUCT_ROWS, _PRODUCT_DEPTH // itemsize
    values = {"M": rows, "N": rows, "K": depth, "block_M": m, "block_N": n, "block_K": k, "num_stages": stages, **types}
    values["threads"] = threads
    work = 2.0 * rows * rows * depth
    whole = f"a product of {rows}x{rows}x{depth} by tiles of {m}x{n}x{k} in {stages} stages"
    yield Probe("flops_per_s", unit_class, "streamed_products", values, work, whole)


def measure(probe: Probe, target: str) -> Ceiling:
    """Launch the probe's kernel and take the best time.

    Raises TileLangError where it cannot be compiled or launched, or does not run on the unit that is meant.
    """
    kernel = probe.compile(target)
    if probe.unit_class.startswith("matrix."):
        kinds = set(kernel.bundle_record()["matrix_products"].values())
        if kinds & _WITHOUT_MATRIX_UNITS:
            raise tilelang.errors.LaunchError("on this target such products run on multiply-add units")
    samples: Sequence[float] = kernel.get_profiler().samples(warmup=3, rep=_LAUNCHES)
    rate = probe.work / (min(samples) * 1e-9)
    detail = f"{probe.detail}; best of {len(samples)} launches"
    how = Provenance("measured", "tileprof calibrate", __version__, detail)
    return Ceiling(target, probe.quantity, probe.unit_class, rate, how)


def calibrate_gpu(
    target: str, units: int, l2_bytes: int, done: Callable[[str, Ceiling | None, str], None]
) -> list[Ceiling]:
    """All ceilings of the GPU at hand; ``done`` hears of each its name, and the ceiling or why there is none."""
    best: dict[tuple[str, str], Ceiling] = {}
    for probe in probes(target, units, l2_bytes):
        try:
            ceiling = measure(probe, target)
        except tilelang.errors.TileLangError as error:
            done(probe.name, None, str(error))
            continue
        key = (probe.quantity, probe.unit_class)
        if key not in best or ceiling.value > best[key].value:
            best[key] = ceiling
        done(probe.name, ceiling, "")
    return list(best.values())


def calibrate_cpu(target: str) -> list[Ceiling]:
    """Ceilings of the processors."""
    return measure_cpu(target, tilelang.targets.resolve(target).vector_bits or 128)


def data_file() -> Path:
    """Where ceilings are kept."""
    named = os.environ.get("TILEPROF_DATA_DIR")
    if named:
        return Path(named) / FILE
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tileprof" / FILE


def machine_key(name: str, arch: str) -> str:
    """The key of a device in the file: product name and architecture."""
    return f"{name} ({arch})"


def save(key: str, measured: Sequence[Ceiling], date: str) -> Path:
    """Keep the ceilings of a device, in place of earlier ones.  Raises OSError."""
    path = data_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    record = _load(path)
    record["machines"][key] = {"date": date, "ceilings": [asdict(ceiling) for ceiling in measured]}
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return path


def _load(path: Path) -> dict[str, Any]:
    """The file's content; an empty one where there is none.  Raises ProfileFormatError where it is something else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"format": FORMAT, "machines": {}}
    except (OSError, ValueError) as error:
        raise ProfileFormatError(
            f"{path} cannot be read: {error}", remedy="delete it and run tileprof calibrate"
        ) from None
    if not isinstance(record, dict) or record.get("format") != FORMAT or not isinstance(record.get("machines"), dict):
        raise ProfileFormatError(
            f"{path} is no file of ceilings of this version", remedy="delete it and run tileprof calibrate"
        )
    return record


def kept(key: str, target: str) -> list[Ceiling]:
    """The ceilings that were measured on a device, under the name ``target``; none where it was not calibrated."""
    entry = _load(data_file())["machines"].get(key)
    if entry is None:
        return []
    found = []
    for record in entry["ceilings"]:
        source = Provenance(**record["provenance"])
        source = replace(source, detail=f"{source.detail}; {entry['date']}")
        found.append(Ceiling(**{**record, "target": target, "provenance": source}))
    return found
