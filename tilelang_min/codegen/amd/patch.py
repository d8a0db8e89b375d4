"""Repairs of the LLVM text that TVM prints for amdgcn: what its generator cannot be told.

==============================  ===================================================================================
TVM prints                      becomes
==============================  ===================================================================================
workgroup size ``1,256``        the program's thread count, exactly; ``amdgpu-waves-per-eu`` where asked for
accesses to LDS may be joined   each stays as the thread program has it (``-load-store-opt``): what ``ds_read2_b32`` and its
                                like cost nobody has published, and lowering reads in wide vectors by itself
a bare ``s.barrier``            release fence, barrier, acquire fence (workgroup scope): makes LDS writes visible
LDS variables ``@shmem.1``      named, aligned and placed as ``ThreadProgram.shared`` says (LLVM would sort by size)
``dllexport``                   ``protected``: the symbol is visible to the loader and cannot be preempted
no code object version          version 5
half conversions in software    removed: the hardware converts
alias classes (``!tbaa``)       removed: named by heap addresses, and no help where address spaces say the same
``alloca float, i32 16``        ``alloca [16 x float]``, which LLVM turns into registers in its first pass, not its third
==============================  ===================================================================================

Every pattern is checked: a text that does not have the expected form raises :class:`CodegenError` instead of passing
through half repaired.  Markers are handled by :mod:`tilelang_min.codegen.llvm_lines`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilelang_min.codegen import llvm_float64, storage
from tilelang_min.codegen.amd import matrix_helpers
from tilelang_min.codegen.llvm_types import TYPE_BYTES
from tilelang_min.errors import CodegenError
from tilelang_min.program import OPERATION_MARKER, SharedBuffer, ThreadProgram, atomics

CODE_OBJECT_VERSION = 5
"""Version of the code object: read by every ROCm since 5.5; TVM's LLVM would write 6, which needs ROCm 6.3."""

_BARRIER = re.compile(r"^  call void @llvm\.amdgcn\.s\.barrier\(\)$", re.M)

_SOFTWARE_HALF = re.compile(
    r"^(?:; Function Attrs:[^\n]*\n)?define weak [^\n]*@(?:__truncsfhf2|__extendhfsf2|__truncsfbf2|__truncdfbf2)\("
    r"[^\n]*\{\n.*?^\}\n+",
    re.MULTILINE | re.DOTALL,
)
_KERNEL = re.compile(
    r"^define dllexport amdgpu_kernel void @(?P<name>[\w.]+)\((?P<args>[^\n]*)\) #(?P<group>\d+) \{$", re.M
)
_ARGUMENT = re.compile(r"ptr addrspace\(1\) (?:noalias )?(?:[a-z]\w* )*%(?P<name>[\w.]+)")
_SCALAR = re.compile(r"i32 (?:[a-z]\w* )*%(?P<name>[\w.]+)")
_WORKGROUP = r'"amdgpu-flat-work-group-size"="1,\d+"'  # 256, or what a ROCm driver says
_LDS = re.compile(
    r"^(?P<name>@[\w.]+) = private addrspace\(3\) global \[(?P<count>\d+) x (?P<type>\w+)\] undef(?:, align \d+)?$",
    re.M,
)
_TBAA = re.compile(r", !tbaa !\d+")
_ALLOCA = re.compile(r"(?<= = )alloca (?P<type>[\w<> ]+), i32 (?P<count>\d+)(?=,)")
_FLAGS = re.compile(r"^!llvm\.module\.flags = !\{(?P<flags>[^}\n]*)\}$", re.M)
_TVM_FLAG = re.compile(r'^!(?P<number>\d+) = !\{i32 \d+, !"tvm_target"[^\n]*\n', re.M)
_NODE = re.compile(r"^!(\d+) = ", re.M)
_DECLARED = re.compile(r"^declare [^\n]*@(?P<name>[\w.]+)\(", re.M)

_FENCED_BARRIER = """\
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire"""


def patch_llvm(text: str, program: ThreadProgram, waves_per_eu: tuple[int, int] | None = None) -> str:
    """The module ready for optimisation, except that operation markers still stand in it.

    Raises :class:`CodegenError` where TVM's text is not as expected, and for calls to functions that exist neither as
    an instruction nor as code (``erff``): naming them here is better than an undefined symbol at load time.
    """
    text = _SOFTWARE_HALF.sub("", text)
    _refuse_external_functions(text, program)
    text = _kernel(text, program, waves_per_eu)
    text = _barriers(text)
    text = _TBAA.sub("", text)
    text = _ALLOCA.sub(lambda m: f"alloca [{m['count']} x {m['type']}]", text)
    text = _module_flags(text)
    text = _shared_tiles(text, program.shared, _next_node(text))
    text = text.replace("; ModuleID = 'TVMMod'", f"; ModuleID = '{program.name}'", 1)
    return text.replace('source_filename = "TVMMod"', f'source_filename = "{program.name}"', 1)


def shared_bytes(tiles: tuple[SharedBuffer, ...]) -> int:
    """Bytes of LDS a block uses: the end of the last tile."""
    return max((tile.offset + tile.bytes for tile in tiles), default=0)


def _unexpected(what: str) -> CodegenError:
    return CodegenError(
        f"TVM's LLVM text for amdgcn does not have the expected form: {what}",
        remedy="use the pinned version of apache-tvm; tests of codegen.amd pin the text",
    )


