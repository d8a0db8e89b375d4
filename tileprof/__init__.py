"""tileprof: run tile kernels, join what the compiler knows with what hardware counts, report it."""

__version__ = "0.1.0"
