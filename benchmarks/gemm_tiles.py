"""Products of tiles in shared memory, over and over, on every multiprocessor: the speed of the block-level product.

    python -m benchmarks.gemm_tiles [--json PATH]

Every block loads its operands once and adds their product to its accumulator `--repeats` times.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda

import devmath
from benchmarks.timing import median_of_allocations, seconds_each
from devmath.lto.arch import arch_name
from tests.gpu.device_arrays import on_device
from tests.oracle import operands, product, relative_error

CASES = (
    devmath.Gemm(64, 64, 64, "float16"),
    devmath.Gemm(128, 128, 64, "float16"),
    devmath.Gemm(128, 128, 64, "bfloat16"),
    devmath.Gemm(128, 256, 64, "float16"),
    devmath.Gemm(128, 256, 64, "float16", b_order="col"),
    devmath.Gemm(128, 128, 32, "float32"),
    devmath.Gemm(128, 128, 32, "float32", b_order="col", math="tf32"),
    devmath.Gemm(128, 128, 32, "float32", math="tf32"),
    devmath.Gemm(128, 128, 32, "float32", b_order="col", math="3xtf32"),
    devmath.Gemm(128, 128, 32, "float32", math="3xtf32"),
    devmath.Gemm(64, 64, 32, "float64"),
    devmath.Gemm(64, 64, 32, "float64", b_order="col"),
    devmath.Gemm(128, 128, 32, "float64", threads=256),
    devmath.Gemm(64, 64, 32, "complex64"),
    devmath.Gemm(128, 128, 32, "complex64"),
    devmath.Gemm(96, 128, 32, "complex64", threads=512),
)


@dataclass
class Row:
    """One line of the table."""

    case: str
    variant: str
    tflops: float
    error: float
    registers: int
    local_bytes: int
    blocks_per_sm: int


def repeated_product(mm: devmath.Gemm) -> Any:
    """The kernel under test: c[block] = repeats * (a @ b)."""

    @cuda.jit
    def kernel(a, b, c, repeats):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        acc = devmath.accumulator(mm)
        for _ in range(repeats):
            devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c[cuda.blockIdx.x])

    return kernel


def measure(mm: devmath.Gemm, repeats: int, rounds: int) -> Row:
    """Time one descriptor on all multiprocessors."""
    device = cuda.get_current_device()
    a, b = operands(np.random.default_rng(), mm)
    da, db = on_device(a), on_device(b)
    kernel = repeated_product(mm)
    kernel[1, mm.block_dim](da, db, cuda.device_array((1, mm.m, mm.n), mm.accumulator_dtype), 1)
    compiled = next(iter(kernel.overloads.values()))
    blocks_per_sm = max(1, compiled.max_cooperative_grid_blocks(mm.threads) // device.MULTIPROCESSOR_COUNT)
    blocks = blocks_per_sm * device.MULTIPROCESSOR_COUNT
    c = cuda.device_array((blocks, mm.m, mm.n), mm.accumulator_dtype)
    launch = kernel[blocks, mm.block_dim]
    measured = seconds_each({"devmath": lambda: launch(da, db, c, repeats)}, rounds, 2)
    launch(da, db, c, 1)
    flop = 2 * (4 if np.iscomplexobj(a) else 1) * mm.m * mm.n * mm.k * repeats * blocks
    return Row(
        case=repr(mm),
        variant=mm.plan_on(arch_name(device.compute_capability)).variant,
        tflops=flop / median_of_allocations([measured])["devmath"] / 1e12,
        error=relative_error(c[blocks - 1].copy_to_host(), product(a, b)),
        registers=compiled.regs_per_thread,
        local_bytes=compiled.local_mem_per_thread,
        blocks_per_sm=blocks_per_sm,
    )


def table(rows: list[Row]) -> str:
    """The measurements, aligned."""
    lines = [f"{'case':58} {'variant':10} TFLOP/s    error  registers  local  blocks/SM"]
    for row in rows:
        lines.append(
            f"{row.case:58} {row.variant:10} {row.tflops:7.1f} {row.error:8.1e} {row.registers:10d}"
            f" {row.local_bytes:6d} {row.blocks_per_sm:10d}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000, help="products a block (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    rows = [measure(mm, options.repeats, options.rounds) for mm in CASES]
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(f"{cuda.get_current_device().name}, {options.repeats} products a block")
    print(table(rows))


if __name__ == "__main__":
    main()
