"""How measurements are shown: aligned tables, JSON with what they were measured on, and bars."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuda.bindings import nvrtc
from numba import cuda

import devmath

COLOURS = ("#3b6fb6", "#c44e52", "#dd8452", "#8172b3")
LIMIT_COLOUR = "#c0c0c0"


def figure(value: float | None, form: str = ".1f") -> str:
    """A number as text; a dash for what was not measured."""
    return "-" if value is None else format(value, form)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text as wide as they need to be, the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = []
    for first, *others in (titles, *rows):
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def environment(**settings: Any) -> dict[str, Any]:
    """What the figures of this process depend on, and the settings of the run."""
    return {
        "gpu": str(cuda.get_current_device().name),
        "nvrtc": ".".join(map(str, nvrtc.nvrtcVersion()[1:])),
        "devmath": devmath.__version__,
        "python": platform.python_version(),
        **settings,
    }


def write_json(path: Path, about: Mapping[str, Any], rows: Sequence[Any]) -> None:
    """Write dataclasses and where they come from."""
    path.write_text(json.dumps({"environment": dict(about), "rows": [asdict(row) for row in rows]}, indent=1))


def bars(path: Path, title: str, unit: str, groups: Mapping[str, Mapping[str, float | None]]) -> None:
    """Draw horizontal bars into a file: a group a case, in it a bar for each contender that was measured.

    The last contender is the limit of the others, and grey.

    Raises
    ------
    ImportError
        If matplotlib is not installed; it comes with the extra ``bench``.
    """
    from matplotlib.figure import Figure

    names = list(next(iter(groups.values())))
    bars_of: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    middles, place = [], 0
    for group in groups.values():
        measured = {name: value for name, value in group.items() if value is not None}
        middles.append(place + (len(measured) - 1) / 2)
        for name, value in measured.items():
            bars_of[name].append((place, value))
            place += 1
        place += 1  # a gap
    plot = Figure(figsize=(9, 1.2 + 0.17 * place), layout="constrained")
    axes = plot.subplots()
    colours = dict(zip(names, (*COLOURS[: len(names) - 1], LIMIT_COLOUR), strict=True))
    for name, drawn in bars_of.items():
        places, values = [place for place, _ in drawn], [value for _, value in drawn]
        axes.bar_label(axes.barh(places, values, 0.9, label=name, color=colours[name]), fmt="{:.4g}", fontsize=7)
    axes.set_yticks(middles, list(groups), fontsize=8)
    axes.set_ylim(place - 1, -1)
    axes.margins(x=0.1)
    axes.set_xlabel(unit)
    axes.set_title(title, fontsize=10)
    plot.legend(loc="outside lower center", ncols=len(names), fontsize=8)
    plot.savefig(path, dpi=120)
