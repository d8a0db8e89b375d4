"""What is known of a compiled kernel without launching or simulating it: target, grid, sizes, metadata, texts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.errors import LaunchError
from tilelang_min.program import KernelMetadata, Listing, Parameter, TensorMap, TileOperation
from tilelang_min.program import sizes as runtime_sizes
from tilelang_min.program.instrument import Instrument
from tilelang_min.program.work import WorkTerm, flops_at
from tilelang_min.runtime.bundle import Bundle
from tilelang_min.targets import Target, resolve


class KernelFacts:
    """What the bundle of a kernel says; see :class:`tilelang_min.driver.kernel.Kernel`."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.name: str = bundle.record["name"]
        self.parameters: tuple[Parameter, ...] = bundle.parameters

    def __repr__(self) -> str:
        return f"<Kernel {self.name} for {self.target.name}, grid {tuple(self.bundle.record['grid'])}>"

    @cached_property
    def target(self) -> Target:
        """The target it was compiled for."""
        return resolve(self.bundle.record["target"])

    @cached_property
    def grid(self) -> tuple[int, int, int]:
        """Blocks of a launch in each direction; on a CPU, tasks.  LaunchError where it depends on runtime dimensions."""
        if self.sizes:
            raise LaunchError(
                f"the grid of kernel {self.name} depends on {', '.join(self.sizes)}",
                remedy="ask for kernel.grid_for(sizes), or look at kernel.metadata.grid",
            )
        return self.grid_for({})

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """Names of the runtime dimensions (``T.dynamic``), in the order in which the kernel takes them."""
        return runtime_sizes.names_of(self.parameters)

    def grid_for(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """Blocks of a launch with these runtime dimensions.  LaunchError for a missing one, or more than the target can count."""
        missing = [name for name in self.sizes if name not in sizes]
        if missing:
            raise LaunchError(
                f"nothing says how large the runtime dimension {missing[0]} of {self.name} is",
                remedy=f"give sizes for {', '.join(self.sizes)}",
            )
        grid = runtime_sizes.grid_of(self.bundle.record["grid"], sizes)
        for axis, extent, most in zip("xyz", grid, self.target.max_grid if sizes else (), strict=False):
            if self.target.kind != "cpu" and extent > most:
                raise LaunchError(
                    f"kernel {self.name} at {dict(sizes)} has {extent:,} blocks along {axis}, "
                    f"{self.target.name} allows {most:,}",
                    remedy="give a block more of the work",
                )
        return grid

    def parameters_for(self, sizes: Mapping[str, int]) -> tuple[Parameter, ...]:
        """The parameters of a launch with these runtime dimensions, shapes in numbers.  LaunchError for a missing one, and for a
        tensor of more elements than a kernel can count."""
        return runtime_sizes.fixed(self.parameters, sizes)

    def metadata_for(self, sizes: Mapping[str, int]) -> KernelMetadata:
        """The metadata of a launch with these runtime dimensions: grid, operations and bytes as numbers, not as recipes.

        LaunchError for a missing one.
        """
        if not self.sizes:
            return self.metadata
        known = replace(self.metadata, grid=self.grid_for(sizes))
        work = self.bundle.record.get("work")
        if work is None:  # compiled by an earlier version
            return known
        terms = [WorkTerm.from_json(term) for term in work["terms"]]
        least = runtime_sizes.evaluate(work["bytes_min"], sizes)
        return replace(known, flops=flops_at(terms, sizes), bytes_min=least)

    def sizes_of(self, args: Sequence[Any]) -> dict[str, int]:
        """The runtime dimensions that these tensors have.  LaunchError where they disagree."""
        if not self.sizes:
            return {}
        call_arguments.check_count(self.name, self.parameters, args)
        return runtime_sizes.bound(self.parameters, [getattr(item, "shape", None) for item in args])

    @cached_property
    def instrument(self) -> Instrument | None:
        """What an instrumented build measures; None for a plain one."""
        record = self.bundle.record.get("instrument")
        return None if record is None else Instrument.from_json(record)

    @cached_property
    def metadata(self) -> KernelMetadata:
        """Static facts: registers, shared bytes, spills, occupancy, instructions, operations, bytes.

        On a kernel for NVIDIA that has just been compiled this waits for the disassembler; launching does not.
        """
        return self.bundle.metadata

    @cached_property
    def operations(self) -> list[TileOperation]:
        """The tile operations, by id."""
        return list(self.bundle.operations)

    @cached_property
    def listing(self) -> Listing:
        """Machine instructions with the operation of each."""
        return self.bundle.listing

    def source(self) -> str:
        """Generated CUDA C++ or LLVM IR."""
        return self.bundle.source

    get_kernel_source = source

    def assembly(self) -> str:
        """SASS, GCN or x86 assembly."""
        return self.listing.text

    def explain(self) -> str:
        """What was decided and why, as text: layouts, pipelines, matrix instructions taken and refused, barriers, resources and
        what limits occupancy.  ``TILELANG_DUMP=1`` writes the same, with every stage, while compiling."""
        from tilelang_min.driver.explanation import explain

        return explain(self.bundle, self.target)

    def bundle_record(self) -> dict[str, Any]:
        """The content of ``kernel.json``."""
        return self.bundle.complete().record

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a bundle: a directory, or one file when the name ends in ``.tlk``."""
        return self.bundle.save(path)

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks, in each direction, that start together."""
        x, y, z = self.bundle.record["launch"].get("cluster", (1, 1, 1))
        return x, y, z

    @property
    def tensor_maps(self) -> tuple[TensorMap, ...]:
        """The tensor maps that a launch makes from its arguments, in the order of the kernel's parameters."""
        return tuple(
            TensorMap(**{**item, "shape": tuple(item["shape"]), "box": tuple(item["box"])})
            for item in self.bundle.record["launch"].get("tensor_maps", ())
        )
