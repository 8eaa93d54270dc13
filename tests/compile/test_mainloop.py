"""Whole matrix products as machine code: what loads and multiplies on each target, nothing in local memory."""

import re

import pytest
from numba import cuda
from numba.cuda import types

import devmath
from devmath.dtypes import lookup
from devmath.frontends.numba_cuda.matrices import MappedType
from devmath.frontends.numba_cuda.types import numba_type
from devmath.lto.arch import ARCHITECTURES
from tests import mainloop
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel, link

MM = mainloop.FAST[1]
OTHER = mainloop.FAST[4]


def mapped(mm, names="ab"):
    """Numba's types of what `mm.operands` returns on sm_90a."""
    dtypes = {"a": mm.dtype, "b": mm.b_dtype, "c": mainloop.result_dtype(mm)}
    return tuple(MappedType(numba_type(lookup(dtypes[name])), "A", True, mm, name) for name in names)


def plain_types(mm):
    return (array(mm.dtype), array(mm.b_dtype), array(mm.accumulator_dtype, layout="C"))


def assert_registers_suffice(binary, mm):
    """What the block starts with is enough for what its warpgroups then take: else they would wait for ever."""
    loading, multiplying = mm.mainloop_on("sm_90a").registers
    assert binary.count("USETMAXREG") == (2 if loading else 0)
    assert 128 * loading + mm.threads * multiplying <= (128 + mm.threads) * binary.registers


@pytest.mark.parametrize("mm", mainloop.FAST, ids=str)
def test_a_fused_layer_on_sm_90a(mm):
    planned = mm.mainloop_on("sm_90a")
    result = mainloop.result_dtype(mm)
    by_tma = "c" in planned.boxes(lookup(result))
    matrices = mapped(mm, "abc") if by_tma else (*mapped(mm), array(result, layout="C"))
    binary = link(mainloop.linear(mm), (*matrices, array(mm.accumulator_dtype, 1, "C")), "sm_90a")
    binary.assert_clean()
    passes = planned.tile.fragment.size // (planned.columns // 2)
    # The first step of a tile, and the others; an instruction takes 32 bytes of k.
    multiplies = sum(binary.count(name) for name in ("HGMMA", "IGMMA", "QGMMA"))
    assert multiplies == 2 * passes * mm.k * mm.dtype.itemsize // 32
    assert binary.count("UTMALDG") >= 2
    assert binary.count("LDGSTS") == binary.count("LDSM") == 0
    assert_registers_suffice(binary, mm)
    assert binary.launch_bounds == (mm.threads + 128, 1)
    assert binary.ptx.count(".param .align 64 .b8") == len("abc" if by_tma else "ab")
    assert (binary.count("STG") == 0) == (binary.count("UTMASTG") > 0) == by_tma


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_results_leave_by_tma(dtype):
    c = MappedType(getattr(types, dtype), "A", True, MM, "c")
    binary = link(mainloop.plain(MM), (*mapped(MM), c), "sm_90a")
    binary.assert_clean()
    assert binary.count("STSM") == (16 if dtype == "float16" else 0)
    assert binary.count("STS.64") == (64 if dtype == "float32" else 0)


@pytest.mark.parametrize("mm", mainloop.FAST[:4], ids=str)
def test_plain_arrays_on_sm_90a_come_by_cp_async(mm):
    binary = link(mainloop.plain(mm), plain_types(mm), "sm_90a")
    binary.assert_clean()
    assert binary.count("UTMALDG") == 0
    assert binary.count("HGMMA") > 0
    assert binary.count("LDGSTS") > 0
    assert_registers_suffice(binary, mm)
    assert binary.launch_bounds == (mm.threads + 128, 1)


