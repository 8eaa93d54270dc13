"""Symbols named by the content of their unit."""

import re

import pytest

from devmath.lto.unit import Unit


def definition(body):
    """Return the function that renders a device function with this body."""

    def text(symbol):
        return f'extern "C" __device__ void {symbol}(float* x) {{ {body} }}'

    return text


def test_render_names_the_text():
    unit = Unit.render("scale_float32", definition("*x *= 2;"))
    assert re.fullmatch(r"dm_scale_float32_[0-9a-f]{16}", unit.symbol)
    assert unit.source == definition("*x *= 2;")(unit.symbol)


def test_equal_texts_share_a_symbol():
    assert Unit.render("scale", definition("*x *= 2;")) == Unit.render("scale", definition("*x *= 2;"))


def test_different_texts_never_share_a_symbol():
    symbols = {Unit.render("scale", definition(f"*x *= {factor};")).symbol for factor in range(1000)}
    assert len(symbols) == 1000


def test_stem_is_part_of_the_symbol():
    assert Unit.render("a", definition(";")).symbol != Unit.render("b", definition(";")).symbol


@pytest.mark.parametrize("stem", ["32x32-float32", "a b", "größe", "x;"])
def test_stem_must_make_an_identifier(stem):
    with pytest.raises(ValueError, match=f"stem must be part of a C identifier, got '{stem}'"):
        Unit.render(stem, definition(";"))
