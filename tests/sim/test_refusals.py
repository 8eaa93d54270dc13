"""Every wrong use of a verb, and the sentence that the simulator has for it: that of the compiler."""

import re

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError

import devmath

MM = devmath.Gemm(8, 8, 4, threads=32)
OTHER = devmath.Gemm(4, 4, 4, threads=32)
INTEGERS = devmath.Gemm(8, 8, 4, "int8", threads=32)
FLOAT8 = devmath.Gemm(8, 8, 4, "float8_e4m3fn", threads=32)
LARGE = devmath.Gemm(200, 1, 200, threads=32)
FFT = devmath.FFT(64, ffts_per_block=4, elements_per_thread=8)
NOTHING = np.zeros((8, 8), np.float32)
FROZEN = NOTHING.copy()
FROZEN.flags.writeable = False


@cuda.jit(device=True)
def rotate(x, row, col):
    return x * 1j


@cuda.jit(device=True)
def halve(x, row, col):
    return x / 2


def launch(body, block_dim=32):
    """Run `body` in every thread of a block."""

    @cuda.jit
    def kernel():
        body()

    kernel[1, block_dim]()


def tiles():
    return devmath.shared(MM.a), devmath.shared(MM.b), devmath.shared(MM.c)


def gemm_with(**changed):
    """The tile form with some of its operands replaced."""
    a, b, c = tiles()
    arguments = {"alpha": 1.0, "a": a, "b": b, "beta": 0.0, "c": c, **changed}
    devmath.gemm(MM, *arguments.values())


def gemm_into(acc):
    a, b, _ = tiles()
    devmath.gemm(MM, a, b, acc)


def shared_array(shape, dtype=np.float32):
    return cuda.shared.array(shape, dtype)


def local_array(shape, dtype=np.float32):
    return cuda.local.array(shape, dtype)


def set_tile(index, value):
    devmath.shared(MM.a)[index] = value


def set_register(index, value):
    devmath.accumulator(MM)[index] = value


A_RULE = "a tile (8, 4) of float32, order 'row'"
PLAIN_RULE = f"{A_RULE}, or a 1-D or 2-D C-ordered cuda.shared.array of that dtype"
CONVERTIBLE = "float16 or bfloat16 or float32 or float64 or float8_e4m3fn or float8_e5m2"
LOADABLE = "float16 or bfloat16 or float32 or float64 or int8 or uint8 or int32 or float8_e4m3fn or float8_e5m2"

