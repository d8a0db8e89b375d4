"""Thread program -> LLVM text for amdgcn, as TVM prints it without optimising.

TVM's own ROCm target hard-wires the workgroup size, the code object version and the optimisation level, and re-sorts
kernel arguments by name.  Here its LLVM generator (target kind ``llvm``) is pointed at amdgcn, and the thread program is
passed as a device function, which keeps arguments as they are.  :mod:`.patch` repairs what TVM cannot be told.

Not here: optimisation and machine code (:mod:`.toolchain`).  TVM is imported when a kernel is generated.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from tilelang_min.codegen import llvm_float64
from tilelang_min.codegen.amd import matrix_helpers
from tilelang_min.codegen.passes import lowered
from tilelang_min.codegen.storage import Needs, with_plain_types
from tilelang_min.errors import CodegenError
from tilelang_min.program import ThreadProgram

TRIPLE = "amdgcn-amd-amdhsa"

_HOOK = "tvm.codegen.llvm.target_amdgcn"
_NEEDS = Needs(
    lanes_in_names=True,
    bool_bytes=True,  # bools in LDS are printed as i1, whose place in an array nothing states
)
_WARNING = b"Cannot get maximum number of threads for AMD codegen"
_stderr_lock = threading.Lock()


def print_llvm(program: ThreadProgram) -> str:
    """LLVM text of the program's kernel, not optimised, operation markers in place.

    Passes: buffers flattened, loops marked unrolled expanded, intrinsics lowered.  No barrier is added or moved.

    Raises :class:`CodegenError` where TVM has no LLVM form of an expression or does not know an intrinsic.
    """
    import tvm
    import tvm_ffi
    from tvm import ir
    from tvm.target import Target

    if tvm_ffi.get_global_func(_HOOK, allow_missing=True) is None:
        tvm_ffi.register_global_func(_HOOK, tvm_ffi.get_global_func("tvm.codegen.llvm.target_rocm"))
    target = Target({"kind": "llvm", "mtriple": TRIPLE, "mcpu": program.target.arch, "opt-level": 0})
    function = llvm_float64.rewrite_calls(with_plain_types(program.function, _NEEDS))
    function = matrix_helpers.with_helper_calls(with_signed_powers(function), program.target).with_attr(
        {"global_symbol": program.name, "target": target, "calling_conv": 2, "tirx.is_global_func": True}
    )
    try:
        module = lowered(ir.IRModule.from_expr(function), flatten=True)
        with _without_thread_limit_warning():
            text = tvm.get_global_func("target.build.llvm")(module, target).inspect_source("ll")
    except Exception as error:  # TVM raises plain RuntimeError, ValueError and its own InternalError
        raise CodegenError(
            f"TVM cannot print {program.name} as LLVM for {program.target.name}: {_essence(error)}",
            remedy="use an expression or intrinsic that this target has",
        ) from error
    return str(text)


def _essence(error: Exception) -> str:
    """Last line of a TVM error that says something; its first lines are a C++ check or a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def with_signed_powers(function: Any) -> Any:
    """Powers rewritten so that a negative base works.

    LLVM expands ``llvm.pow`` on amdgcn as ``exp2(y * log2(x))``, which is NaN for every negative x.  Here the power of
    the absolute value gets the sign back where y is an odd whole number, and stays NaN where y is not whole.
    """
    import tvm_ffi
    from tvm import tirx

    def rewrite(call: Any) -> Any:
        if call.op.name != "tirx.pow":
            return call
        base, exponent = call.args
        dtype = str(base.ty.dtype)

        def number(value: float) -> Any:
            return tirx.const(value, dtype)

        size = tirx.call_llvm_pure_intrin(base.ty, "llvm.pow", tirx.abs(base), exponent)
        half = exponent * number(0.5)
        odd = tirx.NE(tirx.floor(half), half)
        whole = tirx.EQ(tirx.floor(exponent), exponent)
        negative = tirx.Select(whole, tirx.Select(odd, number(0.0) - size, size), number(float("nan")))
        return tirx.Select(tirx.LT(base, number(0.0)), negative, size)

    def visit(call: Any) -> Any:
        return rewrite(call) if hasattr(call.op, "name") else call

    body = tvm_ffi.structural_map(function.body, (_call_type(), visit))
    return function if body.same_as(function.body) else function.with_body(body)


def _call_type() -> Any:
    from tvm import ir

    return ir.Call


@contextlib.contextmanager
def _without_thread_limit_warning() -> Iterator[None]:
    """Keeps one warning of TVM's C++ side from the user's terminal.

    Without a ROCm driver TVM says that it cannot ask for the thread limit and assumes 256; :mod:`.patch` writes the real
    workgroup size, so the line would only mislead.  It is written to file descriptor 2, past ``sys.stderr``.  Everything
    else that is written meanwhile is passed on.
    """
    with _stderr_lock, tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        try:
            saved = os.dup(2)
        except OSError:  # no standard error: nothing to protect
            yield
            return
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            rest = b"".join(line for line in held if _WARNING not in line)
            if rest:
                os.write(2, rest)
