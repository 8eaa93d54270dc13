"""The one table of cases that every tier reads: the simulator, the compile tests, the GPU tests and the benchmarks.

A row marked `small` is cheap enough for the simulator, where every thread is a Python thread.
"""

from dataclasses import dataclass
from typing import Any

import devmath


@dataclass(frozen=True)
class GemmCase:
    """A descriptor of a product; `fields` are the arguments of `devmath.Gemm` beyond the extents."""

    m: int
    n: int
    k: int
    dtype: str
    fields: tuple[tuple[str, Any], ...] = ()
    small: bool = False

    def descriptor(self) -> devmath.Gemm:
        return devmath.Gemm(self.m, self.n, self.k, self.dtype, **dict(self.fields))

    def __str__(self) -> str:
        extra = "-".join(f"{name}={value}" for name, value in self.fields)
        return f"{self.m}x{self.n}x{self.k}-{self.dtype}" + (f"-{extra}" if extra else "")


def _gemm(m: int, n: int, k: int, dtype: str, small: bool = False, **fields: Any) -> GemmCase:
    return GemmCase(m, n, k, dtype, tuple(fields.items()), small)


REAL_AND_COMPLEX = ("float32", "float64", "complex64", "complex128")
HALF = ("float16", "bfloat16")
EIGHT_BIT = ("int8", "uint8", "float8_e4m3fn", "float8_e5m2")
ORDERS = tuple((a, b, c) for a in ("row", "col") for b in ("row", "col") for c in ("row", "col"))

GEMM_CASES = (
    *(_gemm(32, 32, 64 if dtype == "float32" else 32, dtype, small=True) for dtype in (*REAL_AND_COMPLEX, *HALF)),
    *(
        _gemm(33, 47, 19, dtype, small=dtype in ("float32", "float16"), a_order=a, b_order=b, c_order=c)
        for dtype in ("float32", "complex64", "float16")
        for a, b, c in ORDERS
    ),
    *(_gemm(1, 1, 1, dtype, small=True) for dtype in (*REAL_AND_COMPLEX, *HALF)),
    *(_gemm(5, 130, 3, dtype) for dtype in (*REAL_AND_COMPLEX, *HALF)),
    *(_gemm(50, 37, 133, dtype) for dtype in ("float32", "float64", "complex64", *HALF)),
    # Threads that do not fit the tile (GemmKernels.jl#135), and the two ends of what a block may have.
    _gemm(16, 104, 32, "float16", threads=384),
    _gemm(16, 16, 16, "float32", small=True, threads=96),
    _gemm(64, 64, 32, "float32", threads=32),
    _gemm(64, 64, 32, "bfloat16", threads=1024),
    # 16-bit results, rounded once.
    _gemm(64, 48, 32, "float16", c_dtype="float16", small=True),
    _gemm(64, 48, 32, "bfloat16", c_dtype="bfloat16"),
    # Adjoint operands.
    _gemm(16, 16, 16, "complex64", small=True, a_conj=True),
    _gemm(33, 47, 19, "complex64", b_conj=True, a_order="col"),
    _gemm(20, 24, 16, "complex128", a_conj=True, b_conj=True, b_order="col"),
    # float32 on tensor cores, by one product and by three.
    _gemm(33, 47, 19, "float32", small=True, math="tf32", a_order="col"),
    _gemm(64, 64, 32, "float32", math="tf32", a_order="col", c_order="col"),
    _gemm(128, 128, 32, "float32", math="tf32", b_order="col"),
    _gemm(128, 104, 40, "float32", math="tf32"),
    _gemm(33, 47, 19, "float32", small=True, math="3xtf32"),
    _gemm(64, 64, 32, "float32", math="3xtf32", a_order="col"),
    _gemm(128, 128, 32, "float32", math="3xtf32", b_order="col"),
    # 8 bits: every type, mix and order; depths that fill no instruction; narrow results, rounded once.
    *(_gemm(32, 32, 64, dtype, small=True) for dtype in EIGHT_BIT),
    *(_gemm(33, 47, 19, "int8", small=a == b, a_order=a, b_order=b, c_order=c, b_dtype="uint8") for a, b, c in ORDERS),
    *(_gemm(33, 47, 19, "float8_e5m2", a_order=a, b_order=b, b_dtype="float8_e4m3fn") for a, b, _ in ORDERS[::2]),
    _gemm(17, 20, 33, "uint8", small=True, b_dtype="int8"),
    _gemm(17, 20, 33, "float8_e4m3fn", small=True, b_dtype="float8_e5m2"),
    *(_gemm(1, 1, 1, dtype, small=True) for dtype in EIGHT_BIT),
    *(_gemm(50, 37, 133, dtype) for dtype in EIGHT_BIT),
    *(_gemm(64, 48, 64, dtype, b_order="col") for dtype in EIGHT_BIT),
    *(_gemm(64, 104, 96, dtype) for dtype in EIGHT_BIT),
    *(_gemm(24, 20, 32, "float8_e4m3fn", small=True, c_dtype=c) for c in (*HALF, "float8_e4m3fn")),
    _gemm(64, 48, 64, "float8_e5m2", c_dtype="float8_e5m2", c_order="col"),
    _gemm(64, 64, 32, "int8", threads=1024),
    # Sums in float16.
    _gemm(33, 47, 19, "float16", small=True, accumulator_dtype="float16"),
    _gemm(64, 64, 64, "float16", b_order="col", accumulator_dtype="float16"),
    _gemm(17, 20, 33, "float8_e5m2", small=True, accumulator_dtype="float16"),
    # Widths that are no powers of two (Fuser#4771), integers exact.
    *(_gemm(64, n, 128, "float16") for n in (24, 40, 72, 80, 96, 104, 112, 144, 160)),
    *(_gemm(128, n, 128, "float16") for n in (104, 192, 200)),
    # The sizes that are timed, and more than 48 KB of shared memory.
    _gemm(128, 128, 32, "float32"),
    _gemm(64, 64, 64, "float16"),
    _gemm(128, 128, 64, "bfloat16"),
    _gemm(128, 128, 64, "float32"),
    _gemm(128, 128, 128, "int8", b_order="col"),
    _gemm(128, 128, 128, "float8_e4m3fn", b_order="col"),
    _gemm(64, 64, 32, "float64"),
    _gemm(128, 128, 32, "float64"),
    _gemm(64, 64, 32, "float64", threads=512),
    _gemm(64, 64, 32, "complex64"),
    _gemm(32, 32, 32, "complex128"),
)


