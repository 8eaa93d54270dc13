"""Many small matrix products, one a block: C[i] = A[i] @ B[i], the tiles in shared memory.

python -m devmath run examples/gemm_tile.py [--count N]
"""

import argparse
import time

import numpy as np
from numba import config, cuda

import devmath

mm = devmath.Gemm(m=32, n=32, k=64, dtype=np.float32)


@cuda.jit
def multiply(a, b, c):
    i = cuda.blockIdx.x
    sa, sb, sc = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
    devmath.load(a[i], sa)
    devmath.load(b[i], sb)
    devmath.wait()
    devmath.gemm(mm, 1.0, sa, sb, 0.0, sc)
    devmath.wait()
    devmath.store(sc, c[i])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4 if config.ENABLE_CUDASIM else 100_000, help="how many products")
    count = parser.parse_args().count

    rng = np.random.default_rng()
    a = rng.standard_normal((count, mm.m, mm.k), dtype=np.float32)
    b = rng.standard_normal((count, mm.k, mm.n), dtype=np.float32)
    device_a, device_b = cuda.to_device(a), cuda.to_device(b)
    device_c = cuda.device_array((count, mm.m, mm.n), np.float32)

    for _ in range(1 if config.ENABLE_CUDASIM else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        multiply[count, mm.block_dim](device_a, device_b, device_c)
        cuda.synchronize()
        seconds = time.perf_counter() - began

    checked = min(count, 1000)
    want = a[:checked].astype(np.float64) @ b[:checked].astype(np.float64)
    error = np.linalg.norm(device_c[:checked].copy_to_host() - want) / np.linalg.norm(want)
    assert error < 1e-5, f"relative error {error:.1e}"
    print(
        f"{count} products {mm.m}x{mm.n}x{mm.k} in {mm.dtype}, {mm.threads} threads each: {seconds * 1e3:.2f} ms,"
        f" {2 * count * mm.m * mm.n * mm.k / seconds / 1e12:.3g} TFLOP/s, relative error {error:.1e} against NumPy"
    )


if __name__ == "__main__":
    main()
