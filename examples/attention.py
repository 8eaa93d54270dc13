"""Attention of one head in one kernel: softmax(q @ k.T / sqrt(64)) @ v, the scores never leave the registers.

python -m devmath run examples/attention.py [--queries L] [--keys L]

A block takes 64 queries and walks over the keys, 64 at a time. It keeps the largest score and the sum of each row so
far; where a larger score comes, what it has summed up shrinks (Milakov and Gimelshein, 2018).
"""

import argparse
import math
import time

import numpy as np
from numba import config, cuda, float32

import devmath

WIDTH = 64  # of the head
SCALE = float32(WIDTH**-0.5)
scores = devmath.Gemm(m=64, n=64, k=WIDTH, dtype=np.float16, b_order="col", threads=128)  # q @ k.T
values = devmath.Gemm(m=64, n=WIDTH, k=64, dtype=np.float16, threads=128)  # weights @ v
M, N = scores.m, scores.n


@cuda.jit(device=True)
def scaled(score, row, col, keys):  # noqa: ARG001  apply() passes the row too
    return score * SCALE if col < keys else float32(-math.inf)


@cuda.jit(device=True)
def larger(value, row, other):  # noqa: ARG001
    return max(value, other)


@cuda.jit(device=True)
def power(score, row, col, largest):  # noqa: ARG001
    return math.exp(score - largest)


@cuda.jit(device=True)
def shrinkage(before, row, largest):  # noqa: ARG001
    return math.exp(before - largest)


@cuda.jit(device=True)
def shrunk(x, row, col, factor):  # noqa: ARG001
    return x * factor


@cuda.jit(device=True)
def shrunk_plus(total, row, factor, more):  # noqa: ARG001
    return total * factor + more


@cuda.jit(device=True)
def replaced(value, row, other):  # noqa: ARG001
    return other


@cuda.jit(device=True)
def inverse(total, row):  # noqa: ARG001
    return float32(1) / total


@cuda.jit
def attention(q, k, v, out):
    row = cuda.blockIdx.x * M
    sq, sk, sv = devmath.shared(scores.a), devmath.shared(scores.b), devmath.shared(values.b)
    acc = devmath.accumulator(values)
    largest, total = devmath.row_vector(scores, -math.inf), devmath.row_vector(scores, 0.0)
    devmath.load(q[row:], sq)
    for key in range(0, k.shape[0], N):
        devmath.load(k[key:].T, sk)
        devmath.load(v[key:], sv)
        devmath.wait()
        weights = devmath.accumulator(scores)
        devmath.gemm(scores, sq, sk, weights)
        devmath.apply(scaled, weights, k.shape[0] - key)
        now = devmath.row_max(weights)
        devmath.apply(larger, now, largest)
        devmath.apply(power, weights, now)
        devmath.apply(shrinkage, largest, now)
        devmath.apply(shrunk, acc, largest)
        devmath.apply(shrunk_plus, total, largest, devmath.row_sum(weights))
        devmath.apply(replaced, largest, now)
        devmath.gemm(values, devmath.convert(weights, values.dtype), sv, acc)
        devmath.wait()
    devmath.apply(inverse, total)
    devmath.apply(shrunk, acc, total)
    devmath.store(acc, out[row:])


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ k.T / math.sqrt(WIDTH)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v


def main() -> None:
    small = config.ENABLE_CUDASIM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=M + 6 if small else 8192)
    parser.add_argument("--keys", type=int, default=2 * N - 27 if small else 8192)
    sizes = parser.parse_args()

    rng = np.random.default_rng()
    q, k, v = (
        rng.standard_normal((rows, WIDTH)).astype(np.float16) for rows in (sizes.queries, sizes.keys, sizes.keys)
    )
    q *= 4  # weights far apart, as a trained head has them
    arguments = [cuda.to_device(x) for x in (q, k, v)]
    out = cuda.device_array((sizes.queries, WIDTH), np.float32)

    head = attention[-(-sizes.queries // M), scores.block_dim]
    for _ in range(1 if small else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        head(*arguments, out)
        cuda.synchronize()
        seconds = time.perf_counter() - began

    some = slice(max(sizes.queries - 100, 0), None)
    want = reference(q[some], k, v)
    error = np.linalg.norm(out.copy_to_host()[some] - want) / np.linalg.norm(want)
    assert error < 2**-9, f"relative error {error:.1e}"
    flops = 4 * sizes.queries * sizes.keys * WIDTH
    print(
        f"attention, {sizes.queries} queries and {sizes.keys} keys of width {WIDTH}: {seconds * 1e3:.2f} ms,"
        f" {flops / seconds / 1e12:.3g} TFLOP/s, relative error {error:.1e} against NumPy"
    )


if __name__ == "__main__":
    main()
