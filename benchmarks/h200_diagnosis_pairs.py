"""What ``h200_diagnosis.py`` measures: for each rule a kernel on which it fires, and the kernel with the finding's advice applied.

A side of a pair is one kernel, or several that run one after another.  Nothing here is measured or compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """A kernel of ``workloads/kernels/``: ``module.factory``, and what it is called with.

    ``wires`` maps parameters to tensors of the pair that have other names.  ``simulate`` False: counts come from hardware alone.
    ``ampere``: without Hopper's instructions, as what it is compared with.
    """

    factory: str
    shape: Mapping[str, int]
    values: Mapping[str, Any] = field(default_factory=dict)
    wires: Mapping[str, str] = field(default_factory=dict)
    simulate: bool = True
    ampere: bool = False

    @property
    def case(self) -> str:
        """Id of the case, as ``tileprof run`` makes them."""
        named = {**self.shape, **self.values}
        return f"{self.factory.split('.')[1]}[{','.join(f'{key}={value}' for key, value in named.items())}]@h200"


@dataclass(frozen=True)
class Pair:
    """A rule's kernel, and the same with the advice applied.

    ``reference`` names one in ``h200_diagnosis.REFERENCES``, with which the tensor ``output`` of both sides is compared.
    ``advised`` False: not what the finding says, measured to know better.  ``also`` is a rule whose findings name the same change.
    """

    name: str
    rule: str
    change: str
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    reference: str
    output: str = "C"
    advised: bool = True
    also: str = ""


CUBE = {"M": 2048, "N": 2048, "K": 2048}
SMALL = {"M": 1024, "N": 1024, "K": 1024}
PLANE = {"M": 8192, "N": 8192}


def _product(shape: Mapping[str, int], **values: Any) -> Step:
    return Step("faults.product", shape, values)


def _gemm(**values: Any) -> Step:
    return Step("gemm.gemm", CUBE, {"block_N": 128, **values})


def _pairs() -> list[Pair]:
    swizzled: dict[str, Any] = {"layout": "swizzled"}
    deep = {"M": 4096, "N": 4096, "K": 2048}
    thin = {"M": 256, "N": 256, "K": 8192}
    tail = {"M": 1536, "N": 1536, "K": 4096}
    gated = {"M": 2304, "N": 2304, "K": 2048}
    few = _product(thin, **swizzled, num_stages=4)
    uneven = _product(tail, **swizzled)
    many_stages = _product(deep, **swizzled, block_K=64, num_stages=5)
    three_stages = _product(deep, **swizzled, block_K=64, num_stages=3)
    naive16 = Step("matmul.naive", CUBE, {"dtype": "float16"})
    naive32 = Step("matmul.naive", CUBE, {"dtype": "float32"})
    single = Step("faults.single", CUBE)
    spilling = Step("faults.gated", gated, {"threads": 64})
    scaled = Step("faults.scale_add", PLANE)
    small = {"M": 1024, "N": 1024}
    tile: dict[str, Any] = {"block_M": 64, "block_N": 64, "block_K": 64}
    float32: dict[str, Any] = {"dtype": "float32", "block_M": 64, "block_N": 64}
    return [
        Pair(
            "conflicts-float16", "bank-conflicts", "both tiles swizzled",
            (_product(CUBE, layout="rows", block_K=64, num_stages=2),),
            (_product(CUBE, **swizzled, block_K=64, num_stages=2),), "product",
        ),
        Pair(
            "conflicts-float32", "bank-conflicts", "the tiles swizzled",
            (_product(CUBE, layout="rows", num_stages=1, **float32),),
            (_product(CUBE, **swizzled, num_stages=1, **float32),), "product",
        ),
        Pair(
            "conflicts-copies", "bank-conflicts", "rows of 128 bytes: block_K 32 to 64",
            (_product(CUBE, **swizzled, block_K=32),), (_product(CUBE, **swizzled, block_K=64),), "product", advised=False,
        ),
        Pair(
            "uncoalesced", "uncoalesced", "through a shared tile", (Step("faults.transposed", PLANE, {"staged": False}),),
            (Step("faults.transposed", PLANE, {"staged": True}),), "transposed", "B",
        ),
        Pair(
            "uncoalesced-float16", "uncoalesced", "through a shared tile",
            (Step("faults.transposed", PLANE, {"staged": False, "dtype": "float16"}),),
            (Step("faults.transposed", PLANE, {"staged": True, "dtype": "float16"}),), "transposed", "B",
        ),
        Pair(
            "padding", "bank-conflicts", "no padding, and swizzled tiles",
            (Step("matmul.padded", CUBE, {"block_K": 64, "num_stages": 2}),),
            (_product(CUBE, **swizzled, block_M=64, block_N=64, block_K=64, num_stages=2),), "product", also="uncoalesced",
        ),
        Pair(
            "spills-threads", "spills", "threads 64 to 128", (spilling,), (Step("faults.gated", gated, {"threads": 128}),),
            "gated",
        ),
        Pair(
            "spills-blocks", "spills", "blocks of 96 x 96 to 96 x 64", (spilling,),
            (Step("faults.gated", gated, {"threads": 64, "block_N": 64}),), "gated",
        ),
        Pair(
            "fusion", "memory-bound", "fused with the kernel behind it",
            (scaled, Step("faults.relu", PLANE, {}, {"A": "C", "C": "D"})),
            (Step("elementwise.scale_add_relu", PLANE, {}, {"C": "D"}),), "scale_add_relu", "D",
        ),
        Pair(
            "read-twice", "memory-bound", "rows kept in registers", (Step("softmax.online", PLANE),),
            (Step("softmax.rows", PLANE, {"block_M": 1, "threads": 256}),), "softmax", "B",
        ),
        Pair(
            "order", "memory-bound", "tiles in an order that the cache keeps",
            (Step("faults.ordered", {"M": 4096, "N": 32768, "K": 2048}, {"panel": 1}, simulate=False),),
            (Step("faults.ordered", {"M": 4096, "N": 32768, "K": 2048}, {"panel": 0}, simulate=False),), "product",
        ),
        Pair(
            "occupancy-shared", "low-occupancy", "num_stages 5 to 3", (many_stages,), (three_stages,), "product",
            advised=False,
        ),
        Pair(
            "occupancy-registers", "low-occupancy", "a smaller tile a thread: threads 128 to 256", (three_stages,),
            (_product(deep, **swizzled, block_K=64, num_stages=3, threads=256),), "product", advised=False,
        ),
        Pair(
            "occupancy-tile", "low-occupancy", "a smaller tile, so that one more block fits: 128 x 128 to 112 x 112",
            (Step("faults.transposed", {"M": 8064, "N": 8064}, {"staged": True, "block": 128, "threads": 128}),),
            (Step("faults.transposed", {"M": 8064, "N": 8064}, {"staged": True, "block": 112, "threads": 128}),),
            "transposed", "B", advised=False,
        ),
        Pair(
            "occupancy-threads", "low-occupancy", "a smaller tile a thread: threads 128 to 256",
            (_product(CUBE, **swizzled, block_K=64, num_stages=1),),
            (_product(CUBE, **swizzled, block_K=64, num_stages=1, threads=256),), "product",
        ),
        Pair(
            "occupancy-tail", "low-occupancy", "a smaller tile a thread: threads 128 to 256", (uneven,),
            (_product(tail, **swizzled, threads=256),), "product", advised=False,
        ),
        Pair("deep", "pipeline-deep", "num_stages 5 to 3", (many_stages,), (three_stages,), "product"),
        Pair(
            "few-smaller", "few-blocks", "tiles of 128 x 128 to 32 x 32", (few,),
            (_product(thin, **swizzled, num_stages=4, block_M=32, block_N=32),), "product", advised=False,
        ),
        Pair(
            "few-split", "few-blocks", "split along K in 32, and a kernel that adds up", (few,),
            (
                Step("splitk.split_k_parts", thin, {"block_M": 128, "block_N": 128, "split": 32, "num_stages": 4}, ampere=True),
                Step("splitk.sum_parts", {"M": 256, "N": 256}, {"split": 32, "dtype": "float32"}),
            ),
            "product",
        ),
        Pair(
            "tail-tiles", "few-blocks", "tiles of 128 x 128 to 96 x 192", (uneven,),
            (_product(tail, **swizzled, block_M=96, block_N=192),), "product",
        ),
        Pair(
            "tail-stream", "few-blocks", "stream-K over 132 blocks", (uneven,),
            (
                Step(
                    "splitk.stream_k", tail,
                    {"block_M": 128, "block_N": 128, "block_K": 32, "blocks": 132, "num_stages": 3}, simulate=False, ampere=True,
                ),
            ),
            "product", advised=False,
        ),
        Pair(
            "tail-alone", "few-blocks", "stream-K over 132 blocks", (_product(tail, **swizzled, block_K=64, num_stages=5),),
            (
                Step(
                    "splitk.stream_k", tail,
                    {"block_M": 128, "block_N": 128, "block_K": 64, "blocks": 132, "num_stages": 5}, simulate=False, ampere=True,
                ),
            ),
            "product",
        ),
        Pair("latency-stage", "exposed-latency", "num_stages 2 to 3", (_gemm(num_stages=2),), (_gemm(num_stages=3),), "product"),
        Pair(
            "latency-stages", "exposed-latency", "num_stages 2 to 4", (_gemm(num_stages=2),), (_gemm(num_stages=4),),
            "product", advised=False,
        ),
        Pair("latency-pipeline", "exposed-latency", "T.Pipelined in two stages around T.copy", (naive32,), (single,), "product"),
        Pair(
            "latency-small", "exposed-latency", "more independent loads a thread: tiles of 32 x 128 to 64 x 128",
            (Step("elementwise.scale_add_relu", small),), (Step("elementwise.scale_add_relu", small, {"block_M": 64}),),
            "scale_add_relu", advised=False,
        ),
        Pair("matrix-gemm", "matrix-unused", "T.gemm of tiles in shared memory", (naive16,), (_gemm(num_stages=4),), "product"),
        Pair(
            "matrix-tf32", "matrix-unused", 'precision="tf32"', (single,),
            (Step("faults.single", CUBE, {"precision": "tf32"}, simulate=False),), "product",
        ),
        Pair("conversions-tensor", "conversions", "the tensors in float32", (naive16,), (naive32,), "product"),
        Pair(
            "conversions-tile", "conversions", "the shared tile in float32",
            (Step("faults.smoothed", PLANE, {"taps": 32, "tile": "float16"}),),
            (Step("faults.smoothed", PLANE, {"taps": 32, "tile": "float32"}),), "smoothed", "Y", advised=False,
        ),
        Pair(
            "shallow", "pipeline-shallow", "num_stages 1 to 2", (_product(CUBE, **swizzled, block_K=64, num_stages=1),),
            (_product(CUBE, **swizzled, block_K=64, num_stages=2),), "product",
        ),
        Pair(
            "shallow-small", "pipeline-shallow", "num_stages 1 to 2", (_product(SMALL, **swizzled, **tile, num_stages=1),),
            (_product(SMALL, **swizzled, **tile, num_stages=2),), "product",
        ),
        Pair(
            "shallow-ring", "pipeline-shallow", "num_stages 1 to 2", (_gemm(num_stages=1),), (_gemm(num_stages=2),),
            "product", advised=False,
        ),
        Pair("shallow-ring-4", "pipeline-shallow", "num_stages 1 to 4", (_gemm(num_stages=1),), (_gemm(num_stages=4),), "product"),
    ]  # fmt: skip


def _others() -> list[Pair]:
    """Kernels that no rule was fitted to: the promises were fixed before these were measured."""
    swizzled: dict[str, Any] = {"layout": "swizzled"}
    wide = {"M": 4096, "N": 4096, "K": 1024}
    square = {"M": 4096, "N": 4096, "K": 4096}
    gated = {"M": 2304, "N": 2304, "K": 1024}
    narrow = {"M": 512, "N": 512, "K": 4096}
    odd = {"M": 1408, "N": 2048, "K": 4096}
    long = {"M": 4096, "N": 16384}
    heads = {"batch": 1, "heads": 16, "seq_len": 2048, "dim": 128}
    blocks: dict[str, Any] = {"block_M": 128, "block_N": 128, "threads": 256}
    rows: dict[str, Any] = {"block_K": 64, "dtype": "bfloat16"}
    small: dict[str, Any] = {"block_K": 64, "num_stages": 1, "block_N": 64}
    heavy: dict[str, Any] = {"block_M": 128, "block_N": 96}
    return [
        Pair(
            "other-conflicts", "bank-conflicts", "both tiles swizzled", (_product(wide, layout="rows", **rows),),
            (_product(wide, **swizzled, **rows),), "product",
        ),
        Pair(
            "other-uncoalesced", "uncoalesced", "through a shared tile",
            (Step("faults.transposed", {"M": 4096, "N": 4096}, {"staged": False, "block": 32}),),
            (Step("faults.transposed", {"M": 4096, "N": 4096}, {"staged": True, "block": 32}),), "transposed", "B",
        ),
        Pair(
            "other-spills", "spills", "threads 64 to 128", (Step("faults.gated", gated, {**heavy, "threads": 64}),),
            (Step("faults.gated", gated, {**heavy, "threads": 128}),), "gated",
        ),
        Pair(
            "other-read-twice", "memory-bound", "rows kept in registers", (Step("softmax.online", long, {"dtype": "float16"}),),
            (Step("softmax.rows", long, {"block_M": 1, "threads": 512, "dtype": "float16"}),), "softmax", "B",
        ),
        Pair(
            "other-occupancy", "low-occupancy", "a smaller tile a thread: threads 64 to 128",
            (_product(CUBE, **swizzled, **small, threads=64),), (_product(CUBE, **swizzled, **small),), "product",
        ),
        Pair(
            "other-few", "few-blocks", "split along K in 8, and a kernel that adds up", (_product(narrow, **swizzled),),
            (
                Step("splitk.split_k_parts", narrow, {"block_M": 128, "block_N": 128, "split": 8, "num_stages": 3}, ampere=True),
                Step("splitk.sum_parts", {"M": 512, "N": 512}, {"split": 8, "dtype": "float32"}),
            ),
            "product",
        ),
        Pair(
            "other-tail", "few-blocks", "tiles of 128 x 128 to 128 x 192", (_product(odd, **swizzled),),
            (_product(odd, **swizzled, block_N=192),), "product",
        ),
        Pair(
            "other-latency", "exposed-latency", "num_stages 2 to 3", (Step("gemm.gemm", square, {"num_stages": 2}),),
            (Step("gemm.gemm", square, {"num_stages": 3}),), "product",
        ),
        Pair(
            "other-matrix", "matrix-unused", 'precision="tf32"', (Step("faults.single", CUBE, blocks),),
            (Step("faults.single", CUBE, {**blocks, "precision": "tf32"}, simulate=False),), "product",
        ),
        Pair(
            "other-conversions", "conversions", "the tensors in float32", (Step("matmul.naive", SMALL, {"dtype": "bfloat16"}),),
            (Step("matmul.naive", SMALL, {"dtype": "float32"}),), "product",
        ),
        Pair(
            "other-shallow", "pipeline-shallow", "num_stages 1 to 2",
            (Step("attention.attention", heads, {"block_M": 128, "block_N": 64, "num_stages": 1, "threads": 256}, ampere=True),),
            (Step("attention.attention", heads, {"block_M": 128, "block_N": 64, "num_stages": 2, "threads": 256}, ampere=True),),
            "attention", "Output",
        ),
        Pair(
            "other-deep", "pipeline-deep", "num_stages 6 to 4", (_product(CUBE, **swizzled, block_K=64, block_N=64, num_stages=6),),
            (_product(CUBE, **swizzled, block_K=64, block_N=64, num_stages=4),), "product",
        ),
    ]  # fmt: skip


PAIRS = _pairs() + _others()

FLOOR = Step("faults.relu", {"M": 32, "N": 128})
"""One block that does next to nothing: what a launch takes at least."""


def steps(names: Iterable[str] | None = None) -> dict[str, Step]:
    """Every kernel of these pairs (None: of all) once, by case id, in their order."""
    found = {FLOOR.case: FLOOR}
    for pair in PAIRS:
        if names is None or pair.name in names:
            for step in (*pair.before, *pair.after):
                found.setdefault(step.case, step)
    return found
