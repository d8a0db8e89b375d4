"""Search over configurations of a kernel: ``tilelang.autotune``.  Nothing is imported here: decorating costs nothing."""
