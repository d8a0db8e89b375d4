"""Tile program -> tile program, one pass a file.  A pass is a function whose docstring shows before and after."""