REFUSED = {
    "shared of a product": (
        lambda: devmath.shared(MM),
        f"devmath.shared: its first argument must be mm.a, mm.b or mm.c of a devmath.Gemm or a devmath.FFT, got {MM!r}",
    ),
    "accumulator of a transform": (
        lambda: devmath.accumulator(FFT),
        f"devmath.accumulator: its first argument must be a devmath.Gemm, got {FFT!r}",
    ),
    "accumulator too large": (
        lambda: devmath.accumulator(devmath.Gemm(128, 128, 4, threads=32)),
        "devmath.accumulator: the accumulator of a thread must be at most 128 32-bit words with 32 threads, got 512",
    ),
    "registers of a product": (
        lambda: devmath.registers(MM),
        f"devmath.registers: its first argument must be a devmath.FFT, got {MM!r}",
    ),
    "index of a number": (
        lambda: devmath.transform_index(3),
        "devmath.transform_index: its first argument must be a devmath.FFT, got int64",
    ),
    "gemm with four operands": (
        lambda: devmath.gemm(MM, 1.0, *tiles()),
        "devmath.gemm takes (desc, alpha, a, b, beta, c) or (desc, a, b, acc), got 5 arguments",
    ),
    "tile of another layout": (
        lambda: gemm_with(a=tiles()[1]),
        f"devmath.gemm: a must be {A_RULE} with the layout of this descriptor, got a tile (4, 8) of float32, order",
    ),
    "operand that is a number": (lambda: gemm_with(a=1.5), f"devmath.gemm: a must be {PLAIN_RULE}, got float64"),
    "plain array of another type": (
        lambda: gemm_with(a=shared_array((8, 4), np.float64)),
        f"devmath.gemm: a must be {PLAIN_RULE}, got a 2-D array of float64, layout 'C'",
    ),
    "plain array in another order": (
        lambda: gemm_with(a=shared_array((4, 8)).T),
        f"devmath.gemm: a must be {PLAIN_RULE}, got a 2-D array of float32, layout 'F'",
    ),
    "view of every other column": (
        lambda: gemm_with(a=shared_array((8, 8))[:, ::2]),
        "a must have lines of consecutive elements: strides of at least 16, and of just 4 bytes, got (32, 8)",
    ),
    "view of lines upside down": (
        lambda: gemm_with(a=shared_array((8, 4))[::-1]),
        "a must have lines of consecutive elements: strides of at least 16, and of just 4 bytes, got (-16, 4)",
    ),
    "view too narrow": (
        lambda: gemm_with(a=shared_array((8, 8))[:, 5:]),
        "devmath.gemm: a must have at least the extents (8, 4), got (8, 3)",
    ),
    "plain array too small": (
        lambda: gemm_with(a=shared_array((8, 3))),
        "devmath.gemm: a must have at least the extents (8, 4), got (8, 3)",
    ),
    "dense array too small": (
        lambda: gemm_with(a=shared_array(31)),
        "devmath.gemm: a must have at least the extents (32,), got (31,)",
    ),
    "operand in local memory": (
        lambda: gemm_with(c=local_array((8, 8))),
        "devmath.gemm: c must lie in shared memory, got an array in local memory",
    ),
    "complex factor of real numbers": (
        lambda: gemm_with(alpha=1j),
        "devmath.gemm: alpha must be a number that converts to float32, got complex128",
    ),
    "factor that is no number": (
        lambda: gemm_with(beta=True),
        "devmath.gemm: beta must be a number that converts to float32, got bool",
    ),
    "fraction as a factor of integers": (
        lambda: devmath.gemm(INTEGERS, 1.0, *(devmath.shared(x) for x in (INTEGERS.a, INTEGERS.b)), 0, None),
        "devmath.gemm: alpha must be an integer that converts to int32, got float64",
    ),
    "fraction among integers": (
        lambda: devmath.accumulator(INTEGERS).__setitem__(0, 0.5),
        f"the accumulator of {INTEGERS!r} holds int32, got a value of type float64",
    ),
    "apply that leaves the integers": (
        lambda: devmath.apply(halve, devmath.accumulator(INTEGERS)),
        "devmath.apply: the result of function must be an integer that converts to int32, got float64",
    ),
    "store of wide integers to narrow ones": (
        lambda: devmath.store(devmath.accumulator(INTEGERS), NOTHING.astype(np.int8)),
        f"devmath.store: target must be a 2-D array of {CONVERTIBLE.replace(' or float8', ' or int32 or float8', 1)},"
        " got a 2-D array of int8",
    ),
    "load of the other float8": (
        lambda: devmath.load(NOTHING.astype(ml_dtypes.float8_e5m2), devmath.shared(FLOAT8.a)),
        "devmath.load: source must be a 2-D array of float8_e4m3fn, got a 2-D array of float8_e5m2, layout 'C'",
    ),
    "accumulator of another product": (
        lambda: gemm_into(devmath.accumulator(OTHER)),
        f"devmath.gemm: acc must be devmath.accumulator({MM!r}), or a 1-D cuda.local.array of float32, got the"
        f" accumulator of {OTHER!r}",
    ),
    "accumulators in shared memory": (
        lambda: gemm_into(shared_array(64)),
        "devmath.gemm: acc must lie in local memory, got an array in shared memory",
    ),
    "too few accumulators": (
        lambda: gemm_into(local_array(1)),
        "devmath.gemm: acc must have at least the extents (2,), got (1,)",
    ),
    "registers of another transform": (
        lambda: devmath.fft(FFT, devmath.registers(devmath.FFT(32, ffts_per_block=8, elements_per_thread=8))),
        f"devmath.fft: data must be devmath.registers({FFT!r}), got the registers of",
    ),
    "tile that is no batch": (
        lambda: devmath.fft(FFT, devmath.shared(MM.a)),
        f"devmath.fft: data must be a tile (4, 64) of complex64, order 'row', got {A_RULE}",
    ),
    "transform of real numbers": (
        lambda: devmath.fft(FFT, local_array(8)),
        f"devmath.fft: data must be registers or a tile of {FFT!r}, or a 1-D or 2-D C-ordered array of complex64, got a"
        " 1-D array of float32, layout 'C'",
    ),
    "too few registers": (
        lambda: devmath.fft(FFT, local_array(7, np.complex64)),
        "devmath.fft: data must have at least the extents (8,), got (7,)",
    ),
    "load into an array": (
        lambda: devmath.load(NOTHING, local_array((8, 4))),
        "devmath.load: target must be a tile, an accumulator or registers, got a 2-D array of float32, layout 'C'",
    ),
    "load of complex numbers into an accumulator": (
        lambda: devmath.load(NOTHING.astype(np.complex64), devmath.accumulator(MM)),
        f"devmath.load: source must be a 2-D array of {LOADABLE}, got a 2-D array of complex64, layout 'C'",
    ),
    "load of a tile into an accumulator of another shape": (
        lambda: devmath.load(devmath.shared(MM.a), devmath.accumulator(MM)),
        f"devmath.load: source must be an array, or a tile (8, 8) of {LOADABLE}, got a tile (8, 4) of float32",
    ),
    "load of a tile into a tile": (
        lambda: devmath.load(devmath.shared(MM.c), devmath.shared(MM.c)),
        "devmath.load: source must be a 2-D array of float32, got a tile (8, 8) of float32",
    ),
    "load of one dimension": (
        lambda: devmath.load(NOTHING[0], devmath.shared(MM.a)),
        "devmath.load: source must be a 2-D array of float32, got a 1-D array of float32, layout 'C'",
    ),
    "load of another type": (
        lambda: devmath.load(NOTHING.astype(np.int16), devmath.shared(MM.a)),
        "devmath.load: source must be a 2-D array of float32, got a 2-D array of int16, layout 'C'",
    ),
    "load of a row into a tile": (
        lambda: devmath.load(NOTHING, devmath.shared(MM.a), 0),
        "devmath.load: source must be a 3-D array of float32, as an index follows, got a 2-D array of float32",
    ),
    "load without a row": (
        lambda: devmath.load(NOTHING.astype(np.complex64), devmath.registers(FFT)),
        "devmath.load: the registers of a transform take one more argument, the row: an integer",
    ),
    "store of an array": (
        lambda: devmath.store(NOTHING, NOTHING),
        "devmath.store: source must be a tile, an accumulator or registers, got a 2-D array of float32, layout 'C'",
    ),
    "store to another kind of number": (
        lambda: devmath.store(devmath.accumulator(MM), NOTHING.astype(np.complex64)),
        f"devmath.store: target must be a 2-D array of {CONVERTIBLE}, got a 2-D array of complex64, layout 'C'",
    ),
    "store to what may not be written": (
        lambda: devmath.store(devmath.accumulator(MM), FROZEN),
        f"devmath.store: target must be a 2-D array of {CONVERTIBLE} that may be written, got a 2-D array of float32",
    ),
    "store to a tile of another shape": (
        lambda: devmath.store(devmath.accumulator(MM), devmath.shared(MM.a)),
        f"devmath.store: target must be an array, or a tile (8, 8) of {CONVERTIBLE}, got {A_RULE}",
    ),
    "store of a row of a product": (
        lambda: devmath.store(devmath.accumulator(MM), NOTHING, 0),
        f"devmath.store: target must be a 3-D array of {CONVERTIBLE}, as an index follows, got a 2-D array of float32",
    ),
    "store of registers in a broken row": (
        lambda: devmath.store(devmath.registers(FFT), NOTHING.astype(np.complex64), 0.5),
        "devmath.store: the registers of a transform take one more argument, the row: an integer",
    ),
    "apply to registers": (
        lambda: devmath.apply(rotate, devmath.registers(FFT)),
        f"devmath.apply: acc must be a devmath.accumulator, or a row or column vector, got the registers of {FFT!r}",
    ),
    "apply of a Python function": (
        lambda: devmath.apply(max, devmath.accumulator(MM)),
        "devmath.apply: function must be a @cuda.jit(device=True) function, got <built-in function max>",
    ),
    "apply that leaves the real numbers": (
        lambda: devmath.apply(rotate, devmath.accumulator(MM)),
        "devmath.apply: the result of function must be a number that converts to float32, got complex",
    ),
    "one index of a tile": (lambda: devmath.shared(MM.a)[0], "a tile takes two integers, t[i, j], got t[int64]"),
    "broken index of a tile": (
        lambda: devmath.shared(MM.a)[0, 0.5],
        "a tile takes two integers, t[i, j], got t[Tuple(int64, float64)]",
    ),
    "complex element of a real tile": (
        lambda: set_tile((0, 0), 1j),
        f"{A_RULE} holds float32, got a value of type complex128",
    ),
    "broken register": (
        lambda: devmath.accumulator(MM)[0.5],
        "an accumulator or registers take one integer, acc[i], got acc[float64]",
    ),
    "text in a register": (
        lambda: set_register(0, "1"),
        f"the accumulator of {MM!r} holds float32, got a value of type unicode_type",
    ),
    "row of a broken register": (
        lambda: devmath.accumulator(MM).row(0.5),
        "row(i) takes one integer, the number of a register",
    ),
    "index in a transform of a product": (
        lambda: devmath.accumulator(MM).index(0),
        f"index(i) is of the registers of a transform, got the accumulator of {MM!r}: use row(i) and col(i)",
    ),
    "two numbers of threads": (
        lambda: (devmath.shared(MM.a), devmath.registers(devmath.FFT(64, ffts_per_block=8, elements_per_thread=8))),
        f"descriptors of one kernel must agree on the threads of a block, got 32 for {MM!r} and 64 for",
    ),
    "more shared memory than there is": (
        lambda: (devmath.shared(LARGE.a), devmath.shared(LARGE.a)),
        "the tiles of a kernel must fit the 232448 bytes of shared memory that sm_90a has, got",
    ),
}


