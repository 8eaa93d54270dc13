"""Descriptors: what they refuse and in which words, what makes two of them equal, and the numbers they derive."""

import dataclasses
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import devmath
from devmath.blas_device import Operand

GEMM_REFUSED = {
    "m below 1": ({"m": 0}, ValueError, "m must be >= 1, got 0"),
    "n negative": ({"n": -3}, ValueError, "n must be >= 1, got -3"),
    "k a fraction": ({"k": 2.5}, TypeError, "k must be an integer, got 2.5"),
    "m a flag": ({"m": True}, TypeError, "m must be an integer, got True"),
    "m a word": ({"m": "32"}, TypeError, "m must be an integer, got '32'"),
    "dtype unknown": ({"dtype": np.int32}, TypeError, "dtype must be one of bfloat16, complex128, complex64, float16"),
    "dtype no dtype": ({"dtype": "half float"}, TypeError, "dtype must be one of .*, got 'half float'"),
    "a_order": ({"a_order": "C"}, ValueError, "a_order must be one of 'row', 'col', got 'C'"),
    "b_order": ({"b_order": None}, ValueError, "b_order must be one of 'row', 'col', got None"),
    "c_order": ({"c_order": "column"}, ValueError, "c_order must be one of 'row', 'col', got 'column'"),
    "c_dtype": ({"c_dtype": np.float64}, TypeError, "c_dtype must be one of float32, got float64"),
    "b_dtype": ({"b_dtype": np.float64}, TypeError, "b_dtype must be one of float32, got float64"),
    "b_dtype of float8": (
        {"dtype": "float8_e5m2", "b_dtype": "float16"},
        TypeError,
        "b_dtype must be one of float8_e5m2, float8_e4m3fn, got float16",
    ),
    "b_dtype of integers": (
        {"dtype": "int8", "b_dtype": "int32"},
        TypeError,
        "b_dtype must be one of int8, uint8, got int32",
    ),
    "c_dtype of integers": (
        {"dtype": "int8", "c_dtype": "int8"},
        TypeError,
        "c_dtype must be one of int32, got int8",
    ),
    "c_dtype of float8": (
        {"dtype": "float8_e5m2", "c_dtype": "float8_e4m3fn"},
        TypeError,
        "c_dtype must be one of float32, float16, bfloat16, float8_e5m2, got float8_e4m3fn",
    ),
    "math of integers": ({"dtype": "int8", "math": "tf32"}, ValueError, "math must be 'ieee' for int8, got 'tf32'"),
    "accumulator_dtype": (
        {"accumulator_dtype": np.float64},
        TypeError,
        "accumulator_dtype must be one of float32, got float64",
    ),
    "a_conj": ({"a_conj": "yes"}, ValueError, "a_conj must be one of False, True, got 'yes'"),
    "force_variant unknown": (
        {"force_variant": "tensor"},
        ValueError,
        "force_variant must be one of fma for float32, got 'tensor'",
    ),
    "force_variant that cannot": (
        {"dtype": "float16", "k": 24, "force_variant": "wgmma"},
        ValueError,
        "force_variant must be able to compute the product, got 'wgmma': k must be a multiple of 16, got 24",
    ),
    "math": ({"math": "fast"}, ValueError, "math must be one of 'ieee', 'tf32', '3xtf32', got 'fast'"),
    "math of float64": (
        {"dtype": "float64", "math": "tf32"},
        ValueError,
        "math must be 'ieee' for float64, got 'tf32'",
    ),
    "c_dtype of 16 bits": (
        {"dtype": np.float16, "c_dtype": "bfloat16"},
        TypeError,
        "c_dtype must be one of float32, float16, got bfloat16",
    ),
    "threads not of warps": ({"threads": 48}, ValueError, "threads must be a multiple of 32 in 32..1024, got 48"),
    "threads beyond a block": (
        {"threads": 1056},
        ValueError,
        "threads must be a multiple of 32 in 32..1024, got 1056",
    ),
    "threads none": ({"threads": 0}, ValueError, "threads must be >= 1, got 0"),
    "execution": ({"execution": "grid"}, ValueError, "execution must be one of 'block', 'warp', 'thread', got 'grid'"),
    "gemms_per_block of a block": (
        {"gemms_per_block": 2},
        ValueError,
        "gemms_per_block must be 1 with execution='block', got 2",
    ),
    "gemms_per_block of half a warp": (
        {"m": 8, "n": 8, "execution": "warp", "gemms_per_block": 12},
        ValueError,
        "gemms_per_block must be a multiple of 8 up to 256, as threads share a product by 4, got 12",
    ),
    "gemms_per_block beyond a block": (
        {"execution": "warp", "gemms_per_block": 33},
        ValueError,
        "gemms_per_block must be a multiple of 1 up to 32, as threads share a product by 32, got 33",
    ),
    "gemms_per_block none": ({"gemms_per_block": 0}, ValueError, "gemms_per_block must be >= 1, got 0"),
    "threads that disagree": (
        {"m": 8, "n": 8, "execution": "warp", "gemms_per_block": 16, "threads": 96},
        ValueError,
        "threads must be gemms_per_block, 16, times a power of two from 2 to 32, got 96",
    ),
    "threads that a product cannot share": (
        {"m": 8, "n": 8, "dtype": "float16", "execution": "warp", "gemms_per_block": 16, "threads": 128},
        ValueError,
        "threads must be gemms_per_block, 16, times a power of two from 32 to 32, got 128",
    ),
    "threads beyond one for a product": (
        {"m": 8, "n": 8, "k": 8, "execution": "thread", "gemms_per_block": 32, "threads": 64},
        ValueError,
        "threads must be one for each of gemms_per_block, 32, got 64",
    ),
    "too large for a warp": (
        {"m": 128, "n": 64, "execution": "warp"},
        ValueError,
        "m, n must leave C to one warp, got 128, 64: the accumulator of a thread must be at most 128 32-bit words, got"
        " 256 for 128 x 64 float32 with 32 threads a product: take execution='block', or a smaller m or n",
    ),
    "too large for a thread": (
        {"m": 8, "n": 9, "k": 8, "execution": "thread"},
        ValueError,
        "m, n, k must be at most 8 with execution='thread', got 8, 9, 8",
    ),
    "too many registers for a thread": (
        {"m": 8, "n": 8, "k": 8, "dtype": "complex128", "execution": "thread"},
        ValueError,
        "m, n must leave C to one thread, got 8, 8: the accumulator of a thread must be at most 128 32-bit words",
    ),
    "tensor cores of a thread": (
        {"m": 8, "n": 8, "k": 8, "dtype": "float16", "execution": "thread"},
        ValueError,
        "execution must be 'block' or 'warp' for a product of float16 on tensor cores, got 'thread'",
    ),
    "too many products for the memory": (
        {"k": 512, "execution": "warp", "gemms_per_block": 2},
        ValueError,
        "within 232448 bytes of shared memory, got 32, 32, 512 which take 262144 bytes for 2 products a block",
    ),
    "too large": (
        {"m": 256, "n": 256, "k": 256},
        ValueError,
        "m, n, k must leave A and B within 232448 bytes of shared memory, got 256, 256, 256 which take 524288 bytes",
    ),
}

