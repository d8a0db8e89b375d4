"""Every error of the front end: message, line, caret and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernel_source import body, load, take_mark

import tilelang_min.language as T
from tilelang_min.errors import LanguageError, ShapeError
from tilelang_min.frontend import parse
from tilelang_min.language import PrimFunc

# What stands in the body of a kernel (the mark « before the expected caret), a part of the message, a part of the remedy.
BODIES: dict[str, tuple[str, str, str]] = {
    # -- names and constructs --------------------------------------------------------------------------------
    "unknown function": ("x[0] = «T.sin(1.0)", "the tile language has no T.sin", "functions of numbers are Cast, abs"),
    "name of nothing": ("x[0] = «nothing", "'nothing' is not defined here", "define it before the kernel"),
    "function that fails": (
        "for k in T.serial(«T.ceildiv(64, bn - bn)):\n    T.clear(S)",
        "calling T.ceildiv failed: ZeroDivisionError",
        "its arguments here are 64, 0",
    ),
    "too few stages": (
        "for k in T.Pipelined(4, num_stages=«-1):\n    T.clear(S)",
        "num_stages is -1, it must be at least 0",
        "write 0 or more",
    ),
    "more iterations than a variable counts": (
        "for k in «range(10**10):\n    T.clear(S)",
        "10,000,000,000 does not fit a loop variable",
        "nest two loops",
    ),
    "element of a tensor out of range": (
        "«A[64, 0] = x[0]",
        "index 64 is outside dimension 0 of A, which has 64 elements",
        "use 0 to 63",
    ),
    "misspelt construct": ("«T.copi(A[0, 0], S)", "the tile language has no T.copi", "did you mean T.copy?"),
    "dimension that is not there": (
        "T.reduce_sum(F, G, dim=«2)",
        "F has 2 dimensions, there is no dimension 2",
        "use dim=-2 to 1",
    ),
    "result of the wrong shape": (
        "V = T.alloc_fragment((bn,), 'float32')\nT.reduce_max(F, «V, dim=1)",
        "reducing dimension 1 of F (16, 32) gives (16,), V is (32,)",
        "allocate V with shape (16,) or (16, 1)",
    ),
    "reduction of a tensor": (
        "T.reduce_sum(«A, x)",
        "the tile of T.reduce_sum must be a fragment or a shared tile, A is in global memory",
        "T.copy it into a fragment first",
    ),
    "reduction into a local tile": (
        "T.reduce_sum(F, «x)",
        "the result of T.reduce_sum must be a fragment or a shared tile, x is local to each thread",
        "allocate it with T.alloc_fragment",
    ),
    "reduction of a slice of a fragment": (
        "R = T.alloc_fragment((8,), 'float32')\nT.reduce_sum(«F[0:8, :], R)",
        "must be a whole fragment, not a slice of one",
        "copy the slice through a shared tile",
    ),
    "reduction of a number": ("T.reduce_sum(«3, x)", "must be a fragment or a shared tile, this is no tile", ""),
    "unknown argument of a reduction": (
        "«T.reduce_sum(F, x, axis=1)",
        "T.reduce_sum has no argument 'axis'",
        "T.reduce_sum(buffer, out, dim=-1, clear=True)",
    ),
    "condition on an element": (
        "if «F[0, 0] > 0.0:\n    T.clear(S)",
        "an element of a fragment belongs to one thread: threads would go different ways",
        "use it inside T.Parallel, or T.copy the fragment into a shared tile",
    ),
    "variable in an expression": (
        "x[0] = 1 + «T.alloc_var('float32')",
        "T.alloc_var cannot be used inside an expression",
        "on the right of an assignment",
    ),
    "panel of no blocks": ("T.use_swizzle(«0)", "panel_size is 0, it must be at least 1", ""),
    "panel in an unknown order": ("T.use_swizzle(4, order=«'rows')", "'rows' is no order of blocks", "'row' or 'column'"),
    "planned construct": (
        "«T.cumsum(F, G)",
        "T.cumsum is part of the language but not supported by this version",
        "add up in a T.serial loop over the dimension",
    ),
    "misspelt tile": ("T.copy(A[0, 0], «SS)", "the name 'SS' is not defined here", "did you mean 'S'?"),
    "unknown name": ("T.copy(A[0, 0], «Qwertz)", "the name 'Qwertz' is not defined here", ""),
    "name of an ended block": (
        "for k in T.serial(3):\n    y = k + 1\nx[0] = «y",
        "the name 'y' is not defined here",
        "",
    ),
    "attribute of a tile": ("x[0] = «S.strides", "a tile has no attribute 'strides'", "tiles have .shape and .dtype"),
    "attribute of a module": ("x[0] = «math.tau2", "has no attribute 'tau2'", ""),
    # -- statements ------------------------------------------------------------------------------------------
    "return": ("«return", "Return statements are not part of the tile language", "assignments, for loops and if"),
    "while": ("«while True:\n    pass", "While statements are not part of the tile language", "for loops"),
    "with inside": ("«with T.Kernel(3):\n    pass", "With statements are not part of the tile language", "T.*"),
    "call of something else": ("«print(S)", "print is not a tile statement", "use T.copy, T.gemm, T.fill, T.clear or"),
    "loop construct as statement": ("«T.serial(3)", "T.serial is not a tile statement", "for k in T.serial(n)"),
    "statement in an expression": (
        "x[0] = «T.copy(S, F)",
        "T.copy cannot be used inside an expression",
        "as a statement of its own: T.copy(source, target)",
    ),
    "allocation in an expression": (
        "x[0] = 1 + «T.alloc_local((1,), 'float32')",
        "T.alloc_local cannot be used inside an expression",
        "on the right of an assignment",
    ),
    "loop in an expression": (
        "x[0] = «T.Parallel(3)",
        "T.Parallel cannot be used inside an expression",
        "as the iterable of a for loop",
    ),
    # -- assignments -----------------------------------------------------------------------------------------
    "tensor bound again": (
        "«A = 3",
        "'A' is a tensor of the kernel and cannot be bound again",
        "assign to its elements (A[i] = ...)",
    ),
    "chained assignment": ("«y = z = 3", "an assignment has one target and a value", ""),
    "annotation alone": ("«y: int", "an assignment has one target and a value", ""),
    "names for too few parts": ("«y, z, w = S.shape", "3 names for 2 parts", "name each part once"),
    "names for what has no parts": ("y, z = «bm", "this has no parts that names could be given to", "write a tuple"),
    "starred target": ("«y, *z = 1, 2, 3", "this kind of assignment is not part of the tile language", ""),
    "attribute target": ("«S.y = 3", "this kind of assignment is not part of the tile language", ""),
    "updated name": (
        "y = 3\n«y += 1",
        "names are bound once and cannot be updated",
        "make it with T.alloc_var(dtype), or update an element: x[0] += value",
    ),
    "name rebound in a loop": (
        "y = 3\nfor k in T.serial(3):\n    «y = k",
        "'y' is bound outside this block and cannot be bound again",
        "y = T.alloc_var(dtype)",
    ),
    "name rebound in a branch": (
        "y = 3\nif bx > 0:\n    «y = 4",
        "'y' is bound outside this block and cannot be bound again",
        "T.alloc_var",
    ),
    "slice assigned": (
        "«S[0:4, 0:4] = 0.0",
        "one element is assigned at a time",
        "use T.copy or T.fill for regions, or a T.Parallel nest",
    ),
    "tile assigned as a value": (
        "x[0] = «S",
        "S is a whole tile where one value is needed",
        "index it inside T.Parallel: S[i, j]",
    ),
    "text assigned": ("x[0] = «'three'", "a number or expression is needed here, not str", "pass a number"),
    "number in quotes": ("x[0] = «'128'", "a number or expression is needed here, not str", "write 128 without quotes"),
    "fragment outside of a nest": (
        "«F[0, 0] = 1.0",
        "an element of a fragment belongs to one thread and is used inside T.Parallel",
        "write a T.Parallel nest",
    ),
    "fragment read outside of a nest": (
        "«x[0] = F[0, 0]",
        "an element of a fragment belongs to one thread",
        "write a T.Parallel nest",
    ),
    "fragment as an index outside of a nest": (
        "K = T.alloc_fragment((4,), 'int32')\nT.copy(I[0:4], K)\n«S[K[0], 0] = 1.0",
        "an element of a fragment belongs to one thread",
        "write a T.Parallel nest",
    ),
    # -- local tiles -----------------------------------------------------------------------------------------
    "local tile carried out of a nest": (
        "for i in T.Parallel(4):\n    x[0] = A[0, i]\n«S[0, 0] = x[0]",
        "x is written in the T.Parallel nest of line 16, where it belongs to one point of the nest; its value cannot be read "
        "outside of it",
        "use T.alloc_fragment",
    ),
    "local tile carried into another nest": (
        "for i in T.Parallel(4):\n    x[0] = A[0, i]\nfor i in T.Parallel(4):\n    «C[0, i] = x[0]",
        "x is written in the T.Parallel nest of line 16",
        "use T.alloc_fragment",
    ),
    "local tile summed in a nest": (
        "x[0] = 0.0\nfor i in T.Parallel(4):\n    «x[0] += A[0, i]",
        "its value cannot be read before it is written",
        "or write the tile outside of T.Parallel",
    ),
    "local tile read before it is written": (
        "for i in T.Parallel(4):\n    «C[0, i] = x[1]\n    x[1] = A[0, i]",
        "its value cannot be read before it is written",
        "use T.alloc_fragment",
    ),
    "local tile as a place": (
        "r = T.alloc_local((1,), 'int32')\nfor i in T.Parallel(4):\n    r[0] = I[i]\n«T.copy(A[r[0], 0:32], S[0, 0:32])",
        "r is written in the T.Parallel nest of line 17",
        "use T.alloc_fragment",
    ),
    # -- loops -----------------------------------------------------------------------------------------------
    "for else": ("«for k in range(3):\n    pass\nelse:\n    pass", "for ... else is not part of the tile language", ""),
    "loop over a list": ("for k in «[1, 2]:\n    pass", "loops run over T.Parallel, T.Pipelined, T.serial", ""),
    "loop over a call": ("for k in «zip(1, 2):\n    pass", "loops run over T.Parallel, T.Pipelined, T.serial", ""),
    "loop with a step": (
        "for k in «range(9, 0, -3):\n    pass",
        "the step of a loop is a positive integer known at compile time",
        "turn the index round inside: n - 1 - i",
    ),
    "stages of a plain loop": (
        "for k in «T.serial(3, num_stages=2):\n    pass",
        "this loop has no option 'num_stages'",
        "num_stages belongs to T.Pipelined",
    ),
    "negative stages": (
        "for k in T.Pipelined(3, num_stages=«-1):\n    pass",
        "num_stages is -1, it must be at least 0",
        "",
    ),
    "loop to a float": ("for k in «T.serial(3.5):\n    pass", "loop bounds are integers", "use // instead of /"),
    "loop to an element": (
        "for k in «T.serial(T.cast(F[0, 0], 'int32')):\n    T.clear(S)",
        "an element of a fragment belongs to one thread: threads would go different ways",
        "T.copy the fragment into a shared tile",
    ),
    "two loop variables": ("for «k, j in T.serial(3):\n    pass", "this loop has one variable", ""),
    "nest with too few variables": (
        "«for i in T.Parallel(3, 4):\n    pass",
        "T.Parallel has 2 extents, but the loop has 1 variable",
        "for i, j in T.Parallel(m, n)",
    ),
    "nest variable that is no name": (
        "for «i, x[0] in T.Parallel(3, 4):\n    pass",
        "loop variables are plain names",
        "",
    ),
    "nest with a symbolic extent": (
        "for i in T.Parallel(«bx):\n    pass",
        "an extent of T.Parallel must be an integer known at compile time",
        "pass it as an argument of the kernel's factory",
    ),
    "empty nest": ("for i in T.Parallel(«0):\n    pass", "an extent of T.Parallel is 0, it must be at least 1", ""),
    "loop in a nest": (
        "for i in T.Parallel(3):\n    for k in «T.serial(bx):\n        pass",
        "a loop inside T.Parallel is written out: its bounds are known at compile time",
        "put the loop around the nest",
    ),
    "pipeline in a nest": (
        "for i in T.Parallel(3):\n    «for k in T.Pipelined(3):\n        pass",
        "inside T.Parallel loops run over T.serial, T.unroll, T.vectorized or range",
        "put other loops around the nest",
    ),
    "long loop in a nest": (
        "for i in T.Parallel(3):\n    «for k in range(600):\n        C[0, i] = 1.0",
        "the loops of this nest written out are more than 512 statements",
        "put the loop around the nest",
    ),
    "two extents of a loop": (
        "for k in «T.serial(3, 4, stop=5):\n    pass",
        "a loop takes an extent, or a start, a stop and a step; 2 values given",
        "",
    ),
    "no extent of a loop": ("for k in «T.serial(start=3):\n    pass", "this loop has no extent", "give it one: T.serial(n)"),
    "option of a nest": (
        "for i in «T.Parallel(3, threads=4):\n    C[0, i] = 1.0",
        "T.Parallel has no option 'threads'",
        "write for i, j in T.Parallel(m, n)",
    ),
    "copy under an if in a nest": (
        "for i in T.Parallel(3):\n    if i > 1:\n        «T.copy(S, F)",
        "tile statements cannot stand inside T.Parallel",
        "move it out of the nest",
    ),
    "scope of another kind": (
        "Z = T.alloc_fragment((4,), 'float32', scope=«'global')",
        "'global' is no scope of a tile",
        "use one of 'shared', ",
    ),
    "argument twice": ("«T.copy(S, R, src=S)", "'src' of T.copy is given twice", "leave one out"),
    "order of an update": (
        "T.atomic_add(C[0, 0], 1.0, memory_order=«'release')",
        "updates here are in no order with other accesses",
        "write 'relaxed'",
    ),
    "update that gives back": (
        "T.atomic_add(C[0, 0], 1.0, return_prev=«True)",
        "T.atomic_add gives nothing back",
        "count places in a pass of their own",
    ),
    "copy in a nest": (
        "for i in T.Parallel(3):\n    «T.copy(S, F)",
        "tile statements cannot stand inside T.Parallel",
        "move it out of the nest",
    ),
    # -- indices ---------------------------------------------------------------------------------------------
    "wrong rank": (
        "x[0] = «A[0]",
        "A has 2 dimensions (64, 96), but 1 index is given",
        "write A[i, j]",
    ),
    "wrong rank of one dimension": ("x[0] = «I[0, 1]", "I has 1 dimension (64,), but 2 indices are given", "write I[i]"),
    "index twice": ("x[0] = «A[0, 1][2]", "an element cannot be indexed again", "A[i, j]"),
    "negative index": (
        "x[0] = A[0, «-1]",
        "indices count from the start; negative ones do not count from the end as in Python",
        "write 96 - 1",
    ),
    "negative slice": ("T.copy(A[0:16, «-32:96], S)", "indices count from the start", "write 96 - 32"),
    "negative end of a slice": ("T.copy(A[0:16, 0:«-64], S)", "indices count from the start", "write 96 - 64"),
    "float index": ("x[0] = A[0, «bx / 2.0]", "an index must be an integer", "use // instead of /"),
    "element of a tile out of range": (
        "x[0] = «S[16, 0]",
        "index 16 is outside dimension 0 of S, which has 16 elements",
        "use 0 to 15",
    ),
    "register out of range": ("«x[4] = 1.0", "index 4 is outside dimension 0 of x, which has 4 elements", "use 0 to 3"),
    "slice with a step": ("T.copy(A[0:32:«2, 0:32], S)", "slices have no step in the tile language", "dense box"),
    "slice as a value": ("x[0] = «A[0:2, 0]", "a slice of A cannot be used as one value", "slices belong in T.copy"),
    "index of a tuple": ("x[0] = «(1, 2)[2]", "cannot index this value: IndexError", ""),
    # -- copies ----------------------------------------------------------------------------------------------
    "copy of a number": ("T.copy(«3, S)", "T.copy moves tiles", "give a tile, a slice A[m0:m1, k0:k1] or a start"),
    "copy without extents": (
        "T.copy(A[0, 0], «C[0, 0])",
        "neither side of this copy says how much to move",
        "give one side as a whole tile or as a slice",
    ),
    "copy that does not fit": (
        "T.copy(S, «R)",
        "the two sides of this copy do not fit: S is 16x32, R is 32x16",
        "make the extents equal, or slice the larger side",
    ),
    "copy of another rank": (
        "T.copy(I[0:16], «S)",
        "the two sides of this copy do not fit: I is 16, S is 16x32",
        "make the extents equal",
    ),
    "start of another rank": (
        "T.copy(«I[0], S)",
        "I has 1 dimension, but the other side of the copy has 2",
        "copy a slice with the same number of dimensions",
    ),
    "copy onto itself": ("«T.copy(S[0:8, :], S[8:16, :])", "S is copied onto itself", "copy through another tile"),
    "copy of registers": ("«T.copy(x, S[0, 0:4])", "a local tile belongs to one thread", "use T.alloc_fragment"),
    "slice of unknown extent": (
        "T.copy(«A[0:16, 0:bx], S)",
        "the extent of a slice must be known at compile time",
        "write A[m0 : m0 + block_M] with a constant block_M",
    ),
    "empty slice": ("T.copy(«A[8:8, 0:32], S)", "this slice of A is empty (extent 0)", ""),
    "slice beyond a tile": (
        "T.copy(A[0:16, 0:33], «S[:, 0:33])",
        "a slice of 33 elements does not fit dimension 32 of S",
        "",
    ),
    "slice that leaves a tile": (
        "T.copy(A[0:16, 0:16], «S[:, 20:36])",
        "elements 20 to 35 of dimension 1 of S do not exist: it has 32",
        "slice inside the tile",
    ),
    "start that leaves a tile": (
        "T.copy(A[0:16, 0:16], «S[0, 20])",
        "elements 20 to 35 of dimension 1 of S do not exist: it has 32",
        "slice inside the tile",
    ),
    "too many arguments of a copy": ("«T.copy(A[0, 0], S, 3)", "T.copy takes at most 2 arguments", "T.copy(source, target)"),
    "unknown argument": ("«T.copy(A[0, 0], S, coalesced=1)", "T.copy has no argument 'coalesced'", "T.copy(source, target)"),
    "missing argument": ("«T.copy(S)", "T.copy needs target", "write T.copy(source, target)"),
    # -- fills -----------------------------------------------------------------------------------------------
    "fill of a number": ("T.clear(«3)", "the tile of T.clear must be a tile", ""),
    "type of astype": ("x[0] = bx.astype(«'int23')", "'int23' is not a supported data type", "'int32'"),
    "layout of a tensor": (
        "T.annotate_layout({«C: T.rows()})",
        "C is a tensor: its elements lie row by row",
        "leave it out, here and in the kernel that reads the tensor",
    ),
    "threads by hand": ("x[0] = «T.get_thread_binding()", "T.get_thread_binding is part of the language", "write T.Parallel(m, n)"),
    "fill from a fragment": (
        "T.fill(S, «F[0, 0])",
        "the value of a fill cannot come from F: it must be the same for every element",
        "write a T.Parallel nest",
    ),
    "fill from itself": ("T.fill(S, «S[0, 0])", "the value of a fill cannot come from S", "write a T.Parallel nest"),
    # -- matrix products -------------------------------------------------------------------------------------
    "product that does not fit": (
        "«T.gemm(S, S, G)",
        "the tiles of T.gemm do not fit: A is 16x32, B is 16x32, C is 16x16",
        "A is MxK, B is KxN, C is MxN; slice a padded tile to the part that counts",
    ),
    "product with a transpose that does not fit": (
        "«T.gemm(S, R, G, transpose_A=True)",
        "the tiles of T.gemm do not fit: A is 32x16, B is 32x16, C is 16x16",
        "A is MxK",
    ),
    "product of a part of a fragment": (
        "T.gemm(«F[:, 0:8], R, G)",
        "A of T.gemm must be a whole fragment of two dimensions, not a slice of one",
        "copy the slice into a shared tile",
    ),
    "product into its operand": (
        "«T.gemm(G, R, G)",
        "G is an operand and the result",
        "use another fragment for the result",
    ),
    "policy by another name": (
        "T.gemm(S, R, G, policy=«2)",
        "2 is no policy of T.gemm",
        "write policy=T.GemmWarpPolicy.FullRow",
    ),
    "product of tensors": ("T.gemm(S, «A[0:32, 0:16], G)", "B of T.gemm must be a shared tile, A is global", "T.alloc_shared"),
    "product into shared memory": (
        "D = T.alloc_shared((bm, bm), 'float32')\nT.gemm(S, R, «D)",
        "C of T.gemm must be a fragment tile, D is shared",
        "allocate it with T.alloc_fragment",
    ),
    "product into a slice": (
        "T.gemm(S, R[:, 0:8], «G[:, 0:8])",
        "C of T.gemm must be a whole fragment of two dimensions, not a slice of one",
        "",
    ),
    "product of another rank": (
        "L = T.alloc_shared((32,), 'float32')\nT.gemm(«L, R, G)",
        "A of T.gemm must have 2 dimensions, L has 1",
        "",
    ),
    "product of two types": (
        "L = T.alloc_shared((bm, bn), 'float16')\n«T.gemm(L, R, G)",
        "A is float16 and B is float32",
        "give both the same data type",
    ),
    "product of integers": (
        "L = T.alloc_shared((bm, bn), 'int32')\nM = T.alloc_shared((bn, bm), 'int32')\n«T.gemm(L, M, G)",
        "T.gemm of int32 into float32 is not supported",
        "operands are of type float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2, int8, uint8",
    ),
    "product of bytes into a float": (
        "L = T.alloc_shared((bm, bn), 'int8')\nM = T.alloc_shared((bn, bm), 'int8')\n«T.gemm(L, M, G)",
        "T.gemm of int8 into float32 is not supported",
        "int8 is added up in int32: give C that type, and T.copy it into a tile of the other",
    ),
    "product with a symbolic transpose": (
        "T.gemm(S, R, G, transpose_A=«bx > 0)",
        "transpose_A must be True or False, known at compile time",
        "",
    ),
    "product that may leave a tile": (
        "for k in T.serial(3):\n    T.gemm(«S[:, k * 16 : k * 16 + 16], R[0:16, :], G)",
        "A of T.gemm may lie partly outside of S",
        "slice it at places that are inside for every block and iteration",
    ),
    "negative extent": ("y = T.alloc_shared((3, «0), 'float32')", "an extent of a tile is 0, it must be at least 1", ""),
    "shape of floats": (
        "shape = (3.5, 2)\ny = T.alloc_shared(«shape, 'float32')",
        "shape is not a shape of positive integers",
        "",
    ),
    "symbolic extent": (
        "y = T.alloc_shared((3, «bx), 'float32')",
        "an extent of a tile must be an integer known at compile time",
        "pass it as an argument of the kernel's factory",
    ),
    "misspelt type": (
        "y = T.alloc_shared((3,), «'flaot16')",
        "'flaot16' is not a supported data type",
        "did you mean 'float16'?",
    ),
    "unknown type": ("y = T.alloc_shared((3,), «'quad')", "'quad' is not a supported data type", "use one of float64"),
    # -- expressions -----------------------------------------------------------------------------------------
    "lambda": ("x[0] = («lambda: 1)()", "Lambda expressions are not part of the tile language", "use arithmetic"),
    "comprehension": ("x[0] = «[i for i in (1, 2)][0]", "ListComp expressions are not part of the tile language", ""),
    "f-string": ("y = «f'{bx}'", "f-strings are not part of the tile language", ""),
    "matrix operator": ("x[0] = «S[0, 0] @ S[0, 1]", "operator MatMult is not part of the tile language", ""),
    "constant without a value": ("x[0] = «1 // (bm - 16)", "this compile-time expression has no value: integer division", ""),
    "negative shift": ("x[0] = «1 << -1", "this compile-time expression has no value: negative shift count", ""),
    "division of an index by zero": ("x[0] = «bx // 0", "division by zero", ""),
    "whole division of floats": ("x[0] = «S[0, 0] // 2.0", "FloorDiv needs integers, not float32", ""),
    "division of integers": (
        "x[0] = «bx / 2",
        "/ on integers would give a float",
        "use // for whole numbers or T.cast(x, 'float32')",
    ),
    "power of an integer": (
        "x[0] = «T.pow(bx, 9)",
        "powers of integers need a constant exponent from 1 to 8",
        "use T.cast(x, 'float32') ** y",
    ),
    "bitwise not": ("x[0] = «~x[1]", "~ needs an integer, not float32", "use T.cast first"),
    "membership": ("x[0] = «bx in (1, 2)", "comparison In is not part of the tile language", ""),
    "identity": ("x[0] = «bx is by", "comparison Is is not part of the tile language", ""),
    "call of a number": ("x[0] = «bm(3)", "this value cannot be called", ""),
    "call that fails": ("x[0] = «math.sqrt(-1)", "calling math.sqrt failed: ValueError", ""),
    "keywords unpacked": ("x[0] = «dict(**{})['a']", "** is not part of the tile language", "name the arguments"),
    "maximum of Python": ("x[0] = «max(S[0, 0], 1.0)", "Python's max cannot compare expressions", "use T.max"),
    "minimum of Python": ("x[0] = «min(S[0, 0], 1.0)", "Python's min cannot compare expressions", "use T.min"),
    "keyword of a function": ("x[0] = «T.exp(y=1.0)", "T.exp has no argument 'y' here", "write T.exp(x)"),
    "too many arguments of a function": ("x[0] = «T.exp(1.0, 2.0)", "T.exp takes 1 argument, 2 given", "write T.exp(x)"),
    "too few arguments of a function": ("x[0] = «T.max(1.0)", "T.max takes 2 arguments, 1 given", "write T.max(a, b)"),
    "function of integers": ("x[0] = «T.sqrt(bx)", "T.sqrt needs a floating-point value, not int32", "use T.cast first"),
    "cast to an unknown type": ("x[0] = T.cast(1.0, «'int23')", "'int23' is not a supported data type", "'int32'"),
    "number that does not fit": ("x[0] = «bx + 2**40", "this expression cannot be compiled", ""),
}  # fmt: skip

SHAPE_ERRORS = {
    "wrong rank", "wrong rank of one dimension", "element of a tile out of range", "register out of range",
    "copy that does not fit", "copy of another rank", "start of another rank", "empty slice", "slice beyond a tile",
    "slice that leaves a tile", "start that leaves a tile", "product that does not fit", "product of another rank",
    "product with a transpose that does not fit", "product that may leave a tile", "shape of floats",
    "dimension that is not there", "result of the wrong shape", "element of a tensor out of range",
}  # fmt: skip

MODULES: dict[str, tuple[str, str, str]] = {
    "parameter without annotation": (
        "@T.prim_func\ndef main(«A):\n    pass",
        "parameter 'A' has no annotation",
        "write name: T.Tensor((M, N), 'float32')",
    ),
    "parameter of another kind": (
        "@T.prim_func\ndef main(A: «int):\n    pass",
        "parameter 'A' must be a T.Tensor",
        "write T.Tensor((M, N), 'float32')",
    ),
    "dimension zero": (
        "@T.prim_func\ndef main(A: «T.Tensor((4, 0), 'float32')):\n    pass",
        "dimension 0 of 'A' is not a positive integer",
        "the arguments of a kernel's factory are plain integers",
    ),
    "dimension of half an element": (
        "@T.prim_func\ndef main(A: «T.Tensor((4, 0.5), 'float32')):\n    pass",
        "dimension 0.5 of 'A' is not a positive integer",
        "plain integers",
    ),
    "no dimension": (
        "@T.prim_func\ndef main(A: «T.Tensor((), 'float32')):\n    pass",
        "'A' has no dimensions",
        "write (1,) for one element",
    ),
    "type of a parameter": (
        "@T.prim_func\ndef main(A: «T.Tensor((4,), 'float8')):\n    pass",
        "'float8' is not a supported data type",
        "use one of float64, float32",
    ),
    "too large": (
        "@T.prim_func\ndef main(A: «T.Tensor((65536, 32768), 'float16')):\n    pass",
        "'A' has 2147483648 elements; indices are 32-bit",
        "split the tensor",
    ),
    "name of a kernel": (
        "@T.prim_func\n«def größe(A: T.Tensor((4,), 'float32')):\n    pass",
        "the name 'größe' has characters that machine code cannot have",
        "letters from a to z, digits and _",
    ),
    "name of a parameter": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32'), «β: T.Tensor((4,), 'float32')):\n    pass",
        "the name 'β' has characters that machine code cannot have",
        "letters from a to z, digits and _",
    ),
    "default value": (
        "@T.prim_func\n«def main(A: T.Tensor((4,), 'float32') = None):\n    pass",
        "a kernel has plain positional parameters only",
        "annotate each with T.Tensor(shape, dtype)",
    ),
    "positional only": (
        "@T.prim_func\n«def main(A: T.Tensor((4,), 'float32'), /, B: T.Tensor((4,), 'float32')):\n    pass",
        "a kernel has plain positional parameters only",
        "annotate each",
    ),
    "nothing launched": (
        "@T.prim_func\n«def main(A: T.Tensor((4,), 'float32')):\n    n = 3",
        "this kernel launches nothing",
        "add `with T.Kernel(grid_x, grid_y, threads=128) as (bx, by):`",
    ),
    "statement before the launch": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    «T.clear(A)\n    with T.Kernel(1):\n        pass",
        "statements of a kernel stand inside `with T.Kernel(...)`",
        "only names of constants may stand before it",
    ),
    "element read before the launch": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    «x = A[0]\n    with T.Kernel(1):\n        pass",
        "tiles are read and written inside `with T.Kernel(...)`",
        "move this line into it",
    ),
    "statement behind the launch": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1):\n        pass\n    «x = 3",
        "statements of a kernel stand inside `with T.Kernel(...)`",
        "move this line",
    ),
    "two launches": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1):\n        pass\n"
        "    «with T.Kernel(2):\n        pass",
        "a kernel has one `with T.Kernel(...)` block",
        "write a second @T.prim_func",
    ),
    "other context": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    «with open('x'):\n        pass",
        "only `with T.Kernel(...)` is part of the tile language",
        "",
    ),
    "two contexts": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    «with T.Kernel(1), T.Kernel(2):\n        pass",
        "`with T.Kernel(...)` stands alone",
        "open one thing a with statement",
    ),
    "too many grid dimensions": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with «T.Kernel(1, 2, 3, 4):\n        pass",
        "a grid has one to three dimensions, 4 given",
        "",
    ),
    "empty grid": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(«0):\n        pass",
        "a grid dimension is 0, it must be at least 1",
        "",
    ),
    "unknown launch option": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with «T.Kernel(1, thread=64):\n        pass",
        "T.Kernel has no option 'thread'",
        "write T.Kernel(gx, gy, threads=128)",
    ),
    "too few block indices": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1, 2) as «bx:\n        pass",
        "the grid has 2 dimensions, but 1 name given",
        "",
    ),
    "block index that is no name": (
        "@T.prim_func\ndef main(A: T.Tensor((4,), 'float32')):\n    with T.Kernel(1, 2) as (bx, «A[0]):\n        pass",
        "block indices are plain names",
        "",
    ),
}  # fmt: skip


def expect(kernel: Any, path: str, line: int, column: int, source: str, message: str, remedy: str) -> LanguageError:
    """The kernel is refused with this message, place and remedy, and the caret under the right character."""
    with pytest.raises(LanguageError) as caught:
        parse(kernel)
    error = caught.value
    shown = str(error).splitlines()
    assert message in error.message
    assert remedy in (error.remedy or "")
    assert shown[0] == f"{path}:{line}:{column}: {error.message}"
    assert shown[1].strip() == source.splitlines()[line - 1].strip()
    lead = len(source.splitlines()[line - 1]) - len(source.splitlines()[line - 1].lstrip())
    assert shown[2] == "    " + " " * (column - 1 - lead) + "^"
    assert (len(shown) == 4 and shown[3] == f"  help: {error.remedy}") if error.remedy else len(shown) == 3
    return error


@pytest.mark.parametrize("name", BODIES)
def test_errors_in_the_body(name: str, tmp_path: Path) -> None:
    text, message, remedy = BODIES[name]
    source, line, column = take_mark(body(text))
    module = load(tmp_path, source)
    error = expect(module.main, module.__file__ or "", line, column, source, message, remedy)
    assert isinstance(error, ShapeError) == (name in SHAPE_ERRORS)


@pytest.mark.parametrize("name", MODULES)
def test_errors_of_the_function(name: str, tmp_path: Path) -> None:
    text, message, remedy = MODULES[name]
    source, line, column = take_mark("import tilelang_min.language as T\n\n\n" + text + "\n")
    module = load(tmp_path, source)
    kernel = next(value for value in vars(module).values() if isinstance(value, PrimFunc))
    expect(kernel, module.__file__ or "", line, column, source, message, remedy)


def test_columns_count_characters_and_comments_may_start_anywhere(tmp_path: Path) -> None:
    """Python's columns are bytes; a comment at the margin inside an indented function is no end of it."""
    text = (
        "import tilelang_min.language as T\n\ndef factory():\n    @T.prim_func\n"
        "    def main(A: T.Tensor((4,), 'float32')):\n        with T.Kernel(1, threads=64):\n"
        "# a comment at the margin\n"
        "            größe = T.alloc_local((1,), 'float32'); größe[0] = «unbekannt\n    return main\n"
    )
    source, line, column = take_mark(text)
    module = load(tmp_path, source)
    expect(
        module.factory(), module.__file__ or "", line, column, source, "the name 'unbekannt' is not defined here", ""
    )


