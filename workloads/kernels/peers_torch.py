"""The same work by torch, for comparison: each function prepares, and what it returns is the work."""

from __future__ import annotations

from collections.abc import Callable


def matmul(M: int, N: int, K: int, dtype: str = "float16") -> Callable[[], object]:
    """``A @ B`` by torch, which is cuBLAS on an NVIDIA GPU."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.randn(M, K, device=device).to(getattr(torch, dtype))
    b = torch.randn(K, N, device=device).to(getattr(torch, dtype))
    c = torch.empty(M, N, device=device, dtype=a.dtype)
    return lambda: torch.matmul(a, b, out=c)


def attention(batch: int, heads: int, seq_len: int, dim: int, causal: bool = False) -> Callable[[], object]:
    """Scaled dot product attention by torch, which chooses the library."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v = (torch.randn(batch, heads, seq_len, dim, device=device).to(torch.float16) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