FFT_REFUSED = {
    "zero": ({"n": 0}, ValueError, "n must be >= 1, got 0"),
    "one": ({"n": 1}, ValueError, "n must be a power of two .* nearest 2, got 1"),
    "prime": ({"n": 449}, ValueError, "n must be a power of two .* nearest 256 and 512, got 449"),
    "past the limit": ({"n": 65537}, ValueError, r"n must be a power of two .* nearest \d+, got 65537"),
    "a fraction": ({"n": 64.0}, TypeError, "n must be an integer, got 64.0"),
    "real": ({"dtype": np.float32}, TypeError, "dtype must be one of complex128, complex64, got float32"),
    "direction": (
        {"direction": "backward"},
        ValueError,
        "direction must be one of 'forward', 'inverse', got 'backward'",
    ),
    "ffts_per_block zero": ({"ffts_per_block": 0}, ValueError, "ffts_per_block must be >= 1, got 0"),
    "ffts_per_block too many": (
        {"ffts_per_block": 4096},
        ValueError,
        r"ffts_per_block must be in 1\.\.\d+ for .* got 4096",
    ),
    "elements_per_thread": (
        {"elements_per_thread": 3},
        ValueError,
        "elements_per_thread must be one of 2, 4, 8, 16, 32 for n=64 in float, got 3",
    ),
}


@pytest.mark.parametrize(("fields", "error", "message"), GEMM_REFUSED.values(), ids=GEMM_REFUSED)
def test_gemm_refuses(fields, error, message):
    with pytest.raises(error, match=message):
        devmath.Gemm(**{"m": 32, "n": 32, "k": 32, **fields})


