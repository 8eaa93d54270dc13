"""Every example's own check, on the GPU."""

import pytest

from tests.examples import EXAMPLES, check_recording, run_example

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    assert "relative error" in run_example(name)


def test_recording_is_filtered(tmp_path):
    check_recording(tmp_path)
