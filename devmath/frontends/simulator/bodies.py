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
from ...lto.gemm_register_operand import lies_as_operand
from ...verbs import SIMULATED
from .. import call_rules, kernel_rules, rules
from . import mainloop
from .block import Block, Thread, current_thread
from .calls import Call, line_of_call
from .fragment import Fragment, coordinates, gathered, held, owners, registers_of
from .tile import PlainMatrix, Stack, Tile, matrix_of
from .values import argument, as_tf32, convert, poison, space_of, unwrap, wide_type


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
    layout, call = operand.layout, Call.here("devmath.shared")
    place = (*line_of_call(), layout, count)
    with block.lock:
        if (place, first) not in block.tiles:
            size_bytes = per_product.size_bytes if per_product else layout.size_bytes
            stage_bytes = per_product.size_bytes if per_product else layout.stage_bytes
            reserve(block, place, size_bytes if count is None else count * stage_bytes)
            tiles = [Tile(block, layout, call, per_product, first) for _ in range(count or 1)]
            block.tiles[place, first] = tiles[0] if count is None else Stack(tiles)
        return block.tiles[place, first]


def _first_of_product(thread: Thread, threads: int) -> int:
    """Rank of the first of the threads that work on the product of this one."""
    return thread.thread_id // threads * threads