def _small(n: int, dtype: str, small: bool = False, execution: str = "warp", **fields: Any) -> GemmCase:
    return _gemm(n, n, n, dtype, small, execution=execution, **fields)


#: Products of batches, of which a block computes several.
BATCHED_CASES = (
    *(_small(n, dtype, n in (5, 8)) for dtype in ("float32", "float64") for n in (4, 5, 8, 13, 16, 31, 32)),
    *(_small(n, dtype, n == 8) for dtype in ("complex64", "complex128") for n in (4, 5, 8, 16, 32)),
    *(_small(n, dtype, n == 13) for dtype in HALF for n in (8, 13, 32)),
    *(
        _gemm(*shape, dtype, execution="warp")
        for shape in ((8, 16, 8), (16, 16, 8), (32, 32, 64))
        for dtype in ("float32", "float64", "float16")
    ),
    *(_gemm(9, 6, 12, "float32", True, execution="warp", a_order=a, b_order=b, c_order=c) for a, b, c in ORDERS),
    _gemm(1, 1, 1, "float32", True, execution="warp"),
    _gemm(64, 48, 8, "float32", execution="warp"),
    _gemm(16, 16, 16, "float16", True, execution="warp", c_dtype="float16"),
    _small(16, "float32", math="tf32"),
    _small(16, "float32", math="3xtf32"),
    _small(8, "complex64", a_conj=True, b_order="col"),
    _small(16, "float64", True, gemms_per_block=2),
    _small(8, "float32", gemms_per_block=256),
    _small(32, "float32", gemms_per_block=4, threads=64),
    _small(8, "float32", True, gemms_per_block=4, threads=32),
    _small(16, "int8", True, b_dtype="uint8"),
    _small(32, "int8", b_order="col"),
    _small(32, "float8_e4m3fn", b_order="col"),
    _small(32, "float64", force_variant="fma"),
    *(_small(n, "float32", n in (1, 4), execution="thread") for n in (1, 2, 3, 4, 5, 8)),
    *(_small(n, dtype, execution="thread") for dtype in ("float64", "complex64") for n in (4, 7)),
    _small(3, "complex128", True, execution="thread", a_order="col"),
)


@dataclass(frozen=True)
class FFTCase:
    """A descriptor of a transform; `fields` are the arguments of `devmath.FFT` beyond length and dtype."""

    n: int
    dtype: str
    fields: tuple[tuple[str, Any], ...] = ()
    small: bool = False

    def descriptor(self) -> devmath.FFT:
        return devmath.FFT(self.n, self.dtype, **dict(self.fields))

    def __str__(self) -> str:
        extra = "-".join(f"{name}={value}" for name, value in self.fields)
        return f"{self.n}-{self.dtype}" + (f"-{extra}" if extra else "")


def _fft(n: int, dtype: str, small: bool = False, **fields: Any) -> FFTCase:
    return FFTCase(n, dtype, tuple(fields.items()), small)


FFT_CASES = (
    *(_fft(2**p, "complex64", small=p in (1, 2, 3, 4, 6, 8)) for p in range(1, 15)),
    *(_fft(2**p, "complex128", small=p in (1, 5, 7)) for p in range(1, 14)),
    _fft(64, "complex64", small=True, ffts_per_block=1),
    _fft(64, "complex64", ffts_per_block=8),
    _fft(256, "complex64", ffts_per_block=1),
    _fft(256, "complex64", ffts_per_block=2),
    _fft(256, "complex64", ffts_per_block=8),
    _fft(16, "complex64", small=True, ffts_per_block=3),
    _fft(512, "complex64", elements_per_thread=16),
    _fft(1024, "complex64", elements_per_thread=32),
    _fft(1024, "complex64", elements_per_thread=8),
    _fft(4096, "complex64", elements_per_thread=8),
    _fft(512, "complex128", elements_per_thread=16),
)