@pytest.mark.parametrize("misuse", REFUSED)
def test_wrong_uses_are_refused(misuse):
    body, sentence = REFUSED[misuse]
    with pytest.raises(TypingError, match=re.escape(sentence)):
        launch(body)


def test_array_in_global_memory_is_no_operand():
    @cuda.jit
    def kernel(a):
        gemm_with(a=a)

    with pytest.raises(TypingError, match="a must lie in shared memory, got an array in global memory"):
        kernel[1, 32](NOTHING)


@pytest.mark.parametrize("index", [(8, 0), (0, 4), (-1, 0), (0, -1)])
@pytest.mark.parametrize("use", [lambda i: devmath.shared(MM.a)[i], lambda i: set_tile(i, 0.0)])
def test_no_element_outside_a_tile(use, index):
    sentence = re.escape(f"{A_RULE} (made at test_refusals.py:") + r"\d+\) has no element " + re.escape(str(index))
    with pytest.raises(IndexError, match=sentence):
        launch(lambda: use(index))


@pytest.mark.parametrize("i", [-1, 2])
@pytest.mark.parametrize(
    "use",
    [
        lambda i: devmath.accumulator(MM)[i],
        lambda i: set_register(i, 0.0),
        lambda i: devmath.accumulator(MM).row(i),
        lambda i: devmath.accumulator(MM).col(i),
        lambda i: devmath.accumulator(MM).in_bounds(i),
    ],
)
def test_no_register_beyond_the_last(use, i):
    with pytest.raises(IndexError, match=re.escape(f"the accumulator of {MM!r} has registers 0 to 1, got {i}")):
        launch(lambda: use(i))


