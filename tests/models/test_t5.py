"""T5: its own formulas, and the encoder–decoder made of them."""

import numpy as np
import pytest

from transformer_np.models import T5, T5Config

NEAR = {"rtol": 1e-10, "atol": 1e-10}

SIZES = {"vocab_size": 13, "d_model": 8, "num_heads": 3, "d_head": 5, "d_ff": 10, "num_buckets": 6, "max_distance": 5}
BLOCKS = {"num_encoder_layers": 2, "num_decoder_layers": 3}
MODEL = "T5", {**SIZES, **BLOCKS, "activation": "relu", "dropout": 0.0}
SRC = np.array([[4, 5, 6, 3, 9, 1, 0], [7, 5, 1, 0, 0, 0, 0]])
TGT_IN = np.array([[0, 4, 12, 7], [0, 9, 9, 2]])


@pytest.mark.parametrize("kind", [{}, {"activation": "gated_gelu", "tie_embeddings": False}], ids=["v1.0", "v1.1"])
def test_scores_start_of_order_one(kind):
    """Although they are not divided by √d_k: the queries start smaller."""
    model = T5(T5Config(500, 64, 4, 16, num_encoder_layers=2, num_decoder_layers=2, d_ff=128, **kind)).eval(keep=True)
    ids = np.random.default_rng(0).integers(2, 500, size=(4, 20))
    model(ids, ids)
    kept = model.encoder[0].attention._kept
    assert 0.5 < kept["q"].std() * kept["k"].std() * 4 < 2


def test_an_output_that_is_not_scaled_and_no_longest_input(make):
    model, other = make().eval(), make(scale_output=False).eval()
    other.load_state_dict(model.state_dict())
    np.testing.assert_allclose(other(SRC, TGT_IN), model(SRC, TGT_IN) * 8**0.5, **NEAR)
    model = make(max_len=4).eval()
    assert model(np.full((1, 40), 5), np.full((1, 30), 5)).shape == (1, 30, 13)