def test_source_of_exec_cannot_be_read() -> None:
    names: dict[str, Any] = {"T": T}
    exec("@T.prim_func\ndef ghost(A: T.Tensor((4,), 'float32')):\n    pass\n", names)
    with pytest.raises(LanguageError) as caught:
        parse(names["ghost"])
    assert "the source of kernel 'ghost' cannot be read" in caught.value.message
    assert "functions made by exec() have no source" in (caught.value.remedy or "")


def test_lambdas_and_coroutines_are_no_kernels(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        "import tilelang_min.language as T\n\nkernels = [\n    T.prim_func(lambda A: A),\n]\n\n\n"
        "@T.prim_func\nasync def later(A: T.Tensor((4,), 'float32')):\n    pass\n",
    )
    for kernel in (*module.kernels, module.later):
        with pytest.raises(LanguageError, match="is not a plain function") as caught:
            parse(kernel)
        assert caught.value.remedy == "use def, not lambda or async def"


def test_constructs_outside_of_a_kernel() -> None:
    with pytest.raises(LanguageError, match=r"T\.copy was called outside a kernel"):
        T.copy(1, 2)
    with pytest.raises(AttributeError, match=r"the tile language has no T\.copi; did you mean T\.copy\?"):
        T.copi
    with pytest.raises(AttributeError, match=r"T\.cumsum is part of the language but not supported"):
        T.cumsum


HELPERS = {
    "helper that branches": (
        "x[0] = side(bx)\n\n\ndef side(b):\n    if «b > 3:\n        return 1\n    return 2",
        "a function that gives a value cannot branch on an expression",
        "use T.if_then_else(condition, a, b)",
    ),
    "helper without end": (
        "x[0] = deep(bx)\n\n\ndef deep(b):\n    return «deep(b + 1)",
        "deep calls itself without end",
        "write the loop with T.serial",
    ),
    "helper with too many arguments": (
        "x[0] = «one(bx, by)\n\n\ndef one(b):\n    return b",
        "calling one failed: too many positional arguments",
        "",
    ),
    "helper that asserts": (
        "x[0] = sure(bx, 3)\n\n\ndef sure(b, n):\n    «assert n == 4\n    return b",
        "this assertion does not hold",
        "",
    ),
}


@pytest.mark.parametrize("name", HELPERS)
def test_errors_in_functions_that_kernels_call(name: str, tmp_path: Path) -> None:
    text, message, remedy = HELPERS[name]
    call, _, function = text.partition("\n")
    source, line, column = take_mark(body(call) + function)
    module = load(tmp_path, source)
    expect(module.main, module.__file__ or "", line, column, source, message, remedy)
