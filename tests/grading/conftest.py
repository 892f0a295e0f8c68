"""What the tests of grading share."""

import pytest

from transformer_np.grading.sandbox import keeper


@pytest.fixture(scope="session")
def walls():
    """Skips where nothing keeps a submission in."""
    if not keeper.bubblewrap():
        pytest.skip("bubblewrap is not installed, or not allowed here")
