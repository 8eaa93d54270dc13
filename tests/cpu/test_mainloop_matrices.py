"""Operands of a mainloop on the host: which get tensor maps, what is refused, and what a repeated call costs."""

import timeit
from types import SimpleNamespace

import numpy as np
import pytest

import devmath
from devmath.frontends import numba_cuda
from devmath.frontends.numba_cuda import matrices
from devmath.frontends.numba_cuda.matrices import MappedType, Matrix

MM = devmath.Gemm(128, 256, 64, np.float16, b_order="col", mainloop=True)
M, N, K = 300, 520, 200


class DeviceArray:
    """What CuPy shows of an array, somewhere in memory that nobody reads."""

    def __init__(self, shape, strides, dtype=np.float16, pointer=4096):
        self.shape, self.strides, self.dtype = shape, strides, np.dtype(dtype)
        self.data = SimpleNamespace(ptr=pointer)
        self.__cuda_array_interface__ = {"shape": shape, "strides": strides, "data": (pointer, False), "version": 3}


def row(rows, cols, dtype=np.float16, pointer=4096, pitch=None):
    size = np.dtype(dtype).itemsize
    return DeviceArray((rows, cols), (pitch or cols * size, size), dtype, pointer)


def col(rows, cols, dtype=np.float16, pointer=4096, pitch=None):
    size = np.dtype(dtype).itemsize
    return DeviceArray((rows, cols), (size, pitch or rows * size), dtype, pointer)


@pytest.fixture(autouse=True)
def maps(monkeypatch):
    """Make no real maps, which takes a driver, and list what they are asked for."""
    asked = []

    def record(lines, stream_ptr):
        assert stream_ptr == -1  # nothing to wait for
        interface = lines.__cuda_array_interface__
        assert interface["data"] == (4096, False)
        asked.append((interface["shape"], interface["strides"]))
        return SimpleNamespace(as_tensor_map=lambda **options: options)

    monkeypatch.setattr("cuda.core.utils.StridedMemoryView", SimpleNamespace(from_any_interface=record))
    monkeypatch.setattr(matrices, "current_arch", lambda: "sm_90a")
    monkeypatch.setattr(matrices, "_made", {})
    return asked


def mapped_names(operands):
    return "".join(x._numba_type_.matrix for x in operands if isinstance(x._numba_type_, MappedType))


def test_aligned_matrices_get_maps(maps):
    found = MM.operands(row(M, K), col(K, N), row(M, N))
    assert mapped_names(found) == "abc"
    assert maps == [((M, K), (2 * K, 2)), ((N, K), (2 * K, 2)), ((M, N), (2 * N, 2))]
    boxes = [x.placement.tensor_map["box_dim"] for x in found]
    assert boxes == [(128, 64), (256, 64), (16, 64)]


CASES = {
    "a at 8 bytes": ((row(M, K, pointer=4104), col(K, N), row(M, N)), ""),
    "lines of b at 2 bytes": ((row(M, K), col(K, N, pitch=2 * K + 2), row(M, N)), ""),
    "lines of c at 2 bytes": ((row(M, K), col(K, N), row(M, N, pitch=2 * N + 2)), "ab"),
    "c by columns": ((row(M, K), col(K, N), col(M, N)), "ab"),
    "c in float32": ((row(M, K), col(K, N), row(M, N, np.float32)), "abc"),
    "c in float64": ((row(M, K), col(K, N), row(M, N, np.float64)), "ab"),
    "one row": ((row(1, K, pitch=6), col(K, N), row(1, N)), "abc"),
    "no depth": ((row(M, 0, pointer=0), col(0, N), row(M, N)), "abc"),
    "nothing": ((row(0, 0, pointer=0), col(0, 0, pointer=0), row(0, 0, pointer=0)), ""),
    "rows of a upwards": ((row(M, K, pitch=-2 * K), col(K, N), row(M, N)), ""),
    "one row for all of a": ((DeviceArray((M, K), (0, 2)), col(K, N), row(M, N)), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_matrices_that_tma_cannot_take_stay_arrays(name):
    arrays, names = CASES[name]
    assert mapped_names(MM.operands(*arrays)) == names


@pytest.mark.parametrize("columns", [1, 7, 513, 519])
def test_a_result_whose_lines_end_inside_16_bytes_gets_no_map(columns):
    """TMA would store the rest of the last 16 bytes too, over whatever lies there."""
    found = MM.operands(row(M, K), col(K, columns), row(M, columns, pitch=2048))
    assert mapped_names(found) == "ab"


def test_other_targets_have_no_maps(monkeypatch):
    monkeypatch.setattr(matrices, "current_arch", lambda: "sm_80")
    assert mapped_names(MM.operands(row(M, K), col(K, N), row(M, N))) == ""


def test_what_is_refused():
    with pytest.raises(ValueError, match="b must be col-ordered, its stride along rows 2 bytes, got strides"):
        MM.operands(row(M, K), row(K, N), row(M, N))
    with pytest.raises(TypeError, match="a must be an array of float16, got float32"):
        MM.operands(row(M, K, np.float32), col(K, N), row(M, N))
    with pytest.raises(TypeError, match="a must be an array in device memory, got list"):
        MM.operands([1], col(K, N), row(M, N))
    with pytest.raises(ValueError, match=r"c must have shape \(300, 520\)"):
        MM.operands(row(M, K), col(K, N), row(M, N - 1))


def test_a_launch_passes_the_members_of_an_array_and_the_map():
    array = row(M, K)
    matrix = MM.operands(array, col(K, N), row(M, N))[0]
    parts = (0, 0, M * K, 2, 4096, M, K, 2 * K, 2, matrix.placement.tensor_map)
    kernel = SimpleNamespace(_prepare_args=lambda ty, value, *others: others[-1].append((ty, value)))
    matrices.take_matrices(kernel)
    passed = []
    for value in (matrix, 3):
        kernel._prepare_args("type", value, 0, [], passed)
    assert passed == [*parts, ("type", 3)]
    assert matrix.owner is array


def test_maps_are_made_once_and_again_where_memory_moved(maps, monkeypatch):
    a, b, c = row(M, K), col(K, N), row(M, N)
    first = MM.operands(a, b, c)
    assert len(maps) == 3
    assert MM.operands(row(M, K), b, c)[0].placement is first[0].placement
    assert len(maps) == 3
    monkeypatch.setattr(matrices, "_with_map", lambda _desc, _name, matrix, *_: matrix)
    a.data.ptr += 1024
    a.__cuda_array_interface__["data"] = (a.data.ptr, False)
    assert MM.operands(a, b, c)[0].placement.pointer == 4096 + 1024
    assert all(isinstance(x, Matrix) for x in first)


def test_a_repeated_call_takes_microseconds():
    a, b, c = row(M, K), col(K, N), row(M, N)
    seconds = min(timeit.repeat(lambda: MM.operands(a, b, c), number=1000, repeat=5)) / 1000
    assert seconds < 20e-6  # 3 us where nothing else runs


def test_the_front_end_offers_the_host_calls():
    assert numba_cuda.operands is matrices.operands
