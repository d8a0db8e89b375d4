"""Tile program -> thread program (TVM TIRx).  A file for each operation and instruction family."""

from tilelang_min.lower.cpu import lower_cpu
from tilelang_min.lower.gpu import lower_gpu

__all__ = ["lower_cpu", "lower_gpu"]