def _refuse_external_functions(text: str, program: ThreadProgram) -> None:
    names = {m["name"] for m in _DECLARED.finditer(text)}
    ours = ("llvm.", atomics.PREFIX, storage.PREFIX, llvm_float64.PREFIX, matrix_helpers.PREFIX)
    unknown = sorted(n for n in names if not n.startswith(ours) and n != OPERATION_MARKER)
    if unknown:
        raise CodegenError(
            f"{program.name} calls {', '.join(unknown)}, which {program.target.name} has no code for",
            remedy="write it with functions that the target has: exp, exp2, log, log2, sqrt, sin, cos, tanh, pow, ...",
        )


def _kernel(text: str, program: ThreadProgram, waves_per_eu: tuple[int, int] | None) -> str:
    """Linkage, argument check, and the attribute group of the kernel."""
    kernels = list(_KERNEL.finditer(text))
    if len(kernels) != 1 or text.count("\ndefine ") != 1:
        raise _unexpected(f"{len(kernels)} kernels and {text.count(chr(10) + 'define ')} functions instead of one")
    kernel = kernels[0]
    arguments = kernel["args"].split(", ")
    count = len(program.parameters)
    matches = [(_ARGUMENT if place < count else _SCALAR).fullmatch(each) for place, each in enumerate(arguments)]
    if kernel["name"] != program.name or len(arguments) != count + len(program.sizes) or not all(matches):
        raise _unexpected(f"kernel {kernel['name']}({kernel['args']}) for {len(program.parameters)} pointers")
    head = f"define protected amdgpu_kernel void @{kernel['name']}({kernel['args']}) #{kernel['group']} {{"
    text = text[: kernel.start()] + head + text[kernel.end() :]
    group = re.compile(rf"^attributes #{kernel['group']} = \{{ [^\n]*{_WORKGROUP}[^\n]*\}}$", re.M)
    found = group.search(text)
    if found is None:
        raise _unexpected("the kernel's attributes lack the workgroup size")
    size = f'"amdgpu-flat-work-group-size"="{program.threads},{program.threads}"'
    if program.shared:  # tiles at absolute addresses need a frame that is there before LLVM lays it out
        size += f' "amdgpu-lds-size"="{shared_bytes(program.shared)}"'
    if program.shared and '"target-features"' not in found[0]:
        size += ' "target-features"="-load-store-opt"'
    if waves_per_eu is not None:
        size += f' "amdgpu-waves-per-eu"="{waves_per_eu[0]},{waves_per_eu[1]}"'
    return text[: found.start()] + re.sub(_WORKGROUP, size, found[0]) + text[found.end() :]


def _barriers(text: str) -> str:
    text, count = _BARRIER.subn(_FENCED_BARRIER, text)
    if count != text.count("call void @llvm.amdgcn.s.barrier("):
        raise _unexpected("a barrier is not written as such")
    return text


def _next_node(text: str) -> int:
    return 1 + max((int(n) for n in _NODE.findall(text)), default=-1)


def _module_flags(text: str) -> str:
    """Adds the code object version, drops TVM's own flag."""
    flags = _FLAGS.search(text)
    tvm_flag = _TVM_FLAG.search(text)
    if flags is None or tvm_flag is None:
        raise _unexpected("module flags are missing")
    number = _next_node(text)
    kept = [each for each in flags["flags"].split(", ") if each != f"!{tvm_flag['number']}"]
    listed = ", ".join([*kept, f"!{number}"])
    text = text.replace(flags[0], f"!llvm.module.flags = !{{{listed}}}").replace(tvm_flag[0], "")
    return f'{text.rstrip()}\n!{number} = !{{i32 1, !"amdhsa_code_object_version", i32 {CODE_OBJECT_VERSION * 100}}}\n'


def _shared_tiles(text: str, tiles: tuple[SharedBuffer, ...], number: int) -> str:
    """Names, alignment and absolute place of the tiles in LDS: the bytes that ``ThreadProgram.shared`` lists.

    TVM prints one variable for each allocation, in program order, aligned to 16 bytes; LLVM would order them by size.
    """
    variables = list(_LDS.finditer(text))
    sizes = [int(m["count"]) * TYPE_BYTES.get(m["type"], 0) for m in variables]
    if sizes != [tile.bytes for tile in tiles] or text.count("addrspace(3) global") != len(tiles):
        raise _unexpected(f"LDS variables of {sizes} bytes for tiles of {[tile.bytes for tile in tiles]}")
    nodes = []
    new_names: dict[str, str] = {}
    for variable, tile in zip(variables, tiles, strict=True):
        again = f".{len(new_names)}" if f"@lds.{tile.name}" in new_names.values() else ""
        name = new_names[variable["name"]] = f"@lds.{tile.name}{again}"
        declaration = (
            f"{name} = internal addrspace(3) global [{variable['count']} x {variable['type']}] poison, "
            f"align 128, !absolute_symbol !{number}"
        )
        text = text.replace(variable[0], declaration, 1)
        nodes.append(f"!{number} = !{{i32 {tile.offset}, i32 {tile.offset + 1}}}\n")
        number += 1
    if new_names:
        text = re.sub(r"@shmem(?:\.\d+)?(?![\w.])", lambda m: new_names.get(m[0], m[0]), text)
    return text + "".join(nodes) + _kept(new_names.values())


def _kept(names: Iterable[str]) -> str:
    """A list that keeps LLVM from splitting or shrinking tiles of which a kernel uses single elements only."""
    uses = [f"ptr addrspacecast (ptr addrspace(3) {name} to ptr)" for name in names]
    if not uses:
        return ""
    return f'@llvm.compiler.used = appending global [{len(uses)} x ptr] [{", ".join(uses)}], section "llvm.metadata"\n'
