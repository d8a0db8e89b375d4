"""Joins and conclusions: roofline, flame tree, conflicts, figures by line.

Everything here is a pure function of the records in :mod:`tileprof.store.records`; nothing here formats, draws or reads files.
A value that is not known is ``None`` all the way through, never zero.
"""
