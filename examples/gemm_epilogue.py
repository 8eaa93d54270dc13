"""A dense layer in one kernel: y = gelu(x @ w + bias), the epilog written in Python and applied in registers.

python -m devmath run examples/gemm_epilogue.py [--rows M] [--features N] [--depth K]
"""

import argparse
import math
import time

import numpy as np
from numba import config, cuda, float32

import devmath

mm = devmath.Gemm(m=64, n=64, k=32, dtype=np.float16)
M, N, K = mm.m, mm.n, mm.k


@cuda.jit(device=True)
def gelu_bias(x, row, col, bias):  # noqa: ARG001  apply() passes the row too
    x += bias[col]
    return float32(0.5) * x * (float32(1) + math.tanh(float32(0.7978845608) * (x + float32(0.044715) * x * x * x)))


@cuda.jit
def dense(x, w, bias, y):
    row, col = cuda.blockIdx.y * M, cuda.blockIdx.x * N
    sx, sw = devmath.shared(mm.a), devmath.shared(mm.b)
    acc = devmath.accumulator(mm)
    for k in range(0, x.shape[1], K):
        devmath.load(x[row:, k:], sx)
        devmath.load(w[k:, col:], sw)
        devmath.wait()
        devmath.gemm(mm, sx, sw, acc)
        devmath.wait()
    devmath.apply(gelu_bias, acc, bias[col:])
    devmath.store(acc, y[row:, col:])


def reference(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    z = x.astype(np.float64) @ w.astype(np.float64) + bias
    return 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))


def main() -> None:
    small = config.ENABLE_CUDASIM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=M if small else 4096)
    parser.add_argument("--features", type=int, default=2 * N if small else 4096)
    parser.add_argument("--depth", type=int, default=2 * K if small else 4096)
    sizes = parser.parse_args()
    m, n, k = sizes.rows, sizes.features, sizes.depth
    if m % M or n % N:  # apply() knows the edge of the tile, not that of a bias shorter than it
        parser.error(f"--rows and --features must be multiples of {M} and {N}")

    rng = np.random.default_rng()
    x = rng.standard_normal((m, k)).astype(np.float16)
    w = (rng.standard_normal((k, n)) / np.sqrt(k)).astype(np.float16)
    bias = rng.standard_normal(n, dtype=np.float32)
    arguments = [cuda.to_device(array) for array in (x, w, bias)]
    y = cuda.device_array((m, n), np.float16)

    layer = dense[(n // N, m // M), mm.block_dim]
    for _ in range(1 if config.ENABLE_CUDASIM else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        layer(*arguments, y)
        cuda.synchronize()
        seconds = time.perf_counter() - began

    want = reference(x[:128], w, bias)
    error = np.linalg.norm(y[:128].copy_to_host() - want) / np.linalg.norm(want)
    assert error < 2**-10, f"relative error {error:.1e}"
    print(
        f"gelu(x @ w + bias), {m}x{n}x{k} in {mm.dtype}: {seconds * 1e3:.2f} ms,"
        f" {2 * m * n * k / seconds / 1e12:.3g} TFLOP/s, relative error {error:.1e} against NumPy"
    )


if __name__ == "__main__":
    main()
