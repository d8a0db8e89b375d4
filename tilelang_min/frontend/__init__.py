"""Python source of a ``@T.prim_func`` -> tile program.  Every error points at the author's line."""

from tilelang_min.frontend.parse import parse

__all__ = ["parse"]
