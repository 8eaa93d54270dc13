"""Whole matrix products with an epilog in Python, beside PyTorch's and cuBLASLt's own.

    python -m benchmarks.gemm_mainloop [--json PATH] [--sizes 8192x8192x8192 ...] [--tiles 128x256x64 ...]

Every contender is replayed as a CUDA graph, in windows of 200 ms that alternate: shorter ones show the power limit and
the heat of the contender before. Ratios are medians over pairs of windows of one round. B lies by columns, as the
weights of a layer do.
"""

import argparse
import itertools
import json
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from numba import cuda

import devmath
from tests import mainloop

SIZES = (
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (2048, 2048, 2048),
    (1024, 1024, 1024),
    (4096, 32768, 512),
    (4096, 7168, 2048),
    (128, 7168, 16384),
    (64, 2112, 7168),
)
OURS, FUSED = "devmath bias + ReLU", "cuBLASLt bias + ReLU"
BASELINES = ("torch.mm", FUSED, "torch.mm, then ReLU")


@dataclass
class Row:
    """Measurements of one product."""

    case: str
    tile: str
    error: float
    tflops: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    clocks_mhz: tuple[int, int] = (0, 0)
    power_watts: float = 0.0


def contenders(mm: devmath.Gemm, dtype: Any, size: tuple[int, int, int]) -> tuple[dict[str, Callable[[], Any]], Any]:
    """Everything that computes one product, by name, and the error of ours over some rows."""
    m, n, k = size
    a, weight = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((m, k), (n, k)))
    b, c, d = weight.T, torch.empty((m, n), device="cuda", dtype=dtype), torch.empty((m, n), device="cuda", dtype=dtype)
    bias = torch.randn(n, device="cuda")
    shift, on_bias = bias.to(dtype), cuda.as_cuda_array(bias)
    kernel = mainloop.linear(mm)

    def ours() -> None:
        handle = torch.cuda.current_stream().cuda_stream
        stream = cuda.external_stream(handle) if handle else 0
        kernel[mm.grid(m, n), mm.block_dim, stream](*mm.operands(a, b, c), on_bias)

    def error() -> float:
        c.fill_(float("nan"))
        ours()
        torch.cuda.synchronize()
        rows = torch.cat([torch.arange(min(m, 64)), torch.arange(max(m - 64, 0), m)])
        want = torch.relu(a[rows].double() @ b.double() + bias.double())
        return float((c[rows].double() - want).norm() / want.norm()) if not c.isnan().any() else float("nan")

    runs = {
        OURS: ours,
        "torch.mm": lambda: torch.mm(a, b, out=d),
        FUSED: lambda: torch._addmm_activation(shift, a, b, use_gelu=False),
        "torch.mm, then ReLU": lambda: torch.relu_(torch.mm(a, b, out=d)),
    }
    return runs, error


def graph_of(run: Callable[[], Any], repeats: int) -> torch.cuda.CUDAGraph:
    """A graph of `repeats` calls, the first of which happened before."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(repeats):
            run()
    return graph


def seconds_of(graph: torch.cuda.CUDAGraph, replays: int) -> float:
    """Time of some replays in a row."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(replays):
        graph.replay()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3


def clock_and_power() -> tuple[int, float]:
    """SM clock in MHz and power in watts, now."""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "--id=0"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    clock, _, power = done.stdout.partition(",")
    return (int(clock), float(power)) if done.returncode == 0 else (0, 0.0)


def measure(mm: devmath.Gemm, dtype: Any, size: tuple[int, int, int], rounds: int, window: float) -> Row:
    """Time all contenders of one product."""
    m, n, k = size
    runs, error = contenders(mm, dtype, size)
    tile = f"{mm.m}x{mm.n}x{mm.k}, {mm.mainloop_on(devmath.verbs.front_end().current_arch()).num_stages} stages"
    row = Row(f"{m}x{n}x{k} {mm.dtype}", tile, error())
    repeats = 20
    graphs = {name: graph_of(run, repeats) for name, run in runs.items()}
    replays = {name: max(1, round(window / seconds_of(graph, 3) * 3)) for name, graph in graphs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in graphs}
    clocks, watts = [], []
    for _ in range(rounds):
        for name, graph in graphs.items():
            seconds[name].append(seconds_of(graph, replays[name]) / replays[name] / repeats)
            if name == OURS:
                clock, power = clock_and_power()
                clocks.append(clock)
                watts.append(power)
    for name, values in seconds.items():
        row.tflops[name] = 2 * m * n * k / statistics.median(values) / 1e12
    for name in BASELINES:
        pairs = zip(seconds[name], seconds[OURS], strict=True)
        row.ratios[name] = statistics.median(theirs / ours for theirs, ours in pairs)
    row.clocks_mhz, row.power_watts = (min(clocks), max(clocks)), statistics.median(watts)
    return row


def table(rows: list[Row]) -> str:
    """The measurements, aligned: TFLOP/s, and ours over each of the others."""
    lines = [f"{'case':28} {'tile':22}    error  devmath  " + "".join(f"{name:>30}" for name in BASELINES)]
    for row in rows:
        others = "".join(f"{row.tflops[name]:>21.1f} ({row.ratios[name]:.3f})" for name in BASELINES)
        lines.append(
            f"{row.case:28} {row.tile:22} {row.error:8.1e} {row.tflops[OURS]:8.1f}  {others}"
            f"   {row.clocks_mhz[0]}-{row.clocks_mhz[1]} MHz, {row.power_watts:.0f} W"
        )
    return "\n".join(lines)


def extents(text: str) -> tuple[int, int, int]:
    """Three numbers, such as 128x256x64."""
    m, n, k = map(int, text.split("x"))
    return m, n, k


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=extents, nargs="+", default=SIZES, metavar="MxNxK")
    parser.add_argument("--tiles", type=extents, nargs="+", default=[(128, 256, 64)], metavar="MxNxK")
    parser.add_argument("--dtypes", nargs="+", default=["float16", "bfloat16"], choices=["float16", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=7, help="windows of each contender (default: %(default)s)")
    parser.add_argument("--window", type=float, default=0.2, help="seconds of a window (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    rows = []
    for dtype, size, tile in itertools.product(options.dtypes, options.sizes, options.tiles):
        mm = devmath.Gemm(*tile, dtype, b_order="col", mainloop=True)
        rows.append(measure(mm, getattr(torch, dtype), size, options.rounds, options.window))
        print(table(rows[-1:]), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    print(table(rows))


if __name__ == "__main__":
    main()
