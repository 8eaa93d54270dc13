"""The other libraries, each in the form that is timed here: kernels of nvmath.device, and batched products of others.

A peer gets what it suggests itself, threads and leading dimensions, and what it is told to be faster with: operands
that are aligned, and a block of fixed size. Other threads may be asked for.
"""

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda

Launch = Callable[..., None]

BLOCK_THREADS = 256  # of several small products side by side


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


@dataclass(frozen=True)
class PeerKernel:
    """A kernel of nvmath.device, and what its launch needs.

    Parameters
    ----------
    kernel : Numba dispatcher
    block_dim : tuple of int
    shared_bytes : int
        Dynamic shared memory.
    products_per_block : int
    """

    kernel: Any
    block_dim: tuple[int, int, int]
    shared_bytes: int
    products_per_block: int = 1

    def build(self, *arguments: Any) -> tuple[Any, float]:
        """Compile for the types of some arguments, and load with all the shared memory; also the seconds it took."""
        began = time.perf_counter()
        compiled = self.kernel.compile(tuple(map(self.kernel.typeof_pyval, arguments)))
        allow_shared(compiled, self.shared_bytes)
        return compiled, time.perf_counter() - began

    def launch(self, blocks: int) -> Launch:
        """The kernel, configured for so many blocks."""
        return self.kernel[blocks, self.block_dim, 0, self.shared_bytes]