@pytest.mark.parametrize(
    "verb",
    [
        lambda: devmath.shared(MM.a),
        lambda: devmath.accumulator(MM),
        lambda: devmath.registers(FFT),
        lambda: devmath.transform_index(FFT),
    ],
)
def test_block_of_the_wrong_size_fails_at_the_first_verb(verb):
    with pytest.raises(devmath.LaunchError, match=r"the block must have 32 threads \(block_dim of .*\), got 64"):
        launch(verb, 64)


def test_block_of_the_right_size_may_have_any_shape():
    launch(lambda: devmath.accumulator(MM), (8, 2, 2))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shared", (MM.a,)),
        ("accumulator", (MM,)),
        ("registers", (FFT,)),
        ("transform_index", (FFT,)),
        ("load", (NOTHING, NOTHING)),
        ("store", (NOTHING, NOTHING)),
        ("wait", ()),
        ("gemm", (MM, NOTHING, NOTHING, NOTHING)),
        ("fft", (FFT, NOTHING)),
        ("apply", (rotate, NOTHING)),
    ],
)
def test_verbs_are_for_kernels(name, arguments):
    with pytest.raises(devmath.DeviceOnlyError, match=rf"devmath\.{name} can only be called inside a @cuda.jit"):
        getattr(devmath, name)(*arguments)