def together(
    thread: Thread, call: Call, threads: int | None, same: Any, work: Callable[[list[Any]], Any], share: Any = None
) -> Any:
    """Make a call with all threads that must, and have `work` done once with the share of each; return its result.

    Those are the threads of the block, where `threads` is None. Else those of the warp, so many of which share a
    product, and agree on what is the `same`: the work is done once for each product.
    """
    if threads is None:
        return thread.block.meet(thread, call, same, share, work)

    def work_on_products(contributions: list[Any]) -> list[Any]:
        products = [contributions[i : i + threads] for i in range(0, len(contributions), threads)]
        for product in products:
            if any(other != product[0][0] for other, _, _ in product):
                raise SimulationError(f"the {threads} threads of a product must call {call} with the same arguments")
        return [product[0][1]([share for _, _, share in product]) for product in products]

    team = thread.block.warp_of(thread)
    results = thread.block.meet(thread, call, threads, (same, work, share), work_on_products, team)
    return results[(thread.thread_id - team.ranks.start) // threads]


def sharers(mm: Gemm) -> int | None:
    """Threads that share a product, where a block computes several."""
    return None if mm.execution == "block" else mm.threads_per_gemm


def reserve(block: Block, place: Any, size_bytes: int) -> None:
    """Count shared memory, and refuse more than any architecture has."""
    block.shared_bytes[place] = size_bytes
    arch = max(ARCHITECTURES, key=shared_memory_limit_bytes)
    kernel_rules.shared_memory(sum(block.shared_bytes.values()), arch)


@simulated
def accumulator(desc: Any) -> Fragment:
    thread = current_thread("accumulator")
    mm = rules.accumulator(argument(desc))
    thread.block.bind(mm)
    return held(thread, Fragment(mm, thread.thread_id))


@simulated
def registers(desc: Any) -> Fragment:
    thread = current_thread("registers")
    transform = rules.descriptor("registers", argument(desc))
    thread.block.bind(transform)
    return held(thread, Fragment(transform.forward, thread.thread_id))


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
    call = Call.here("devmath.load")
    if isinstance(target, Fragment):
        _load_fragment(call, *_matrix_and_rows(source, target, row), target)
        return
    array = _rows_of(source, *row)

    def copy(_: list[Any]) -> None:
        values = np.zeros(target.shape, array.dtype)
        corner = _corner(array, target.shape)
        values[: corner.shape[0], : corner.shape[1]] = corner
        target.write(call, values, landing=True)

    together(thread, call, _sharers_of(target), (_view(array), target.identity), copy)


def _sharers_of(tile: Tile) -> int | None:
    return tile.per_product.threads if tile.per_product else None


def _matrix_and_rows(other: Any, fragment: Fragment, row: tuple[Any, ...]) -> tuple[Tile | np.ndarray, np.ndarray]:
    """What a fragment is copied to or from, a tile or a matrix, and the row there of each register."""
    if fragment.is_transform:
        return _rows_of(other), np.full(fragment.size, row[0])
    return other if isinstance(other, Tile) else _rows_of(other, *row), fragment.rows


def _load_fragment(call: Call, source: Tile | np.ndarray, rows: np.ndarray, target: Fragment) -> None:
    """A thread's own elements, each from its row of `rows`; zero where there is none."""
    exists = _exists(target, source, rows)
    where = rows[exists], target.cols[exists]
    target.values[:] = 0
    elements = source.read(call, where, target.thread) if isinstance(source, Tile) else source[where]
    target.values[exists] = convert(elements, target.values.dtype)


def _exists(fragment: Fragment, other: Tile | np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which registers have an element in a tile or an array, too."""
    return fragment.inside & (rows >= 0) & (rows < other.shape[0]) & (fragment.cols < other.shape[1])


@simulated
def store(source: Any, target: Any, *row: Any) -> None:
    thread = current_thread("store")
    if len(row) == 1 and isinstance(row[0], mainloop.TileIndex):
        _store_fragment(Call.here("devmath.store"), source, mainloop.store_at(source, target, row[0]), source.rows)
        return
    rules.store(argument(source), argument(target), *map(argument, row))
    call = Call.here("devmath.store")
    if isinstance(source, Fragment):
        _store_fragment(call, source, *_matrix_and_rows(target, source, row))
        return
    destination = _rows_of(target, *row)

    def copy(_: list[Any]) -> None:
        corner = _corner(destination, source.shape)
        values = source.read(call)[: corner.shape[0], : corner.shape[1]]
        corner[...] = convert(values, destination.dtype)

    together(thread, call, _sharers_of(source), (source.identity, _view(destination)), copy)


def _store_fragment(call: Call, source: Fragment, destination: Tile | np.ndarray, rows: np.ndarray) -> None:
    """A thread's own elements, each to its row of `rows`."""
    exists = _exists(source, destination, rows)
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

    def update(_: list[Any]) -> None:
        # Each element of C belongs to the thread that holds its sum. Sums are rounded once, then scaled in their type.
        dtype, owner = mm.accumulator_dtype, first + owners(mm.plan.fragment, mm.plan.threads)
        with np.errstate(all="ignore"):
            result = alpha * convert(_product(mm, tile_a.read(call), tile_b.read(call)), dtype)
            if beta != 0:
                result = result + beta * convert(tile_c.read(call, thread=owner), dtype)
        tile_c.write(call, result, thread=owner)

    same = (mm, tile_a.identity, tile_b.identity, tile_c.identity, alpha.tobytes(), beta.tobytes())
    together(thread, call, sharers(mm), same, update)


def _gemm_to_registers(thread: Thread, mm: Gemm, a: Any, b: Any, acc: Any) -> None:
    tile_a, tile_b = None if isinstance(a, Fragment) else _operand(mm, "a", a), _operand(mm, "b", b)
    accumulators = registers_of("devmath.gemm: acc", mm.plan.fragment.size, acc)
    thread.block.bind(mm)
    call = Call.here("devmath.gemm")

    share, same = None, (mm, tile_a and tile_a.identity, tile_b.identity)
    if tile_a is None:
        share = a.values.copy()
        _reserve_for_operand(thread.block, mm, a)

    def multiply(shares: list[Any]) -> np.ndarray:
        left = gathered(a.map, shares, a.dtype.numpy) if tile_a is None else tile_a.read(call)
        return _product(mm, left, tile_b.read(call))

    sums = together(thread, call, sharers(mm), same, multiply, share)
    tables = coordinates(mm.plan.fragment, mm.plan.threads)
    rows, cols, inside = (table[thread.thread_id % mm.plan.threads] for table in tables)
    with np.errstate(all="ignore"):
        total = accumulators[inside].astype(sums.dtype) + sums[rows[inside], cols[inside]]
    accumulators[inside] = convert(total, accumulators.dtype)
    # What the instructions make of the memory around the tile is no number to rely on.
    accumulators[~inside] = poison(mm.plan.accumulator)


def _operand(mm: Gemm, name: str, value: Any) -> Tile | PlainMatrix:
    return matrix_of(f"devmath.gemm: {name}", mm.plan.plain(name), value)


def _reserve_for_operand(block: Block, mm: Gemm, a: Fragment) -> None:
    """Count the shared memory that A goes through where its registers do not lie as the instructions take them."""
    if not lies_as_operand(a.map, mm.plan):
        with block.lock:
            reserve(block, mm.plan.a, mm.plan.a.size_bytes)


def _product(mm: Gemm, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A @ B, of what the instructions read, in double precision; of integers in 64 bits."""
    wide = wide_type(mm.plan.a.dtype)
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
        reserve(thread.block, transform.plan.exchange_bytes, transform.plan.exchange_bytes)
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
