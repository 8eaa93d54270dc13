"""The promised kernels, in the simulator."""

import numpy as np
import pytest

from tests.contract import CHECKS


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check(np.random.default_rng())
