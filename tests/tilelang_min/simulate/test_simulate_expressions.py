"""Expressions and control flow: every value against Python or NumPy, thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_programs import Build, choose, f32, i32, load, local, loop, mark, splat, store, var, when
from tvm import tirx

from tilelang_min.errors import SimulationError
from tilelang_min.simulate import simulate

THREADS, STEPS, GRID = 64, 3, (2, 3, 1)

# An integer expression as a function of (thread, x of the block, loop step), for TVM expressions and for Python numbers.
Formula = Any
LEAVES = [
    ("tx", lambda t, x, k: t),
    ("bx", lambda t, x, k: x),
    ("k", lambda t, x, k: k),
    ("0", lambda t, x, k: 0),
    ("5", lambda t, x, k: 5),
    ("-7", lambda t, x, k: -7),
]


def floordiv(a: Any, b: int) -> Any:
    return tirx.floordiv(a, b) if hasattr(a, "ty") else a // b


def floormod(a: Any, b: int) -> Any:
    return tirx.floormod(a, b) if hasattr(a, "ty") else a % b


def least(a: Any, b: Any) -> Any:
    return tirx.min(a, b) if hasattr(a, "ty") or hasattr(b, "ty") else min(a, b)


def greatest(a: Any, b: Any) -> Any:
    return tirx.max(a, b) if hasattr(a, "ty") or hasattr(b, "ty") else max(a, b)


def extend(inner: Any) -> Any:
    def binary(name: str, function: Any) -> Any:
        return st.tuples(inner, inner).map(
            lambda p: (f"({p[0][0]} {name} {p[1][0]})", lambda t, x, k: function(p[0][1](t, x, k), p[1][1](t, x, k)))
        )

    def by_constant(name: str, function: Any, numbers: tuple[int, ...]) -> Any:
        return st.tuples(inner, st.sampled_from(numbers)).map(
            lambda p: (f"({p[0][0]} {name} {p[1]})", lambda t, x, k: function(p[0][1](t, x, k), p[1]))
        )

    return st.one_of(
        binary("+", lambda a, b: a + b),
        binary("-", lambda a, b: a - b),
        binary("*", lambda a, b: a * b),
        binary("min", least),
        binary("max", greatest),
        by_constant("*", lambda a, b: a * b, (-3, 2, 8)),
        by_constant("//", floordiv, (1, 2, 3, 8, 32)),
        by_constant("%", floormod, (2, 3, 8, 32)),
        by_constant("<<", lambda a, b: a << b, (0, 3)),
        by_constant("^", lambda a, b: a ^ b, (1, 6)),
    )


formulas = st.recursive(st.sampled_from(LEAVES), extend, max_leaves=7)


def run(formula: Any, *, unroll: bool, loaded: bool) -> Any:
    """Stores the formula for every thread, block and step; ``loaded``: the thread index comes from memory."""
    b = Build(threads=THREADS, grid=GRID)
    ids = b.parameter("ids", "int32", (THREADS,))
    out = b.parameter("O", "int32", (GRID[0] * GRID[1], STEPS, THREADS), "out")
    k, t = var("k"), var("t")
    value = formula(t, b.bx, k)
    value = value if hasattr(value, "ty") else i32(value)
    where = ((b.by * GRID[0] + b.bx) * STEPS + k) * THREADS + b.tx
    thread = load(ids, b.tx) if loaded else b.tx + 0
    body = loop(k, STEPS, tirx.Bind(t, thread), store(out, value, where), unroll=unroll)
    return simulate(b.program(mark(1), body), {"ids": np.arange(THREADS, dtype=np.int32)}).outputs["O"]


@settings(max_examples=60, deadline=None)
@given(formula=formulas, unroll=st.booleans(), loaded=st.booleans())
def test_integer_expressions(formula: Any, unroll: bool, loaded: bool) -> None:
    text, function = formula
    expected = np.array(
        [
            [[function(t, x, k) for t in range(THREADS)] for k in range(STEPS)]
            for _ in range(GRID[1])
            for x in range(GRID[0])
        ]
    )
    if np.abs(expected).max() < 2**24:  # intermediate values stay within 32 bits
        assert np.array_equal(run(function, unroll=unroll, loaded=loaded), expected), text


SPLITS = [  # // and % of sums whose parts divide, or do not: where thread and loop parts are kept apart
    lambda t, x, k: floordiv(t + 5, 8),
    lambda t, x, k: floormod(t + 5, 8),
    lambda t, x, k: floordiv(t + k * 16 + 13, 8),
    lambda t, x, k: floormod(t + k * 16 + 13, 8),
    lambda t, x, k: floordiv(t + k * 3 - 70, 8),
    lambda t, x, k: floormod(t + k * 3 - 70, 8),
    lambda t, x, k: floordiv(k * 16 + x * 8 - 9, 8) * 100 + floormod(t * 8 + k * 24 - 3, 8),
    lambda t, x, k: floormod(floordiv(t, 4) + k * 4, 3) + least(t + k, 7 + k) * greatest(k * 2, x),
    lambda t, x, k: (t ^ (floordiv(t, 8) + k)) + (floormod(t, 8) ^ 3) - (t + k * 64) % 32,
]


@pytest.mark.parametrize("number", range(len(SPLITS)))
@pytest.mark.parametrize("unroll", [True, False])
def test_splitting_of_quotients_and_remainders(number: int, unroll: bool) -> None:
    function = SPLITS[number]
    expected = [[function(t, x, k) for t in range(THREADS)] for x in range(GRID[0]) for k in range(STEPS)]
    result = run(function, unroll=unroll, loaded=False)
    assert np.array_equal(result[: GRID[0]].reshape(GRID[0] * STEPS, THREADS), np.array(expected))


@settings(max_examples=40, deadline=None)
@given(
    left=formulas,
    right=formulas,
    name=st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    unroll=st.booleans(),
    form=st.sampled_from(["branch", "value", "select", "not", "and"]),
)
def test_conditions(left: Any, right: Any, name: str, unroll: bool, form: str) -> None:
    """A comparison as a branch, as a conditional value, as Select, negated, and combined; against Python."""
    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
    }[name]
    b = Build(threads=THREADS, grid=GRID)
    out = b.parameter("O", "int32", (GRID[0], STEPS, THREADS), "out")
    k = var("k")
    a_value, b_value = left[1](b.tx, b.bx, k), right[1](b.tx, b.bx, k)
    a_value = a_value if hasattr(a_value, "ty") else i32(a_value)
    condition = compare(a_value, b_value)
    if name == "==":
        condition = tirx.EQ(a_value, b_value if hasattr(b_value, "ty") else i32(b_value))
    if name == "!=":
        condition = tirx.NE(a_value, b_value if hasattr(b_value, "ty") else i32(b_value))
    if form == "not":
        condition = tirx.Not(condition)
    if form == "and":
        condition = tirx.And(condition, tirx.Or(b.tx < 9, b.tx >= 40))
    where = (b.bx * STEPS + k) * THREADS + b.tx
    if form in ("branch", "not", "and"):
        body = when(condition, store(out, i32(1), where), other=store(out, i32(0), where))
    elif form == "value":
        body = store(out, choose(condition, i32(1), i32(0)), where)
    else:
        body = store(out, tirx.Select(condition, i32(1), i32(0)), where)
    result = simulate(b.program(mark(1), loop(k, STEPS, body, unroll=unroll)), {}).outputs["O"]

    def holds(t: int, x: int, k: int) -> bool:
        truth = bool(compare(left[1](t, x, k), right[1](t, x, k)))
        if form == "not":
            return not truth
        return truth and (t < 9 or t >= 40) if form == "and" else truth

    expected = [[[holds(t, x, k) for t in range(THREADS)] for k in range(STEPS)] for x in range(GRID[0])]
    assert np.array_equal(result.astype(bool), np.array(expected)), (left[0], name, right[0], form)


FLOATS = [
    ("exp", tirx.exp, np.exp),
    ("exp2", tirx.exp2, np.exp2),
    ("log", tirx.log, np.log),
    ("sqrt", tirx.sqrt, np.sqrt),
    ("rsqrt", tirx.rsqrt, lambda x: 1 / np.sqrt(x)),
    ("tanh", tirx.tanh, np.tanh),
    ("sigmoid", tirx.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    ("abs", tirx.abs, np.abs),
    ("floor", tirx.floor, np.floor),
    ("pow", lambda x: tirx.pow(x, f32(1.5)), lambda x: np.power(x, 1.5)),
    ("max", lambda x: tirx.max(x, f32(1.0)), lambda x: np.maximum(x, 1)),
    ("divide", lambda x: x / f32(3.0), lambda x: x / 3),
    ("half", lambda x: tirx.Cast("float32", tirx.Cast("float16", x)), lambda x: x.astype(np.float16)),
    (
        "bits",
        lambda x: tirx.Cast("float32", tirx.reinterpret("int32", x)),
        lambda x: x.view(np.int32).astype(np.float32),
    ),
    (
        "to int",
        lambda x: tirx.Cast("float32", tirx.Cast("int32", x * f32(-9.0))),
        lambda x: np.trunc(x * np.float32(-9)),
    ),
]


SCALAR_ONLY = {"pow", "max", "divide", "half", "bits", "to int"}  # their formulas above are written with scalars
CASES = [(*case, lanes) for case in FLOATS for lanes in (1, 4) if lanes == 1 or case[0] not in SCALAR_ONLY]


@pytest.mark.parametrize(("name", "symbolic", "reference", "lanes"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_float_functions(name: str, symbolic: Any, reference: Any, lanes: int) -> None:
    b = Build(threads=32)
    a_in, out = b.parameter("A", "float32", (32 * lanes,)), b.parameter("O", "float32", (32 * lanes,), "out")
    a = (np.random.default_rng(3).random(32 * lanes) * 3 + 0.01).astype(np.float32)
    program = b.program(mark(1), store(out, symbolic(load(a_in, b.tx * lanes, lanes)), b.tx * lanes, lanes))
    assert np.allclose(simulate(program, {"A": a}).outputs["O"], reference(a), rtol=1e-6)


def test_float32_stays_float32() -> None:
    """0.1 + x in float32, and float16 sums rounded to float16 at each step."""
    b = Build(threads=32)
    a_in, h_in = b.parameter("A", "float32", (32,)), b.parameter("H", "float16", (32,))
    out, half = b.parameter("O", "float32", (32,), "out"), b.parameter("P", "float16", (32,), "out")
    h = load(h_in, b.tx)
    program = b.program(mark(1), store(out, load(a_in, b.tx) + f32(0.1), b.tx), store(half, h * h + h, b.tx))
    a = np.linspace(1, 2, 32, dtype=np.float32)
    x = np.linspace(0.3, 3, 32).astype(np.float16)
    outputs = simulate(program, {"A": a, "H": x}).outputs
    assert np.array_equal(outputs["O"], a + np.float32(0.1))
    assert np.array_equal(outputs["P"], (x * x).astype(np.float16) + x)


def test_vectors() -> None:
    """Ramp, Broadcast, reinterpretation of pairs, vector select."""
    b = Build(threads=32)
    h_in = b.parameter("H", "float16", (64,))
    ramps, words = b.parameter("R", "int32", (128,), "out"), b.parameter("W", "uint32", (32,), "out")
    tx = b.tx
    ramp = tirx.Ramp(tx * 10, 3, 4) + splat(i32(1), 4)
    body = [
        store(ramps, ramp, tx * 4, 4),
        store(words, tirx.reinterpret("uint32", load(h_in, tx * 2, 2)), tx),
    ]
    h = np.random.default_rng(1).standard_normal(64).astype(np.float16)
    outputs = simulate(b.program(mark(1), *body), {"H": h}).outputs
    assert np.array_equal(outputs["R"].reshape(32, 4), np.arange(32)[:, None] * 10 + 1 + 3 * np.arange(4))
    assert np.array_equal(outputs["W"], h.view(np.uint32))


def test_integer_arithmetic_on_data_wraps() -> None:
    b = Build(threads=32)
    a_in, out = b.parameter("A", "uint32", (32,)), b.parameter("O", "uint32", (32,), "out")
    value = load(a_in, b.tx) * tirx.IntImm("uint32", 2654435761) + tirx.IntImm("uint32", 12345)
    a = np.arange(32, dtype=np.uint32) + np.uint32(1 << 20)
    outputs = simulate(b.program(mark(1), store(out, value, b.tx)), {"A": a}).outputs
    assert np.array_equal(outputs["O"], a * np.uint32(2654435761) + np.uint32(12345))


def test_addresses_from_data() -> None:
    """Gather by loaded indices: sectors depend on them; an index past the end is found with its thread."""
    b = Build(threads=32)
    at, a_in = b.parameter("at", "int32", (32,)), b.parameter("A", "float32", (256,))
    out = b.parameter("O", "float32", (32,), "out")
    program = b.program(mark(1), store(out, load(a_in, load(at, b.tx)), b.tx))
    a = np.random.default_rng(5).random(256).astype(np.float32)
    for stride, sectors in ((0, 1), (1, 4), (8, 32)):
        index = (np.arange(32) * stride).astype(np.int32)
        result = simulate(program, {"at": index, "A": a})
        assert np.array_equal(result.outputs["O"], a[index])
        assert [c.sectors for c in result.counts if c.buffer == "A"] == [sectors]
    index[17] = 256
    with pytest.raises(SimulationError, match="element 256 of A, which has 256, in thread 17 of block"):
        simulate(program, {"at": index, "A": a})


def test_trip_count_that_differs_by_thread_and_block() -> None:
    b = Build(threads=32, grid=(2, 1, 1))
    out = b.parameter("O", "int32", (64,), "out")
    total, k = local("total", 1, "int32"), var("k")
    body = [
        store(total, i32(0), 0),
        loop(k, b.tx + b.bx * 2, store(total, load(total, 0) + k, 0)),
        store(out, load(total, 0), b.bx * 32 + b.tx),
    ]
    result = simulate(b.program(mark(1), *body, locals=[total]), {})
    trips = np.arange(32) + np.array([[0], [2]])
    assert np.array_equal(result.outputs["O"].reshape(2, 32), trips * (trips - 1) // 2)


def test_registers_under_masks_and_by_dynamic_index() -> None:
    b = Build(threads=32)
    out = b.parameter("O", "float32", (2, 32), "out")
    r, k = local("r", 4), var("k")
    body = [
        store(r, splat(f32(1.0), 4), 0, 4),
        when(b.tx < 10, when(b.tx >= 4, store(r, f32(7.0), 1)), store(r, splat(f32(2.0), 2), 2, 2)),
        loop(k, 2, store(out, load(r, k + 1), k * 32 + b.tx)),
    ]
    outputs = simulate(b.program(mark(1), *body, locals=[r]), {}).outputs["O"]
    t = np.arange(32)
    assert np.array_equal(outputs[0], np.where((t < 10) & (t >= 4), 7, 1))
    assert np.array_equal(outputs[1], np.where(t < 10, 2, 1))


def test_bind_keeps_the_value_it_had() -> None:
    b = Build(threads=32)
    out = b.parameter("O", "float32", (32,), "out")
    r, v = local("r", 1), tirx.Var("v", "float32")
    body = [store(r, f32(1.0), 0), tirx.Bind(v, load(r, 0)), store(r, f32(2.0), 0), store(out, v + load(r, 0), b.tx)]
    assert np.array_equal(simulate(b.program(mark(1), *body, locals=[r]), {}).outputs["O"], np.full(32, 3, np.float32))


def test_unwritten_memory_is_poison() -> None:
    """Registers and shared memory that nothing wrote read as NaN, or 0x7f bytes; so do outputs."""
    b = Build(threads=32)
    out = b.parameter("O", "float32", (4, 32), "out")
    ints = b.parameter("I", "int32", (32,), "out")
    tile, r, n = b.shared("tile", "float32", 32), local("r", 1), local("n", 1, "int32")
    body = [
        store(out, load(r, 0), b.tx),
        store(out, load(tile, b.tx), 32 + b.tx),
        store(out, tirx.max(load(r, 0), f32(0.0)), 64 + b.tx),
        store(ints, load(n, 0), b.tx),
    ]
    outputs = simulate(b.program(mark(1), *body, locals=[r, n]), {}).outputs
    assert np.isnan(outputs["O"]).all()
    assert (outputs["I"] == 0x7F7F7F7F).all()


def test_instruction_counts_of_arithmetic() -> None:
    b = Build(threads=64)
    a_in, out = b.parameter("A", "float32", (64,)), b.parameter("O", "float32", (64,), "out")
    x = load(a_in, b.tx)
    body = [
        store(out, x * x + f32(1.0), b.tx),  # one fma
        store(out, tirx.exp(x) - x, b.tx),  # special, float
        store(out, tirx.Cast("float32", tirx.Cast("float16", x)), b.tx),  # two conversions
        when(b.tx < 32, store(out, x * f32(2.0), b.tx)),  # one warp of two
    ]
    executed = simulate(b.program(mark(1), *body), {"A": np.ones(64, np.float32)}).executed[1]
    assert executed == {"fma": 2, "special": 2, "float": 3, "convert": 4, "global_load": 11, "global_store": 7}


def test_operations_follow_markers_in_program_order() -> None:
    """A marker holds across the ends of loops and branches."""
    b = Build(threads=32)
    out = b.parameter("O", "float32", (32,), "out")
    k = var("k")
    write = store(out, f32(1.0), b.tx)
    body = [
        *(mark(1), loop(k, 2, mark(2), write, mark(3), write), write),
        *(mark(4), when(b.tx < 16, mark(5), write), write),
    ]
    result = simulate(b.program(*body), {})
    assert {c.operation: c.requests for c in result.counts} == {2: 2, 3: 3, 5: 2}


def test_writes_to_an_input_are_refused() -> None:
    b = Build(threads=32)
    a_in = b.parameter("A", "float32", (32,))
    with pytest.raises(SimulationError, match=r"kernel\.py:11:5: the kernel writes its input parameter A"):
        simulate(b.program(mark(1), store(a_in, f32(1.0), b.tx)), {"A": np.ones(32, np.float32)})
