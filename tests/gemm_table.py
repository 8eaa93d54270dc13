"""The tables of ``docs/gemm.md``: what runs on which architecture, asked of the plans themselves.

    python -m tests.gemm_table

writes them into the page, between its marks. A test compares.
"""

from itertools import product
from pathlib import Path

import devmath
from devmath.blas_device import MATH, ORDERS
from devmath.dtypes import BY_NAME
from devmath.lto.arch import ARCHITECTURES
from devmath.lto.variants import GEMM_VARIANTS, dtypes

PAGE = Path(__file__).parents[1] / "docs" / "gemm.md"
MARKS = ("<!-- written by python -m tests.gemm_table -->", "<!-- end -->")

#: Stand for all: one that fills the largest instruction, and one too small for it. Every target holds them.
TILES = ((64, 64, 32), (16, 16, 16))
ORDERS_OF_A_AND_B = tuple(product(ORDERS, ORDERS))


def text() -> str:
    """Both tables in Markdown."""
    titles = ("type of A and B", "`math`", "sums", "tile", *ARCHITECTURES)
    names = (name for name in BY_NAME if name in dtypes(GEMM_VARIANTS))
    served = [row for name in names for math in _math_of(name) for row in _rows(name, math)]
    units = [(f"`{variant.name}`", variant.unit) for variant in GEMM_VARIANTS]
    return "\n".join([*_markdown(titles, served), "", *_markdown(("variant", "unit"), units)])


def page_with(tables: str) -> str:
    """The page with these tables in place of its own."""
    head, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    return f"{head}{MARKS[0]}\n\n{tables}\n\n{MARKS[1]}{tail}"


def _math_of(dtype: str) -> list[str]:
    offered = {math for variant in GEMM_VARIANTS if dtype in variant.dtypes for math in variant.math}
    return [math for math in MATH if math in offered]


def _rows(dtype: str, math: str) -> list[tuple[str, ...]]:
    """Lines of one type: as many as there are different answers over tiles and orders."""
    cases_of: dict[tuple[str, ...], list[tuple[tuple[int, int, int], tuple[str, str]]]] = {}
    for tile, (a_order, b_order) in product(TILES, ORDERS_OF_A_AND_B):
        mm = devmath.Gemm(*tile, dtype, a_order=a_order, b_order=b_order, math=math)
        answer = tuple(f"`{mm.variant(arch).name}`" for arch in ARCHITECTURES)
        cases_of.setdefault(answer, []).append((tile, (a_order, b_order)))
    sums = BY_NAME[dtype].accumulator
    return [(dtype, math, sums, _condition(cases), *answer) for answer, cases in cases_of.items()]


def _condition(cases: list[tuple[tuple[int, int, int], tuple[str, str]]]) -> str:
    """What a group of cases has in common, in words."""
    if len(cases) == len(TILES) * len(ORDERS_OF_A_AND_B):
        return "any"
    parts = []
    for tile in TILES:
        orders = {pair for size, pair in cases if size == tile}
        if orders:
            parts.append("x".join(map(str, tile)) + _orders(orders))
    return "; ".join(parts)


def _orders(pairs: set[tuple[str, str]]) -> str:
    if len(pairs) == len(ORDERS_OF_A_AND_B):
        return ""
    for operand, position in (("A", 0), ("B", 1)):
        for order in ORDERS:
            if pairs == {pair for pair in ORDERS_OF_A_AND_B if pair[position] == order}:
                return f", {operand} {order}"
    return ", " + " or ".join(f"A {a} and B {b}" for a, b in sorted(pairs))


def _markdown(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [titles, ("---",) * len(titles), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


if __name__ == "__main__":
    PAGE.write_text(page_with(text()))
