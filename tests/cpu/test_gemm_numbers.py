"""The GEMM headers as plain C++: every thread of a block runs what it runs on a GPU, tensor cores emulated."""

from itertools import product

import numpy as np
import pytest
from gemm_cpu import Case, Program, assert_poison_stays, of_one_sign, operands, random, relative_error, wide

from devmath.dtypes import BY_NAME

ORDERS = tuple(map("".join, product("rc", repeat=3)))
PLAIN = ("plain", "plain", "plain")
# Relative L2 error of sums; of 16-bit results, one rounding.
BOUNDS = dict.fromkeys(("float32", "complex64"), 1e-5) | dict.fromkeys(("float64", "complex128"), 1e-13)
BOUNDS |= {"float16": 2**-11, "bfloat16": 2**-8}

TILE_CASES = [
    *(Case(50, 37, 19, "float32", orders) for orders in ORDERS),
    *(Case(40, 24, 37, "float16", orders) for orders in ORDERS),
    Case(1, 1, 1, "float32"),
    Case(33, 20, 3, "float32", "crc", 96),
    Case(64, 64, 8, "float32", "crr", 32),  # several passes
    Case(17, 5, 9, "float32", "rrr", 256),  # more threads than elements
    Case(31, 45, 7, "float64", "rcr"),
    Case(40, 40, 6, "float64", "crc", 32),
    Case(27, 21, 5, "complex64", "crc", 96),
    Case(32, 32, 6, "complex64", "rcr"),
    Case(13, 18, 11, "complex128", "ccr", 32),
    Case(13, 18, 11, "complex128", "rcr", 32, conj=(True, True)),
    Case(27, 21, 5, "complex64", "crc", 96, conj=(True, False)),
    Case(27, 21, 5, "complex64", "rrr", 64, forms=PLAIN, conj=(False, True)),
    Case(3, 4, 5, "float32", "rcr", 1024),
    Case(16, 104, 32, "float16", "rrr", 384),
    Case(5, 8, 16, "float16", "crr", 512),
    Case(64, 112, 16, "float16", "rcr"),
    Case(64, 200, 20, "bfloat16", "rrr"),
    Case(40, 72, 1, "float16", "rcr"),
    Case(24, 40, 3, "bfloat16", "crr", 96),
    Case(64, 48, 133, "bfloat16", "rcc", c_dtype="bfloat16"),
    Case(64, 64, 64, "float16", "ccr", 32, "float16"),  # two passes
    Case(50, 37, 19, "float32", "rcr", 64, forms=PLAIN),
    Case(27, 21, 5, "complex64", "crr", 64, forms=("plain", "tile", "plain")),
    Case(9, 10, 4, "complex128", "crc", 32, forms=PLAIN),
    Case(40, 24, 37, "float16", "crr", 64, forms=PLAIN),
    Case(20, 24, 16, "bfloat16", "rcc", 32, "bfloat16", ("tile", "plain", "plain")),
]
REGISTER_CASES = [
    Case(50, 37, 19, "float32", "crr", forms=("tile", "tile")),
    Case(64, 64, 5, "float32", "rcr", 32, forms=("tile", "tile")),  # two passes
    Case(31, 45, 7, "float64", "rrr", 96, forms=("tile", "tile")),
    Case(27, 21, 5, "complex64", "crr", forms=("tile", "plain")),
    Case(12, 20, 3, "complex128", "rcr", forms=("plain", "plain")),
    Case(40, 24, 37, "float16", "rrr", forms=("tile", "tile")),
    Case(72, 80, 20, "bfloat16", "ccr", 64, forms=("tile", "tile")),
    Case(24, 96, 16, "float16", "rcr", 128, forms=("plain", "tile")),
]
# One case of each data path: padded, swizzled by 128, 64 and 32 bytes, plain; real and complex.
EDGE_CASES = [
    Case(50, 24, 7, "float32", "rcr"),
    Case(50, 24, 7, "float64", "crc"),
    Case(50, 24, 7, "complex64"),
    Case(50, 24, 64, "float16", "rcr"),
    Case(64, 32, 20, "float16", "crc", c_dtype="float16"),
    Case(50, 16, 9, "bfloat16", forms=PLAIN),
]
SUBNORMAL_CASES = [Case(8, 8, 1, "float32"), Case(8, 8, 16, "float16")]
COUNTING_CASES = [
    Case(2, 4, 3, dtype, orders, 32) for dtype in ("float16", "bfloat16", "float64") for orders in ("rrr", "ccr")
]
CASES = list(dict.fromkeys(TILE_CASES + REGISTER_CASES + EDGE_CASES + SUBNORMAL_CASES + COUNTING_CASES))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("gemm"), CASES)


