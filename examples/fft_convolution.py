"""One pass over memory: transform every row, multiply by a filter, transform back.

Without arguments a radar's receiver: find the delay of the echo in each of many pulses by a matched filter.
With --wav IN OUT a telephone: keep 300 to 3400 Hz of a recording, by overlap-save in the same kernel.

python -m devmath run examples/fft_convolution.py [--pulses N] [--wav IN OUT]
"""

import argparse
import time
import wave

import numpy as np
from numba import config, cuda

import devmath

SIZE = 256 if config.ENABLE_CUDASIM else 4096
fft = devmath.FFT(SIZE, dtype=np.complex64)


@cuda.jit
def convolve(x, h, y):
    v = devmath.registers(fft)
    row = devmath.transform_index(fft)
    devmath.load(x, v, row)  # rows past the end load zeros and store nothing
    devmath.fft(fft, v)
    for i in range(v.size):
        v[i] *= h[v.index(i)]
    devmath.fft(fft.inverse, v)
    devmath.store(v, y, row)


def filter_rows(x: np.ndarray, spectrum: np.ndarray) -> np.ndarray:
    """Circular convolution of each row; the filter carries the 1/SIZE that the transforms leave out."""
    rows, h = cuda.to_device(x.astype(np.complex64)), cuda.to_device((spectrum / SIZE).astype(np.complex64))
    result = cuda.device_array_like(rows)
    launch = convolve[fft.grid(len(x)), fft.block_dim]
    for _ in range(1 if config.ENABLE_CUDASIM else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        launch(rows, h, result)
        cuda.synchronize()
        seconds = time.perf_counter() - began
    rate = 2 * rows.nbytes / seconds / 1e9
    print(f"{len(x)} rows of {SIZE}: {seconds * 1e3:.2f} ms, {rate:.3g} GB/s read and written")
    return result.copy_to_host()


def find_echoes(pulses: int) -> None:
    rng = np.random.default_rng()
    chirp = np.exp(1j * np.pi * np.arange(length := SIZE // 4) ** 2 / length)
    delays = rng.integers(0, SIZE - length, pulses)
    pulse_of, sample_of = np.arange(pulses)[:, None], delays[:, None] + np.arange(length)
    received = 0.5 * (rng.standard_normal((pulses, SIZE)) + 1j * rng.standard_normal((pulses, SIZE)))
    received[pulse_of, sample_of] += chirp

    matched = np.conj(np.fft.fft(chirp, SIZE))
    compressed = filter_rows(received, matched)
    want = np.fft.ifft(np.fft.fft(received[:256]) * matched)
    error = np.linalg.norm(compressed[:256] - want) / np.linalg.norm(want)
    found = np.mean(np.abs(compressed).argmax(axis=1) == delays)
    assert error < 1e-5, f"relative error {error:.1e}"
    assert found > 0.99, f"{found:.1%} of the echoes found"
    print(f"echoes found at their delay: {found:.1%}, relative error {error:.1e} against NumPy")


def filter_recording(source: str, target: str) -> None:
    with wave.open(source, "rb") as recording:
        layout = recording.getparams()
        if layout.sampwidth != 2:
            raise SystemExit(f"{source} must hold 16-bit samples, got {8 * layout.sampwidth}-bit")
        samples = np.frombuffer(recording.readframes(layout.nframes), "<i2").reshape(-1, layout.nchannels).T

    taps, rate = SIZE // 4 + 1, layout.framerate
    t = np.arange(taps) - taps // 2  # a window-designed band pass; its delay of taps // 2 samples is taken off below
    band = np.hamming(taps) * (6800 / rate * np.sinc(6800 / rate * t) - 600 / rate * np.sinc(600 / rate * t))

    step = SIZE - taps + 1  # what a row yields: the first taps - 1 results wrap around
    blocks = -(-(samples.shape[1] + taps // 2) // step)
    padded = np.pad(samples, ((0, 0), (taps - 1, blocks * step - samples.shape[1])))
    rows = np.lib.stride_tricks.sliding_window_view(padded, SIZE, axis=1)[:, ::step].reshape(-1, SIZE)
    result = filter_rows(rows, np.fft.fft(band, SIZE)).real[:, taps - 1 :].reshape(layout.nchannels, -1)
    result = result[:, taps // 2 :][:, : samples.shape[1]]

    want = np.stack([np.convolve(channel, band, "full")[taps // 2 :][: samples.shape[1]] for channel in samples])
    error = np.linalg.norm(result - want) / np.linalg.norm(want)
    assert error < 1e-5, f"relative error {error:.1e}"
    with wave.open(target, "wb") as filtered:
        filtered.setparams(layout)
        filtered.writeframes(np.clip(np.rint(result), -32768, 32767).T.astype("<i2").tobytes())
    print(f"{target}: {layout.nchannels} x {samples.shape[1]} samples, relative error {error:.1e} against NumPy")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pulses", type=int, default=16 if config.ENABLE_CUDASIM else 32768)
    parser.add_argument("--wav", nargs=2, metavar=("IN", "OUT"), help="filter a 16-bit recording instead")
    options = parser.parse_args()
    filter_recording(*options.wav) if options.wav else find_echoes(options.pulses)
