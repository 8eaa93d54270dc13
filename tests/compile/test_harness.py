"""The harness itself: it sees what `assert_clean` is there to find, and leaves Numba as it was."""

import pytest
from numba import cuda
from numba.cuda import codegen, compiler, dispatcher, types

import devmath
from tests import kernels
from tests.compile.harness import array, link, target

NUMBERS = (types.Array(types.int64, 1, "C"),)


def test_local_memory_is_seen():
    rows = array("complex64")
    kernel = kernels.fft_with_local_memory(devmath.FFT(256))
    binary = link(kernel, (types.int64, rows, rows, *NUMBERS), "sm_90a")
    assert binary.stack_bytes >= 256 * 4
    with pytest.raises(AssertionError):
        binary.assert_clean()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_call_is_seen(arch):
    def divide(x):
        x[0] = x[1] // x[2]

    def report(x):
        print(x[0])

    division, printing = (link(cuda.jit(kernel), NUMBERS, arch) for kernel in (divide, report))
    assert division.count("RET") > 0, "64-bit division is a function"
    assert printing.count("CALL.ABS") > 0
    for binary in (division, printing):
        with pytest.raises(AssertionError):
            binary.assert_clean()


def test_the_device_is_asked_again_afterwards():
    def questions():
        return dispatcher.get_current_device, compiler.get_current_device, codegen.devices.get_context

    before = questions()
    with target("sm_86") as compute_capability:
        assert compute_capability == (8, 6)
        assert not set(before) & set(questions())
    assert questions() == before
