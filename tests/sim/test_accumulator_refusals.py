"""Wrong uses of the verbs on accumulators: the simulator says what the compiler says."""

import pytest
from numba import cuda
from numba.core.errors import TypingError

import devmath
from tests.accumulator_refusals import FFT, MM, REFUSED


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kernel, parts = REFUSED[name]
    with pytest.raises(TypingError) as caught:
        cuda.jit(kernel)[1, MM.block_dim]()
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize("i", [-1, 8])
def test_a_vector_has_no_value_for_a_register_beyond_the_last(i):
    @cuda.jit
    def kernel():
        devmath.row_vector(MM, 0.0)[i] = 1.0

    assert MM.plan.fragment.size == 8
    with pytest.raises(IndexError, match=rf"goes with registers 0 to 7, got {i}"):
        kernel[1, MM.block_dim]()


def test_every_thread_must_reduce():
    @cuda.jit
    def kernel():
        acc = devmath.accumulator(MM)
        if cuda.threadIdx.x != 3:
            devmath.row_sum(acc)

    with pytest.raises(
        devmath.SimulationError, match=r"every thread .* must call devmath\.row_sum .*missing are threads 3"
    ):
        kernel[1, MM.block_dim]()


@pytest.mark.parametrize("name", ["row_max", "row_min", "row_sum", "col_max", "col_min", "col_sum"])
def test_reductions_are_for_kernels(name):
    with pytest.raises(devmath.DeviceOnlyError, match=rf"devmath\.{name} can only be called inside a @cuda.jit"):
        getattr(devmath, name)(FFT)


@pytest.mark.parametrize("name", ["convert", "row_vector", "col_vector"])
def test_other_verbs_are_for_kernels(name):
    with pytest.raises(devmath.DeviceOnlyError, match=rf"devmath\.{name} can only be called inside a @cuda.jit"):
        getattr(devmath, name)(MM, 0.0)
