"""What a record of measurements says of where it was made: device, driver, versions.  For the scripts beside this one."""

from __future__ import annotations

import time
from typing import Any


def facts() -> dict[str, Any]:
    """Date, device, driver, and versions of torch, its CUDA and the project; needs torch and NVML's bindings."""
    import pynvml
    import torch

    import tilelang_min

    pynvml.nvmlInit()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "tilelang_min": tilelang_min.__version__,
    }
