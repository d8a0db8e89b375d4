"""Options of ``tilelang.jit`` and ``tilelang.compile`` that kernels for TileLang carry: which mean something here.

They steer TileLang's own passes, its host code or the vendor's compiler.  Those that can change how fast a kernel is, or allow
results to be less exact, are taken: what this compiler does is decided by its own ``options``, and its results are as exact
with a permission as without it.  Those that would change what is computed, or what a call gives back, are refused.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from tilelang_min.errors import LanguageError, did_you_mean


class PassConfigKey(Enum):
    """Keys of ``pass_configs`` by TileLang's names.  None changes what a kernel computes here."""

    TL_ENABLE_FAST_MATH = "tl.enable_fast_math"
    TL_DISABLE_FAST_MATH = "tl.disable_fast_math"
    TL_DISABLE_WARP_SPECIALIZED = "tl.disable_warp_specialized"
    TL_DISABLE_TMA_LOWER = "tl.disable_tma_lower"
    TL_DISABLE_THREAD_STORAGE_SYNC = "tl.disable_thread_storage_sync"
    TL_DISABLE_DATA_RACE_CHECK = "tl.disable_data_race_check"
    TL_DISABLE_BUFFER_INIT_CHECK = "tl.disable_buffer_init_check"
    TL_DISABLE_SAFE_MEMORY_ACCESS = "tl.disable_safe_memory_legalize"
    TL_DISABLE_VECTORIZE_256 = "tl.disable_vectorize_256"
    TL_ENABLE_FP32X2_REDUCTION = "tl.enable_fp32x2_reduction"
    TL_ENABLE_ASYNC_COPY = "tl.enable_async_copy"
    TL_ENABLE_LOWER_LDGSTG = "tl.enable_lower_ldgstg"
    TL_DISABLE_WGMMA = "tl.disable_wgmma"
    TL_DISABLE_SHUFFLE_ELECT = "tl.disable_shuffle_elect"
    TL_DISABLE_LOOP_UNSWITCHING = "tl.disable_loop_unswitching"
    TL_DISABLE_OUT_OF_BOUND_WARNING = "tl.disable_out_of_bound_warning"
    TL_DISABLE_SHARED_MEMORY_REUSE = "tl.disable_shared_memory_reuse"
    TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS = "tl.debug_merge_shared_memory_allocations"
    TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE = "tl.enable_aggressive_shared_memory_merge"
    TL_ENABLE_PTXAS_VERBOSE_OUTPUT = "tl.enable_ptxas_verbose_output"
    TL_PTXAS_REGISTER_USAGE_LEVEL = "tl.ptxas_register_usage_level"
    TL_LAYOUT_VISUALIZATION_ENABLE = "tl.layout_visualization_enable"
    TL_LAYOUT_VISUALIZATION_FORMATS = "tl.layout_visualization_formats"
    TL_FORCE_LET_INLINE = "tl.force_let_inline"
    TL_AST_PRINT_ENABLE = "tl.ast_print_enable"
    TIR_DISABLE_VECTORIZE = "tirx.disable_vectorize"
    TIR_MERGE_STATIC_SMEM = "tirx.merge_static_smem"


BACKENDS = ("auto", "tvm_ffi", "dlpack", "cython", "ctypes", "nvrtc", "torch", "cutedsl")
"""Ways in which TileLang calls a kernel.  There is one here, for arrays and tensors of all kinds."""

_FLAGS = re.compile(
    r"-O[0-3]|-g|-G|-lineinfo|--?generate-line-info|--?use_fast_math|-ffast-math|-w|-v|--?ptxas-options.*|-Xptxas.*"
    r"|--?expt-.*|--?maxrregcount.*|--?fmad=.*|--?diag-suppress.*|-std=.*|-W.*|-DNDEBUG|-DENABLE_BF16"
)
"""Flags of the vendor's compiler that change speed, messages and permissions alone."""

FOREIGN = ("execution_backend", "target_host", "pass_configs", "compile_flags", "verbose")
"""Options that :func:`check_foreign` takes."""


def check_foreign(options: dict[str, Any]) -> dict[str, Any]:
    """``options`` without those of TileLang that say how its compiler works.

    Raises LanguageError for a value that this compiler cannot follow.
    """
    rest = {name: value for name, value in options.items() if name not in FOREIGN}
    backend = options.get("execution_backend")
    if backend is not None and backend not in BACKENDS:
        raise LanguageError(f"there is no execution_backend {backend!r}", remedy=did_you_mean(str(backend), BACKENDS))
    if options.get("target_host") not in (None, "llvm", "c"):
        raise LanguageError(
            f"target_host={options['target_host']!r} is not supported",
            remedy="leave it out: calls are made from Python",
        )
    known = [key.value for key in PassConfigKey]
    for key in options.get("pass_configs") or ():
        text = key.value if isinstance(key, PassConfigKey) else str(key)
        if text not in known:
            raise LanguageError(f"pass_configs has no key {text!r} here", remedy=did_you_mean(text, known))
    flags = options.get("compile_flags") or ()
    for flag in flags.split() if isinstance(flags, str) else flags:
        if not _FLAGS.fullmatch(str(flag)):
            raise LanguageError(
                f"compile_flags has {flag!r}, which this compiler cannot follow",
                remedy="leave it out: no source is included or linked, and definitions reach no code of a kernel",
            )
    return rest


__all__ = ["BACKENDS", "FOREIGN", "PassConfigKey", "check_foreign"]
