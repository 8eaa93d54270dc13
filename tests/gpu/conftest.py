"""Small grids on purpose: a test shows numbers, not speed."""

import numpy as np
import pytest
from numba.cuda.core import config


@pytest.fixture(autouse=True)
def _small_grids(monkeypatch):
    """Launch without Numba's advice that a grid of few blocks leaves the GPU idle."""
    monkeypatch.setattr(config, "CUDA_LOW_OCCUPANCY_WARNINGS", 0)


@pytest.fixture
def rng():
    """Return fresh random numbers; a failure names the seed."""
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    return np.random.default_rng(seed)
