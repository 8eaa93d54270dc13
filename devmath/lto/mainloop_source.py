"""CUDA C++ text of the functions of a mainloop: #includes, the type that names its parameters, and one call."""

import os

from ..dtypes import DType
from .mainloop_plan import STATE_BYTES, MainloopPlan
from .tile_source import element_text, fragment_text, layout_text

# A matrix in global memory as five parameters, and the expression that makes one of them.
_MATRIX = (
    "const void* {0}, long long {0}_rows, long long {0}_cols, long long {0}_row_stride_bytes,"
    " long long {0}_col_stride_bytes"
)
_GMEM_MATRIX = "GmemMatrix{{{0}, {0}_rows, {0}_cols, {0}_row_stride_bytes, {0}_col_stride_bytes}}"


def begin(plan: MainloopPlan, by_tma: bool, symbol: str) -> str:
    """Source of the start: ``symbol(state, smem, a, b, rows, cols)``, rows and cols those of C.

    A and B are five arguments each. By TMA they are one, the address of a tensor map, and the depth follows at the end.
    """
    if by_tma:
        parameters = "const void* map_a, const void* map_b, long long rows, long long cols, long long depth"
        arguments = "map_a, map_b, rows, cols, depth"
    else:
        parameters = f"{_MATRIX.format('a')}, {_MATRIX.format('b')}, long long rows, long long cols"
        arguments = f"{_GMEM_MATRIX.format('a')}, {_GMEM_MATRIX.format('b')}, rows, cols"
    declaration = f"{symbol}(void* state, void* smem, {parameters})"
    return _unit(plan, by_tma, declaration, f"begin(*(Loop::State*)state, smem, {arguments});")


def advance(plan: MainloopPlan, by_tma: bool, symbol: str) -> str:
    """Source of ``symbol(state)``: on to the next tile."""
    return _unit(plan, by_tma, f"{symbol}(void* state)", "advance(*(Loop::State*)state);")


def multiply(plan: MainloopPlan, by_tma: bool, symbol: str) -> str:
    """Source of ``symbol(state, rmem_acc)``: the sums of a tile over the whole of k."""
    call = "multiply(*(Loop::State*)state, (Accumulator*)rmem_acc);"
    return _unit(plan, by_tma, f"{symbol}(void* state, void* rmem_acc)", call)


def store(plan: MainloopPlan, c: DType, symbol: str) -> str:
    """Source of ``symbol(state, rmem_acc, map_c)``: a tile to a matrix of elements `c`, by TMA."""
    declaration = f"{symbol}(void* state, const void* rmem_acc, const void* map_c)"
    call = f"store<{element_text(c)}>(*(const Loop::State*)state, (const Accumulator*)rmem_acc, map_c);"
    return _unit(plan, True, declaration, call)


def _unit(plan: MainloopPlan, by_tma: bool, declaration: str, call: str) -> str:
    tile = plan.tile
    return f"""\
{_includes(plan, by_tma)}
{tile.prelude}

extern "C" __device__ void {declaration} {{
  using namespace devmath;
  using A = {layout_text(tile.a)};
  using B = {layout_text(tile.b)};
  using Stage = StageMemory<{plan.a_bytes}, {plan.stage_bytes}>;
  using Accumulator = {element_text(tile.accumulator)};
  using Fragment = {fragment_text(tile.fragment)};
  using Block = {"void" if by_tma else tile.template};
  using Loop = {_tma_loop(plan) if by_tma else _cp_async_loop(plan)};
  static_assert(sizeof(Loop::State) <= {STATE_BYTES}, "the front end sets aside {STATE_BYTES} bytes");
  Loop::{call}
}}
"""


def _cp_async_loop(plan: MainloopPlan) -> str:
    numbers = (plan.tile.threads, plan.idle_threads, plan.num_stages, plan.group, *plan.registers)
    return f"CpAsyncMainloop<Block, A, B, Stage, Accumulator, {', '.join(map(str, numbers))}>"


def _tma_loop(plan: MainloopPlan) -> str:
    numbers = (plan.tile.threads, plan.num_stages, plan.group, *plan.registers)
    return f"TmaMainloop<Fragment, {plan.columns}, A, B, Stage, Accumulator, {', '.join(map(str, numbers))}>"


def _includes(plan: MainloopPlan, by_tma: bool) -> str:
    if by_tma:
        return f"{_wait_limit()}#include <devmath/gemm/mainloop_tma.cuh>"
    return f"#include <{plan.tile.header}>\n#include <devmath/gemm/mainloop_cp_async.cuh>"


def _wait_limit() -> str:
    """For tests: waits that take longer end the kernel instead of hanging the GPU."""
    limit = os.environ.get("DEVMATH_WAIT_LIMIT_NS")
    return f"#define DEVMATH_WAIT_LIMIT_NS {int(limit)}ull\n" if limit else ""
