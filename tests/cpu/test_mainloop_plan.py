"""Plans of mainloops: stages that fit, roles that cover the tile, and the text of their functions."""

import numpy as np
import pytest

import devmath
from devmath.lto import mainloop_source
from devmath.lto.arch import ARCHITECTURES, shared_memory_limit_bytes
from tests.mainloop import CASES, FAST, PORTABLE

each_arch = pytest.mark.parametrize("arch", ARCHITECTURES)


@each_arch
@pytest.mark.parametrize("mm", CASES, ids=str)
def test_stages_fit_shared_memory(mm, arch):
    planned = mm.mainloop_on(arch)
    assert planned.num_stages >= 2
    assert planned.shared_bytes <= shared_memory_limit_bytes(arch)
    assert planned.stage_bytes % 1024 == 0
    assert planned.blocks_per_multiprocessor * planned.threads <= 1024


@pytest.mark.parametrize("mm", FAST, ids=str)
def test_sm_90a_loads_by_tma(mm):
    planned = mm.mainloop_on("sm_90a")
    assert planned.loads == "tma"
    assert mm.launch_bounds_on("sm_90a") == (mm.threads + 128, 1)
    loading, multiplying = planned.registers
    if loading:
        assert loading % 8 == multiplying % 8 == 0
        at_start = 65536 // planned.threads // 8 * 8
        assert 128 * loading + mm.threads * multiplying <= planned.threads * at_start


@pytest.mark.parametrize("mm", FAST, ids=str)
def test_threads_that_multiply_hold_every_element_once(mm):
    fragment = mm.plan_on("sm_90a").fragment
    threads, registers = np.ogrid[128 : 128 + mm.threads, : fragment.size]
    inside = np.broadcast_to(fragment.in_bounds(threads, registers), (mm.threads, fragment.size))
    visits = np.zeros((mm.m, mm.n), int)
    rows, cols = (np.broadcast_to(x(threads, registers), inside.shape)[inside] for x in (fragment.row, fragment.col))
    np.add.at(visits, (rows, cols), 1)
    assert (visits == 1).all()


@each_arch
@pytest.mark.parametrize("mm", PORTABLE, ids=str)
def test_other_types_load_by_cp_async(mm, arch):
    planned = mm.mainloop_on(arch)
    assert planned.loads == "cp_async"
    assert planned.threads == mm.threads


def test_instructions_of_tma_are_as_wide_as_the_plan_says():
    planned = devmath.Gemm(128, 256, 64, np.float16, mainloop=True).mainloop_on("sm_90a")
    assert planned.columns == 256
    assert "DEVMATH_WGMMA(256, devmath::Half, devmath::Half," in mainloop_source.multiply(planned, True, "x")


def test_a_wait_may_be_bounded(monkeypatch):
    planned = FAST[0].mainloop_on("sm_90a")
    assert "DEVMATH_WAIT_LIMIT_NS" not in mainloop_source.multiply(planned, True, "x")
    monkeypatch.setenv("DEVMATH_WAIT_LIMIT_NS", "1000")
    assert "#define DEVMATH_WAIT_LIMIT_NS 1000ull" in mainloop_source.multiply(planned, True, "x")


def test_too_large_a_tile_is_refused():
    mm = devmath.Gemm(256, 128, 128, np.float16, mainloop=True)
    assert mm.mainloop_on("sm_90a").num_stages == 2
    with pytest.raises(ValueError, match=r"must leave 2 stages of A and B within 100352 bytes .*, got 256, 128, 128"):
        mm.mainloop_on("sm_86")


def test_a_descriptor_without_a_mainloop_has_no_plan():
    with pytest.raises(ValueError, match="must be made with mainloop=True, got Gemm"):
        devmath.Gemm(32, 32, 32).mainloop_on("sm_90a")
    with pytest.raises(ValueError, match="mainloop must be one of False, True, got 2"):
        devmath.Gemm(32, 32, 32, mainloop=2)
