"""Attention forward: softmax(Q K^T / sqrt(d)) V with online softmax, a block of queries at a time."""

import math

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def attention(
    batch,
    heads,
    seq_len,
    dim,
    causal=False,
    kv_heads=None,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """Keys and values come by tiles of ``block_N``; scores and their sums stay in registers.

    With ``causal`` query i sees keys up to i.  Powers of two instead of e: the scale has log2(e) in it.
    With ``kv_heads`` that many heads of keys and values serve equal groups of the ``heads`` heads of queries, in order.
    """
    kv_heads = heads if kv_heads is None else kv_heads
    if heads % kv_heads:
        raise ValueError(f"{heads} heads are no multiple of kv_heads={kv_heads}")
    group = heads // kv_heads
    scale = 1.0 / math.sqrt(dim) * math.log2(math.e)
    shape, kv_shape = (batch, seq_len, heads, dim), (batch, seq_len, kv_heads, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        Output: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), "float32")
            acc_s_cast = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), "float32")
            scores_max = T.alloc_fragment((block_M,), "float32")
            scores_max_prev = T.alloc_fragment((block_M,), "float32")
            scores_scale = T.alloc_fragment((block_M,), "float32")
            scores_sum = T.alloc_fragment((block_M,), "float32")
            logsum = T.alloc_fragment((block_M,), "float32")

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity("float32"))
            seen = T.min(seq_len, (bx + 1) * block_M) if causal else seq_len
            for k in T.Pipelined(T.ceildiv(seen, block_N), num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by // group, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    hidden = k * block_N + j >= seq_len
                    if causal:
                        hidden = hidden or k * block_N + j > bx * block_M + i
                    acc_s[i, j] = T.if_then_else(hidden, -T.infinity("float32"), 0)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by // group, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def reference(Q, K, V, causal=False):
    """The same in float64; K and V may have fewer heads than Q."""
    group = Q.shape[2] // K.shape[2]
    K, V = (np.repeat(x, group, axis=2) for x in (K, V))
    q, k, v = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (Q, K, V))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(Q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True) @ v).transpose(0, 2, 1, 3)


def causal_reference(Q, K, V):
    """The same where query i sees keys up to i."""
    return reference(Q, K, V, causal=True)
