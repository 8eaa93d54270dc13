"""The verbs: bodies that compute with NumPy, once for the whole block where the block works together."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda.core.errors import TypingError

from ...blas_device import Gemm, Operand
from ...fft_device import FFT
from ...lto.arch import ARCHITECTURES, shared_memory_limit_bytes
from ...verbs import SIMULATED
from . import checks
from .block import Block, Thread, current_thread
from .calls import Call, caller
from .fragment import Fragment, coordinates, owners
from .tile import PlainMatrix, Tile
from .values import convert, converts_to


def simulated(body: Callable[..., Any]) -> Callable[..., Any]:
    """Install a function as the body of the verb of its name."""
    SIMULATED[body.__name__] = body
    return body


@simulated
def shared(operand: Any) -> Tile:
    block = current_thread("shared").block
    checks.descriptor("shared", operand, Operand, FFT)
    block.bind(operand.desc if isinstance(operand, Operand) else operand)
    frame = caller()
    place = (id(frame.f_code), frame.f_lasti, operand.layout)
    with block.lock:
        if place not in block.tiles:
            _reserve(block, place, operand.layout.size_bytes)
            block.tiles[place] = Tile(block, operand.layout, Call.here("devmath.shared"))
        return block.tiles[place]


def _reserve(block: Block, place: Any, size_bytes: int) -> None:
    """Count shared memory, and refuse more than any architecture has."""
    block.shared_bytes[place] = size_bytes
    arch = max(ARCHITECTURES, key=shared_memory_limit_bytes)
    limit, used = shared_memory_limit_bytes(arch), sum(block.shared_bytes.values())
    if used > limit:
        raise TypingError(
            f"the tiles of a kernel must fit the {limit} bytes of shared memory that {arch} has, got {used}"
        )


@simulated
def accumulator(desc: Any) -> Fragment:
    thread = current_thread("accumulator")
    mm = checks.descriptor("accumulator", desc, Gemm)
    checks.register_form("accumulator", mm)
    thread.block.bind(mm)
    return Fragment(mm, thread.thread_id)


@simulated
def registers(desc: Any) -> Fragment:
    thread = current_thread("registers")
    transform = checks.descriptor("registers", desc, FFT)
    thread.block.bind(transform)
    return Fragment(transform.forward, thread.thread_id)


@simulated
def transform_index(desc: Any) -> int:
    thread = current_thread("transform_index")
    transform = checks.descriptor("transform_index", desc, FFT)
    thread.block.bind(transform)
    return thread.blockIdx.x * transform.ffts_per_block + transform.fragment.row_of_thread(thread.thread_id)


@simulated
def wait() -> None:
    thread = current_thread("wait")
    block = thread.block

    def complete(_: list[None]) -> None:
        for tile in block.tiles.values():
            tile.land()
        block.epoch += 1

    block.meet(thread, Call.here("devmath.wait"), None, None, complete)


@simulated
def load(source: Any, target: Any, *row: Any) -> None:
    thread = current_thread("load")
    array, index = checks.load_operands(source, target, row)
    if isinstance(target, Fragment):
        _load_registers(array, index, target)
        return
    call = Call.here("devmath.load")

    def copy(_: list[None]) -> None:
        values = np.zeros(target.shape, array.dtype)
        corner = _corner(array, target.shape)
        values[: corner.shape[0], : corner.shape[1]] = corner
        target.write(call, values, landing=True)

    thread.block.meet(thread, call, (_view(array), target.identity), None, copy)


def _load_registers(array: np.ndarray, row: int, target: Fragment) -> None:
    target.values[:] = 0
    if 0 <= row < array.shape[0]:
        exists = target.cols < array.shape[1]
        target.values[exists] = array[row, target.cols[exists]]


@simulated
def store(source: Any, target: Any, *row: Any) -> None:
    thread = current_thread("store")
    destination, index = checks.store_operands(source, target, row)
    call = Call.here("devmath.store")
    if isinstance(source, Fragment):
        _store_fragment(call, source, destination, index)
        return

    def copy(_: list[None]) -> None:
        corner = _corner(destination, source.shape)
        values = source.read(call)[: corner.shape[0], : corner.shape[1]]
        corner[...] = convert(values, destination.dtype)

    thread.block.meet(thread, call, (source.identity, _view(destination)), None, copy)


def _store_fragment(call: Call, source: Fragment, destination: Tile | np.ndarray, row: int) -> None:
    """A thread's own elements; those of a transform lie in the one row `row`."""
    rows = np.full(source.size, row) if isinstance(source.desc, FFT) else source.rows
    exists = source.inside & (rows >= 0) & (rows < destination.shape[0]) & (source.cols < destination.shape[1])
    where, values = (rows[exists], source.cols[exists]), source.values[exists]
    if isinstance(destination, Tile):
        destination.write(call, values, where, source.thread)
    else:
        destination[where] = convert(values, destination.dtype)


