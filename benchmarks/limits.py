"""What the hardware allows: the rate of products in TFLOP/s, and the clock that the multiprocessors run at."""

import shutil
import subprocess
from typing import Any

#: Floating-point operations a clock of one multiprocessor of compute capability 9.0: a multiply-add is two, of real
#: numbers. float32 is that of the FMA units, every other type that of the tensor cores, complex ones by real products.
FLOP_PER_CLOCK = {
    "float16": 4096,
    "bfloat16": 4096,
    "float8_e4m3fn": 8192,
    "float8_e5m2": 8192,
    "int8": 8192,
    "uint8": 8192,
    "float32": 256,
    "float64": 256,
    "complex64": 256,
    "complex128": 256,
}
#: float32 by other arithmetic: tf32 on tensor cores, one product or three.
FLOP_PER_CLOCK_OF_MATH = {"tf32": 2048, "3xtf32": 2048 / 3}

# Clocks behind the peaks of the H200's data sheet.
_TENSOR_HZ = 1.83e9
_FULL_PRECISION_HZ = 1.98e9
_FULL_PRECISION = {"float32", "float64", "complex64", "complex128"}


def data_sheet_hz(dtype: str, math: str = "ieee") -> float:
    """Clock at which the data sheet states the peak of a type."""
    return _FULL_PRECISION_HZ if dtype in _FULL_PRECISION and math == "ieee" else _TENSOR_HZ


def product_limit_tflops(dtype: str, math: str, arch: str, multiprocessors: int, hertz: float) -> float | None:
    """TFLOP/s that products cannot exceed at a clock; None for targets other than sm_90a.

    Operands in shared memory do not lower it: wgmma reads them in less time than it multiplies from 64 columns on.
    """
    if arch != "sm_90a":
        return None
    rate = FLOP_PER_CLOCK_OF_MATH.get(math) or FLOP_PER_CLOCK[dtype]
    return rate * multiprocessors * hertz / 1e12


def batched_bytes(m: int, n: int, k: int, itemsize: int, batch: int) -> int:
    """Bytes that a batch of products must move: A and B read once, C written once."""
    return batch * (m * k + k * n + m * n) * itemsize


def multiprocessor_hz(device: Any) -> float | None:
    """Clock of the multiprocessors now, by nvidia-smi; None where that cannot tell. Ask while the GPU is at work."""
    command = ["nvidia-smi", f"--id={device.uuid}", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits"]
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout.strip()
    return int(text) * 1e6 if done.returncode == 0 and text.isdecimal() else None
