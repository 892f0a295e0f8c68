"""What the tests of grading share."""

import pytest

from transformer_np.grading.sandbox.bubblewrap import bubblewrap


@pytest.fixture(scope="session")
def walls():
    """Skips where nothing keeps a submission in."""
    if not bubblewrap()[0]:
        pytest.skip("bubblewrap is not installed, or not allowed here")
