"""From a descriptor to LTO-IR: source text, NVRTC, caches and the target architecture. Knows nothing of Numba."""
