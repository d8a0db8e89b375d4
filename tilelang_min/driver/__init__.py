"""Puts the rooms together: ``jit``, ``compile``, ``Kernel``, targets by name, cache keys."""
