"""How a compiler learns the verbs: one module for each compiler, and one for the simulator.

A front end offers ``type_of(value)``, the compiler's type of a verb or a descriptor, or installs bodies in
`devmath.verbs.SIMULATED`. All of them hold calls to the same `rules`. The modules import the compiler; this one does
not.
"""

from types import ModuleType


def prepare() -> None:
    """Put in place what the first launch needs: the simulator's front end where Numba simulates, else array types."""
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        load()
        return
    from . import float8

    float8.register()


def load() -> ModuleType:
    """Import the front end for what Numba is set to, with all that it registers."""
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        from . import simulator

        return simulator
    from . import numba_cuda

    return numba_cuda
