"""The text of the units that move tiles and fragments."""

import re

import pytest
from tile_block import INCLUDE

from devmath.dtypes import BY_NAME
from devmath.fragments import Digits, FragmentMap
from devmath.layouts import TileLayout, TilePerProduct
from devmath.lto import tile_source

FLOAT, HALF, COMPLEX = BY_NAME["float32"], BY_NAME["float16"], BY_NAME["complex64"]
LAYOUT = TileLayout(FLOAT, 32, 64, "row", 68, 32)
FRAGMENT = FragmentMap(32, 8, 2, Digits(((1, 32, 1),)), Digits(()), Digits(((32, 4, 2),)), Digits(((1, 2, 1),)))


def test_layouts_and_fragments_name_their_template_arguments():
    assert tile_source.layout_text(LAYOUT) == "devmath::TileLayout<float, 32, 64, true, 68, 32, 0>"
    column_major = TileLayout(COMPLEX, 8, 4, "col", 8, 6, 8)
    assert tile_source.layout_text(column_major) == (
        "devmath::TileLayout<devmath::Complex<float>, 8, 4, false, 8, 6, 8>"
    )
    assert tile_source.plain_layout_text(HALF, 3, 5, "col") == "devmath::PlainLayout<devmath::Half, 3, 5, false>"
    assert tile_source.fragment_text(FRAGMENT) == (
        "devmath::FragmentMap<32, 8, 2, devmath::Digits<1, 32, 1>, devmath::Digits<>, devmath::Digits<32, 4, 2>, "
        "devmath::Digits<1, 2, 1>>"
    )


@pytest.mark.parametrize(
    ("source", "parameters", "call"),
    [
        (tile_source.load_tile(LAYOUT, 96, "f"), 6, f"load_tile<{tile_source.layout_text(LAYOUT)}, 96>(tile, array, "),
        (tile_source.store_tile(LAYOUT, 96, HALF, "f"), 6, "32, 0>, 96, devmath::Half>(tile, array, "),
        (
            tile_source.load_tile_of_product(LAYOUT, TilePerProduct(8, 16, 9000), "f"),
            6,
            f"load_tile_by_warp<{tile_source.layout_text(LAYOUT)}, 8, 9000>(tile, array, ",
        ),
        (
            tile_source.store_tile_of_product(LAYOUT, TilePerProduct(8, 16, 9000), HALF, "f"),
            6,
            "32, 0>, 8, 9000, devmath::Half>(tile, array, ",
        ),
        (tile_source.store_fragment(FRAGMENT, FLOAT, HALF, "f"), 6, ">, float, devmath::Half>(fragment, array, "),
        (tile_source.load_fragment(FRAGMENT, FLOAT, HALF, "f"), 6, ">, float, devmath::Half>(fragment, array, "),
        (tile_source.store_fragment_to_tile(FRAGMENT, HALF, LAYOUT, "f"), 2, "32, 0>>(fragment, tile);"),
        (tile_source.load_fragment_from_tile(FRAGMENT, HALF, LAYOUT, "f"), 2, "32, 0>>(fragment, tile);"),
    ],
)
def test_units_are_one_include_and_one_wrapper(source, parameters, call):
    include, declaration, body = re.fullmatch(
        r'#include <devmath/(\w+)\.cuh>\n\nextern "C" __device__ void f\((.*?)\) \{(.*)\}\n', source, re.DOTALL
    ).groups()
    assert (INCLUDE / "devmath" / f"{include}.cuh").is_file()
    assert declaration.count(",") == parameters - 1
    assert call in re.sub(r"\(\s+", "(", body)
