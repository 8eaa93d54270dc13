"""A dense layer of any size in one kernel: y = gelu(x @ w.T + bias), at the speed of the product alone.

python -m devmath run examples/linear_gelu.py [--rows M] [--features N] [--depth K]

Weights lie as PyTorch's linear layers keep them: one row an output feature. Where PyTorch is installed its own layer,
a product and a GELU, is timed too.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, cuda, float32

import devmath

mm = devmath.Gemm(m=128, n=256, k=64, dtype=np.float16, b_order="col", mainloop=True)


@cuda.jit(device=True)
def gelu_bias(x, row, col, bias):  # noqa: ARG001  apply() passes the row too
    x += bias[col]
    return float32(0.5) * x * (float32(1) + math.tanh(float32(0.7978845608) * (x + float32(0.044715) * x * x * x)))


@cuda.jit
def linear(x, w, y, bias):
    acc = devmath.accumulator(mm)
    for t in devmath.tiles(mm, x, w, y):
        devmath.mainloop(mm, t, acc)
        devmath.apply(gelu_bias, acc, t, bias)
        devmath.store(acc, y, t)


def reference(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    z = x.astype(np.float64) @ w.astype(np.float64).T + bias
    return 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))


def seconds_each(run: Callable[[], Any], repeats: int) -> float:
    """Time of one of `repeats` calls."""
    run()
    cuda.synchronize()
    began = time.perf_counter()
    for _ in range(repeats):
        run()
    cuda.synchronize()
    return (time.perf_counter() - began) / repeats


def time_of_torch(x: np.ndarray, w: np.ndarray, bias: np.ndarray, repeats: int) -> float | None:
    """Time of PyTorch's layer; None where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    a, weight, shift = (torch.from_numpy(array).cuda() for array in (x, w, bias.astype(np.float16)))
    functional = torch.nn.functional
    return seconds_each(lambda: functional.gelu(functional.linear(a, weight, shift), approximate="tanh"), repeats)


def main() -> None:
    small = config.ENABLE_CUDASIM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100 if small else 8192)
    parser.add_argument("--features", type=int, default=300 if small else 8192)
    parser.add_argument("--depth", type=int, default=72 if small else 8192)
    sizes = parser.parse_args()
    m, n, k = sizes.rows, sizes.features, sizes.depth

    rng = np.random.default_rng()
    x = rng.standard_normal((m, k), dtype=np.float32).astype(np.float16)
    w = (rng.standard_normal((n, k), dtype=np.float32) / np.float32(np.sqrt(k))).astype(np.float16)
    bias = rng.standard_normal(n, dtype=np.float32)
    on_x, on_w, on_bias = (cuda.to_device(array) for array in (x, w.T, bias))
    y = cuda.device_array((m, n), np.float16)

    layer, operands = linear[mm.grid(m, n), mm.block_dim], mm.operands(on_x, on_w, y)
    layer(*operands, on_bias)

    want = reference(x[:256], w, bias)
    error = np.linalg.norm(y[:256].copy_to_host() - want) / np.linalg.norm(want)
    assert error < 2**-10, f"relative error {error:.1e}"
    print(f"gelu(x @ w.T + bias), {m}x{n}x{k} in {mm.dtype}: relative error {error:.1e} against NumPy")
    if not small:
        seconds = seconds_each(lambda: layer(*operands, on_bias), repeats=20)
        print(f"devmath: {seconds * 1e3:.3f} ms, {2 * m * n * k / seconds / 1e12:.0f} TFLOP/s")
        of_torch = time_of_torch(x, w, bias, repeats=20)
        if of_torch:
            print(f"PyTorch, product and GELU: {of_torch * 1e3:.3f} ms, {of_torch / seconds:.2f} times as long")


if __name__ == "__main__":
    main()
