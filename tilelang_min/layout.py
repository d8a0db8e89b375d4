"""Layouts of shared tiles by TileLang's names, for ``T.annotate_layout`` inside kernels."""

from tilelang_min.language import make_swizzled_layout, rows

__all__ = ["make_swizzled_layout", "rows"]
