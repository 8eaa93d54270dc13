"""The rules of the code base itself: which layer may import which, and how long things may grow."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "devmath"

#: From the bottom up; a module imports from its own layer and from those below.
LAYERS = (
    {"arguments", "dtypes", "errors", "fragments", "layouts"},
    {"lto", "verbs"},
    {"accumulator_device", "blas_device", "fft_device", "gemm_launch", "mainloop_device"},
    {"frontends"},
    {"__init__", "__main__"},
)
LAYER_OF = {name: rank for rank, names in enumerate(LAYERS) for name in names}

MODULES = sorted(PACKAGE.rglob("*.py"))
CHECKED = [
    path
    for folder in ("devmath", "tests", "examples", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".cuh", ".hpp", ".cpp"}
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part_of(path: Path) -> str:
    """First name below ``devmath``: the unit of the layer rules."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path, *, at_import: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield the dotted names that a module imports; with `at_import` those that run when it is imported.

    ``from x import y`` counts as ``x.y``; relative names are resolved against the root of the repository.
    """
    tree = ast.parse(path.read_text())
    nodes = tree.body if at_import else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = tuple(node.module.split(".")) if node.module else ()
            yield from ((*base, *module, alias.name) for alias in node.names)


def top_level_packages(path: Path, *, at_import: bool = False) -> set[str]:
    return {name[0] for name in imports_of(path, at_import=at_import)}


def test_no_module_imports_from_a_layer_above():
    upward = [
        (name_of(path), ".".join(name))
        for path in MODULES
        for name in imports_of(path)
        if name[0] == "devmath" and len(name) > 1 and LAYER_OF.get(name[1], 0) > LAYER_OF[part_of(path)]
    ]
    assert upward == []


def test_only_front_ends_know_numba():
    knowing = {part_of(path) for path in MODULES if {"numba", "llvmlite"} & top_level_packages(path)}
    assert knowing <= {"frontends", "__main__"}


def test_the_rules_of_calls_know_no_compiler():
    imported = {name for name in imports_of(PACKAGE / "frontends" / "rules.py") if name[0] in {"numba", "llvmlite"}}
    assert imported == {("numba", "core", "errors"), ("numba", "cuda", "core", "errors")}


def test_no_module_needs_an_array_package():
    assert [name_of(path) for path in MODULES if {"cupy", "torch"} & top_level_packages(path)] == []


def test_cuda_python_is_loaded_on_first_use_only():
    assert [name_of(path) for path in MODULES if "cuda" in top_level_packages(path, at_import=True)] == []


def test_a_file_holds_one_idea():
    assert [name_of(path) for path in CHECKED if len(path.read_text().splitlines()) > 400] == []


def test_a_line_fits_the_page():
    wide = [
        f"{name_of(path)}:{number}"
        for path in CHECKED
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert wide == []


def test_a_function_holds_one_idea():
    long = [
        f"{name_of(path)}:{node.name}"
        for path in CHECKED
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno + 1 > 60
    ]
    assert long == []


def test_a_file_is_named_for_what_it_holds():
    assert [name_of(path) for path in CHECKED if path.stem in {"utils", "util", "common", "helpers", "misc"}] == []


def test_the_rules_see_violations(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "devmath" / "lto" / "bad.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import numba.cuda\nfrom ..frontends import x\nfrom . import arch\ndef f():\n    import cuda.core\n"
    )
    assert list(imports_of(path)) == [
        ("numba", "cuda"),
        ("devmath", "frontends", "x"),
        ("devmath", "lto", "arch"),
        ("cuda", "core"),
    ]
    assert ("cuda", "core") not in list(imports_of(path, at_import=True))