@pytest.mark.parametrize(("fields", "error", "message"), FFT_REFUSED.values(), ids=FFT_REFUSED)
def test_fft_refuses(fields, error, message):
    with pytest.raises(error, match=message):
        devmath.FFT(**{"n": 64, **fields})


SMALL = devmath.Gemm(32, 16, 8)
EQUAL = [
    (SMALL, devmath.Gemm(np.int64(32), 16, 8, "float32", "row", threads=SMALL.threads)),
    (devmath.Gemm(32, 16, 8, "bfloat16"), devmath.Gemm(32, 16, 8, ml_dtypes.bfloat16, c_dtype=np.float32)),
    (
        devmath.Gemm(32, 16, 8, "float8_e5m2", b_dtype="float8_e4m3fn"),
        devmath.Gemm(32, 16, 8, ml_dtypes.float8_e5m2, b_dtype=ml_dtypes.float8_e4m3fn, accumulator_dtype=np.float32),
    ),
    (devmath.Gemm(32, 16, 8, "int8"), devmath.Gemm(32, 16, 8, np.int8, b_dtype="int8", c_dtype=np.int32)),
    (devmath.FFT(256), devmath.FFT(256, "complex64", ffts_per_block=devmath.FFT(256).ffts_per_block)),
    (devmath.FFT(256), devmath.FFT(256).inverse.forward),
    (devmath.FFT(256).inverse, devmath.FFT(256, direction="inverse")),
    (SMALL.a, Operand(SMALL, "a")),
]
DIFFERENT = [
    *(devmath.Gemm(32, 16, 8, **fields) for fields in (
        {}, {"dtype": "float16"}, {"dtype": "bfloat16"}, {"dtype": "float16", "c_dtype": "float16"},
        {"dtype": "complex64"}, {"dtype": "complex64", "a_conj": True}, {"dtype": "complex64", "b_conj": True},
        {"dtype": "int8"}, {"dtype": "uint8"}, {"dtype": "int8", "b_dtype": "uint8"}, {"dtype": "float8_e5m2"},
        {"dtype": "float8_e4m3fn"}, {"dtype": "float8_e4m3fn", "b_dtype": "float8_e5m2"},
        {"dtype": "float8_e4m3fn", "c_dtype": "float16"}, {"dtype": "float8_e4m3fn", "c_dtype": "float8_e4m3fn"},
        {"force_variant": "fma"}, {"a_order": "col"}, {"b_order": "col"}, {"c_order": "col"}, {"threads": 256})),
    devmath.Gemm(16, 32, 8), devmath.Gemm(32, 8, 16),
    devmath.FFT(256), devmath.FFT(512), devmath.FFT(256, "complex128"), devmath.FFT(256).inverse,
    devmath.FFT(256, ffts_per_block=1), devmath.FFT(256, elements_per_thread=16),
    devmath.Gemm(32, 16, 8).a, devmath.Gemm(32, 16, 8).b, devmath.Gemm(32, 8, 8).a,
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_descriptors_are_one_key(one, other):
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)


def test_every_field_makes_another_key():
    assert len(set(DIFFERENT)) == len(DIFFERENT)
    assert len({repr(desc) for desc in DIFFERENT}) == len(DIFFERENT)


def test_a_descriptor_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        devmath.Gemm(32, 16, 8).m = 64
    with pytest.raises(dataclasses.FrozenInstanceError):
        devmath.FFT(64).n = 128


@pytest.mark.parametrize("desc", DIFFERENT)
def test_a_pickle_is_equal_in_another_process(desc):
    copy = pickle.loads(pickle.dumps(desc))
    assert copy == desc
    assert hash(copy) == hash(desc)
    assert copy.size_bytes == desc.size_bytes if isinstance(desc, Operand) else copy.plan == desc.plan


def test_pickles_of_another_process_are_equal():
    script = (
        "import devmath, pickle, sys\n"
        "descs = [devmath.Gemm(32, 16, 8, 'bfloat16', a_order='col'), devmath.FFT(4096, 'complex128').inverse]\n"
        "sys.stdout.buffer.write(pickle.dumps(descs))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert pickle.loads(done.stdout) == [
        devmath.Gemm(32, 16, 8, "bfloat16", a_order="col"),
        devmath.FFT(4096, "complex128", "inverse"),
    ]


