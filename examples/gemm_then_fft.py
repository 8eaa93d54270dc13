"""Beamforming and spectral analysis in one kernel: the beams never leave shared memory.

Every block takes one snapshot of an antenna array, steers it into beams by a product with the weights, and transforms
each beam in time: spectra = fft(weights @ signals).

python -m devmath run examples/gemm_then_fft.py [--snapshots N]
"""

import argparse
import time

import numpy as np
from numba import config, cuda

import devmath

ANTENNAS, BEAMS, SAMPLES = 16, 8, 64
fft = devmath.FFT(SAMPLES, dtype=np.complex64, ffts_per_block=BEAMS)
mm = devmath.Gemm(BEAMS, SAMPLES, ANTENNAS, dtype=np.complex64, threads=fft.threads)


@cuda.jit
def spectra_of_beams(weights, signals, spectra):
    snapshot = cuda.blockIdx.x
    w, s, beams = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
    devmath.load(weights, w)
    devmath.load(signals[snapshot], s)
    devmath.wait()
    devmath.gemm(mm, 1.0, w, s, 0.0, beams)
    devmath.wait()
    devmath.fft(fft, beams)  # the tile of the product holds one transform a row
    devmath.wait()
    devmath.store(beams, spectra[snapshot])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapshots", type=int, default=4 if config.ENABLE_CUDASIM else 100_000)
    count = parser.parse_args().snapshots

    # A tone from 20 degrees, in noise, seen by antennas half a wavelength apart; beams from -60 to 60 degrees.
    rng = np.random.default_rng()
    angles = np.linspace(-60, 60, BEAMS + 1)[:-1] + 5
    steering = np.exp(1j * np.pi * np.outer(np.sin(np.radians([*angles, 20.0])), np.arange(ANTENNAS)))
    weights = steering[:-1].conj().astype(np.complex64)
    tone = np.outer(steering[-1], np.exp(2j * np.pi * 12 * np.arange(SAMPLES) / SAMPLES))
    signals = (
        tone + rng.standard_normal((count, ANTENNAS, SAMPLES)) + 1j * rng.standard_normal((count, ANTENNAS, SAMPLES))
    )
    signals = signals.astype(np.complex64)

    device_weights, device_signals = cuda.to_device(weights), cuda.to_device(signals)
    spectra = cuda.device_array((count, BEAMS, SAMPLES), np.complex64)
    launch = spectra_of_beams[count, fft.block_dim]
    for _ in range(1 if config.ENABLE_CUDASIM else 2):  # on a GPU the first launch compiles
        began = time.perf_counter()
        launch(device_weights, device_signals, spectra)
        cuda.synchronize()
        seconds = time.perf_counter() - began

    got = spectra[: min(count, 1000)].copy_to_host()
    want = np.fft.fft(weights.astype(np.complex128) @ signals[: len(got)].astype(np.complex128))
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    beam, tone_bin = np.unravel_index(np.abs(got).mean(axis=0).argmax(), (BEAMS, SAMPLES))
    assert error < 1e-5, f"relative error {error:.1e}"
    assert tone_bin == 12, f"tone found in bin {tone_bin}"
    print(
        f"{count} snapshots, {ANTENNAS} antennas to {BEAMS} beams of {SAMPLES} samples: {seconds * 1e3:.2f} ms,"
        f" tone in the beam of {angles[beam]:.0f} degrees, bin {tone_bin}, relative error {error:.1e} against NumPy"
    )


if __name__ == "__main__":
    main()
