"""The table of language constructs: one marker object for each name that has a meaning inside a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tilelang_min.errors import LanguageError


@dataclass(frozen=True, slots=True)
class Construct:
    """A name of the language.  ``kind`` groups constructs for the front end; calling one outside a kernel is an error."""

    name: str
    kind: str
    signature: str

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Constructs only mean something in the source of a ``@T.prim_func``."""
        raise LanguageError(
            f"T.{self.name} was called outside a kernel",
            remedy="write it inside a function decorated with @T.prim_func; the compiler reads that function's source",
        )


def _table(*rows: tuple[str, str, str]) -> dict[str, Construct]:
    return {name: Construct(name, kind, signature) for name, kind, signature in rows}


CONSTRUCTS = _table(
    ("Kernel", "launch", "T.Kernel(grid_x, grid_y=1, grid_z=1, threads=128)"),
    ("alloc_shared", "alloc", "T.alloc_shared(shape, dtype)"),
    ("alloc_fragment", "alloc", "T.alloc_fragment(shape, dtype)"),
    ("alloc_buffer", "alloc", "T.alloc_buffer(shape, dtype, scope='shared')"),
    ("alloc_local", "alloc", "T.alloc_local(shape, dtype)"),
    ("alloc_var", "variable", "T.alloc_var(dtype, init=None)"),
    ("use_swizzle", "statement", "T.use_swizzle(panel_size, order='row', enable=True)"),
    ("annotate_layout", "statement", "T.annotate_layout({tile: T.rows(), ...})"),
    ("rows", "layout", "T.rows(padding=0)"),
    ("make_swizzled_layout", "layout", "T.make_swizzled_layout(tile, swizzle_bytes=None)"),
    ("copy", "statement", "T.copy(source, target)"),
    ("sync_threads", "statement", "T.sync_threads()"),
    ("clear", "statement", "T.clear(buffer)"),
    ("fill", "statement", "T.fill(buffer, value)"),
    (
        "gemm",
        "statement",
        "T.gemm(A, B, C, transpose_A=False, transpose_B=False, policy=..., clear_accum=False, precision='exact')",
    ),
    ("reduce_sum", "statement", "T.reduce_sum(buffer, out, dim=-1, clear=True)"),
    ("reduce_max", "statement", "T.reduce_max(buffer, out, dim=-1, clear=True)"),
    ("reduce_min", "statement", "T.reduce_min(buffer, out, dim=-1, clear=True)"),
    ("reduce_abssum", "statement", "T.reduce_abssum(buffer, out, dim=-1, clear=True)"),
    ("reduce_absmax", "statement", "T.reduce_absmax(buffer, out, dim=-1, clear=True)"),
    ("atomic_add", "statement", "T.atomic_add(target, value)"),
    ("atomic_max", "statement", "T.atomic_max(target, value)"),
    ("atomic_min", "statement", "T.atomic_min(target, value)"),
    ("Parallel", "loop", "for i, j in T.Parallel(m, n)"),
    ("Pipelined", "loop", "for k in T.Pipelined(n, num_stages=2)"),
    ("serial", "loop", "for k in T.serial(n)"),
    ("parallel", "loop", "for k in T.parallel(n)"),
    ("unroll", "loop", "for k in T.unroll(n)"),
    ("vectorized", "loop", "for v in T.vectorized(n)"),
    ("disable_warp_group_reg_alloc", "hint", "T.disable_warp_group_reg_alloc()"),
    ("annotate_producer_reg_dealloc", "hint", "T.annotate_producer_reg_dealloc(registers)"),
    ("annotate_consumer_reg_alloc", "hint", "T.annotate_consumer_reg_alloc(registers)"),
    ("no_set_max_nreg", "hint", "T.no_set_max_nreg()"),
    ("set_max_nreg", "hint", "T.set_max_nreg(registers, increases)"),
    ("annotate_l2_hit_ratio", "hint", "T.annotate_l2_hit_ratio({tensor: ratio})"),
    ("assume", "hint", "T.assume(condition)"),
    ("if_then_else", "math", "T.if_then_else(condition, a, b)"),
    ("cast", "math", "T.cast(value, dtype)"),
    ("max", "math", "T.max(a, b)"),
    ("min", "math", "T.min(a, b)"),
    ("exp", "math", "T.exp(x)"),
    ("exp2", "math", "T.exp2(x)"),
    ("log", "math", "T.log(x)"),
    ("sqrt", "math", "T.sqrt(x)"),
    ("rsqrt", "math", "T.rsqrt(x)"),
    ("abs", "math", "T.abs(x)"),
    ("tanh", "math", "T.tanh(x)"),
    ("sigmoid", "math", "T.sigmoid(x)"),
    ("log2", "math", "T.log2(x)"),
    ("floor", "math", "T.floor(x)"),
    ("ceil", "math", "T.ceil(x)"),
    ("pow", "math", "T.pow(x, y)"),
    ("Cast", "math", "T.Cast(dtype, value)"),
    ("clamp", "math", "T.clamp(x, low, high)"),
    ("floordiv", "math", "T.floordiv(a, b)"),
    ("floormod", "math", "T.floormod(a, b)"),
    ("shift_left", "math", "T.shift_left(x, bits)"),
    ("shift_right", "math", "T.shift_right(x, bits)"),
    ("bitwise_and", "math", "T.bitwise_and(x, y)"),
    ("bitwise_or", "math", "T.bitwise_or(x, y)"),
    ("bitwise_xor", "math", "T.bitwise_xor(x, y)"),
    ("bitwise_not", "math", "T.bitwise_not(x)"),
    ("infinity", "math", "T.infinity(dtype)"),
)