def allow_shared(compiled: Any, shared_bytes: int) -> None:
    """Let a compiled kernel have so much dynamic shared memory: beyond 48 KB CUDA wants to be asked."""
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    kernel = driver.CUkernel(int(compiled.library.get_cufunc().handle))
    (status,) = driver.cuKernelSetAttribute(attribute, shared_bytes, kernel, cuda.get_current_device().id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{shared_bytes} bytes of shared memory: {status.name}")


def nvmath_tile_in_shared(m: int, n: int, k: int, dtype: Any, sums: Any, threads: int | None = None) -> PeerKernel:
    """``c[block] = repeats * (a @ b)`` with C in shared memory: kernel(a, b, c, repeats), b column-major."""
    mm = _nvmath_product(m, n, k, dtype, sums, "col", threads, leading_dimension="suggested")
    lda, ldb, ldc = mm.leading_dimension
    a_size, b_size = mm.a_size, mm.b_size
    operand, result = mm.a_value_type, mm.c_value_type
    c_start = -(-(a_size + b_size) * np.dtype(operand).itemsize // np.dtype(result).itemsize)
    block_threads = mm.block_size

    @cuda.jit
    def kernel(a, b, c, repeats):
        # All dynamic shared arrays start at one address.
        operands = cuda.shared.array(shape=(0,), dtype=operand, alignment=16)
        smem_a, smem_b = operands[:a_size], operands[a_size : a_size + b_size]
        smem_c = cuda.shared.array(shape=(0,), dtype=result, alignment=16)[c_start:]
        for i in range(cuda.threadIdx.x, m * k, block_threads):
            smem_a[i // k * lda + i % k] = a[i // k, i % k]
        for i in range(cuda.threadIdx.x, k * n, block_threads):
            smem_b[i // k * ldb + i % k] = b[i % k, i // k]
        for i in range(cuda.threadIdx.x, m * n, block_threads):
            smem_c[i // n * ldc + i % n] = 0
        cuda.syncthreads()
        for _ in range(repeats):
            mm.execute(1.0, smem_a, smem_b, 1.0, smem_c)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, m * n, block_threads):
            c[cuda.blockIdx.x, i // n, i % n] = smem_c[i // n * ldc + i % n]

    return PeerKernel(kernel, tuple(mm.block_dim), mm.get_shared_storage_size())


def nvmath_tile_in_registers(m: int, n: int, k: int, dtype: Any, sums: Any, threads: int | None = None) -> PeerKernel:
    """The same with C in registers, and A and B in the layouts that the peer suggests."""
    from nvmath.device.common import clear, copy, copy_fragment, copy_wait, make_tensor

    mm = _nvmath_product(m, n, k, dtype, sums, "col", threads)
    layout_a, layout_b, layout_c = mm.suggest_layout_smem_a(), mm.suggest_layout_smem_b(), mm.suggest_layout_rmem_c()
    a_size, b_size, c_size = layout_a.cosize, layout_b.cosize, layout_c.cosize
    operand, result = mm.a_value_type, mm.c_value_type
    # Plain multiply-adds of operands that do not change would be taken out of the loop; a barrier keeps them in.
    is_plain = np.dtype(dtype) == np.float32

    @cuda.jit
    def kernel(a, b, c, repeats):
        operands = cuda.shared.array(shape=(0,), dtype=operand, alignment=16)
        smem_a = make_tensor(operands[:a_size], mm.suggest_layout_smem_a())
        smem_b = make_tensor(operands[a_size : a_size + b_size], mm.suggest_layout_smem_b())
        rmem_c = make_tensor(cuda.local.array(shape=(c_size,), dtype=result), mm.suggest_layout_rmem_c())
        copy(make_tensor(a, mm.get_layout_gmem_a()), smem_a)
        copy(make_tensor(b, mm.get_layout_gmem_b()), smem_b)
        copy_wait()
        clear(rmem_c)
        for _ in range(repeats):
            mm.execute(smem_a, smem_b, rmem_c)
            if is_plain:
                cuda.syncthreads()
        copy_fragment(rmem_c, make_tensor(c[cuda.blockIdx.x], mm.get_layout_gmem_c()))

    return PeerKernel(kernel, tuple(mm.block_dim), mm.get_shared_storage_size_ab(layout_a, layout_b))


def nvmath_batched(m: int, n: int, k: int, dtype: Any) -> PeerKernel:
    """A batch of products, several a block as its example has them: kernel(a, b, c, batch) on flat row-major arrays."""
    # One warp a small product, as its own tests choose: it suggests at least two, which leaves lanes without work.
    mm = _nvmath_product(m, n, k, dtype, dtype, "row", threads=32 if m * n <= 256 else None)
    a_size, b_size, c_size = mm.a_size, mm.b_size, mm.c_size
    threads = mm.block_size
    products = max(1, BLOCK_THREADS // threads)
    b_start, c_start = products * a_size, products * (a_size + b_size)
    value = mm.a_value_type

    @cuda.jit
    def kernel(a, b, c, batch):
        own = cuda.threadIdx.y
        product = cuda.blockIdx.x * products + own
        memory = cuda.shared.array(shape=(0,), dtype=value, alignment=16)
        smem_a = memory[own * a_size :]
        smem_b = memory[b_start + own * b_size :]
        smem_c = memory[c_start + own * c_size :]
        if product < batch:
            for i in range(cuda.threadIdx.x, a_size, threads):
                smem_a[i] = a[product * a_size + i]
            for i in range(cuda.threadIdx.x, b_size, threads):
                smem_b[i] = b[product * b_size + i]
        cuda.syncthreads()
        mm.execute(1.0, smem_a, smem_b, 0.0, smem_c)
        cuda.syncthreads()
        if product < batch:
            for i in range(cuda.threadIdx.x, c_size, threads):
                c[product * c_size + i] = smem_c[i]

    shared_bytes = products * (a_size + b_size + c_size) * np.dtype(value).itemsize
    return PeerKernel(kernel, (threads, products, 1), shared_bytes, products)


def _nvmath_product(
    m: int, n: int, k: int, dtype: Any, sums: Any, b_order: str, threads: int | None, **options: Any
) -> Any:
    from nvmath.device import Matmul
    from nvmath.device.cublasdx import MAX_ALIGNMENT

    operand, result = np.dtype(dtype).type, np.dtype(sums).type
    return Matmul(
        size=(m, n, k),
        precision=(operand, operand, result),
        data_type="real",
        arrangement=("row_major", f"{b_order}_major", "row_major"),
        execution="Block",
        block_size=threads or "suggested",
        alignment=MAX_ALIGNMENT,
        static_block_dim=True,
        **options,
    )


def cublas_batched(a: Any, b: Any, c: Any) -> Callable[[], None]:
    """cuBLAS's strided batched product of CuPy arrays (batch, rows, columns), float32 or float64."""
    from cupy.cuda.device import get_cublas_handle
    from cupy_backends.cuda.libs import cublas

    product = {"float32": cublas.sgemmStridedBatched, "float64": cublas.dgemmStridedBatched}[a.dtype.name]
    (batch, m, k), n = a.shape, b.shape[2]
    one, zero = np.ones(1, a.dtype), np.zeros(1, a.dtype)
    # cuBLAS counts by columns: C^T = B^T A^T. Each operand is a pointer, a leading dimension, and the next one's start.
    operands = (b.data.ptr, n, k * n, a.data.ptr, k, m * k)
    result = (c.data.ptr, n, m * n)
    sizes = (cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, n, m, k)

    def run() -> None:
        product(get_cublas_handle(), *sizes, one.ctypes.data, *operands, zero.ctypes.data, *result, batch)

    return run


def torch_batched(a: Any, b: Any, c: Any) -> Callable[[], None]:
    """torch.bmm on the memory of the same arrays."""
    import torch

    ta, tb, tc = (torch.from_dlpack(x) for x in (a, b, c))
    return lambda: torch.bmm(ta, tb, out=tc)
