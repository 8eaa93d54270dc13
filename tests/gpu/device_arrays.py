"""NumPy arrays and their twins on the device: any strides, and outputs that show a stray write."""

from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.devicearray import DeviceNDArray

from tests.oracle import unset


def on_device(host: np.ndarray) -> DeviceNDArray:
    """Copy a contiguous array of any dtype; `cuda.to_device` refuses those that have no buffer format."""
    memory = cuda.to_device(host.reshape(-1).view(np.uint8)).gpu_data
    return DeviceNDArray(host.shape, host.strides, host.dtype, gpu_data=memory)


class Twin:
    """A contiguous NumPy array and a copy of it on the device, of which a kernel gets the same views.

    Parameters
    ----------
    host : numpy.ndarray
        Contiguous; copied now.
    """

    def __init__(self, host: np.ndarray):
        self._start = _address(host)
        self._device = on_device(host)

    def view(self, view: np.ndarray) -> DeviceNDArray:
        """The twin of a view of the host array, whatever its strides; lives no longer than this object."""
        memory = self._device.gpu_data.view(_address(view) - self._start)
        return DeviceNDArray(view.shape, view.strides, view.dtype, gpu_data=memory)

    def fetch(self) -> np.ndarray:
        """What the device holds now, as an array of its own."""
        raw = DeviceNDArray((self._device.nbytes,), (1,), np.uint8, gpu_data=self._device.gpu_data).copy_to_host()
        return raw.view(self._device.dtype).reshape(self._device.shape)


class Output:
    """A matrix for results, inside a frame of sevens that no kernel may touch.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : dtype
    fill : scalar or array, optional
        What it holds before. By default an element that is not written shows: `tests.oracle.unset`.
    """

    MARGIN = 8  # elements: 16 bytes or more of every dtype, so that rows may start aligned

    def __init__(self, shape: tuple[int, int], dtype: Any, fill: Any = None):
        rows, cols = shape
        self._inner = (slice(self.MARGIN, self.MARGIN + rows), slice(self.MARGIN, self.MARGIN + cols))
        host = np.full((rows + 2 * self.MARGIN, cols + 2 * self.MARGIN), 7, dtype)
        host[self._inner] = unset(shape, dtype) if fill is None else fill
        self._twin = Twin(host)
        self.device = self._twin.view(host[self._inner])

    def fetch(self) -> np.ndarray:
        """The matrix as it is now, once the frame was found intact."""
        whole = self._twin.fetch()
        inner = whole[self._inner].copy()
        whole[self._inner] = 7
        assert np.array_equal(whole, np.full_like(whole, 7)), "a kernel wrote beside its output"
        return inner


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
