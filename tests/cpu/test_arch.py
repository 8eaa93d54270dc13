"""Names and limits of the target architectures."""

import pytest

from devmath.lto import arch


@pytest.mark.parametrize(
    ("compute_capability", "name"),
    [
        ((8, 0), "sm_80"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((12, 0), "sm_120a"),
        ([12, 1], "sm_121a"),
        ((10, 0, "f"), "sm_100f"),
        ((9, 0, ""), "sm_90"),
    ],
)
def test_arch_name(compute_capability, name):
    assert arch.arch_name(compute_capability) == name
    assert arch.compute_capability(name) == tuple(compute_capability[:2])


def test_names_of_tested_architectures_round_trip():
    assert [arch.arch_name(arch.compute_capability(name)) for name in arch.ARCHITECTURES] == list(arch.ARCHITECTURES)


def test_compute_capability_below_the_minimum():
    with pytest.raises(ValueError, match=r"compute capability must be at least 8\.0 \(Ampere\), got 7\.5"):
        arch.arch_name((7, 5))


@pytest.mark.parametrize("name", ["sm_75", "90a", "sm_90b", "compute_90", "lto_90a", ""])
def test_unknown_arch(name):
    with pytest.raises(ValueError, match=rf"arch must be sm_80 or newer, such as sm_80, .*, got {name}$"):
        arch.compute_capability(name)


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("sm_80", 163),
        ("sm_86", 99),
        ("sm_87", 163),
        ("sm_89", 99),
        ("sm_90a", 227),
        ("sm_100a", 227),
        ("sm_103a", 227),
        ("sm_120a", 99),
    ],
)
def test_shared_memory_limit(name, kib):
    assert arch.shared_memory_limit_bytes(name) == kib * 1024


def test_shared_memory_limit_of_a_future_arch():
    with pytest.raises(ValueError, match="arch must be one of compute capability 8 to 12, got sm_130a"):
        arch.shared_memory_limit_bytes("sm_130a")
