"""The promised kernels as machine code: inlined, in registers."""

import pytest

from tests import contract
from tests.compile.harness import array, link

HALF, REAL, COMPLEX = array("float16"), array("float32"), array("complex64")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize(
    ("kernel", "types"),
    [
        (contract.tile_product, (REAL, REAL, REAL)),
        (contract.product_with_epilog, (REAL, REAL, REAL, array("float32", 1))),
        (contract.linear, (HALF, HALF, REAL, array("float32", 1))),
        (contract.convolve, (COMPLEX, array("complex64", 1), COMPLEX)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_contract(kernel, types, arch):
    link(kernel, types, arch).assert_clean()
