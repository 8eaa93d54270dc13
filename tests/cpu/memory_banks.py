"""Which lanes of an access to shared memory have to wait for each other."""

import numpy as np


def conflicts(offsets_bytes: np.ndarray, access_bytes: int) -> int:
    """Most accesses, less one, that one bank serves; lanes that want the same word share one.

    Shared memory serves 128 bytes at a time: 32 lanes of 4 bytes, 16 of 8, or 8 of 16.
    """
    together = 128 // access_bytes
    worst = 0
    for start in range(0, len(offsets_bytes), together):
        addresses = np.unique(offsets_bytes[start : start + together]) // access_bytes
        worst = max(worst, np.bincount(addresses % together).max() - 1)
    return worst
