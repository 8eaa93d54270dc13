"""A disk cache for this run alone, so that every unit is really compiled."""

import pytest

pytest.register_assert_rewrite("tests.compile.harness")


@pytest.fixture(scope="session", autouse=True)
def _fresh_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEVMATH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
