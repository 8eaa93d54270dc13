"""Every exception and warning of devmath."""

from pathlib import Path


class DevmathError(Exception):
    """Base class of the errors that are devmath's own."""


class DeviceOnlyError(DevmathError, RuntimeError):
    """A kernel verb was called outside a ``@cuda.jit`` kernel."""


class LaunchError(DevmathError, ValueError):
    """A kernel was launched with a block that does not fit its descriptors."""


class ToolchainError(DevmathError, RuntimeError):
    """A CUDA compiler library is missing, or two of them do not fit together."""


class SimulationError(DevmathError, RuntimeError):
    """The simulator saw what a GPU would not report: a race, or a thread that skipped a collective call."""


class CompileError(DevmathError, RuntimeError):
    """NVRTC refused a specialisation.

    Parameters
    ----------
    symbol : str
        Name of the device function.
    arch : str
        Target, for example ``"sm_90a"``.
    log : str
        The compiler's log, whole.
    source : str
        The text that was compiled.
    source_path : pathlib.Path or None
        Where the source was saved for inspection; None where it could not be saved.
    """

    def __init__(self, symbol: str, arch: str, log: str, source: str, source_path: Path | None):
        self.symbol, self.arch, self.log, self.source, self.source_path = symbol, arch, log, source, source_path
        saved = f"source saved as {source_path}" if source_path else "source in the attribute 'source'"
        super().__init__(f"{symbol} does not compile for {arch} ({saved}):\n{log.strip()}")


class PerformanceWarning(UserWarning):
    """A kernel runs, but a cause of lost speed that its author can remove was found."""
