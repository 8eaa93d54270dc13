"""CUDA C++ text of one GEMM unit: an #include, and one extern "C" function that names layouts and template."""

from ..dtypes import BY_NAME, DType
from .gemm_plan import GemmPlan
from .tile_source import element_text, fragment_text, layout_text, plain_layout_text


def tile_form(plan: GemmPlan, forms: tuple[str, ...], symbol: str) -> str:
    """Source of ``C = alpha A B + beta C`` in shared memory.

    The function is ``void symbol(alpha, const void* a, int lda, const void* b, int ldb, beta, void* c, int ldc)``;
    alpha and beta are one scalar of the accumulator's type, or two (real, imaginary), or the bits of a float16.

    Parameters
    ----------
    plan : GemmPlan
    forms : tuple of {"tile", "plain"}
        What A, B and C are: tiles with the plan's layouts, or arrays of the user's own with the problem's orders, whose
        leading dimensions arrive at run time. The leading dimension of a tile is not looked at.
    symbol : str
        Name of the function.
    """
    alpha, beta = (_scalar(plan.accumulator, name) for name in ("alpha", "beta"))
    parameters = f"{alpha[0]}, const void* a, int lda, const void* b, int ldb, {beta[0]}, void* c, int ldc"
    return _unit(
        plan,
        forms,
        f"{symbol}({parameters})",
        f"tile_form<Block>(OperandA<A>(a, lda), OperandB<B>(b, ldb),\n"
        f"                   Epilog<C, Accumulator>{{{alpha[1]}, {beta[1]}, (C::Element*)c, C(ldc)}});",
    )


def register_form(plan: GemmPlan, forms: tuple[str, ...], symbol: str) -> str:
    """Source of ``acc += A B``: ``void symbol(const void* a, int lda, const void* b, int ldb, void* rmem_acc)``.

    `rmem_acc` holds ``plan.fragment.size`` accumulators; `forms` are those of A and B as in `tile_form`.
    """
    return _unit(
        plan,
        forms,
        f"{symbol}(const void* a, int lda, const void* b, int ldb, void* rmem_acc)",
        "register_form<Block>(OperandA<A>(a, lda), OperandB<B>(b, ldb), (Accumulator*)rmem_acc);",
    )


def _unit(plan: GemmPlan, forms: tuple[str, ...], declaration: str, call: str) -> str:
    operands = zip("abc", forms, strict=False)  # the register form has no C
    layouts = "\n".join(f"  using {name.upper()} = {operand_text(plan, name, form)};" for name, form in operands)
    return f"""\
#include <{plan.header}>
{plan.prelude}
extern "C" __device__ void {declaration} {{
  using namespace devmath;
{layouts}
  using Accumulator = {element_text(plan.accumulator)};
  using Fragment = {fragment_text(plan.fragment)};
  using Block = {plan.template};
  {call}
}}
"""


def operand_text(plan: GemmPlan, name: str, form: str) -> str:
    """C++ type of how matrix "a", "b" or "c" lies, a "tile" or "plain"."""
    if form == "tile":
        return layout_text(getattr(plan, name))
    plain = plan.plain(name)
    return plain_layout_text(plain.dtype, plain.rows, plain.cols, plain.order)


def _scalar(dtype: DType, name: str) -> tuple[str, str]:
    """Declaration of a scalar parameter, and the expression that reads it."""
    if dtype.name == "float16":  # a struct by value would not be passed as Numba passes a half
        return f"unsigned short {name}", f"Accumulator{{{name}}}"
    if not dtype.is_complex:
        return f"{element_text(dtype)} {name}", name
    real = element_text(BY_NAME[dtype.real])
    return f"{real} {name}_re, {real} {name}_im", f"Accumulator{{{name}_re, {name}_im}}"