def _corner(array: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The part of an array that a tile covers."""
    return array[: shape[0], : shape[1]]


def _view(array: np.ndarray) -> tuple[Any, ...]:
    """What tells one view of memory from another: each thread has an object of its own."""
    return (array.ctypes.data, array.shape, array.strides, array.dtype)


@simulated
def gemm(desc: Any, *operands: Any) -> None:
    thread = current_thread("gemm")
    mm = checks.descriptor("gemm", desc, Gemm)
    if len(operands) == 5:
        _gemm_to_tile(thread, mm, *operands)
    elif len(operands) == 3:
        _gemm_to_registers(thread, mm, *operands)
    else:
        raise TypingError(
            f"devmath.gemm takes (desc, alpha, a, b, beta, c) or (desc, a, b, acc), got {len(operands) + 1} arguments"
        )


def _gemm_to_tile(thread: Thread, mm: Gemm, alpha: Any, a: Any, b: Any, beta: Any, c: Any) -> None:
    tile_c = checks.matrix("gemm", "c", mm.plan.c, c)
    alpha = checks.scalar("gemm", "alpha", mm.plan.accumulator, alpha)
    beta = checks.scalar("gemm", "beta", mm.plan.accumulator, beta)
    tile_a, tile_b = checks.matrix("gemm", "a", mm.plan.a, a), checks.matrix("gemm", "b", mm.plan.b, b)
    thread.block.bind(mm)
    call = Call.here("devmath.gemm")

    def update(_: list[None]) -> None:
        # Each element of C belongs to the thread that holds its sum. Sums are rounded once, then scaled in their type.
        dtype, owner = mm.accumulator_dtype, owners(mm.plan.fragment, mm.plan.threads)
        with np.errstate(all="ignore"):
            result = alpha * convert(_product(call, tile_a, tile_b), dtype)
            if beta != 0:
                result = result + beta * convert(tile_c.read(call, thread=owner), dtype)
        tile_c.write(call, result, thread=owner)

    same = (mm, tile_a.identity, tile_b.identity, tile_c.identity, alpha.tobytes(), beta.tobytes())
    thread.block.meet(thread, call, same, None, update)


def _gemm_to_registers(thread: Thread, mm: Gemm, a: Any, b: Any, acc: Any) -> None:
    checks.register_form("gemm", mm)
    accumulators = checks.accumulators(mm, acc)
    tile_a, tile_b = checks.matrix("gemm", "a", mm.plan.a, a), checks.matrix("gemm", "b", mm.plan.b, b)
    thread.block.bind(mm)
    call = Call.here("devmath.gemm")

    def multiply(_: list[None]) -> np.ndarray:
        return _product(call, tile_a, tile_b)

    sums = thread.block.meet(thread, call, (mm, tile_a.identity, tile_b.identity), None, multiply)
    rows, cols, inside = (table[thread.thread_id] for table in coordinates(mm.plan.fragment, mm.plan.threads))
    with np.errstate(all="ignore"):
        total = accumulators[inside].astype(sums.dtype) + sums[rows[inside], cols[inside]]
    accumulators[inside] = convert(total, accumulators.dtype)
    # What the instructions make of the memory around the tile is no number to rely on.
    accumulators[~inside] = np.nan


def _product(call: Call, a: Tile | PlainMatrix, b: Tile | PlainMatrix) -> np.ndarray:
    """A @ B in double precision."""
    wide = np.complex128 if a.layout.dtype.is_complex else np.float64
    with np.errstate(all="ignore"):
        return a.read(call).astype(wide) @ b.read(call).astype(wide)


@simulated
def fft(desc: Any, data: Any) -> None:
    thread = current_thread("fft")
    transform = checks.descriptor("fft", desc, FFT)
    operand = checks.transform_data(transform, data)
    thread.block.bind(transform)
    with thread.block.lock:
        _reserve(thread.block, transform.plan.exchange_bytes, transform.plan.exchange_bytes)
    call = Call.here("devmath.fft")
    if isinstance(operand, np.ndarray):
        _fft_registers(thread, transform, call, operand)
        return

    def update(_: list[None]) -> None:
        owner = owners(transform.fragment, transform.threads)
        operand.write(call, _spectrum(transform, operand.read(call, thread=owner)), thread=owner)

    thread.block.meet(thread, call, (transform, operand.identity), None, update)


def _fft_registers(thread: Thread, transform: FFT, call: Call, values: np.ndarray) -> None:
    rows, cols, _ = coordinates(transform.fragment, transform.threads)

    def gather(shares: list[np.ndarray]) -> np.ndarray:
        signal = np.empty((transform.ffts_per_block, transform.n), transform.dtype)
        signal[rows, cols] = np.stack(shares)
        return _spectrum(transform, signal)

    spectrum = thread.block.meet(thread, call, transform, values, gather)
    values[:] = spectrum[rows[thread.thread_id], cols[thread.thread_id]]


def _spectrum(desc: FFT, signal: np.ndarray) -> np.ndarray:
    """Unnormalised transform of each row, in double precision, rounded once."""
    with np.errstate(all="ignore"):
        wide = signal.astype(np.complex128)
        result = np.fft.fft(wide) if desc.direction == "forward" else np.fft.ifft(wide, norm="forward")
    return convert(result, desc.dtype)


@simulated
def apply(function: Any, acc: Any, *extra: Any) -> None:
    current_thread("apply")
    checks.epilog(function, acc)
    dtype = acc.dtype
    for i in np.flatnonzero(acc.inside):
        result = function(acc.values[i], int(acc.rows[i]), int(acc.cols[i]), *extra)
        if not converts_to(result, dtype):
            checks.refuse("apply", "the result of function", f"a number that converts to {dtype.name}", result)
        acc.values[i] = convert(result, dtype.numpy)
