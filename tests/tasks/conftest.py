"""What the tests of the tasks share."""

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of the test's own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
