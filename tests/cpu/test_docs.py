"""Pages that say what the code does say what it does now."""

import pytest

from devmath.lto.variants import GEMM_VARIANTS, dtypes
from tests import gemm_table


def test_the_page_of_products_shows_what_the_plans_say():
    stale = "docs/gemm.md is out of date: python -m tests.gemm_table writes its tables anew"
    assert gemm_table.PAGE.read_text() == gemm_table.page_with(gemm_table.text()), stale


@pytest.mark.parametrize("dtype", dtypes(GEMM_VARIANTS))
def test_every_type_has_a_line(dtype):
    assert f"| {dtype} | ieee |" in gemm_table.text()


def test_the_tables_tell_orders_and_tiles_apart():
    large, small = gemm_table.TILES
    columns = [(large, ("row", "col")), (large, ("col", "col"))]
    everything = [(tile, orders) for tile in gemm_table.TILES for orders in gemm_table.ORDERS_OF_A_AND_B]
    assert gemm_table._condition(everything) == "any"
    assert gemm_table._condition(columns) == "64x64x32, B col"
    assert gemm_table._condition([(small, ("row", "col"))]) == "16x16x16, A row and B col"
    assert gemm_table._condition([case for case in everything if case not in columns]) == "64x64x32, B row; 16x16x16"
