"""Statements that NVRTC takes faster as one, and copies as ptxas takes them best."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.tirx import ptx

from tilelang_min.codegen.nvidia.async_copies import definitions, with_quick_copies
from tilelang_min.codegen.nvidia.joined import join

MACRO = (
    '#define f_wgmma_mma_async_1(__d0, __d1, __a, __s) asm volatile("{ setp p, %3, 0; wgmma {%0, %1}, %2, p; }" : '
    '"+f"(__d0), "+f"(__d1) : "l"((uint64_t)(__a)), "r"((uint32_t)(__s)))\n'
)


def test_products_on_the_same_accumulators_are_joined() -> None:
    calls = ["c[0], c[1], g(x, 1), 1", "c[0], c[1], g(x, 2), 1", "c[2], c[3], x, 1", "c[0], c[1], x, 0"]
    kernel = "\n".join(["start();", *(f"  f_wgmma_mma_async_1({each});" for each in calls), "end();"])
    macros, text = join(MACRO, kernel)
    assert text.split("\n") == [
        "start();",
        "f_wgmma_mma_async_1_x2(c[0], c[1], g(x, 1), 1, g(x, 2), 1);",
        "  f_wgmma_mma_async_1(c[2], c[3], x, 1);",
        "  f_wgmma_mma_async_1(c[0], c[1], x, 0);",
        "end();",
    ]
    assert macros == MACRO + (
        "#define f_wgmma_mma_async_1_x2(__d0, __d1, __a_0, __s_0, __a_1, __s_1) asm volatile("
        '"{ setp p, %3, 0; wgmma {%0, %1}, %2, p; } { setp p, %5, 0; wgmma {%0, %1}, %4, p; }" : "+f"(__d0), "+f"(__d1) : '
        '"l"((uint64_t)(__a_0)), "r"((uint32_t)(__s_0)), "l"((uint64_t)(__a_1)), "r"((uint32_t)(__s_1)))\n'
    )


def test_a_macro_ends_with_its_line() -> None:
    """What helper is defined behind a product is none of its operands."""
    other = "#define g(p) ((unsigned int)(p))\n"
    text = "f_wgmma_mma_async_1(a, b, g(x), 1);\nf_wgmma_mma_async_1(a, b, g(y), 1);"
    assert join(MACRO + other, text) == (MACRO + other + join(MACRO, text)[0].removeprefix(MACRO), join(MACRO, text)[1])
    assert join(MACRO + other, text)[0].count("#define g(") == 1


def test_registers_held_back_are_joined() -> None:
    kernel = "\n".join(f"  __tl_keep_float32(c[{number}]);" for number in range(3)) + "\n  __tl_keep_uint32(d);"
    assert join("", kernel)[1] == (
        'asm volatile("" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]) : : "memory");\n  __tl_keep_uint32(d);'
    )
    assert join("", "  __tl_keep_float32(c[0]);")[1] == "  __tl_keep_float32(c[0]);"


def copies_of(function: Any) -> list[list[Any]]:
    """Arguments of the macro calls."""
    found: list[list[Any]] = []
    from tvm.ir import Call
    from tvm_ffi import structural_walk

    def note(call: Any) -> None:
        if "call_extern" in str(getattr(call.op, "name", "")):
            found.append(list(call.args))

    structural_walk(function.body, (Call, note))
    return found


def test_what_a_condition_guards_is_not_read() -> None:
    """The place of a copy stands in memory, where there is one: the read stays behind the branch."""
    shared, tensor = (tirx.decl_buffer((4096,), "float16", name, scope=name) for name in ("shared", "global"))
    table = tirx.decl_buffer((8,), "int32", "table", scope="global")
    k = tirx.Var("k", "int32")
    copy = ptx["cp.async.cg.shared::cta.global"](shared.ptr_to([k]), tensor.ptr_to([table[k] * 8]), 16)
    made = with_quick_copies(tirx.PrimFunc([k], tirx.IfThenElse(k < 8, tirx.Evaluate(copy), None)))
    assert "if k < 8" in str(made)


def test_copies_under_a_condition() -> None:
    shared, tensor = (tirx.decl_buffer((4096,), "float16", name, scope=name) for name in ("shared", "global"))
    k = tirx.Var("k", "int32")

    def copy(place: Any, source: Any, *rest: Any) -> Any:
        name = "cp.async.cg.shared::cta.global"
        return tirx.Evaluate(ptx[name](shared.ptr_to([place]), tensor.ptr_to([source]), 16, *rest))

    branch = tirx.IfThenElse(k < 3, tirx.SeqStmt([copy(k * 8, k * 64), copy(k * 8 + 512, k * 64 + 2048)]), None)
    alone = tirx.IfThenElse(k < 5, copy(k, tirx.Select(k < 1, k, tirx.IntImm("int32", 0))), None)
    zeros = copy(k, k, tirx.Cast("uint32", k))
    stays = tirx.IfThenElse(k < 7, tirx.SeqStmt([copy(k, k), tirx.BufferStore(shared, shared[1], [0])]), None)
    made = with_quick_copies(tirx.PrimFunc([k], tirx.SeqStmt([branch, alone, zeros, stays])))
    first, second, third, last = copies_of(made)
    assert [str(each[0].value) for each in (first, second, third, last)] == [
        *["__tl_cp_async_cg_if"] * 3,
        "__tl_cp_async_cg",
    ]
    assert [int(each[place]) for each in (first, second, third) for place in (2, 4)] == [0, 0, 1024, 4096, 0, 0]
    assert str(first[-1]) == "k < 3"
    assert str(first[1]) == str(second[1])  # the same address, from which the constants count
    assert "if k < 7" in str(made)
    assert "if k < 3" not in str(made)
    assert str(made).count("T.ptx.cp") == 1  # the one that says how many bytes there are
    text = "__tl_cp_async_cg(1); __tl_cp_async_cg_if(1);"
    assert [line.split("(")[0] for line in definitions(text).splitlines()] == [
        "#define __tl_cp_async_cg",
        "#define __tl_cp_async_cg_if",
    ]
