"""What a kernel author writes: ``import tilelang_min.language as T``.

Names here are markers that the front end recognises in the source of a ``@T.prim_func``; they compute nothing themselves, so
importing this package costs nothing.  ``T.ceildiv`` and the data type names also work outside kernels.
"""

from tilelang_min.language.constructs import CONSTRUCTS, Construct
from tilelang_min.language.eager import const, empty
from tilelang_min.language.prim_func import (
    Buffer,
    FragmentBuffer,
    LocalBuffer,
    Macro,
    PrimFunc,
    SharedBuffer,
    Tensor,
    macro,
    prim_func,
)
from tilelang_min.language.sizes import Dynamic, dynamic, symbolic
from tilelang_min.language.types import DTYPES, NOT_HELD, DType, GemmWarpPolicy, ceildiv, dtype_bytes

dtype = DType
bool_ = bool = DType("bool")
bfloat16 = DType("bfloat16")
float16 = half = DType("float16")
float32 = float = DType("float32")
float64 = double = DType("float64")
float8_e4m3 = DType("float8_e4m3")
float8_e4m3fn = DType("float8_e4m3fn")
float8_e5m2 = DType("float8_e5m2")
int8 = DType("int8")
int16 = short = DType("int16")
int32 = int = DType("int32")
int64 = long = DType("int64")
uint8 = DType("uint8")
uint16 = DType("uint16")
uint32 = uint = DType("uint32")

disable_warp_group_reg_alloc = CONSTRUCTS["disable_warp_group_reg_alloc"]
annotate_producer_reg_dealloc = CONSTRUCTS["annotate_producer_reg_dealloc"]
annotate_consumer_reg_alloc = CONSTRUCTS["annotate_consumer_reg_alloc"]
no_set_max_nreg = CONSTRUCTS["no_set_max_nreg"]
set_max_nreg = CONSTRUCTS["set_max_nreg"]
annotate_l2_hit_ratio = CONSTRUCTS["annotate_l2_hit_ratio"]
assume = CONSTRUCTS["assume"]
Cast = CONSTRUCTS["Cast"]
clamp = CONSTRUCTS["clamp"]
floordiv = CONSTRUCTS["floordiv"]
floormod = CONSTRUCTS["floormod"]
shift_left = CONSTRUCTS["shift_left"]
shift_right = CONSTRUCTS["shift_right"]
bitwise_and = CONSTRUCTS["bitwise_and"]
bitwise_or = CONSTRUCTS["bitwise_or"]
bitwise_xor = CONSTRUCTS["bitwise_xor"]
bitwise_not = CONSTRUCTS["bitwise_not"]
Kernel = CONSTRUCTS["Kernel"]
Parallel = CONSTRUCTS["Parallel"]
parallel = CONSTRUCTS["parallel"]
Pipelined = CONSTRUCTS["Pipelined"]
abs = CONSTRUCTS["abs"]
alloc_buffer = CONSTRUCTS["alloc_buffer"]
alloc_fragment = CONSTRUCTS["alloc_fragment"]
alloc_local = CONSTRUCTS["alloc_local"]
alloc_shared = CONSTRUCTS["alloc_shared"]
alloc_var = CONSTRUCTS["alloc_var"]
annotate_layout = CONSTRUCTS["annotate_layout"]
atomic_add = CONSTRUCTS["atomic_add"]
atomic_max = CONSTRUCTS["atomic_max"]
atomic_min = CONSTRUCTS["atomic_min"]
cast = CONSTRUCTS["cast"]
ceil = CONSTRUCTS["ceil"]
clear = CONSTRUCTS["clear"]
copy = CONSTRUCTS["copy"]
exp = CONSTRUCTS["exp"]
exp2 = CONSTRUCTS["exp2"]
fill = CONSTRUCTS["fill"]
floor = CONSTRUCTS["floor"]
gemm = CONSTRUCTS["gemm"]
if_then_else = CONSTRUCTS["if_then_else"]
infinity = CONSTRUCTS["infinity"]
log = CONSTRUCTS["log"]
log2 = CONSTRUCTS["log2"]
make_swizzled_layout = CONSTRUCTS["make_swizzled_layout"]
max = CONSTRUCTS["max"]
min = CONSTRUCTS["min"]
pow = CONSTRUCTS["pow"]
reduce_absmax = CONSTRUCTS["reduce_absmax"]
reduce_abssum = CONSTRUCTS["reduce_abssum"]
reduce_max = CONSTRUCTS["reduce_max"]
reduce_min = CONSTRUCTS["reduce_min"]
reduce_sum = CONSTRUCTS["reduce_sum"]
rows = CONSTRUCTS["rows"]
rsqrt = CONSTRUCTS["rsqrt"]
serial = CONSTRUCTS["serial"]
sigmoid = CONSTRUCTS["sigmoid"]
sqrt = CONSTRUCTS["sqrt"]
sync_threads = CONSTRUCTS["sync_threads"]
tanh = CONSTRUCTS["tanh"]
unroll = CONSTRUCTS["unroll"]
use_swizzle = CONSTRUCTS["use_swizzle"]
vectorized = CONSTRUCTS["vectorized"]

__all__ = [
    "CONSTRUCTS",
    "DTYPES",
    "Buffer",
    "Cast",
    "Construct",
    "Dynamic",
    "FragmentBuffer",
    "GemmWarpPolicy",
    "Kernel",
    "LocalBuffer",
    "Macro",
    "Parallel",
    "Pipelined",
    "PrimFunc",
    "SharedBuffer",
    "Tensor",
    "abs",
    "alloc_buffer",
    "alloc_fragment",
    "alloc_local",
    "alloc_shared",
    "alloc_var",
    "annotate_consumer_reg_alloc",
    "annotate_l2_hit_ratio",
    "annotate_layout",
    "annotate_producer_reg_dealloc",
    "assume",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "bfloat16",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "bool_",
    "cast",
    "ceil",
    "ceildiv",
    "clamp",
    "clear",
    "const",
    "copy",
    "disable_warp_group_reg_alloc",
    "double",
    "dtype",
    "dtype_bytes",
    "dynamic",
    "empty",
    "exp",
    "exp2",
    "fill",
    "float",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "floor",
    "floordiv",
    "floormod",
    "gemm",
    "half",
    "if_then_else",
    "infinity",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "log",
    "log2",
    "long",
    "macro",
    "make_swizzled_layout",
    "max",
    "min",
    "no_set_max_nreg",
    "parallel",
    "pow",
    "prim_func",
    "reduce_absmax",
    "reduce_abssum",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "rows",
    "rsqrt",
    "serial",
    "set_max_nreg",
    "shift_left",
    "shift_right",
    "short",
    "sigmoid",
    "sqrt",
    "symbolic",
    "sync_threads",
    "tanh",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "unroll",
    "use_swizzle",
    "vectorized",
]


def __getattr__(name: str) -> object:
    """A misspelt or not yet supported ``T.name``: say which names exist."""
    import difflib

    if name.startswith("__"):
        raise AttributeError(name)
    from tilelang_min.language.constructs import PLANNED

    if name in NOT_HELD:
        return DType(name)
    if name in PLANNED:
        raise AttributeError(f"T.{name} is part of the language but not supported by this version; {PLANNED[name]}")
    near = difflib.get_close_matches(name, __all__, n=1, cutoff=0.7)
    functions = ", ".join(sorted(known for known, construct in CONSTRUCTS.items() if construct.kind == "math"))
    hint = f"; did you mean T.{near[0]}?" if near else f"; its functions of numbers are {functions}"
    raise AttributeError(f"the tile language has no T.{name}{hint}")
