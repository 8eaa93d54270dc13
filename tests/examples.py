"""The examples, run as a reader runs them; each checks itself against NumPy and fails where it is wrong."""

import subprocess
import sys
import wave
from pathlib import Path

import numpy as np

EXAMPLES = sorted(path.name for path in Path(__file__).parents[1].joinpath("examples").glob("*.py"))


def run_example(name: str, *arguments: str) -> str:
    """Run an example by ``python -m devmath run`` and return what it prints; its failure is the test's."""
    command = [sys.executable, "-m", "devmath", "run", f"examples/{name}", *arguments]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_recording(path: Path, rate: int = 8000, seconds: float = 0.25) -> None:
    """Write two channels: a tone inside the telephone band, and one below it."""
    t = np.arange(int(rate * seconds)) / rate
    channels = np.stack([np.sin(2 * np.pi * 1000 * t), np.sin(2 * np.pi * 60 * t)], axis=1)
    with wave.open(str(path), "wb") as recording:
        recording.setnchannels(2)
        recording.setsampwidth(2)
        recording.setframerate(rate)
        recording.writeframes(np.rint(20000 * channels).astype("<i2").tobytes())


def read_recording(path: Path) -> np.ndarray:
    """Samples of a 16-bit recording, one row a channel."""
    with wave.open(str(path), "rb") as recording:
        frames = recording.readframes(recording.getnframes())
        return np.frombuffer(frames, "<i2").reshape(-1, recording.getnchannels()).T


def check_recording(folder: Path) -> None:
    """Filter a recording: the tone in the band must come through, the one below it must not."""
    source, target = folder / "in.wav", folder / "out.wav"
    write_recording(source)
    run_example("fft_convolution.py", "--wav", str(source), str(target))
    before, after = read_recording(source), read_recording(target)
    middle = slice(before.shape[1] // 4, 3 * before.shape[1] // 4)
    levels = np.sqrt(
        np.mean(after[:, middle].astype(float) ** 2, axis=1) / np.mean(before[:, middle].astype(float) ** 2, axis=1)
    )
    assert after.shape == before.shape
    assert levels[0] > 0.9
    assert levels[1] < 0.2
