"""Small kernels under compute-sanitizer: memory errors, and races in shared memory.

    python -m benchmarks.sanitize [--tool memcheck] [--tool racecheck]

Runs itself under each tool; the exit status is 0 when all results are right and no tool found anything.
"""

import argparse
import itertools
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator

import numpy as np
from numba import cuda
from numba.cuda.core.errors import NumbaPerformanceWarning

import devmath
from tests import accumulator_kernels, batched_kernels, kernels, mainloop, oracle
from tests.gpu.device_arrays import on_device

TOOLS = ("memcheck", "racecheck")
FOUND_SOMETHING = 9  # exit status that the tools are told to use

GEMMS = (
    devmath.Gemm(32, 32, 32, "float32"),
    devmath.Gemm(33, 47, 19, "complex64", b_order="col"),
    devmath.Gemm(64, 64, 64, "float16"),
    devmath.Gemm(50, 40, 24, "bfloat16", a_order="col", threads=96),
    devmath.Gemm(64, 64, 32, "float64"),
    devmath.Gemm(64, 64, 32, "float32", math="tf32", a_order="col"),
    devmath.Gemm(64, 64, 32, "float32", math="3xtf32"),
    devmath.Gemm(128, 64, 64, "int8"),
    devmath.Gemm(50, 40, 33, "int8", a_order="col", b_dtype="uint8"),
    devmath.Gemm(64, 48, 64, "float8_e4m3fn", b_order="col"),
)
BATCHED_GEMMS = (
    devmath.Gemm(8, 8, 8, "float32", execution="warp"),
    devmath.Gemm(13, 5, 7, "complex64", execution="warp", b_order="col"),
    devmath.Gemm(32, 32, 32, "float64", execution="warp"),
    devmath.Gemm(16, 16, 16, "float16", execution="warp"),
    devmath.Gemm(4, 4, 4, "float32", execution="thread"),
)
CHAINED_GEMMS = (  # in registers, and through shared memory
    (devmath.Gemm(64, 64, 32, "float16", threads=128), devmath.Gemm(64, 48, 64, "float16", threads=128)),
    (devmath.Gemm(33, 80, 16, "bfloat16", threads=128), devmath.Gemm(33, 24, 80, "bfloat16", threads=128)),
    (devmath.Gemm(33, 20, 16, "float32", threads=64), devmath.Gemm(33, 24, 20, "float32", threads=64)),
)
# One for each way that threads exchange elements.
FFTS = (devmath.FFT(2), devmath.FFT(64), devmath.FFT(512), devmath.FFT(1024), devmath.FFT(256, "complex128"))


