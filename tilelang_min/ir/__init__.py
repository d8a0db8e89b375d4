"""The tile program: what a kernel does, in tiles.  Scalar expressions are TVM's; everything else is a few dataclasses."""
