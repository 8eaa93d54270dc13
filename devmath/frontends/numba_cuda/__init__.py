"""The numba-cuda front end: types, signatures and code of the verbs. Importing it registers them.

In reading order: `types` (what a descriptor, a tile, a fragment is to Numba), `signatures` (which types a verb takes
and which it returns), `attributes` (constants, ``t[i, j]``, ``acc.row(i)``), `lowering` (a verb as a call of one of our
device functions), `accumulators` (the same for verbs on accumulators), `linking` (that function's LTO-IR), `kernel`
(what a kernel needs as a whole: shared memory, launch bounds), `launch` (the check of every launch), `mainloop` (loops
over the tiles of whole matrices), `matrices` (operands of such on the host).
"""

from typing import Any

from numba.cuda.descriptor import cuda_target

from . import accumulators, attributes, launch, lowering, mainloop, signatures
from .matrices import current_arch, multiprocessors, operands
from .types import ConstantType

# Numba collects what is registered when a compilation begins. Ours may be under way: it just met its first verb.
cuda_target.target_context.refresh()


def type_of(value: Any) -> Any:
    """Numba's type of a verb, a descriptor or an operand."""
    return signatures.VERB_TYPES[value] if value in signatures.VERB_TYPES else ConstantType(value)


__all__ = [
    "accumulators",
    "attributes",
    "current_arch",
    "launch",
    "lowering",
    "mainloop",
    "multiprocessors",
    "operands",
    "signatures",
    "type_of",
]
