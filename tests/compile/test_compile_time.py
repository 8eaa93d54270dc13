"""NVRTC's own share of the time to a first result, without Numba and without any cache."""

import time

import pytest

import devmath
from devmath.lto import fft_units, gemm_source
from devmath.lto.compile import run_nvrtc
from devmath.lto.unit import Unit


def gemm_unit():
    plan = devmath.Gemm(64, 64, 64, "float16").plan
    return Unit.render("gemm", lambda symbol: gemm_source.tile_form(plan, ("tile", "tile", "tile"), symbol))


def fft_unit(n):
    return Unit.render("fft", lambda symbol: fft_units.register_form(devmath.FFT(n).plan, False, symbol))


@pytest.mark.parametrize(
    ("unit", "budget_s"),
    [
        pytest.param(gemm_unit(), 0.15, id="gemm 64x64x64 float16"),
        pytest.param(fft_unit(4096), 0.15, id="FFT 4096, radix 16"),
        pytest.param(fft_unit(8192), 0.4, id="FFT 8192, radix 32"),
    ],
)
def test_nvrtc_takes_its_budget_at_most(unit, budget_s):
    run_nvrtc(unit, "sm_90a")  # loads the library

    def seconds():
        began = time.process_time()  # of the processor: what else the machine does is not NVRTC's
        run_nvrtc(unit, "sm_90a")
        return time.process_time() - began

    assert min(seconds() for _ in range(3)) < budget_s
