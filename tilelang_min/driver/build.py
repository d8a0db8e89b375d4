"""From a kernel's source to a bundle: all rooms of the compiler in order.  Imports TVM."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from typing import Any

from tilelang_min.analysis.limits import check_resources
from tilelang_min.analysis.work import bytes_min, flops, has_unknown_lengths, work_terms
from tilelang_min.driver.decisions import decisions
from tilelang_min.driver.explanation import explain
from tilelang_min.driver.versions import tool_versions
from tilelang_min.errors import CodegenError, LayoutError, ResourceError, did_you_mean
from tilelang_min.frontend import parse
from tilelang_min.ir.nodes import TileProgram
from tilelang_min.ir.plans import HopperPlan, Layouts
from tilelang_min.ir.printer import describe
from tilelang_min.ir.thread_json import function_to_json
from tilelang_min.language import PrimFunc
from tilelang_min.lower import lower_cpu, lower_gpu
from tilelang_min.lower.instrument import instrument as instrumented
from tilelang_min.program import CompiledKernel, KernelMetadata, ThreadProgram
from tilelang_min.runtime.bundle import FORMAT, Bundle, Rest
from tilelang_min.runtime.later import Later
from tilelang_min.targets import Target, occupancy
from tilelang_min.transform.barriers import insert_barriers
from tilelang_min.transform.fragment_operands import layouts_with_operands
from tilelang_min.transform.hopper import HopperOptions, plan_hopper
from tilelang_min.transform.pipeline import pipeline
from tilelang_min.transform.reductions import exchange_reductions, fragment_reductions
from tilelang_min.transform.register_buffers import mode_of, plan_register_buffers
from tilelang_min.transform.shared_layouts import choose_shared_layouts
from tilelang_min.transform.split import split_loops
from tilelang_min.transform.tma_stores import stage_stores

_GENERATORS = {
    "cuda": "tilelang_min.codegen.nvidia",
    "hip": "tilelang_min.codegen.amd",
    "cpu": "tilelang_min.codegen.cpu",
}
HOPPER_DEFAULT: bool | dict[str, bool] = True
"""The compile option ``hopper`` where it is not given."""

DOUBLE_BUFFER_DEFAULT: bool | str = True
"""The compile option ``double_buffer`` where it is not given."""

_OWN_OPTIONS = ("hopper", "double_buffer")
"""Options that are not the code generators'."""

_SOURCE_SUFFIX = {"cuda": "cu", "llvm": "ll"}
_LISTING_SUFFIX = {"sass": "sass", "gcn": "gcn", "x86": "s"}


