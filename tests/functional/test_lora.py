"""The low-rank term of LoRA: values, gradients, and the matrix that it stands for."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.inspection.gradcheck import check_gradients


@pytest.mark.parametrize("rows", [(), (2,), (2, 3)])
def test_lora_is_a_change_of_the_matrix(rng, rows):
    x, w, a, b = rng.normal(size=(*rows, 4)), rng.normal(size=(4, 6)), rng.normal(size=(4, 2)), rng.normal(size=(2, 6))
    y, low = F.lora(x, a, b, 0.7)
    np.testing.assert_allclose(low, np.einsum("...i,ir->...r", x, a))
    np.testing.assert_allclose(F.linear(x, w) + y, np.einsum("...i,io->...o", x, w + 0.7 * a @ b))
    assert check_gradients(F.lora, x, a, b, 0.7).passed


@pytest.mark.parametrize("scale", [np.float64(2), 2])
def test_the_scale_does_not_change_the_dtype(rng, scale):
    x, a, b = (rng.normal(size=(3, 3)).astype("float32") for _ in range(3))
    y, low = F.lora(x, a, b, scale)
    assert {r.dtype for r in (y, low, *F.lora_backward(y, x, low, a, b, scale))} == {np.dtype("float32")}
