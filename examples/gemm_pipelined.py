"""A whole matrix product, any m, n, k: the next tiles are on their way while the block multiplies those that are there.

python -m devmath run examples/gemm_pipelined.py [--m M] [--n N] [--k K]
"""

import argparse
import time

import numpy as np
from numba import config, cuda

import devmath

mm = devmath.Gemm(m=64, n=64, k=32, dtype=np.float16)
M, N, K = mm.m, mm.n, mm.k
STAGES = 3
AHEAD = STAGES - 1  # steps whose loads are under way
PENDING = 2 * (AHEAD - 1)  # loads that may still be so when a step begins: those of A and B for all but that step


@cuda.jit
def multiply(a, b, c):
    row, col = cuda.blockIdx.y * M, cuda.blockIdx.x * N
    sa, sb = devmath.shared(mm.a, stages=STAGES), devmath.shared(mm.b, stages=STAGES)
    acc = devmath.accumulator(mm)
    for t in range(AHEAD):
        devmath.load(a[row:, t * K :], sa[t])
        devmath.load(b[t * K :, col:], sb[t])
    for t in range((a.shape[1] + K - 1) // K):
        # Step t has landed, and the whole block is done with step t - 1: its stage is free for the next loads. Past
        # the end of the arrays they write zeros, and count as any other.
        devmath.wait(pending=PENDING)
        k = (t + AHEAD) * K
        devmath.load(a[row:, k:], sa[(t + AHEAD) % STAGES])
        devmath.load(b[k:, col:], sb[(t + AHEAD) % STAGES])
        devmath.gemm(mm, sa[t % STAGES], sb[t % STAGES], acc)
    devmath.wait()
    devmath.store(acc, c[row:, col:])


def main() -> None:
    small = config.ENABLE_CUDASIM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=70 if small else 4096)
    parser.add_argument("--n", type=int, default=50 if small else 4096)
    parser.add_argument("--k", type=int, default=100 if small else 4096)
    sizes = parser.parse_args()
    m, n, k = sizes.m, sizes.n, sizes.k

    rng = np.random.default_rng()
    a, b = (rng.standard_normal(shape).astype(mm.dtype) for shape in ((m, k), (k, n)))
    device_a, device_b = cuda.to_device(a), cuda.to_device(b)
    c = cuda.device_array((m, n), mm.c_dtype)

    launch = multiply[(-(-n // N), -(-m // M)), mm.block_dim]
    for _ in range(1 if small else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        launch(device_a, device_b, c)
        cuda.synchronize()
        seconds = time.perf_counter() - began

    rows = np.unique(np.linspace(0, m - 1, 128, dtype=int))  # the first, the last, and some between
    want = a[rows].astype(np.float64) @ b.astype(np.float64)
    error = np.linalg.norm(c.copy_to_host()[rows] - want) / np.linalg.norm(want)
    assert error < 1e-4, f"relative error {error:.1e}"  # float32 sums of 16-bit numbers, k of them
    print(
        f"{m}x{n}x{k} in {mm.dtype}, {STAGES} stages: {seconds * 1e3:.2f} ms,"
        f" {2 * m * n * k / seconds / 1e12:.3g} TFLOP/s, relative error {error:.1e} against NumPy"
    )


if __name__ == "__main__":
    main()
