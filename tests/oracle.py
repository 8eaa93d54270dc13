"""Right answers in float64, fresh random inputs, and the one function of tolerances."""

from typing import Any

import numpy as np

import devmath

#: Bounds of the relative L2 error of a product, by the type it is returned in. Integers are exact.
GEMM_BOUND = {
    "float8_e5m2": 2.0**-3,
    "float8_e4m3fn": 2.0**-4,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 1e-5,
    "float64": 1e-13,
    "complex64": 1e-5,
    "complex128": 1e-13,
    "int32": 2.0**-60,
}


def fft_bound(n: int, dtype: Any) -> float:
    """Bound of the relative L2 error of a transform of length n."""
    per_level = 2e-7 if np.dtype(dtype) == np.complex64 else 4e-16
    return per_level * np.log2(n)


def relative_error(got: Any, want: Any) -> float:
    """L2 norm of the difference over that of `want`; NaN where any element is."""
    got, want = (_widest(np.asarray(x)) for x in (got, want))
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def _widest(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64) if x.dtype != np.clongdouble else x


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Standard normals, complex where the dtype is; integers of the whole range of 8 bits, or of 20."""
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return rng.integers(max(limits.min, -(2**20)), min(limits.max, 2**20), shape, dtype, endpoint=True)
    x = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def operands(rng: np.random.Generator, mm: devmath.Gemm, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Random A and B of a descriptor, of any depth k."""
    k = mm.k if k is None else k
    return normal(rng, (mm.m, k), mm.dtype), normal(rng, (k, mm.n), mm.b_dtype)


def factors(mm: devmath.Gemm) -> tuple[Any, Any]:
    """Alpha and beta that the type of the sums holds: fractions where it has them."""
    return tuple(map(mm.accumulator_dtype.type, (-3, 2) if mm.accumulator_dtype.kind == "i" else (-0.5, 1.5)))


def unset(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array in which an element that a kernel did not write shows: NaN, or an integer that is no likely result."""
    return np.full(shape, np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else np.nan, dtype)


def batch(rng: np.random.Generator, mm: devmath.Gemm, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random A and B of so many products, and room for C in which an element that is not written shows."""
    a, b = normal(rng, (count, mm.m, mm.k), mm.dtype), normal(rng, (count, mm.k, mm.n), mm.b_dtype)
    return a, b, unset((count, mm.m, mm.n), mm.c_dtype)


def product(a: np.ndarray, b: np.ndarray, mm: devmath.Gemm | None = None) -> np.ndarray:
    """A @ B in double precision; where a descriptor says so either is conjugated, or both are read as tf32."""
    if mm and mm.math == "tf32":
        a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
    a, b = _widest(a), _widest(b)
    return (a.conj() if mm and mm.a_conj else a) @ (b.conj() if mm and mm.b_conj else b)


def transform(x: np.ndarray, inverse: bool = False) -> np.ndarray:
    """Unnormalised transform of the rows in extended precision, which NumPy's FFT has for long doubles."""
    wide = x.astype(np.clongdouble)
    return np.fft.ifft(wide, norm="forward") if inverse else np.fft.fft(wide)


def gemm_error(got: Any, want: Any) -> float:
    """L2 norm of the difference over that of `want`, or over one an element: a lone sum of normals may cancel."""
    got, want = (_widest(np.asarray(x)) for x in (got, want))
    return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), np.sqrt(want.size), 1.0))


def gemm_bound(mm: devmath.Gemm, dtype: Any) -> float:
    """Bound of the error of a product that is returned as `dtype`, on any tensor core: some keep 11 bits, or 14."""
    is_coarse = mm.accumulator_dtype == np.float16 or "float8" in mm.dtype.name
    return max(GEMM_BOUND[np.dtype(dtype).name], 2.0**-8 if is_coarse else 0)