PLANNED = {
    "alloc_barrier": "leave barriers out: the compiler puts them where they are needed",
    "alloc_cluster_barrier": "leave barriers out: the compiler puts them where they are needed",
    "alloc_global": "take the workspace as a parameter of the kernel",
    "alloc_reducer": "use a fragment and T.reduce_sum",
    "alloc_tmem": "use T.alloc_fragment: products write fragments on every target",
    "barrier_arrive": "leave it out: the compiler orders threads",
    "barrier_wait": "leave it out: the compiler orders threads",
    "call_extern": "write what the function does with the language's own operations",
    "finalize_reducer": "use a fragment and T.reduce_sum",
    "get_block_binding": "name the blocks: with T.Kernel(gx, gy) as (bx, by)",
    "get_thread_binding": "write T.Parallel(m, n): the compiler gives its points to threads",
    "im2col": "T.copy the rows that a filter's place needs, one place after the other",
    "import_source": "write what the source does with the language's own operations",
    "mbarrier_arrive": "leave it out: the compiler orders threads",
    "mbarrier_wait_parity": "leave it out: the compiler orders threads",
    "PersistentTileScheduler": "give each block a tile: the compiler makes blocks persistent where that is faster",
    "ptr": "take tensors as T.Tensor(shape, dtype)",
    "rng_init": "take random numbers as a parameter of the kernel",
    "rng_rand": "take random numbers as a parameter of the kernel",
    "sync_grid": "write a second kernel for what follows",
    "tcgen05_gemm": "write T.gemm",
    "tma_copy": "write T.copy in T.Pipelined: it becomes a TMA box where the target has it",
    "tvm_warp_shuffle": "exchange through a shared tile; T.reduce_sum and its relatives shuffle by themselves",
    "wait_wgmma": "leave it out: the compiler waits for products where their results are used",
    "wgmma_gemm": "write T.gemm: it becomes wgmma where the target has it",
    "ws": "leave warp groups out: the compiler makes producers of copies in T.Pipelined",
    "copy_async": "write T.copy: the compiler makes copies asynchronous where the target can",
    "cumsum": "add up in a T.serial loop over the dimension",
    "device_assert": "write what is to be checked to an output tensor",
    "gemm_warp": "write T.gemm(..., policy=T.GemmWarpPolicy.FullRow) to say how warps share the product",
    "grid": "write T.Parallel(m, n)",
    "init": "clear the tile in front of the loop: T.clear(tile)",
    "Persistent": "loop over tiles with T.serial in a grid of as many blocks as there are units",
    "print": "write the value to an output tensor, or look at it with kernel.simulate(...)",
    "reshape": "index the tile by // and % in a T.Parallel nest",
    "store": "write T.copy(tile, tensor[...])",
    "sync": "leave it out: the compiler waits for copies where their data is used",
    "transpose": "use transpose_A=True of T.gemm, or index the tile by [j, i] in a T.Parallel nest",
    "view": "index the tile by // and % in a T.Parallel nest",
    "zeros": "allocate the tile and T.clear it",
}
"""Names of the language that later versions bring, and what to write today."""
