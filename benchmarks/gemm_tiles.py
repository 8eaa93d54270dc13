"""Products of tiles in shared memory, over and over, on every multiprocessor: the speed of the block-level product.

    python -m benchmarks.gemm_tiles [--peer] [--only TEXT ...] [--jobs N] [--json PATH] [--plot PATH]

Every block loads its operands once and adds their product to its accumulator `--repeats` times. With --peer cases that
nvmath.device has too run beside it, in both of its forms: C in shared memory, and C in registers.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda

import devmath
from benchmarks import first_kernel, limits, peers, report, side_by_side
from benchmarks.timing import median_of_allocations, seconds_each
from devmath.lto.arch import arch_name
from tests import kernels
from tests.gpu.device_arrays import on_device
from tests.oracle import operands, product, relative_error

LAUNCHES = 2  # between two events
CLOCK_SECONDS = 0.6  # of work, while nvidia-smi is asked


class Case:
    """A descriptor that is made when it is measured, and what it should reach.

    Parameters
    ----------
    m, n, k : int
    dtype : str
    aim : float, optional
        TFLOP/s.
    peer : bool, optional
        Whether --peer measures nvmath.device beside it.
    **options
        Further arguments of `devmath.Gemm`.
    """

    def __init__(
        self, m: int, n: int, k: int, dtype: str, aim: float | None = None, peer: bool = False, **options: Any
    ) -> None:
        self.arguments, self.options = (m, n, k, dtype), options
        self.aim, self.peer = aim, peer

    def __str__(self) -> str:
        m, n, k, dtype = self.arguments
        return " ".join([f"{m}x{n}x{k} {dtype}", *(f"{name}={value}" for name, value in self.options.items())])

    def descriptor(self) -> devmath.Gemm:
        """The descriptor.

        Raises
        ------
        TypeError
            If devmath has no such type.
        """
        return devmath.Gemm(*self.arguments, **self.options)


CASES = (
    Case(64, 64, 64, "float16"),
    Case(128, 128, 64, "float16", aim=600, peer=True),
    Case(128, 128, 64, "bfloat16", aim=600),
    Case(128, 256, 64, "float16", aim=600, peer=True),
    Case(128, 256, 64, "float16", aim=600, b_order="col"),
    Case(128, 256, 64, "bfloat16", aim=600),
    Case(128, 128, 128, "float8_e4m3fn", aim=1000, b_order="col"),
    Case(128, 256, 128, "float8_e4m3fn", aim=1000, b_order="col"),
    Case(128, 128, 128, "float8_e5m2", aim=1000, b_order="col"),
    Case(128, 128, 128, "float8_e4m3fn"),
    Case(128, 128, 128, "int8", aim=1000, peer=True, b_order="col"),
    Case(128, 256, 128, "int8", aim=1000, b_order="col"),
    Case(128, 128, 128, "uint8", aim=1000, b_order="col"),
    Case(128, 128, 128, "int8"),
    Case(128, 128, 32, "float32", aim=45, peer=True),
    Case(128, 128, 32, "float32", aim=300, b_order="col", math="tf32"),
    Case(128, 128, 32, "float32", aim=300, math="tf32"),
    Case(128, 128, 32, "float32", aim=90, b_order="col", math="3xtf32"),
    Case(128, 128, 32, "float32", aim=90, math="3xtf32"),
    Case(64, 64, 32, "float64", aim=50, peer=True),
    Case(64, 64, 32, "float64", aim=50, b_order="col"),
    Case(128, 128, 32, "float64", threads=256),
    Case(64, 64, 32, "complex64"),
    Case(128, 128, 32, "complex64"),
    Case(96, 128, 32, "complex64", threads=512),
)

PEER_FORMS = {"C in shared": peers.nvmath_tile_in_shared, "C in registers": peers.nvmath_tile_in_registers}


@dataclass
class Measured:
    """One kernel: its speed, its result, and what it took to build and to run it."""

    tflops: float
    error: float
    registers: int
    local_bytes: int
    blocks_per_sm: int
    build_s: float


@dataclass
class Row:
    """One case."""

    case: str
    threads: int
    variant: str
    aim: float | None
    limit: float | None
    clock_mhz: float | None
    limit_at_clock: float | None
    nvrtc_s: float  # of units that no case before had compiled
    devmath: Measured
    nvmath: dict[str, Measured] = field(default_factory=dict)


@dataclass
class Contender:
    """A kernel on all multiprocessors, ready to be timed."""

    launch: Callable[[int], None]
    c: Any
    compiled: Any
    blocks_per_sm: int
    build_s: float

    def result(self) -> np.ndarray:
        """What the last block computes in one product."""
        self.launch(1)
        return self.c[self.c.shape[0] - 1].copy_to_host()


Build = Callable[[devmath.Gemm, np.ndarray, np.ndarray], Contender]


def random_operands(mm: devmath.Gemm) -> tuple[np.ndarray, np.ndarray]:
    """Operands that switch as many bits as real ones do: integers from the whole range of their type."""
    rng = np.random.default_rng()
    a, b = operands(rng, mm)
    if not np.issubdtype(mm.dtype, np.integer):
        return a, b
    range_of = np.iinfo(mm.dtype)
    a, b = (rng.integers(range_of.min, range_of.max, x.shape, x.dtype, endpoint=True) for x in (a, b))
    return a, b


def ours(mm: devmath.Gemm, a: np.ndarray, b: np.ndarray) -> Contender:
    """Our kernel, built from nothing."""
    da, db = on_device(a), on_device(b)
    kernel = kernels.gemm_repeated(mm)
    began = time.perf_counter()
    kernel[1, mm.block_dim](da, db, _result(mm, 1), 1)
    cuda.synchronize()
    build_s = time.perf_counter() - began
    compiled = next(iter(kernel.overloads.values()))
    blocks_per_sm = _blocks_per_multiprocessor(compiled, mm.threads, 0)
    c = _result(mm, blocks_per_sm * cuda.get_current_device().MULTIPROCESSOR_COUNT)
    launch = kernel[c.shape[0], mm.block_dim]
    return Contender(lambda repeats: launch(da, db, c, repeats), c, compiled, blocks_per_sm, build_s)


def nvmath(form: str, threads: int | None, mm: devmath.Gemm, a: np.ndarray, b: np.ndarray) -> Contender:
    """A form of the peer's on the same operands, B by columns as it likes best."""
    began = time.perf_counter()
    peer = PEER_FORMS[form](mm.m, mm.n, mm.k, mm.dtype, mm.accumulator_dtype, threads)
    da, db = on_device(a), cuda.to_device(np.asfortranarray(b))
    compiled, _ = peer.build(da, db, _result(mm, 1), 1)
    build_s = time.perf_counter() - began
    blocks_per_sm = _blocks_per_multiprocessor(compiled, peer.block_dim[0], peer.shared_bytes)
    c = _result(mm, blocks_per_sm * cuda.get_current_device().MULTIPROCESSOR_COUNT)
    launch = peer.launch(c.shape[0])
    return Contender(lambda repeats: launch(da, db, c, repeats), c, compiled, blocks_per_sm, build_s)


