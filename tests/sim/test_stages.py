"""Stacks of tiles, and loads that are under way while others have landed: numbers, and every use that is too early."""

import re

import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError

import devmath
from tests import kernels
from tests.oracle import fft_bound, normal, product, relative_error, transform

MM = devmath.Gemm(8, 8, 4, threads=32)
SQUARE = devmath.Gemm(8, 8, 8, threads=32)
LARGE = devmath.Gemm(100, 1, 200, threads=32)
FFT = devmath.FFT(64, ffts_per_block=4, elements_per_thread=8)
A = np.ones((8, 8), np.float32)
STACK = "3 stages of a tile (8, 4) of float32, order 'row'"


@pytest.fixture
def rng():
    return np.random.default_rng()


def launch(body):
    """Run `body` in every thread of a block."""

    @cuda.jit
    def kernel():
        body()

    kernel[1, 32]()


@pytest.mark.parametrize("k", [1, 4, 11, 16])
@pytest.mark.parametrize(
    "make",
    [kernels.gemm_double_buffered, *(lambda mm, s=s: kernels.gemm_pipelined(mm, s) for s in (2, 3, 4))],
    ids=["double buffered", *(f"{s} stages" for s in (2, 3, 4))],
)
def test_products_of_any_depth(make, k, rng):
    a, b = normal(rng, (13, k), np.float32), normal(rng, (k, 9), np.float32)
    c = np.full((13, 9), np.nan, np.float32)
    make(MM)[(2, 2), MM.block_dim](a, b, c)
    assert relative_error(c, product(a, b)) < 1e-5


@pytest.mark.parametrize("count", [1, 4, 9, 17])
def test_transforms_of_any_number_of_rows(count, rng):
    x = normal(rng, (count, 64), np.complex64)
    y = np.full(x.shape, np.nan, np.complex64)
    kernels.fft_pipelined(FFT)[2, FFT.block_dim](x, y)
    assert relative_error(y, transform(x)) < fft_bound(64, x.dtype)


def test_what_a_stack_is():
    seen = []

    def body():
        stack, one = devmath.shared(MM.a, 3), devmath.shared(MM.a, stages=1)
        again = [devmath.shared(MM.a, stages=2)[np.int32(1)] for _ in range(2)]
        alone = devmath.shared(MM.a, stages=None)
        if cuda.threadIdx.x == 7:
            stack[2][7, 3] = 5
            seen.append((len(stack), stack.stages, one.stages, stack[1].shape, stack[2][7, 3], alone.shape))
            seen.append((again[0] is again[1], len({id(stack[s]) for s in range(3)})))

    launch(body)
    assert seen == [(3, 3, 1, (8, 4), 5, (8, 4)), (True, 3)]


@pytest.mark.parametrize("index", [-1, 3])
def test_no_stage_beyond_the_last(index):
    sentence = re.escape(f"{STACK} (made at test_stages.py:") + rf"\d+\) are numbered 0 to 2, got {index}"
    with pytest.raises(IndexError, match=sentence):
        launch(lambda: devmath.shared(MM.a, stages=3)[index])


REFUSED = {
    "no stages": (
        lambda: devmath.shared(MM.a, stages=0),
        "devmath.shared: stages must be an integer >= 1, known while compiling, got 0",
    ),
    "half a stage": (
        lambda: devmath.shared(MM.a, 0.5),
        "devmath.shared: stages must be an integer >= 1, known while compiling, got float64",
    ),
    "stages that are true": (
        lambda: devmath.shared(MM.a, stages=True),
        "devmath.shared: stages must be an integer >= 1, known while compiling, got bool",
    ),
    "fewer loads than none": (
        lambda: devmath.wait(pending=-1),
        "devmath.wait: pending must be an integer >= 0, known while compiling, got -1",
    ),
    "an array of loads": (
        lambda: devmath.wait(A),
        "devmath.wait: pending must be an integer >= 0, known while compiling, got a 2-D array of float32",
    ),
    "another keyword": (lambda: devmath.wait(loads=1), "devmath.wait takes no keyword but pending, got loads"),
    "a keyword where there is none": (
        lambda: devmath.load(A, target=devmath.shared(MM.a)),
        "devmath.load takes positional arguments only, got target",
    ),
    "stages twice": (
        lambda: devmath.shared(MM.a, 2, stages=2),
        "devmath.shared: multiple values for argument 'stages'",
    ),
    "too many arguments": (lambda: devmath.wait(1, 2), "devmath.wait: too many positional arguments"),
    "a load into a stack": (
        lambda: devmath.load(A, devmath.shared(MM.a, stages=3)),
        f"devmath.load: target must be a tile, an accumulator or registers, got {STACK}",
    ),
    "a product of a stack": (
        lambda: devmath.gemm(MM, devmath.shared(MM.a, 3), devmath.shared(MM.b), devmath.accumulator(MM)),
        f"or a 1-D or 2-D C-ordered cuda.shared.array of that dtype, got {STACK}",
    ),
    "two indices": (
        lambda: devmath.shared(MM.a, 3)[0, 0],
        "stages of a tile take one integer, stack[s], got stack[",
    ),
    "more than there is": (
        lambda: devmath.shared(LARGE.a, stages=3),
        f"must fit the 232448 bytes of shared memory that sm_90a has, got {3 * LARGE.a.layout.stage_bytes}",
    ),
}


