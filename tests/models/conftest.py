"""What the tests of the models share."""

import pytest

from transformer_np.inspection.samples import model_of


@pytest.fixture
def make(request, rng):
    """make(**config) -> a small model in float64 with random parameters. MODEL in the file is its class and sizes."""
    name, sizes = request.module.MODEL
    return lambda **config: model_of(name, rng, **{"dtype": "float64", **sizes, **config})[0]
