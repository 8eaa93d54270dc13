"""The verbs: bodies that compute with NumPy, once for the whole block where the block works together."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...blas_device import Gemm, Operand
from ...fft_device import FFT
from ...lto.arch import ARCHITECTURES, shared_memory_limit_bytes
from ...verbs import SIMULATED
from .. import mainloop_rules, rules
from . import mainloop
from .block import Block, Thread, current_thread
from .calls import Call, caller, device_function
from .fragment import Fragment, coordinates, owners, registers_of
from .tile import PlainMatrix, Tile, matrix_of
from .values import argument, convert, converts_to, space_of, unwrap


def simulated(body: Callable[..., Any]) -> Callable[..., Any]:
    """Install a function as the body of the verb of its name."""
    SIMULATED[body.__name__] = body
    return body


simulated(mainloop.tiles)
simulated(mainloop.mainloop)


@simulated
def shared(operand: Any) -> Tile:
    block = current_thread("shared").block
    rules.descriptor("shared", argument(operand))
    block.bind(operand.desc if isinstance(operand, Operand) else operand)
    frame = caller()
    place = (device_function(frame), frame.f_code, frame.f_lasti, operand.layout)
    with block.lock:
        if place not in block.tiles:
            _reserve(block, place, operand.layout.size_bytes)
            block.tiles[place] = Tile(block, operand.layout, Call.here("devmath.shared"))
        return block.tiles[place]


def _reserve(block: Block, place: Any, size_bytes: int) -> None:
    """Count shared memory, and refuse more than any architecture has."""
    block.shared_bytes[place] = size_bytes
    arch = max(ARCHITECTURES, key=shared_memory_limit_bytes)
    rules.shared_memory(sum(block.shared_bytes.values()), arch)


@simulated
def accumulator(desc: Any) -> Fragment:
    thread = current_thread("accumulator")
    mm = rules.accumulator(argument(desc))
    thread.block.bind(mm)
    return Fragment(mm, thread.thread_id)


@simulated
def registers(desc: Any) -> Fragment:
    thread = current_thread("registers")
    transform = rules.descriptor("registers", argument(desc))
    thread.block.bind(transform)
    return Fragment(transform.forward, thread.thread_id)


@simulated
def transform_index(desc: Any) -> int:
    thread = current_thread("transform_index")
    transform = rules.descriptor("transform_index", argument(desc))
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
    rules.load(argument(source), argument(target), *map(argument, row))
    array = _rows_of(source)
    if isinstance(target, Fragment):
        _load_registers(array, row[0], target)
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
    if len(row) == 1 and isinstance(row[0], mainloop.TileIndex):
        _store_fragment(Call.here("devmath.store"), source, mainloop.store_at(source, target, row[0]), source.rows)
        return
    rules.store(argument(source), argument(target), *map(argument, row))
    destination: Any = target if isinstance(target, Tile) else _rows_of(target)
    call = Call.here("devmath.store")
    if isinstance(source, Fragment):
        rows = np.full(source.size, row[0]) if row else source.rows
        _store_fragment(call, source, destination, rows)
        return

    def copy(_: list[None]) -> None:
        corner = _corner(destination, source.shape)
        values = source.read(call)[: corner.shape[0], : corner.shape[1]]
        corner[...] = convert(values, destination.dtype)

    thread.block.meet(thread, call, (source.identity, _view(destination)), None, copy)


def _store_fragment(call: Call, source: Fragment, destination: Tile | np.ndarray, rows: np.ndarray) -> None:
    """A thread's own elements, each to its row of `rows`."""
    exists = source.inside & (rows >= 0) & (rows < destination.shape[0]) & (source.cols < destination.shape[1])
    where, values = (rows[exists], source.cols[exists]), source.values[exists]
    if isinstance(destination, Tile):
        destination.write(call, values, where, source.thread)
    else:
        destination[where] = convert(values, destination.dtype)


def _rows_of(value: Any) -> np.ndarray:
    """An array, 2-D; a 1-D one is one row."""
    array = unwrap(value)
    return array[None, :] if array.ndim == 1 else array