@pytest.mark.parametrize("misuse", REFUSED)
def test_wrong_uses_are_refused(misuse):
    body, sentence = REFUSED[misuse]
    with pytest.raises(TypingError, match=re.escape(sentence)):
        launch(body)


def after(pending, use):
    """Load into stages 0, 1 and 2, wait, and use them: ``use(stack)``."""

    def body():
        stack = devmath.shared(SQUARE.a, stages=4)
        for s in range(3):
            devmath.load(A, stack[s])
        devmath.wait(pending=pending)
        use(stack)

    return body


def read(stage):
    return lambda stack: stack[stage][0, 0]


def load(stage):
    return lambda stack: devmath.load(A, stack[stage])


def multiply(stage):
    def use(stack):
        devmath.gemm(SQUARE, stack[stage], devmath.shared(SQUARE.b), devmath.accumulator(SQUARE))

    return use


def read_after_another_wait(stack):
    devmath.load(A, stack[3])
    devmath.wait(pending=2)
    return stack[2][0, 0]


def read_after_a_load_into_registers(stack):
    devmath.load(np.ones((4, 64), np.complex64), devmath.registers(FFT), 0)
    devmath.wait(pending=1)
    return stack[2][0, 0]


TOO_EARLY = {
    "the newest of three": (1, read(2), r"devmath.wait\(\)"),
    "the second of three": (2, read(1), r"devmath.wait\(pending=1\), or less,"),
    "the first, when none had to land": (3, read(0), r"devmath.wait\(pending=2\), or less,"),
    "the first, when more might be pending than there are": (9, read(0), r"devmath.wait\(pending=2\), or less,"),
    "a load over the newest": (1, load(2), r"devmath.wait\(\)"),
    "a product of the newest": (1, multiply(2), r"devmath.wait\(\)"),
    "the last but one of four": (1, read_after_another_wait, r"devmath.wait\(pending=1\), or less,"),
    "registers do not count": (1, read_after_a_load_into_registers, r"devmath.wait\(\)"),
}


@pytest.mark.parametrize("name", TOO_EARLY)
def test_a_load_that_may_be_pending_is_not_there(name):
    pending, use, remedy = TOO_EARLY[name]
    sentence = rf"element \(0, 0\) of .*, which devmath.load at .* by the block wrote: {remedy} must come between"
    with pytest.raises(devmath.SimulationError, match=sentence):
        launch(after(pending, use))


def all_but_the_newest(stack):
    return stack[0][0, 0] + stack[1][7, 7]


def loads_land_in_their_order(stack):
    """The wait that came first has left one load; each further one leaves the newer."""
    for s in (3, 0, 1):
        devmath.load(A, stack[s])
        devmath.wait(pending=1)
        oldest = stack[(s - 1) % 4][0, 0]
    devmath.wait()
    return oldest + stack[1][0, 0]


@pytest.mark.parametrize("use", [all_but_the_newest, load(0), load(3), loads_land_in_their_order])
def test_what_has_landed_may_be_used(use):
    launch(after(1, use))


def test_threads_must_agree_on_what_is_pending():
    with pytest.raises(devmath.SimulationError, match=r"every thread of the block must call devmath.wait at"):
        launch(lambda: devmath.wait(pending=1 if cuda.threadIdx.x == 0 else 2))


def test_a_stage_is_not_loaded_over_while_others_may_read_it():
    def body():
        stack, b, acc = devmath.shared(SQUARE.a, 2), devmath.shared(SQUARE.b), devmath.accumulator(SQUARE)
        devmath.load(A, stack[0])
        devmath.load(A, b)
        devmath.wait()
        devmath.gemm(SQUARE, stack[0], b, acc)
        devmath.load(A, stack[1])
        devmath.load(A, stack[0])

    with pytest.raises(devmath.SimulationError, match=r"devmath.load .* writes .* devmath.gemm at .* may still read"):
        launch(body)
