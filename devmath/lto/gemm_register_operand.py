"""An accumulator as the A operand of a product: where registers already lie as its instructions take them."""

from ..fragments import Digits, FragmentMap
from .gemm_plan import GemmPlan
from .gemm_source import operand_text
from .tile_source import element_text, fragment_text

_OF_BLOCKS = Digits(((1, 4, 2),))  # columns by thread of accumulators in blocks of 16 x 8, a warp holding whole rows


def lies_as_operand(fragment: FragmentMap, plan: GemmPlan) -> bool:
    """Whether every warp holds the rows of A that it multiplies, its registers as register_operand.cuh reads them.

    The instructions are those of tensor cores for elements of 16 bits, and the ones in float64: for them the
    accumulators of a warp are what they take as A. Where each warp holds just whole rows, nothing need move.
    """
    if not (plan.variant == "mma_f64" or (plan.variant in {"mma_sync", "wgmma"} and plan.a.dtype.itemsize == 2)):
        return False
    if fragment.col_of_thread != _OF_BLOCKS or fragment.row_of_thread != plan.fragment.row_of_thread:
        return False
    rows, along = fragment.row_of_register, fragment.col_of_register
    places = [8 * block + half for block in range(along.maximum // 8 + 1) for half in range(2)]
    return places[-1] == along.maximum and all(
        rows(register) == row and along(register) == place
        for row in {plan.fragment.row_of_register(i) for i in range(plan.fragment.size)}
        for place in places
        for register in [rows.inverse(row) + along.inverse(place)]
    )


def register_operand_form(plan: GemmPlan, fragment: FragmentMap, form: str, symbol: str) -> str:
    """Source of ``acc += A B``: ``void symbol(const void* rmem_a, const void* b, int ldb, void* rmem_acc)``.

    `rmem_a` holds this thread's ``fragment.size`` elements of A; `form` is "tile" or "plain", what B is.
    """
    return f"""\
#include <{plan.header}>
{plan.prelude}
extern "C" __device__ void {symbol}(const void* rmem_a, const void* b, int ldb, void* rmem_acc) {{
  using namespace devmath;
  using A = RegisterOperand<{fragment_text(fragment)}, {element_text(plan.a.dtype)}>;
  using B = {operand_text(plan, "b", form)};
  using Accumulator = {element_text(plan.accumulator)};
  using Fragment = {fragment_text(plan.fragment)};
  using Block = {plan.template};
  register_form<Block>(A{{(const A::Element*)rmem_a}}, OperandB<B>(b, ldb), (Accumulator*)rmem_acc);
}}
"""