def _result(mm: devmath.Gemm, blocks: int) -> Any:
    return cuda.device_array((blocks, mm.m, mm.n), mm.accumulator_dtype)


def _blocks_per_multiprocessor(compiled: Any, threads: int, shared_bytes: int) -> int:
    blocks = compiled.max_cooperative_grid_blocks(threads, shared_bytes)
    return max(1, blocks // cuda.get_current_device().MULTIPROCESSOR_COUNT)


def measure(case: Case, mm: devmath.Gemm, forms: Mapping[str, Build], repeats: int, rounds: int) -> Row:
    """Time one case on all multiprocessors, beside these forms of the peer's."""
    device = cuda.get_current_device()
    a, b = random_operands(mm)
    first_kernel.SPENT["nvrtc"] = 0.0
    contenders = {"devmath": ours(mm, a, b)}
    nvrtc_s = first_kernel.SPENT["nvrtc"]
    contenders |= {form: build(mm, a, b) for form, build in forms.items()}
    runs = {name: _run(contender, repeats) for name, contender in contenders.items()}
    with side_by_side.turn():
        seconds = median_of_allocations([seconds_each(runs, rounds, LAUNCHES)])
        hertz = _clock_under(runs["devmath"], seconds["devmath"])
    flop = 2 * (4 if np.iscomplexobj(a) else 1) * mm.m * mm.n * mm.k * repeats
    want = product(a, b)
    measured = {
        name: Measured(
            tflops=flop * contender.c.shape[0] / seconds[name] / 1e12,
            error=relative_error(contender.result(), want),
            registers=contender.compiled.regs_per_thread,
            local_bytes=contender.compiled.local_mem_per_thread,
            blocks_per_sm=contender.blocks_per_sm,
            build_s=contender.build_s,
        )
        for name, contender in contenders.items()
    }
    arch = arch_name(device.compute_capability)
    problem = (mm.dtype.name, mm.math, arch, device.MULTIPROCESSOR_COUNT)
    return Row(
        case=str(case),
        threads=mm.threads,
        variant=mm.variant(arch).name,
        aim=case.aim,
        limit=limits.product_limit_tflops(*problem, limits.data_sheet_hz(mm.dtype.name, mm.math)),
        clock_mhz=hertz and hertz / 1e6,
        limit_at_clock=hertz and limits.product_limit_tflops(*problem, hertz),
        nvrtc_s=nvrtc_s,
        devmath=measured.pop("devmath"),
        nvmath=measured,
    )


def _run(contender: Contender, repeats: int) -> Callable[[], None]:
    return lambda: contender.launch(repeats)


def _clock_under(run: Callable[[], None], seconds: float) -> float | None:
    """Clock while `run`, which takes so many seconds, repeats."""
    for _ in range(min(500, int(CLOCK_SECONDS / seconds) + 1)):
        run()
    hertz = limits.multiprocessor_hz(cuda.get_current_device())
    cuda.synchronize()
    return hertz


def table(rows: list[Row]) -> str:
    """Our measurements, aligned."""
    titles = ["case", "threads", "variant", "TFLOP/s", "aim", "of limit", "at clock", "MHz", "error"]
    titles += ["registers", "local", "blocks/SM", "NVRTC s", "build s"]
    return report.table(titles, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    us = row.devmath
    return [
        row.case,
        str(row.threads),
        row.variant,
        report.figure(us.tflops),
        report.figure(row.aim, ".0f"),
        report.figure(row.limit and us.tflops / row.limit, ".1%"),
        report.figure(row.limit_at_clock and us.tflops / row.limit_at_clock, ".1%"),
        report.figure(row.clock_mhz, ".0f"),
        report.figure(us.error, ".1e"),
        str(us.registers),
        str(us.local_bytes),
        str(us.blocks_per_sm),
        report.figure(row.nvrtc_s, ".2f"),
        report.figure(us.build_s, ".2f"),
    ]


def peer_table(rows: list[Row]) -> str:
    """The peer's measurements, and how much faster we are than each of its forms."""
    titles = ["case", "nvmath form", "TFLOP/s", "of limit", "devmath is", "error", "registers", "local", "blocks/SM"]
    lines = [
        [
            row.case,
            form,
            report.figure(peer.tflops),
            report.figure(row.limit and peer.tflops / row.limit, ".1%"),
            f"{row.devmath.tflops / peer.tflops:.2f}x",
            report.figure(peer.error, ".1e"),
            str(peer.registers),
            str(peer.local_bytes),
            str(peer.blocks_per_sm),
            report.figure(peer.build_s, ".1f"),
        ]
        for row in rows
        for form, peer in row.nvmath.items()
    ]
    return report.table([*titles, "build s"], lines)


def bars(rows: list[Row]) -> dict[str, dict[str, float | None]]:
    """What the plot shows of each case."""
    return {
        row.case: {
            "devmath": row.devmath.tflops,
            **{f"nvmath, {form}": row.nvmath[form].tflops if form in row.nvmath else None for form in PEER_FORMS},
            "limit": row.limit,
        }
        for row in rows
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="nvmath.device too; a minute of compiling for each case")
    parser.add_argument("--peer-threads", type=int, help="threads of its blocks (default: what it suggests)")
    side_by_side.add_options(parser)
    parser.add_argument("--repeats", type=int, default=2000, help="products a block (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    parser.add_argument("--plot", type=Path, help="draw them here")
    options = parser.parse_args()
    forms: dict[str, Build] = {}
    if options.peer and peers.installed("nvmath"):
        forms = {form: partial(nvmath, form, options.peer_threads) for form in PEER_FORMS}
    elif options.peer:
        print("nvmath is not installed: our columns alone")
    tasks = [
        (case, case.descriptor(), forms if case.peer else {}, options.repeats, options.rounds)
        for case in side_by_side.chosen(CASES, options)
    ]
    rows = []
    for row in side_by_side.measure_each(measure, tasks, options.jobs):
        rows.append(row)
        print(f"measured {row.case}: {row.devmath.tflops:.1f} TFLOP/s", flush=True)
    peer_threads = options.peer_threads or "suggested"
    about = report.environment(repeats=options.repeats, rounds=options.rounds, peer_threads=peer_threads)
    if options.json:
        report.write_json(options.json, about, rows)
    if options.plot:
        report.bars(options.plot, f"Products of tiles in shared memory, {about['gpu']}", "TFLOP/s", bars(rows))
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(table(rows))
    if any(row.nvmath for row in rows):
        print(peer_table(rows))


if __name__ == "__main__":
    main()