def _corner(array: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The part of an array that a tile covers."""
    return array[: shape[0], : shape[1]]


def _view(array: np.ndarray) -> tuple[Any, ...]:
    """What tells one view of memory from another: each thread has an object of its own."""
    return (array.ctypes.data, array.shape, array.strides, array.dtype)


@simulated
def gemm(desc: Any, *operands: Any) -> None:
    thread = current_thread("gemm")
    mm = rules.gemm(argument(desc), *map(argument, operands))
    if len(operands) == 5:
        _gemm_to_tile(thread, mm, *operands)
    else:
        _gemm_to_registers(thread, mm, *operands)


def _gemm_to_tile(thread: Thread, mm: Gemm, alpha: Any, a: Any, b: Any, beta: Any, c: Any) -> None:
    tile_a, tile_b, tile_c = (_operand(mm, name, value) for name, value in (("a", a), ("b", b), ("c", c)))
    alpha, beta = (convert(factor, mm.accumulator_dtype)[()] for factor in (alpha, beta))
    thread.block.bind(mm)
    call = Call.here("devmath.gemm")

    def update(_: list[None]) -> None:
        # Each element of C belongs to the thread that holds its sum. Sums are rounded once, then scaled in their type.
        dtype, owner = mm.accumulator_dtype, owners(mm.plan.fragment, mm.plan.threads)
        with np.errstate(all="ignore"):
            result = alpha * convert(_product(call, mm, tile_a, tile_b), dtype)
            if beta != 0:
                result = result + beta * convert(tile_c.read(call, thread=owner), dtype)
        tile_c.write(call, result, thread=owner)

    same = (mm, tile_a.identity, tile_b.identity, tile_c.identity, alpha.tobytes(), beta.tobytes())
    thread.block.meet(thread, call, same, None, update)


def _gemm_to_registers(thread: Thread, mm: Gemm, a: Any, b: Any, acc: Any) -> None:
    tile_a, tile_b = _operand(mm, "a", a), _operand(mm, "b", b)
    accumulators = registers_of("devmath.gemm: acc", mm.plan.fragment.size, acc)
    thread.block.bind(mm)
    call = Call.here("devmath.gemm")

    def multiply(_: list[None]) -> np.ndarray:
        return _product(call, mm, tile_a, tile_b)

    sums = thread.block.meet(thread, call, (mm, tile_a.identity, tile_b.identity), None, multiply)
    rows, cols, inside = (table[thread.thread_id] for table in coordinates(mm.plan.fragment, mm.plan.threads))
    with np.errstate(all="ignore"):
        total = accumulators[inside].astype(sums.dtype) + sums[rows[inside], cols[inside]]
    accumulators[inside] = convert(total, accumulators.dtype)
    # What the instructions make of the memory around the tile is no number to rely on.
    accumulators[~inside] = np.nan


def _operand(mm: Gemm, name: str, value: Any) -> Tile | PlainMatrix:
    return matrix_of(f"devmath.gemm: {name}", getattr(mm.plan, name), value)


def _product(call: Call, mm: Gemm, a: Tile | PlainMatrix, b: Tile | PlainMatrix) -> np.ndarray:
    """A @ B in double precision."""
    wide = np.complex128 if a.layout.dtype.is_complex else np.float64
    left, right = (tile.read(call).astype(wide) for tile in (a, b))
    with np.errstate(all="ignore"):
        return (left.conj() if mm.a_conj else left) @ (right.conj() if mm.b_conj else right)


@simulated
def fft(desc: Any, data: Any) -> None:
    thread = current_thread("fft")
    transform = rules.fft(argument(desc), argument(data))
    operand = _transform_data(transform, data)
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


def _transform_data(desc: FFT, value: Any) -> np.ndarray | Tile | PlainMatrix:
    """Registers, or a matrix of the block's transforms; a 1-D array in local memory holds registers."""
    array = unwrap(value)
    is_vector = isinstance(array, np.ndarray) and array.ndim == 1
    if isinstance(value, Fragment) or (is_vector and space_of(value) == "local"):
        return registers_of("devmath.fft: data", desc.elements_per_thread, value)
    return matrix_of("devmath.fft: data", desc.layout, value)


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
    rules.apply(argument(function), argument(acc))
    dtype, inside, row, col = acc.dtype, acc.inside, 0, 0
    if extra and isinstance(extra[0], mainloop.TileIndex):
        tile, extra = extra[0], extra[1:]
        mainloop_rules.accumulator_of("apply", acc, tile)
        inside, row, col = mainloop.inside(acc, tile), tile.row, tile.col
    for i in np.flatnonzero(inside):
        result = function(acc.values[i], row + int(acc.rows[i]), col + int(acc.cols[i]), *extra)
        if not converts_to(result, dtype):
            rules.refuse_result(acc, argument(result))
        acc.values[i] = convert(result, dtype.numpy)
