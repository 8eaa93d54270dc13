"""The table of element types, and the conversions between them in C++ against NumPy and ml_dtypes."""

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest
from tile_block import RNG, build_library

from devmath.dtypes import BY_NAME, lookup
from devmath.lto.tile_source import element_text

FLOAT8 = ["float8_e4m3fn", "float8_e5m2"]
REAL = ["float16", "bfloat16", "float32", "float64", *FLOAT8]
COMPLEX = ["complex64", "complex128"]
INTEGER = ["int8", "uint8", "int32"]
CONVERSIONS = [
    *itertools.product(REAL, REAL + COMPLEX),
    *itertools.product(COMPLEX, COMPLEX),
    *itertools.product(INTEGER, REAL),
    *((name, name) for name in INTEGER),
    ("int8", "int32"),
    ("uint8", "int32"),
]


@pytest.mark.parametrize("name", BY_NAME)
def test_lookup_takes_names_numpy_dtypes_scalar_types_and_rows(name):
    row = BY_NAME[name]
    for spelling in (name, row.numpy, row.numpy.type, row):
        assert lookup(spelling) is row
    assert row.itemsize == row.numpy.itemsize
    assert row.is_complex == (row.numpy.kind == "c")


@pytest.mark.parametrize("name", ["bfloat16", *FLOAT8])
def test_what_numpy_lacks_is_that_of_ml_dtypes(name):
    assert lookup(name).numpy == np.dtype(getattr(ml_dtypes, name))


def test_what_is_converted_is_what_cpp_converts():
    """All pairs of the table, but those that would lose a part of the number."""
    assert {(x.name, y.name) for x in BY_NAME.values() for y in BY_NAME.values() if x.converts_to(y)} == {
        (x, y) for x, y in CONVERSIONS if x in COMPLEX or y not in COMPLEX
    }


@pytest.mark.parametrize(("dtype", "got"), [(np.int16, "int16"), ("f4x", "'f4x'"), (object(), "<object object")])
def test_lookup_refuses_other_types_by_name(dtype, got):
    with pytest.raises(TypeError, match=f"^a must be one of float16, .*complex128, .*, got {got}"):
        lookup(dtype, "a")


def test_lookup_refuses_types_that_are_not_allowed():
    with pytest.raises(TypeError, match=r"^dtype must be one of complex64, complex128, got float32$"):
        lookup(np.float32, allowed=("complex64", "complex128"))
    with pytest.raises(TypeError, match=r"got float32$"):
        lookup(BY_NAME["float32"], allowed=("complex64",))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Functions float16_to_float32, ... for all conversions."""
    functions = {
        f"{x}_to_{y}(const void* from, void* to, i64 size)": (
            f"convert_all<{element_text(BY_NAME[y])}, {element_text(BY_NAME[x])}>(from, to, size)"
        )
        for x, y in CONVERSIONS
    }
    return build_library(tmp_path_factory.mktemp("conversions"), functions)


def convert(library, values, to):
    out = np.empty(values.shape, BY_NAME[to].numpy)
    function = getattr(library, f"{values.dtype.name}_to_{to}")
    function(*map(ctypes.c_void_p, (values.ctypes.data, out.ctypes.data)), ctypes.c_longlong(values.size))
    return out


def random_bits(dtype, size):
    """Return numbers of random bits, so of every magnitude, with infinities, NaNs, zeros and subnormal numbers."""
    return RNG.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype)


def special_values(dtype):
    """Return the numbers where conversions to narrower types change their ways, and their neighbours."""
    narrower = [BY_NAME[name].numpy for name in REAL if BY_NAME[name].itemsize < dtype.itemsize]
    limits = [
        float(x) for f in map(ml_dtypes.finfo, narrower) for x in (f.max, f.smallest_normal, f.smallest_subnormal)
    ]
    with np.errstate(all="ignore"):
        values = np.outer([0.5, 1, 1.5, np.inf, np.nan], [1, *limits]).ravel().astype(dtype)
        around = [np.nextafter(values, dtype.type(direction)) for direction in (-np.inf, np.inf)]
    return np.concatenate([values, *around, -values])


def rounded(values, to):
    """What a conversion must give: NumPy's, but that nothing overflows in 8 bits."""
    dtype = BY_NAME[to].numpy
    if to in FLOAT8 and values.dtype != dtype:
        largest = float(ml_dtypes.finfo(dtype).max)
        values = np.clip(values.astype(np.float64), -largest, largest)  # NaN stays NaN
    return values.astype(dtype)


def same(a, b):
    """True where the bits agree or both are NaN."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return (a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("x", REAL)
@pytest.mark.parametrize("y", REAL)
def test_conversions_of_real_numbers_round_to_nearest_even(library, x, y):
    dtype = BY_NAME[x].numpy
    values = random_bits(dtype, 100_000)
    if dtype.itemsize <= 2:
        values = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    else:
        values = np.concatenate([values, special_values(dtype), RNG.uniform(-70_000, 70_000, 10_000).astype(dtype)])
    with np.errstate(all="ignore"):
        if x == "float64" and y in ("bfloat16", *FLOAT8):
            values = values.astype(np.float32).astype(np.float64)  # ml_dtypes rounds twice, by way of float32
        expected = rounded(values, y)
    assert same(convert(library, values, y), expected).all()


@pytest.mark.parametrize("x", INTEGER)
@pytest.mark.parametrize("y", [*REAL, "int32"])
def test_conversions_of_integers(library, x, y):
    values = np.concatenate([random_bits(BY_NAME[x].numpy, 10_000), np.arange(-128, 128).astype(BY_NAME[x].numpy)])
    if x == "int32" and y in ("bfloat16", *FLOAT8):
        values = values >> 8  # those that float32 holds, by way of which ml_dtypes rounds
    with np.errstate(over="ignore"):
        expected = rounded(values, y)
    assert (convert(library, values, y) == expected).all()


@pytest.mark.parametrize(("name", "largest"), [("float8_e4m3fn", 448), ("float8_e5m2", 57344)])
def test_float8_saturates_and_keeps_nan(library, name, largest):
    for dtype in (np.float32, np.float64, np.float16):
        values = np.array([np.inf, -np.inf, 1.1 * largest, -largest, np.nan]).astype(dtype)
        got = convert(library, values, name).astype(np.float64)
        assert np.array_equal(got, [largest, -largest, largest, -largest, np.nan], equal_nan=True)


def test_wide_numbers_are_rounded_to_narrow_ones_once(library):
    # Just above the middle of 1 and its successor; as float32 it is the middle, and the tie goes to 1.
    steps = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3}
    for name, half_step in steps.items():
        value = np.array([1 + half_step + 2.0**-40])
        assert convert(library, value, name).astype(np.float64) == 1 + 2 * half_step


@pytest.mark.parametrize(("x", "y"), [(x, y) for x, y in CONVERSIONS if y in COMPLEX])
def test_conversions_to_complex_numbers(library, x, y):
    values = random_bits(BY_NAME[x].numpy, 10_000)
    with np.errstate(all="ignore"):
        expected = values.astype(BY_NAME[y].numpy)
    got, real = convert(library, values, y), BY_NAME[BY_NAME[y].real].numpy
    assert same(got.view(real), expected.view(real)).all()
