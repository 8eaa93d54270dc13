"""Transforms as machine code: inlined, in registers, with no barrier more than they need."""

import pytest

import devmath
from devmath.lto.arch import ARCHITECTURES
from tests import kernels
from tests.cases import FFT_CASES
from tests.compile.harness import array, link

DEFAULTS = [case for case in FFT_CASES if not case.fields]
CHOSEN = [case for case in FFT_CASES if case.fields]

#: One transform for each way that threads exchange elements; all others use one of them.
EACH_EXCHANGE = {
    "none": devmath.FFT(2),
    "planar": devmath.FFT(64),
    "split": devmath.FFT(512),
    "complex": devmath.FFT(4096),
}


def build(make, fft, arch="sm_90a"):
    rows = array(fft.dtype)
    arguments = (rows, array(fft.dtype, 1, "C"), rows) if make is kernels.convolve else (rows, rows)
    binary = link(make(fft), arguments, arch)
    binary.assert_clean()
    return binary


def test_the_exchanges_are_all_there_are():
    assert {name: fft.plan.exchange for name, fft in EACH_EXCHANGE.items()} == {name: name for name in EACH_EXCHANGE}
    assert {case.descriptor().plan.exchange for case in FFT_CASES} == set(EACH_EXCHANGE)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_each_default_size_links(case, arch):
    fft = case.descriptor()
    binary = build(kernels.fft_registers, fft, arch)
    assert binary.count("DADD" if fft.dtype.name == "complex128" else "FADD") > 0
    assert (binary.count("BAR") > 0) == fft.plan.uses_block_barrier


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_each_chosen_size_links(case):
    build(kernels.fft_registers, case.descriptor())


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("exchange", EACH_EXCHANGE)
def test_each_exchange_links_for_each_architecture(exchange, arch):
    build(kernels.convolve, EACH_EXCHANGE[exchange], arch)


@pytest.mark.parametrize("exchange", EACH_EXCHANGE)
def test_a_tile_is_transformed_in_place(exchange):
    build(kernels.fft_tile, EACH_EXCHANGE[exchange])


def test_transforms_of_one_warp_never_wait_for_the_block():
    fft = devmath.FFT(256, elements_per_thread=8, ffts_per_block=4)
    assert fft.threads_per_fft == 32
    assert build(kernels.convolve, fft).count("BAR") == 0