@pytest.mark.parametrize("arch", [arch for arch in ARCHITECTURES if arch != "sm_90a"])
@pytest.mark.parametrize("mm", [MM, mainloop.FAST[5], mainloop.PORTABLE[0]], ids=str)
def test_every_target_has_a_mainloop(mm, arch):
    c, bias = array(mm.accumulator_dtype, layout="C"), array("float32", 1, "C")
    binary = link(mainloop.linear(mm), (*plain_types(mm)[:2], c, bias), arch)
    binary.assert_clean()
    assert binary.count("LDGSTS") > 0
    assert sum(binary.count(name) for name in ("FFMA", "HMMA")) > 0
    assert f".maxntid {mm.threads}" in binary.ptx


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("mm", mainloop.PORTABLE, ids=str)
def test_every_type_has_a_mainloop(mm, arch):
    binary = link(mainloop.plain(mm), plain_types(mm), arch)
    binary.assert_clean()
    assert binary.count("LDGSTS") > 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_an_epilog_that_reduces_rows(arch):
    matrices = mapped(MM, "abc") if arch == "sm_90a" else plain_types(MM)
    binary = link(mainloop.centred(MM), matrices, arch)
    binary.assert_clean()
    assert binary.count("SHFL") > 0


def test_matrices_are_arrays_in_the_kernel():
    @cuda.jit
    def kernel(a, b, c, out):
        acc = devmath.accumulator(MM)
        for t in devmath.tiles(MM, a, b, c):
            devmath.mainloop(MM, t, acc)
            devmath.store(acc, c, t)
        out[0], out[1], out[2] = a.shape[1], b[0, 1], a[1:, 2:][0, 0]

    binary = link(kernel, (*mapped(MM), array("float32"), array("float32", 1)), "sm_90a")
    binary.assert_clean()


def test_waits_can_be_bounded(monkeypatch):
    monkeypatch.setenv("DEVMATH_WAIT_LIMIT_NS", "2000000000")
    binary = link(mainloop.plain(MM), (*mapped(MM), array("float16", layout="C")), "sm_90a")
    binary.assert_clean()
    assert binary.count("BPT") > 0  # trap


def two_loops(a, b, c):
    for _ in devmath.tiles(MM, a, b, c):
        pass
    for _ in devmath.tiles(MM, a, b, c):
        pass


@cuda.jit(device=True)
def loop_in_a_device_function(a, b, c):
    for _ in devmath.tiles(MM, a, b, c):
        pass


def calls_it(a, b, c):
    loop_in_a_device_function(a, b, c)


PLAIN = devmath.Gemm(64, 64, 32, "float16")


def plain_descriptor(a, b, c):
    for _ in devmath.tiles(PLAIN, a, b, c):
        pass


def operands_exchanged(a, b, c):
    for _ in devmath.tiles(MM, b, a, c):
        pass


def tile_of_another(a, b, c):
    acc = devmath.accumulator(OTHER)
    for t in devmath.tiles(MM, a, b, c):
        devmath.mainloop(OTHER, t, acc)


def applied_to_a_tile_of_another(a, b, c):
    acc = devmath.accumulator(mainloop.FAST[8])
    for t in devmath.tiles(MM, a, b, c):
        devmath.store(acc, c, t)


REFUSED = {
    two_loops: "devmath.tiles must be called once a kernel, got a second call",
    calls_it: "devmath.tiles must be called in the kernel itself, got a call in a device function",
    plain_descriptor: "devmath.tiles: its first argument must be a devmath.Gemm with mainloop=True, got Gemm(64",
    operands_exchanged: "devmath.tiles: a must be a 2-D array of float16, or a of the operands of Gemm(128, 256",
    tile_of_another: "devmath.mainloop: t must be a tile of devmath.tiles(Gemm(128, 256, 64, bfloat16",
    applied_to_a_tile_of_another: "devmath.store: acc must be devmath.accumulator(Gemm(128, 256, 64, float16",
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_wrong_calls(body):
    with pytest.raises(TYPING_ERRORS, match=re.escape(REFUSED[body])):
        compile_kernel(cuda.jit(body), (*mapped(MM), array("float32")), "sm_90a")