def scalar(case, rng):
    """A random scalar that the accumulator's type holds exactly."""
    return random(rng, case.plan.accumulator.name, 1)[0]


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    """Past every extent memory is NaN, and the sanitizers watch the ends of each operand."""
    rng = np.random.default_rng()
    alpha, beta = scalar(case, rng), scalar(case, rng)
    a, b, c, alpha, beta = of_one_sign(case, *operands(case, rng), alpha, beta)
    got = program.tile_form(case, alpha, a, b, beta, c)
    left, right = (wide(x).conj() if conj else wide(x) for x, conj in zip((a, b), case.conj, strict=True))
    expected = wide(alpha) * (left @ right) + wide(beta) * wide(c)
    assert relative_error(got, expected) < BOUNDS[case.plan.c.dtype.name]


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    """The fragment map of Python says which accumulator is which element."""
    a, b, c = operands(case, np.random.default_rng())
    got = program.register_form(case, a, b, c)
    assert relative_error(got, wide(c) + wide(a) @ wide(b)) < BOUNDS[case.plan.accumulator.name]


@pytest.mark.parametrize("beta", [0.0, -0.0])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_beta_zero_never_reads_c(program, case, poison, beta):
    a, b, c = operands(case, np.random.default_rng())
    alpha = 1.5j if case.plan.accumulator.is_complex else 1.5
    c[:] = poison
    got = program.tile_form(case, alpha, a, b, beta, c)
    assert relative_error(got, alpha * (wide(a) @ wide(b))) < BOUNDS[case.plan.c.dtype.name]


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_what_is_not_finite_stays_in_its_row_and_column(program, case, poison):
    assert_poison_stays(program, case, poison)


@pytest.mark.parametrize("case", SUBNORMAL_CASES, ids=str)
def test_subnormals_survive(program, case):
    """The smallest numbers count: 2^-130 * 2^10 in float32, 16 * 2^-24 in float16."""
    tiny, scale = (2.0**-130, 2.0**10) if case.dtype == "float32" else (2.0**-24, 1.0)
    a, b, c = (np.zeros(shape, BY_NAME[case.dtype].numpy) for shape in ((8, case.k), (case.k, 8), (8, 8)))
    a[:], b[:] = tiny, scale
    assert (program.tile_form(case, 1.0, a, b, 0.0, c) == case.k * tiny * scale).all()


@pytest.mark.parametrize("case", COUNTING_CASES, ids=str)
def test_counting_numbers_are_exact(program, case):
    """Memory 0, 1, 2, ... in each operand, read by rows and by columns."""
    order = "C" if case.orders[0] == "r" else "F"
    a, b = (np.arange(rows * cols).reshape(rows, cols, order=order) for rows, cols in ((2, 3), (3, 4)))
    got = program.tile_form(case, 1.0, a, b, 0.0, np.full((2, 4), np.nan))
    expected = {"C": [[20, 23, 26, 29], [56, 68, 80, 92]], "F": [[10, 28, 46, 64], [13, 40, 67, 94]]}[order]
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("case", [case for case in TILE_CASES if case.dtype in ("float16", "bfloat16")], ids=str)
def test_small_integers_are_exact(program, case):
    rng = np.random.default_rng()
    a, b = rng.integers(0, 3, (case.m, case.k)), rng.integers(0, 2, (case.k, case.n))
    c = rng.integers(-2, 3, (case.m, case.n))
    got = program.tile_form(case, 1.0, a, b, 1.0, c)
    assert np.array_equal(got, (a @ b + c).astype(case.plan.c.dtype.numpy))
