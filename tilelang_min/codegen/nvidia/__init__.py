"""NVIDIA: thread program -> CUDA C++ (TVM's printer) -> cubin (NVRTC) -> SASS listing (nvdisasm).

No GPU, driver or CUDA toolkit is needed; the three tools are wheels from PyPI.  TVM is imported when ``generate`` is called.
"""

from tilelang_min.codegen.nvidia.generate import OPTIONS, generate

__all__ = ["OPTIONS", "generate"]
