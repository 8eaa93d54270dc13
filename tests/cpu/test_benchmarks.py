"""The parts of the benchmarks that need no GPU: limits, tables, cases."""

import pytest

import devmath
from benchmarks import gemm_tiles, limits, report
from devmath.lto.variants import GEMM_VARIANTS, dtypes

H200 = ("sm_90a", 132)


@pytest.mark.parametrize(
    ("dtype", "math", "peak"),
    [
        ("float16", "ieee", 989.4),
        ("bfloat16", "ieee", 989.4),
        ("float32", "tf32", 494.7),
        ("float32", "3xtf32", 164.9),
        ("int8", "ieee", 1979),
        ("float8_e4m3fn", "ieee", 1979),
        ("float32", "ieee", 66.9),
        ("float64", "ieee", 66.9),
    ],
)
def test_limits_are_those_of_the_data_sheet(dtype, math, peak):
    hertz = limits.data_sheet_hz(dtype, math)
    assert limits.product_limit_tflops(dtype, math, *H200, hertz) == pytest.approx(peak, rel=1e-3)


def test_a_limit_follows_the_clock():
    assert limits.product_limit_tflops("float16", "ieee", *H200, 1e9) == pytest.approx(4096 * 132 / 1e3)


def test_an_unknown_gpu_has_no_limit():
    assert limits.product_limit_tflops("float16", "ieee", "sm_80", 108, 1.41e9) is None


@pytest.mark.parametrize("dtype", dtypes(GEMM_VARIANTS))
def test_every_type_has_a_limit(dtype):
    assert limits.product_limit_tflops(dtype, "ieee", *H200, 1e9) > 0


def test_a_batch_is_read_and_written_once():
    assert limits.batched_bytes(8, 16, 4, itemsize=4, batch=10) == 10 * 4 * (8 * 4 + 4 * 16 + 8 * 16)


def test_a_table_is_as_wide_as_its_cells():
    rows = [["a long name", "1"], ["b", "23456"]]
    assert report.table(["name", "n"], rows).splitlines() == [
        "name             n",
        "a long name      1",
        "b            23456",
    ]


def test_a_table_refuses_a_row_of_other_length():
    with pytest.raises(ValueError, match="zip"):
        report.table(["name", "n"], [["a", "b", "c"]])


def test_a_figure_that_is_missing_is_a_dash():
    assert [report.figure(None), report.figure(12.345), report.figure(0.5, ".0%")] == ["-", "12.3", "50%"]


@pytest.mark.parametrize("case", gemm_tiles.CASES, ids=str)
def test_a_case_is_a_descriptor_or_names_a_type_that_there_is_not(case):
    if case.arguments[3] in dtypes(GEMM_VARIANTS):
        assert isinstance(case.descriptor(), devmath.Gemm)
    else:
        with pytest.raises(TypeError, match=r"dtype must be one of .*, got "):
            case.descriptor()


def test_tables_show_every_contender():
    ours = gemm_tiles.Measured(tflops=500, error=1e-7, registers=90, local_bytes=0, blocks_per_sm=2, build_s=0.5)
    peer = gemm_tiles.Measured(tflops=125, error=2e-7, registers=80, local_bytes=0, blocks_per_sm=3, build_s=20)
    known = {"case": "x", "threads": 128, "variant": "wgmma", "aim": 600, "nvrtc_s": 0.1, "devmath": ours}
    alone = gemm_tiles.Row(**known, limit=None, clock_mhz=None, limit_at_clock=None)
    beside = gemm_tiles.Row(**known, limit=1000, clock_mhz=1500, limit_at_clock=800, nvmath={"C in shared": peer})
    _, first, second = gemm_tiles.table([alone, beside]).splitlines()
    assert first.split()[3:8] == ["500.0", "600", "-", "-", "-"]
    assert second.split()[3:8] == ["500.0", "600", "50.0%", "62.5%", "1500"]
    (line,) = gemm_tiles.peer_table([alone, beside]).splitlines()[1:]
    assert "12.5%" in line
    assert "4.00x" in line
    assert gemm_tiles.bars([beside])["x"] == {
        "devmath": 500,
        "nvmath, C in shared": 125,
        "nvmath, C in registers": None,
        "limit": 1000,
    }
