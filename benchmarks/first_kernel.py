"""One kernel in a fresh process, and where its time went; `first_result` runs it.

    python -m benchmarks.first_kernel numba|gemm|fft|peer-fft STARTED

STARTED is the parent's ``time.monotonic()`` as it started this process. The last line printed is JSON, in seconds.
"""

import time

BEGAN = time.monotonic()

import json  # noqa: E402  the clock starts before anything is imported
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from numba import cuda  # noqa: E402

IMPORTED = time.monotonic()
SPENT: dict[str, float] = {"nvrtc": 0.0, "nvjitlink": 0.0}


def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with the seconds that it takes added to a stage."""

    def run(*args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        try:
            return function(*args, **kwargs)
        finally:
            SPENT[stage] += time.monotonic() - began

    return run


def watch_compilers() -> None:
    """Count NVRTC's and nvJitLink's own time apart from that of Numba around them."""
    from numba.cuda.cudadrv import driver

    from devmath.lto import compile as units

    units.run_nvrtc = timed("nvrtc", units.run_nvrtc)
    driver._Linker.complete = timed("nvjitlink", driver._Linker.complete)


def numba_alone() -> Callable[[], float]:
    """A copy in plain Numba: what any kernel of a process costs before it does anything of ours."""

    @cuda.jit
    def kernel(x, y):
        for i in range(cuda.threadIdx.x, x.shape[1], cuda.blockDim.x):
            y[0, i] = x[0, i]

    return row_run(kernel[1, 128], lambda x: x)


def gemm() -> Callable[[], float]:
    """A 64 x 64 x 64 product of float16."""
    import devmath

    watch_compilers()
    mm = devmath.Gemm(64, 64, 64, np.float16)

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        acc = devmath.accumulator(mm)
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c)

    random = np.random.default_rng()
    a, b = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    da, db, dc = cuda.to_device(a), cuda.to_device(b), cuda.device_array((64, 64), np.float32)

    def run() -> float:
        kernel[1, mm.block_dim](da, db, dc)
        return relative_error(dc.copy_to_host(), a.astype(float) @ b.astype(float))

    return run


def fft() -> Callable[[], float]:
    """A transform of 4096 complex64 points."""
    import devmath

    watch_compilers()
    transform = devmath.FFT(4096)

    @cuda.jit
    def kernel(x, y):
        v = devmath.registers(transform)
        row = devmath.transform_index(transform)
        devmath.load(x, v, row)
        devmath.fft(transform, v)
        devmath.store(v, y, row)

    return row_run(kernel[1, transform.block_dim], np.fft.fft)


def peer_fft() -> Callable[[], float]:
    """The same transform by nvmath.device, as it suggests."""
    from nvmath.device import FFT

    transform = FFT(fft_type="c2c", size=4096, precision=np.float32, direction="forward", execution="Block")
    elements, stride = transform.elements_per_thread, transform.stride
    storage, value_type = transform.storage_size, transform.value_type

    @cuda.jit
    def kernel(x, y):
        data = cuda.local.array(shape=(storage,), dtype=value_type)
        shared = cuda.shared.array(shape=(0,), dtype=value_type)
        for i in range(elements):
            data[i] = x[0, cuda.threadIdx.x + i * stride]
        transform.execute(data, shared)
        for i in range(elements):
            y[0, cuda.threadIdx.x + i * stride] = data[i]

    return row_run(kernel[1, transform.block_dim, 0, transform.shared_memory_size], np.fft.fft)


def row_run(launch: Callable[[Any, Any], None], reference: Callable[[Any], Any]) -> Callable[[], float]:
    """Run a kernel on one random row of 4096 complex64, and return its error."""
    random = np.random.default_rng()
    x = (random.standard_normal((1, 4096)) + 1j * random.standard_normal((1, 4096))).astype(np.complex64)
    dx, dy = cuda.to_device(x), cuda.device_array_like(x)

    def run() -> float:
        launch(dx, dy)
        return relative_error(dy.copy_to_host(), reference(x))

    return run


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """L2 norm of the difference over that of `want`."""
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def main() -> None:
    """Run from the command line."""
    kernel, started = sys.argv[1], float(sys.argv[2])
    cuda.current_context()
    ready = time.monotonic()
    run = {"numba": numba_alone, "gemm": gemm, "fft": fft, "peer-fft": peer_fft}[kernel]()
    prepared = time.monotonic()
    error = run()
    done = time.monotonic()
    first_launch = done - prepared
    stages = {
        "python": BEGAN - started,
        "import numba": IMPORTED - BEGAN,
        "context": ready - IMPORTED,
        "library, data": prepared - ready,
        "nvrtc": SPENT["nvrtc"],
        "nvjitlink": SPENT["nvjitlink"],
        "numba": first_launch - SPENT["nvrtc"] - SPENT["nvjitlink"],
        "total": done - started,
    }
    print(json.dumps({"stages": stages, "error": error}))


if __name__ == "__main__":
    main()
