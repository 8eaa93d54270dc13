"""The simulator front end: the verbs on a CPU, with NumPy, from the same kernel text. Importing it installs them.

In reading order: `calls` (where kernel code makes them), `block` (the threads of a block, their barrier, and calls that
all of them must make), `accesses` (who read and wrote which element of a tile, and whether a barrier lies between),
`values` (arrays and numbers of kernel code, and what they are to the rules), `tile`, `fragment`, `bodies` (the verbs),
`accumulators` (those on accumulators), `mainloop` (those of whole matrix products, and what the host asks for them).
"""

from . import accumulators, bodies  # noqa: F401  install the verbs
from .block import install
from .mainloop import current_arch, multiprocessors, operands

install()

__all__ = ["current_arch", "multiprocessors", "operands"]
