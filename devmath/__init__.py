"""Matrix products and Fourier transforms inside Numba CUDA kernels, at the speed of NVIDIA's libraries."""

from . import frontends
from .accumulator_device import (
    accumulator,
    col_max,
    col_min,
    col_sum,
    col_vector,
    convert,
    row_max,
    row_min,
    row_sum,
    row_vector,
)
from .blas_device import Gemm, gemm, gemm_index
from .errors import (
    CompileError,
    DeviceOnlyError,
    DevmathError,
    LaunchError,
    PerformanceWarning,
    SimulationError,
    ToolchainError,
)
from .fft_device import FFT, fft, registers, transform_index
from .mainloop_device import mainloop, tiles
from .verbs import apply, load, shared, store, use_front_end, wait

use_front_end(frontends.load)
frontends.prepare()

__version__ = "0.1.0"

__all__ = [
    "FFT",
    "CompileError",
    "DeviceOnlyError",
    "DevmathError",
    "Gemm",
    "LaunchError",
    "PerformanceWarning",
    "SimulationError",
    "ToolchainError",
    "accumulator",
    "apply",
    "col_max",
    "col_min",
    "col_sum",
    "col_vector",
    "convert",
    "fft",
    "gemm",
    "gemm_index",
    "load",
    "mainloop",
    "registers",
    "row_max",
    "row_min",
    "row_sum",
    "row_vector",
    "shared",
    "store",
    "tiles",
    "transform_index",
    "wait",
]