class Stopwatch:
    """Wall times of named steps in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the block to step ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def thread_program(
    kernel: PrimFunc | TileProgram,
    target: Target,
    watch: Stopwatch | None = None,
    *,
    hopper: HopperOptions | None = None,
    double_buffer: str | None = None,
) -> tuple[TileProgram, Layouts | None, ThreadProgram]:
    """Tile program after all transforms, its layouts (None on a CPU) and the thread program."""
    watch = watch or Stopwatch()
    if isinstance(kernel, TileProgram):
        program = kernel
    else:
        with watch.step("frontend"):
            program = parse(kernel)
    _dump("tile program", lambda: describe(program))
    with watch.step("transform"):
        layouts = None
        if target.kind == "cpu":
            program = pipeline(program, target)
        else:
            program = fragment_reductions(program)
            choices = hopper or HopperOptions.of(HOPPER_DEFAULT)
            plan = plan_hopper(program, target, choices)
            serial = program
            program = pipeline(split_loops(program, target, plan, choices.split), target, plan)
            check_resources(program, target)
            try:
                program, layouts = layouts_with_operands(program, target, plan)
            except LayoutError as error:
                if not plan.gemms:
                    raise
                plan = HopperPlan(notes=[*plan.notes, f"no warp group products: {error.message}"])
                program = pipeline(serial, target, plan)
                check_resources(program, target)
                program, layouts = layouts_with_operands(program, target, plan)
            layouts.shared = choose_shared_layouts(program, target, layouts)
            program = insert_barriers(exchange_reductions(program, layouts, target))
            program = stage_stores(program, layouts, target, allowed=choices.tma)
            check_resources(program, target, layouts.shared)
            mode = mode_of(DOUBLE_BUFFER_DEFAULT) if double_buffer is None else double_buffer
            layouts.ahead = plan_register_buffers(program, target, layouts, mode)
    _dump("after transforms", lambda: describe(program))
    if layouts is not None and target.kind == "cuda":
        _dump("hopper", layouts.hopper.describe)
        _dump("double buffers", layouts.ahead.describe)
    with watch.step("lower"):
        thread = lower_cpu(program, target) if layouts is None else lower_gpu(program, target, layouts)
    _dump("thread program", lambda: str(thread.function.script()))
    return program, layouts, thread


def build(
    kernel: PrimFunc,
    target: Target,
    options: dict[str, Any],
    key: str,
    finished: Callable[[Bundle], None] = lambda bundle: None,
    instrument: str | None = None,
) -> Bundle:
    """Compile ``kernel``, with clock reads where ``instrument`` says so.

    Raises a TileLangError that says what is wrong, where, and what to do.

    The bundle can be launched at once.  Where disassembling takes a process of its own (NVIDIA) the rest of it is made on a
    thread; ``finished`` is called with the whole bundle, there or before this returns.
    """
    generator = import_module(_GENERATORS[target.kind])
    _check_options(options, target, generator.OPTIONS)
    watch = Stopwatch()
    with watch.step("frontend"):
        written = parse(kernel)
    choices = HopperOptions.of(options.get("hopper", HOPPER_DEFAULT))
    ahead = mode_of(options.get("double_buffer", DOUBLE_BUFFER_DEFAULT))
    program, layouts, thread = thread_program(written, target, watch, hopper=choices, double_buffer=ahead)
    public = thread.parameters
    own = {name: value for name, value in options.items() if name not in _OWN_OPTIONS}

    def compiled_of(lowered: ThreadProgram) -> tuple[ThreadProgram, dict[str, Any] | None, CompiledKernel]:
        clocks = None
        if instrument is not None:
            with watch.step("instrument"):
                lowered, record = instrumented(lowered, instrument)
            clocks = record.to_json()
            _dump("instrumented thread program", lambda: str(lowered.function.script()))
        return lowered, clocks, generator.generate(lowered, options=own)

    thread, record_of_clocks, compiled = compiled_of(thread)
    spilled = compiled.resources.spill_store_bytes or 0
    if layouts is not None and layouts.ahead.loops and spilled and ahead != "always":
        read_ahead, layouts.ahead = layouts.ahead, layouts.ahead.without_loops(f"that spilled {spilled} bytes a thread")
        with watch.step("lower"):
            lowered = lower_gpu(program, target, layouts)
        other = compiled_of(lowered)
        if (other[2].resources.spill_store_bytes or 0) < spilled:
            thread, record_of_clocks, compiled = other
        else:
            layouts.ahead = read_ahead
    _check_launchable(thread, compiled)
    _dump("generated source", lambda: compiled.source)
    with watch.step("metadata"):
        # What depends on runtime dimensions is not known now, and kept as text.
        unknown = has_unknown_lengths(written)
        work = {
            "flops": None if written.sizes or unknown else flops(written),
            "bytes_min": None if unknown else bytes_min(written),
        }
        terms = [term.to_json() for term in work_terms(written)] if written.sizes and not unknown else []
    source_file = f"source.{_SOURCE_SUFFIX[compiled.source_language]}"
    listing_file = f"listing.{_LISTING_SUFFIX[compiled.syntax]}"
    binary_file = f"binary.{compiled.binary_kind}"
    record = {
        "format": FORMAT,
        "name": program.name,
        "symbol": compiled.symbol,
        "target": target.name if target.kind != "cpu" else f"cpu:{target.arch}",
        "parameters": [{**asdict(item), "shape": list(item.shape)} for item in public],
        "grid": list(thread.extents or thread.grid),
        "threads": thread.threads,
        "consumer_threads": thread.consumer_threads,
        "launch": {
            "shared_bytes_dynamic": thread.shared_bytes_dynamic,
            "cluster": list(thread.cluster),
            "tensor_maps": [asdict(item) for item in thread.tensor_maps],
        },
        "shared": [{**asdict(item), "shape": list(item.shape)} for item in thread.shared],
        "operations": [operation.to_json() for operation in thread.operations],
        "metadata": {},
        "binary": {"kind": compiled.binary_kind, "file": binary_file},
        "source": source_file,
        "listing": listing_file,
        "layouts": {} if layouts is None else {name: layout.describe() for name, layout in layouts.fragments.items()},
        "matrix_products": {} if layouts is None else {str(key): plan.kind for key, plan in layouts.gemms.items()},
        "notes": _notes(program, layouts),
        "decisions": decisions(written, program, layouts, target),
        "versions": tool_versions(),
        "hash": key,
        "sources": program.sources,
        "analyses": {},
    }
    if written.sizes:
        record["work"] = {"terms": terms, "bytes_min": work["bytes_min"]}
    if record_of_clocks is not None:
        record["instrument"] = record_of_clocks
    files = {binary_file: compiled.binary, source_file: compiled.source.encode()}

    def rest() -> Rest:
        with watch.step("disassemble"):
            listing = compiled.listing
        _dump("listing", lambda: listing.text)
        with watch.step("serialise"):
            made = {
                listing_file: listing.text.encode(),
                "listing.json": json.dumps(listing.to_json()).encode(),
                "thread_program.json": function_to_json(thread.function).encode(),
            }
        metadata = _metadata(thread, compiled, work, {**watch.seconds, **compiled.seconds})
        later = Rest({"metadata": metadata.to_json()}, made)
        whole = Bundle({**record, **later.record, "analyses": {}}, {**files, **later.files})
        _dump("explanation", lambda: explain(whole, target))
        finished(whole)
        return later

    if compiled.listing_is_quick:
        made = rest()
        return Bundle({**record, **made.record}, {**files, **made.files})
    return Bundle(record, files, rest=Later(rest, name=f"tilelang-listing-{program.name}"))


def load_generator(target: Target) -> None:
    """Import what compiling for a target takes, beside what this module has imported."""
    import_module(_GENERATORS[target.kind])


def _check_options(options: Iterable[str], target: Target, generators: Iterable[str]) -> None:
    """Raise CodegenError for an option that does not exist, before anything is done.

    Those that lowering follows are taken everywhere: one source is compiled for many targets, and they say what happens on some.
    """
    known = [*generators, *_OWN_OPTIONS]
    for name in options:
        if name not in known:
            raise CodegenError(f"unknown option {name!r} for {target.name}", remedy=did_you_mean(name, known))


def _check_launchable(thread: ThreadProgram, compiled: CompiledKernel) -> None:
    """Raise ResourceError where the binary needs more than a unit has, so that no block could start."""
    target, resources = thread.target, compiled.resources
    if target.kind == "cpu":
        return
    registers, shared = (
        resources.registers_per_thread,
        (resources.shared_bytes_static or 0) + thread.shared_bytes_dynamic,
    )
    fits = occupancy(target, threads=thread.threads, registers_per_thread=registers, shared_bytes=shared)
    if fits.max_blocks_per_unit == 0:
        raise ResourceError(
            f"no block of {thread.threads} threads with {registers} registers each and {shared:,} bytes of shared memory fits "
            f"{target.name}: too much of {', '.join(fits.limiters)}",
            location=thread.operations[0].location,
            remedy="use smaller tiles, fewer threads or fewer stages",
        )


def _notes(program: TileProgram, layouts: Layouts | None) -> list[str]:
    """What is worth knowing about the decisions, for people."""
    if layouts is None:
        return []
    plans = [(program.operations[operation].label, plan.note) for operation, plan in layouts.gemms.items()]
    return [*(f"{label}: {note}" for label, note in plans if note), *layouts.hopper.notes]


def _metadata(
    thread: ThreadProgram, compiled: CompiledKernel, work: dict[str, Any], seconds: dict[str, float]
) -> KernelMetadata:
    resources, target = compiled.resources, thread.target
    limits = None
    shared_static = resources.shared_bytes_static
    if target.kind == "cpu":
        shared_static = None
    else:
        limits = occupancy(
            target,
            threads=thread.threads,
            registers_per_thread=resources.registers_per_thread or 0,
            shared_bytes=(shared_static or 0) + thread.shared_bytes_dynamic,
        )
    by_operation = {
        "none" if key is None else str(key): value for key, value in compiled.listing.by_operation().items()
    }
    return KernelMetadata(
        target=target.name,
        registers_per_thread=resources.registers_per_thread,
        vgprs=resources.vgprs,
        agprs=resources.agprs,
        sgprs=resources.sgprs,
        shared_bytes_static=shared_static,
        shared_bytes_dynamic=None if target.kind == "cpu" else thread.shared_bytes_dynamic,
        spill_store_bytes=resources.spill_store_bytes,
        spill_load_bytes=resources.spill_load_bytes,
        spilled_vgprs=resources.spilled_vgprs,
        spilled_sgprs=resources.spilled_sgprs,
        stack_bytes=resources.stack_bytes,
        threads_per_block=thread.threads,
        grid=thread.extents or thread.grid,
        cluster=thread.cluster if thread.cluster != (1, 1, 1) else None,
        max_blocks_per_unit=limits.max_blocks_per_unit if limits else None,
        occupancy=limits.occupancy if limits else None,
        occupancy_limiters=tuple(limits.limiters) if limits else (),
        instructions={
            "total": compiled.listing.by_class(),
            "by_operation": by_operation,
            "attributed": compiled.listing.attributed_fraction,
        },
        code_bytes=resources.code_bytes,
        compile_seconds={name: round(value, 6) for name, value in seconds.items()},
        toolchain=compiled.toolchain,
        flops=work["flops"],
        bytes_min=work["bytes_min"] if isinstance(work["bytes_min"], int) else None,
    )


def _dump(title: str, text: Any) -> None:
    """With ``TILELANG_DUMP=1`` every stage goes to stderr."""
    if os.environ.get("TILELANG_DUMP") == "1":
        print(f"==== {title} ====\n{text()}\n", file=sys.stderr)