@pytest.mark.parametrize("desc", [devmath.Gemm(32, 16, 8, "float16", threads=64), devmath.FFT(64)])
def test_a_repr_shows_the_fields(desc):
    text = repr(desc)
    assert text.startswith(f"{type(desc).__name__}(")
    assert desc.dtype.name in text
    assert eval(text, {name: name for name in ("float16", "complex64")} | vars(devmath)) == desc


def test_numbers_of_a_product():
    mm = devmath.Gemm(48, 16, 8, "float16", a_order="col", threads=96)
    assert mm.block_dim == (96, 1, 1)
    assert mm.launch_bounds == (96, 1)
    assert (mm.dtype, mm.c_dtype, mm.accumulator_dtype) == (np.float16, np.float32, np.float32)
    assert (mm.a.shape, mm.b.shape, mm.c.shape) == ((48, 8), (8, 16), (48, 16))
    assert (mm.a.dtype, mm.c.dtype) == (np.float16, np.float32)
    assert (mm.a.layout.order, mm.b.layout.order) == ("col", "row")
    assert mm.a.size_bytes >= 48 * 8 * 2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [2, 64, 4096])
def test_numbers_of_a_transform(n, dtype):
    fft = devmath.FFT(n, dtype)
    assert fft.threads_per_fft * fft.elements_per_thread == n
    assert fft.threads == fft.threads_per_fft * fft.ffts_per_block
    assert fft.block_dim == (fft.threads, 1, 1)
    assert fft.launch_bounds[0] == fft.threads
    assert fft.layout.size_bytes == fft.ffts_per_block * n * np.dtype(dtype).itemsize
    assert fft.fragment.size == fft.elements_per_thread
    assert fft.inverse.fragment == fft.fragment


def test_a_grid_holds_every_transform():
    fft = devmath.FFT(256, ffts_per_block=4)
    assert [fft.grid(count) for count in (0, 1, 4, 5, 2**31)] == [1, 1, 1, 2, 2**29]
    with pytest.raises(ValueError, match="count must be >= 0, got -1"):
        fft.grid(-1)


MM, TRANSFORM = devmath.Gemm(8, 8, 8), devmath.FFT(8)
VERBS = {
    "shared": (MM.a,), "accumulator": (MM,), "registers": (TRANSFORM,), "transform_index": (TRANSFORM,),
    "load": (None, None), "store": (None, None), "wait": (), "gemm": (MM, 1, None, None, 0, None),
    "fft": (TRANSFORM, None), "apply": (None, None), "gemm_index": (MM,), "convert": (None, np.float16),
    "row_vector": (MM, 0.0), "col_vector": (MM, 0.0),
    **{f"{axis}_{operation}": (None,) for axis in ("row", "col") for operation in ("max", "min", "sum")},
    "tiles": (MM, None, None, None), "mainloop": (MM, None, None),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_outside_a_kernel_says_where_it_belongs(verb):
    with pytest.raises(devmath.DeviceOnlyError, match=rf"devmath\.{verb} can only be called inside a @cuda\.jit"):
        getattr(devmath, verb)(*VERBS[verb])


def test_every_verb_was_tried():
    public = {name for name in devmath.__all__ if name.islower()}
    assert public == set(VERBS)


@pytest.mark.parametrize("execution", ["warp", "thread"])
def test_products_of_a_block(execution):
    mm = devmath.Gemm(4, 4, 4, execution=execution)
    assert mm.threads == mm.block_dim[0] == mm.gemms_per_block * mm.threads_per_gemm
    per_block = mm.gemms_per_block
    assert [mm.grid(count) for count in (0, 1, per_block, per_block + 1, 2**31 * per_block)] == [1, 1, 1, 2, 2**31]
    with pytest.raises(ValueError, match="count must be >= 0, got -1"):
        mm.grid(-1)
    assert devmath.Gemm(4, 4, 4, execution=execution, threads=64).gemms_per_block == 64 // mm.threads_per_gemm
    if execution == "warp":
        assert devmath.Gemm(4, 4, 4, execution="warp", gemms_per_block=8, threads=64).threads_per_gemm == 8
    assert dataclasses.replace(mm, k=5).gemms_per_block == per_block
    assert pickle.loads(pickle.dumps(mm)) == mm
    assert f"execution='{execution}', gemms_per_block={per_block}" in repr(mm)


def test_a_block_computes_one_product_by_default():
    mm = devmath.Gemm(4, 4, 4)
    assert (mm.execution, mm.gemms_per_block, mm.threads_per_gemm) == ("block", 1, mm.threads)
    assert mm.grid(7) == 7
