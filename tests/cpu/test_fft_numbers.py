"""The FFT headers as plain C++: every thread of a block runs, as a fiber, what it runs on a GPU."""

import ctypes
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from devmath.lto.fft_plan import plan
from devmath.lto.fft_source import struct_text

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "devmath" / "lto" / "include"
DTYPES = {"float": np.dtype(np.complex64), "double": np.dtype(np.complex128)}
FORWARD, INVERSE, BOTH, TILE = range(4)

DEFAULTS = [plan(n, real) for real, most in (("float", 14), ("double", 13)) for n in (2**i for i in range(1, most + 1))]
CHOSEN = [
    plan(8, "float", 8),  # one thread, no exchange
    plan(16, "float", 2, 5),  # 8 threads a transform, 40 a block
    plan(32, "double", 2, 3),
    plan(64, "float", 16, 3),
    plan(64, "float", 4, 3),
    plan(256, "float", 4, 1),
    plan(512, "float", 16, 2),
    plan(1024, "float", 32, 3),
    plan(2048, "float", 32, 1),
    plan(1024, "double", 4, 1),
    plan(2048, "float", 2, 1),
]
PLANS = DEFAULTS + CHOSEN


class Matrix(ctypes.Structure):
    """The struct of the same name in fft_block.hpp."""

    _fields_ = [("data", ctypes.c_void_p)] + [
        (name, ctypes.c_longlong) for name in ("rows", "columns", "row_stride_bytes", "column_stride_bytes")
    ]

    @classmethod
    def of(cls, array):
        return cls(array.ctypes.data, *array.shape, *array.strides)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All plans in one shared library."""
    folder = tmp_path_factory.mktemp("fft")
    source = ['#include "fft_block.hpp"']
    for i, p in enumerate(PLANS):
        source.append(
            f"namespace plan{i} {{\n{struct_text(p)}}}\n"
            f'extern "C" void run{i}(devmath::Matrix x, devmath::Matrix y, int kind, int descending, int ld) {{\n'
            f"  devmath::run_request<plan{i}::Plan>({{x, y, 0, descending, nullptr, ld}}, kind);\n}}"
        )
    (folder / "plans.cpp").write_text("\n".join(source))
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    output = folder / "plans.so"
    subprocess.run(["g++", *flags, f"-I{INCLUDE}", f"-I{HERE}", folder / "plans.cpp", "-o", output], check=True)
    return ctypes.CDLL(str(output))


def run(library, p, x, y, kind, descending=0, ld=0):
    """Transform x into y with plan `p`, block by block."""
    getattr(library, f"run{PLANS.index(p)}")(Matrix.of(x), Matrix.of(y), kind, descending, ld)


def random_rows(p, rows, rng):
    z = rng.standard_normal((rows, p.n)) + 1j * rng.standard_normal((rows, p.n))
    return z.astype(DTYPES[p.real])


def relative_error(got, expected):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


def bound(p, transforms=1):
    """Relative error in the 2-norm: rounding errors of the log2(n) levels add up like a random walk."""
    return transforms * {"float": 5e-8, "double": 1e-16}[p.real] * (1 + math.sqrt(math.log2(p.n)))


def name(p):
    return f"{p.real}-{p.n}-{p.elements_per_thread}x{p.ffts_per_block}"


@pytest.mark.parametrize("descending", [0, 1])
@pytest.mark.parametrize("p", PLANS, ids=name)
def test_transforms_agree_with_numpy(library, p, descending):
    """Forward and inverse, whole and partly filled last blocks, threads in either order between two barriers."""
    x = random_rows(p, p.ffts_per_block + 1, np.random.default_rng())
    exact = x.astype(np.clongdouble)
    expected = {FORWARD: np.fft.fft(exact), INVERSE: np.fft.ifft(exact) * p.n, BOTH: exact * p.n}
    for kind, transforms in ((FORWARD, 1), (INVERSE, 1), (BOTH, 2)):
        y = np.full_like(x, np.nan)
        run(library, p, x, y, kind, descending)
        assert relative_error(y, expected[kind]) < bound(p, transforms)


@pytest.mark.parametrize("p", PLANS, ids=name)
def test_tile_is_transformed_in_place(library, p):
    tile = random_rows(p, p.ffts_per_block, np.random.default_rng())
    padded = np.full((p.ffts_per_block, p.n + 3), np.nan, tile.dtype)
    padded[:, : p.n] = tile
    run(library, p, padded, padded, TILE, ld=p.n + 3)
    assert relative_error(padded[:, : p.n], np.fft.fft(tile.astype(np.clongdouble))) < bound(p)
    assert np.isnan(padded[:, p.n :]).all()


PLAN_OF_EDGES = plan(64, "float", 4, 3)


def edge_views(base):
    """Views of 4 x 64 or less in `base`, named by what is unusual about them."""
    return {
        "columns apart": base[:4, :128:2],
        "reversed": base[3::-1, 63::-1],
        "transposed": base.T[:4, :64],
        "few columns": base[:4, :37],
        "one column": base[:4, :1],
        "many columns": base[:4, :100],
        "odd start": base.view(np.float32)[:4, 1:129].view(np.complex64),
    }


@pytest.mark.parametrize("view", edge_views(np.zeros((128, 128), np.complex64)))
def test_loads_read_zeros_past_the_edge(library, view):
    p = PLAN_OF_EDGES
    rng = np.random.default_rng()
    base = (rng.standard_normal((128, 128)) + 1j * rng.standard_normal((128, 128))).astype(np.complex64)
    x = edge_views(base)[view]
    y = np.full((4, p.n), np.nan, np.complex64)
    run(library, p, x, y, FORWARD)
    assert relative_error(y, np.fft.fft(x.astype(np.complex128), p.n)) < bound(p)


@pytest.mark.parametrize("view", edge_views(np.zeros((128, 128), np.complex64)))
def test_stores_touch_nothing_past_the_edge(library, view):
    p = PLAN_OF_EDGES
    x = random_rows(p, 7, np.random.default_rng())
    base = np.full((128, 128), np.nan, np.complex64)
    y = edge_views(base)[view]
    run(library, p, x, y, FORWARD)
    columns = min(p.n, y.shape[1])
    expected = np.fft.fft(x.astype(np.complex128))[:4, :columns]
    assert relative_error(y[:, :columns], expected) < bound(p)
    assert np.count_nonzero(~np.isnan(base)) == 4 * columns
