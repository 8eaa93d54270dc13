"""C++ text of a transform's plan: a struct of constants, and its twiddle table."""

import hashlib
from functools import cache

import numpy as np

from .fft_plan import FFTPlan

_EXCHANGES = {"none": "kNone", "complex": "kComplex", "planar": "kPlanar", "split": "kSplit"}
_DTYPES = {"float": np.float32, "double": np.float64}
_SIGNIFICANT_DIGITS = {"float": 9, "double": 17}  # enough to read the same number back


@cache
def struct_text(plan: FFTPlan) -> str:
    """Return the C++ text that defines the type ``Plan``, to follow ``#include "devmath/fft/block_fft.cuh"``.

    The struct and its table are named by their content. Units linked into one kernel then share the code and tables
    that are the same, as the forward and the inverse of one size do, and nothing else.
    """
    twiddles, table = _twiddle_text(plan) if len(plan.radices) > 1 else ("nullptr", "")
    pads = plan.pads or ((0, 0),)
    members = f"""\
{_sizes(plan)}\
  static constexpr int kStages = {len(plan.radices)}, kFftStride = {plan.fft_stride};
  static constexpr devmath::fft::Exchange kExchange = devmath::fft::Exchange::{_EXCHANGES[plan.exchange]};
  DEVMATH_CONSTEXPR static int radix(int stage) {{
    constexpr int radices[] = {{{", ".join(map(str, plan.radices))}}};
    return radices[stage];
  }}
  DEVMATH_CONSTEXPR static devmath::fft::Pad pad(int stage) {{
    constexpr devmath::fft::Pad pads[] = {{{", ".join(f"{{{period}, {words}}}" for period, words in pads)}}};
    return pads[stage];
  }}
  DEVMATH_DEVICE static const devmath::Complex<Real>* twiddles() {{ return {twiddles}; }}
"""
    return table + _named_struct(members)


def sizes_text(plan: FFTPlan) -> str:
    """Return the part of ``Plan`` that ``devmath/fft/memory.cuh`` needs: no stages, no table, half the compile time."""
    return _named_struct(_sizes(plan))


def _sizes(plan: FFTPlan) -> str:
    return f"""\
  using Real = {plan.real};
  static constexpr int kN = {plan.n}, kElementsPerThread = {plan.elements_per_thread};
  static constexpr int kFftsPerBlock = {plan.ffts_per_block};
"""


def _named_struct(members: str) -> str:
    name = f"FftPlan_{_digest(members.encode())}"
    return f"struct {name} {{\n{members}}};\nusing Plan = {name};\n"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def twiddle_table(plan: FFTPlan) -> np.ndarray:
    """Return the table of all stages after the first, computed in extended precision and rounded once.

    Returns
    -------
    numpy.ndarray
        Real type of the plan, shape (values, 2): real and imaginary parts, in the order block_fft.cuh states.
    """
    full_turn = 8 * np.arctan(np.longdouble(1))
    rows = []
    length = plan.radices[0]
    for radix in plan.radices[1:]:
        for level in range(radix.bit_length() - 1):
            angle = full_turn * np.arange(length) / (length << (level + 1))
            rows.append(np.stack([np.cos(angle), -np.sin(angle)], axis=1))
        length *= radix
    return np.concatenate(rows).astype(_DTYPES[plan.real])


def _twiddle_text(plan: FFTPlan) -> tuple[str, str]:
    """Return the name of the plan's twiddle table and its definition."""
    table = twiddle_table(plan)
    name = f"devmath_fft_twiddles_{plan.real}_{_digest(table.tobytes())}"
    number = f"%.{_SIGNIFICANT_DIGITS[plan.real] - 1}e" + ("f" if plan.real == "float" else "")
    values = ",\n".join(f"{{{number % re}, {number % im}}}" for re, im in table.tolist())
    return name, f"DEVMATH_FFT_TABLE devmath::Complex<{plan.real}> {name}[] = {{\n{values}}};\n"
