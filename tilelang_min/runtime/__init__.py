"""Loads finished binaries and launches them: no compiler, no TVM.  A module for each kind of machine (cpu, cuda, hip)."""
