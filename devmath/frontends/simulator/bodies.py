"""The verbs: bodies that compute with NumPy, once for the whole block where the block works together."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...blas_device import Gemm, Operand
from ...errors import SimulationError
from ...fft_device import FFT
from ...lto.arch import ARCHITECTURES, shared_memory_limit_bytes
from ...verbs import SIMULATED
from .. import call_rules, kernel_rules, mainloop_rules, rules
from . import mainloop
from .block import Block, Thread, current_thread
from .calls import Call, caller, device_function
from .fragment import Fragment, coordinates, owners, registers_of
from .tile import PlainMatrix, Stack, Tile, matrix_of
from .values import argument, as_tf32, convert, converts_to, poison, space_of, unwrap


def simulated(body: Callable[..., Any]) -> Callable[..., Any]:
    """Install a function as the body of the verb of its name."""

    @functools.wraps(body)
    def checked(*args: Any, **keywords: Any) -> Any:
        call_rules.arguments(body.__name__, body, *args, **keywords)
        return body(*args, **keywords)

    SIMULATED[body.__name__] = checked
    return checked


simulated(mainloop.tiles)
simulated(mainloop.mainloop)


@simulated
def shared(operand: Any, stages: Any = None) -> Tile | Stack:
    thread = current_thread("shared")
    block = thread.block
    rules.descriptor("shared", argument(operand))
    count = None if stages is None else call_rules.constant("shared", "stages", argument(stages), 1)
    block.bind(operand.desc if isinstance(operand, Operand) else operand)
    per_product = operand.per_product_on(None) if isinstance(operand, Operand) else None
    first = _first_of_product(thread, per_product.threads) if per_product else 0
    frame, layout, call = caller(), operand.layout, Call.here("devmath.shared")
    place = (device_function(frame), frame.f_code, frame.f_lasti, layout, count)
    with block.lock:
        if (place, first) not in block.tiles:
            size_bytes = per_product.size_bytes if per_product else layout.size_bytes
            stage_bytes = per_product.size_bytes if per_product else layout.stage_bytes
            _reserve(block, place, size_bytes if count is None else count * stage_bytes)
            tiles = [Tile(block, layout, call, per_product, first) for _ in range(count or 1)]
            block.tiles[place, first] = tiles[0] if count is None else Stack(tiles)
        return block.tiles[place, first]


def _first_of_product(thread: Thread, threads: int) -> int:
    """Rank of the first of the threads that work on the product of this one."""
    return thread.thread_id // threads * threads


def _together(thread: Thread, call: Call, threads: int | None, same: Any, work: Callable[[], Any]) -> Any:
    """Make a call with all threads that must, and have `work` done once; return its result.

    Those are the threads of the block, where `threads` is None. Else those of the warp, so many of which share a
    product, and agree on what is the `same`: the work is done once for each product.
    """
    if threads is None:
        return thread.block.meet(thread, call, same, None, lambda _: work())

    def work_on_products(contributions: list[Any]) -> list[Any]:
        products = [contributions[i : i + threads] for i in range(0, len(contributions), threads)]
        for product in products:
            if any(other != product[0][0] for other, _ in product):
                raise SimulationError(f"the {threads} threads of a product must call {call} with the same arguments")
        return [product[0][1]() for product in products]

    team = thread.block.warp_of(thread)
    results = thread.block.meet(thread, call, threads, (same, work), work_on_products, team)
    return results[(thread.thread_id - team.ranks.start) // threads]


def _sharers(mm: Gemm) -> int | None:
    """Threads that share a product, where a block computes several."""
    return None if mm.execution == "block" else mm.threads_per_gemm


def _reserve(block: Block, place: Any, size_bytes: int) -> None:
    """Count shared memory, and refuse more than any architecture has."""
    block.shared_bytes[place] = size_bytes
    arch = max(ARCHITECTURES, key=shared_memory_limit_bytes)
    kernel_rules.shared_memory(sum(block.shared_bytes.values()), arch)


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
def gemm_index(desc: Any) -> int:
    thread = current_thread("gemm_index")
    mm = rules.descriptor("gemm_index", argument(desc))
    thread.block.bind(mm)
    return thread.blockIdx.x * mm.gemms_per_block + thread.thread_id // mm.threads_per_gemm


@simulated
def wait(*args: Any, pending: Any = None) -> None:
    thread = current_thread("wait")
    mm, spared = call_rules.wait(*map(argument, args), pending=None if pending is None else argument(pending))
    block = thread.block
    team = block.team if mm is None or mm.execution == "block" else block.warp_of(thread)

    def complete(_: list[None]) -> None:
        block.land(team, spared)
        block.pass_epoch(team)

    block.meet(thread, Call.here("devmath.wait"), spared, None, complete, team)


@simulated
def load(source: Any, target: Any, *row: Any) -> None:
    thread = current_thread("load")
    rules.load(argument(source), argument(target), *map(argument, row))
    if isinstance(target, Fragment):
        _load_registers(_rows_of(source), row[0], target)
        return
    array = _rows_of(source, *row)
    call = Call.here("devmath.load")

    def copy() -> None:
        values = np.zeros(target.shape, array.dtype)
        corner = _corner(array, target.shape)
        values[: corner.shape[0], : corner.shape[1]] = corner
        target.write(call, values, landing=True)

    _together(thread, call, _sharers_of(target), (_view(array), target.identity), copy)


def _sharers_of(tile: Tile) -> int | None:
    return tile.per_product.threads if tile.per_product else None


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
    call = Call.here("devmath.store")
    if isinstance(source, Fragment):
        rows = np.full(source.size, row[0]) if source.is_transform else source.rows
        index = () if source.is_transform else row
        _store_fragment(call, source, target if isinstance(target, Tile) else _rows_of(target, *index), rows)
        return
    destination = _rows_of(target, *row)

    def copy() -> None:
        corner = _corner(destination, source.shape)
        values = source.read(call)[: corner.shape[0], : corner.shape[1]]
        corner[...] = convert(values, destination.dtype)

    _together(thread, call, _sharers_of(source), (source.identity, _view(destination)), copy)


def _store_fragment(call: Call, source: Fragment, destination: Tile | np.ndarray, rows: np.ndarray) -> None:
    """A thread's own elements, each to its row of `rows`."""
    exists = source.inside & (rows >= 0) & (rows < destination.shape[0]) & (source.cols < destination.shape[1])
    where, values = (rows[exists], source.cols[exists]), source.values[exists]
    if isinstance(destination, Tile):
        destination.write(call, values, where, source.thread)
    else:
        destination[where] = convert(values, destination.dtype)


