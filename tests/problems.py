"""Problems as variants see them, for tests of the planners."""

from devmath.dtypes import BY_NAME
from devmath.lto.gemm_plan import GemmProblem

ROW = ("row", "row", "row")


def problem(
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    orders: str | tuple[str, str, str] = ROW,
    threads: int | None = None,
    c_dtype: str | None = None,
    math: str = "ieee",
) -> GemmProblem:
    """A and B of one type; `orders` in full, or their first letters, as in "rcr"."""
    element = BY_NAME[dtype]
    names = tuple({"r": "row", "c": "col"}[order[0]] for order in orders)
    return GemmProblem(
        m=m,
        n=n,
        k=k,
        a=element,
        b=element,
        c=BY_NAME[c_dtype or element.accumulator],
        accumulator=BY_NAME[element.accumulator],
        orders=names,  # type: ignore[arg-type]
        threads=threads,
        math=math,
    )