def products(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Run each product through a tile, and in two steps through an accumulator: name, error, bound of the error."""
    for mm in GEMMS:
        scalar, bound = mm.accumulator_dtype.type, oracle.gemm_bound(mm, mm.c_dtype)
        for make, depth in (
            (kernels.gemm_tile, mm.k),
            (kernels.gemm_accumulator, 2 * mm.k),
            (kernels.gemm_double_buffered, 3 * mm.k + 1),
        ):
            a, b = oracle.operands(rng, mm, depth)
            da, db, want = on_device(a), on_device(b), oracle.product(a, b, mm)
            c = cuda.to_device(oracle.unset((mm.m, mm.n), mm.c_dtype))
            arguments = (scalar(1), da, db, scalar(0), c) if make is kernels.gemm_tile else (da, db, c)
            make(mm)[1, mm.block_dim](*arguments)
            yield f"{make.__name__} of {mm!r}", oracle.relative_error(c.copy_to_host(), want), bound


def batches(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Run a batch that ends inside a block in each execution, in registers, in tiles and two loads ahead."""
    for mm in BATCHED_GEMMS:
        scalar, bound = mm.accumulator_dtype.type, oracle.GEMM_BOUND[mm.c_dtype.name]
        count = 3 * mm.gemms_per_block + 1
        a, b, _ = oracle.batch(rng, mm, count)
        da, db, want = on_device(a), on_device(b), oracle.product(a, b)
        for make in (
            batched_kernels.gemm_batched,
            batched_kernels.gemm_batched_tile,
            batched_kernels.gemm_batched_pipelined,
        ):
            c = cuda.to_device(np.full((count, mm.m, mm.n), np.nan, mm.c_dtype))
            in_tiles = make is batched_kernels.gemm_batched_tile
            blocks = mm.grid(count) if make is batched_kernels.gemm_batched else 2
            make(mm)[blocks, mm.block_dim](*((scalar(1), da, db, scalar(0), c) if in_tiles else (da, db, c)))
            yield f"{make.__name__} of {mm!r}", oracle.relative_error(c.copy_to_host(), want), bound


def accumulators(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Run what moves accumulators between lanes and warps: softmax of rows, and products one behind the other."""
    for mm in GEMMS:
        if mm.accumulator_dtype.kind != "f":
            continue
        c = oracle.normal(rng, (mm.m, mm.n), mm.accumulator_dtype)
        d = cuda.to_device(np.full_like(c, np.nan))
        accumulator_kernels.softmax_rows(mm)[1, mm.block_dim](cuda.to_device(c), d)
        powers = np.exp(c.astype(float))
        want = powers / powers.sum(axis=1, keepdims=True)
        yield f"softmax_rows of {mm!r}", oracle.relative_error(d.copy_to_host(), want), 1e-6
    for first, second in CHAINED_GEMMS:
        (a, b0), (_, b1) = oracle.operands(rng, first), oracle.operands(rng, second)
        e = cuda.to_device(np.full((second.m, second.n), np.nan, second.accumulator_dtype))
        accumulator_kernels.chained(first, second)[1, first.block_dim](*map(on_device, (a, b0, b1)), e)
        middle = np.maximum(oracle.product(a, b0), 0).astype(second.dtype)
        want = 2 * oracle.product(middle, b1)
        yield f"chained {first!r}, {second!r}", oracle.relative_error(e.copy_to_host(), want), 2e-3


def whole_products(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Run mainloops by TMA and by cp.async over a few tiles of each block, the last ones past the edges."""
    for mm in (*mainloop.FAST[:2], mainloop.FAST[8], mainloop.PORTABLE[0]):
        m, n, k = 3 * mm.m - 8, 2 * mm.n - 8, 3 * mm.k + 8
        a, b = mainloop.matrices(rng, mm, m, n, k)
        da, db, c = cuda.to_device(a), cuda.to_device(b), cuda.to_device(np.full((m, n), np.nan, np.float32))
        for name, arguments in (("operands", mm.operands(da, db, c)), ("arrays", (da, db, c))):
            mainloop.plain(mm)[2, mm.block_dim](*arguments)
            error = oracle.relative_error(c.copy_to_host(), mainloop.expected(a, b, mm))
            yield f"mainloop over {name} of {mm!r}", error, mainloop.bound(mm, np.float32)


def transforms(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Run each transform in registers and in a tile, with a last block that is not full."""
    for fft in FFTS:
        x = oracle.normal(rng, (2 * fft.ffts_per_block + 1, fft.n), fft.dtype)
        want, bound = oracle.transform(x), oracle.fft_bound(fft.n, fft.dtype)
        for make in (kernels.fft_registers, kernels.fft_tile):
            y = cuda.to_device(np.full(x.shape, np.nan, fft.dtype))
            make(fft)[fft.grid(len(x)), fft.block_dim](cuda.to_device(x), y)
            yield f"{make.__name__} of {fft!r}", oracle.relative_error(y.copy_to_host(), want), bound


def convolutions(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Run two transforms in a row, which share their exchange buffer."""
    for fft in FFTS:
        x = oracle.normal(rng, (2 * fft.ffts_per_block + 1, fft.n), fft.dtype)
        h = oracle.normal(rng, (fft.n,), fft.dtype)
        want = oracle.transform(oracle.transform(x) * h, inverse=True)
        y = cuda.to_device(np.full(x.shape, np.nan, fft.dtype))
        kernels.convolve(fft)[fft.grid(len(x)), fft.block_dim](cuda.to_device(x), cuda.to_device(h), y)
        bound = 3 * oracle.fft_bound(fft.n, fft.dtype)
        yield f"convolve of {fft!r}", oracle.relative_error(y.copy_to_host(), want), bound


def run_kernels() -> int:
    """Run all, and return the number of wrong results."""
    warnings.filterwarnings("ignore", category=NumbaPerformanceWarning, message="Grid size")
    rng = np.random.default_rng()
    wrong = 0
    for name, error, bound in itertools.chain(
        *(of(rng) for of in (products, whole_products, batches, accumulators, transforms, convolutions))
    ):
        right = error < bound
        wrong += not right
        print(f"{'ok   ' if right else 'WRONG'} {error:.1e} {name}", flush=True)
    return wrong


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", choices=TOOLS, help="which tools (default: all)")
    parser.add_argument("--no-tool", action="store_true", help="the kernels alone, as the tools run them")
    options = parser.parse_args()
    if options.no_tool:
        return 1 if run_kernels() else 0
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        parser.error("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
    failed = 0
    for tool in options.tool or TOOLS:
        command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND_SOMETHING)]
        command += [sys.executable, "-m", "benchmarks.sanitize", "--no-tool"]
        status = subprocess.run(command, check=False).returncode
        print(f"{tool}: {'clean' if status == 0 else f'exit status {status}'}", flush=True)
        failed += status != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