def _rows_of(value: Any, index: int = 0) -> np.ndarray:
    """An array, 2-D; a 1-D one is one row, a 3-D one a batch of matrices: that at `index`, or one of no rows."""
    array = unwrap(value)
    if array.ndim == 3:
        exists = 0 <= index < array.shape[0]
        # A view, not an array of its own: all threads must have the same.
        return array[index] if exists else as_strided(array, (0, array.shape[2]), array.strides[1:])
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

    first = _first_of_product(thread, mm.plan.threads)

    def update() -> None:
        # Each element of C belongs to the thread that holds its sum. Sums are rounded once, then scaled in their type.
        dtype, owner = mm.accumulator_dtype, first + owners(mm.plan.fragment, mm.plan.threads)
        with np.errstate(all="ignore"):
            result = alpha * convert(_product(call, mm, tile_a, tile_b), dtype)
            if beta != 0:
                result = result + beta * convert(tile_c.read(call, thread=owner), dtype)
        tile_c.write(call, result, thread=owner)

    same = (mm, tile_a.identity, tile_b.identity, tile_c.identity, alpha.tobytes(), beta.tobytes())
    _together(thread, call, _sharers(mm), same, update)


def _gemm_to_registers(thread: Thread, mm: Gemm, a: Any, b: Any, acc: Any) -> None:
    tile_a, tile_b = _operand(mm, "a", a), _operand(mm, "b", b)
    accumulators = registers_of("devmath.gemm: acc", mm.plan.fragment.size, acc)
    thread.block.bind(mm)
    call = Call.here("devmath.gemm")

    def multiply() -> np.ndarray:
        return _product(call, mm, tile_a, tile_b)

    sums = _together(thread, call, _sharers(mm), (mm, tile_a.identity, tile_b.identity), multiply)
    tables = coordinates(mm.plan.fragment, mm.plan.threads)
    rows, cols, inside = (table[thread.thread_id % mm.plan.threads] for table in tables)
    with np.errstate(all="ignore"):
        total = accumulators[inside].astype(sums.dtype) + sums[rows[inside], cols[inside]]
    accumulators[inside] = convert(total, accumulators.dtype)
    # What the instructions make of the memory around the tile is no number to rely on.
    accumulators[~inside] = poison(mm.plan.accumulator)


def _operand(mm: Gemm, name: str, value: Any) -> Tile | PlainMatrix:
    return matrix_of(f"devmath.gemm: {name}", mm.plan.plain(name), value)


def _product(call: Call, mm: Gemm, a: Tile | PlainMatrix, b: Tile | PlainMatrix) -> np.ndarray:
    """A @ B, of what the instructions read, in double precision; of integers in 64 bits."""
    dtype = a.layout.dtype
    wide = np.int64 if dtype.is_integer else np.complex128 if dtype.is_complex else np.float64
    left, right = (tile.read(call) for tile in (a, b))
    if mm.math == "tf32":
        left, right = as_tf32(left), as_tf32(right)
    left, right = left.astype(wide), right.astype(wide)
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
