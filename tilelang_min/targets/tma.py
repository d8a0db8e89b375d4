"""Limits of the tensor memory accelerator of sm_90 and later.

Source: CUDA Driver API, ``cuTensorMapEncodeTiled``.
"""

MOST_DIMENSIONS = 5
"""Dimensions of a tensor."""

MOST_BOX_EXTENT = 256
"""Elements of a box along each dimension."""

ROW_BYTES = 16
"""The distance of two rows of a tensor, and the innermost extent of a box, are multiples of this."""
