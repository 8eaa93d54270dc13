"""The promised kernels, on the GPU, from host arrays."""

import numpy as np
import pytest

from tests.contract import CHECKS

pytestmark = pytest.mark.gpu


@pytest.mark.filterwarnings("ignore:.*Host array used in CUDA kernel")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check(np.random.default_rng())
