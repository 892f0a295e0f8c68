"""The encoder–decoder: gradients of every parameter, and what must not change whatever the weights are."""

import numpy as np

from transformer_np.layers.initial import blank
from transformer_np.models import Transformer, TransformerConfig

SRC = np.array([[4, 9, 4, 7, 3, 2, 10], [5, 4, 2, 0, 0, 0, 0]])  # (B, S) = (2, 7)
TGT = np.array([[1, 12, 5, 5, 6], [1, 4, 11, 0, 0]])  # (B, T) = (2, 5)


def test_another_padding_id(random_model):
    """Ids are names: with 3 as padding in place of 0 the same sentence gets the same logits."""
    model, other = random_model(), random_model(pad_id=3)
    swap = np.arange(13)
    swap[[0, 3]] = [3, 0]
    state = model.state_dict()
    state["src_input.embedding.table"] = state["src_input.embedding.table"][swap[:11]]
    state["tgt_input.embedding.table"] = state["tgt_input.embedding.table"][swap]
    other.load_state_dict(state)
    assert np.array_equal(other(swap[SRC], swap[TGT]), model(SRC, TGT))


def test_number_of_parameters_of_the_base_model():
    with blank():
        model = Transformer(TransformerConfig(37000, 37000, tie_embeddings=True))
    assert model.num_parameters() == 63_082_496  # "65 · 10⁶"


def test_dropout_is_everywhere_the_paper_has_it(random_model):
    """On the sums of embeddings and positions and on the output of every sub-layer (§5.4)."""
    model = random_model(dropout=0.4)
    model(SRC, TGT)
    kept = {name: keep.mean() for name, keep in model.intermediates().items() if name.endswith(".keep")}
    places = ["src_input", "tgt_input", *(f"encoder.{i}.add_norm{j}" for i in (0, 1) for j in (1, 2))]
    places += [f"decoder.{i}.add_norm{j}" for i in (0, 1) for j in (1, 2, 3)]
    assert set(kept) == {f"{place}.dropout.keep" for place in places}
    assert all(0.4 < mean < 0.8 for mean in kept.values())


def test_every_matrix_has_its_own_values_and_astype_changes_the_config_too(random_model):
    model = Transformer(random_model().config)
    matrices = [p.data for p in model.parameters() if p.data.ndim == 2]
    assert len({m.flat[0] for m in matrices}) == len(matrices)
    model.astype("float32")
    assert model.config.dtype == "float32" and type(model)(model.config).output.w.dtype == np.float32
    assert model.astype("float64").config.dtype == "float64"
