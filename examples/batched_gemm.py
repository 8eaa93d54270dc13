"""A batch of small matrix products, C[i] = A[i] @ B[i], several a block.

python -m devmath run examples/batched_gemm.py [--count N] [--execution warp|thread] [--size N] [--dtype NAME]
"""

import argparse
import time

import numpy as np
from numba import config, cuda

import devmath


def make_kernel(mm):
    @cuda.jit
    def batched(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)  # this product's own: a block computes several
        acc = devmath.accumulator(mm)
        i = devmath.gemm_index(mm)  # which product of the batch this thread works on
        devmath.load(a, sa, i)  # past the end of the batch: zeros
        devmath.load(b, sb, i)
        devmath.wait(mm)  # for the threads of this warp only
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c, i)  # past the end of the batch: nothing

    return batched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="how many products")
    parser.add_argument("--execution", choices=["warp", "thread"], default="warp")
    parser.add_argument("--size", type=int, default=8, help="extent of the cube")
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args()
    mm = devmath.Gemm(*[arguments.size] * 3, arguments.dtype, execution=arguments.execution)
    count = arguments.count or (mm.gemms_per_block + 3 if config.ENABLE_CUDASIM else 1_000_003)

    rng = np.random.default_rng()
    a = rng.standard_normal((count, mm.m, mm.k)).astype(mm.dtype)
    b = rng.standard_normal((count, mm.k, mm.n)).astype(mm.dtype)
    device_a, device_b = cuda.to_device(a), cuda.to_device(b)
    device_c = cuda.device_array((count, mm.m, mm.n), mm.c_dtype)

    kernel = make_kernel(mm)
    for _ in range(1 if config.ENABLE_CUDASIM else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        kernel[mm.grid(count), mm.block_dim](device_a, device_b, device_c)
        cuda.synchronize()
        seconds = time.perf_counter() - began

    wide = np.complex128 if mm.dtype.kind == "c" else np.float64
    want = a.astype(wide) @ b.astype(wide)
    error = np.linalg.norm(device_c.copy_to_host() - want) / np.linalg.norm(want)
    assert error < 1e-5, f"relative error {error:.1e}"
    moved_bytes = a.nbytes + b.nbytes + device_c.nbytes
    print(
        f"{count} products {mm.m}x{mm.n}x{mm.k} in {mm.dtype}, {mm.threads_per_gemm} threads each,"
        f" {mm.gemms_per_block} a block: {seconds * 1e3:.2f} ms, {moved_bytes / seconds / 1e9:.3g} GB/s,"
        f" relative error {error:.1e} against NumPy"
    )


if __name__ == "__main__":
    main()
