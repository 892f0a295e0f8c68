"""The encoder–decoder: gradients of every parameter, and what must not change whatever the weights are."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.layers.initial import blank
from transformer_np.models import Transformer, TransformerConfig

PAD = 0
SRC = np.array([[4, 9, 4, 7, 3, 2, 10], [5, 4, 2, 0, 0, 0, 0]])  # (B, S) = (2, 7)
TGT = np.array([[1, 12, 5, 5, 6], [1, 4, 11, 0, 0]])  # (B, T) = (2, 5)
OUT = np.array([[12, 5, 5, 6, 2], [4, 11, 2, 0, 0]])
KINDS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "tied": {"tie_embeddings": True},
    "one table": {"tie_embeddings": True, "src_vocab_size": 13, "norm_first": True},
    "gelu": {"activation": "gelu", "layer_norm_eps": 0.1},
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(params=["post-norm", "pre-norm"])
def model(request, random_model):
    return random_model(**KINDS[request.param])


# --- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoders", "decoders"), [(0, 2), (1, 3), (2, 0)])
def test_gradients_whatever_the_depth(random_model, encoders, decoders):
    model = random_model(num_encoder_layers=encoders, num_decoder_layers=decoders, norm_first=True)
    assert check_gradients(model, SRC, TGT, max_entries=1).passed


def test_gradients_of_the_loss(random_model, kind):
    """From the loss to the weights, with padding and label smoothing: directional derivatives along the gradients."""
    model = random_model(**kind)
    how = {"ignore_index": PAD, "label_smoothing": 0.1}
    model.backward(F.cross_entropy_backward(F.cross_entropy(model(SRC, TGT), OUT, **how)[1], OUT, **how))
    for name, parameter in model.named_parameters():
        if name.endswith("b_k"):  # adds the same to all scores of a query
            assert abs(parameter.grad).max() < 1e-15
            continue
        size = np.linalg.norm(parameter.grad)
        step, start = parameter.grad / size * 1e-5, parameter.data.copy()
        parameter.data = start + step
        up = F.cross_entropy(model(SRC, TGT), OUT, **how)[0]
        parameter.data = start - step
        down = F.cross_entropy(model(SRC, TGT), OUT, **how)[0]
        parameter.data = start
        assert (up - down) / 2e-5 == pytest.approx(size, rel=1e-6, abs=1e-10), name


def test_padding_gets_no_gradient(model):
    """Nobody sees it and its own output does not count."""
    how = {"ignore_index": PAD}
    model.backward(F.cross_entropy_backward(F.cross_entropy(model(SRC, TGT), OUT, **how)[1], OUT, **how))
    for table, ids in ((model.src_input.embedding.table, SRC), (model.tgt_input.embedding.table, TGT)):
        assert np.array_equal(np.flatnonzero(table.grad.any(axis=1)), np.setdiff1d(ids, [PAD]))


@pytest.mark.parametrize("one_table", [True, False])
def test_a_tied_parameter_gets_all_summands(rng, random_model, one_table):
    sizes = {"src_vocab_size": 13 if one_table else 11}
    tied, free = random_model(tie_embeddings=True, **sizes), random_model(**sizes)
    state = tied.state_dict()
    assert ("tgt_input.embedding.table" in state) == (not one_table)
    table = tied.output.table.data
    state |= {"tgt_input.embedding.table": table, "output.w": table.T, "output.b": np.zeros(13)}
    free.load_state_dict(state)
    assert np.array_equal(tied(SRC, TGT), free(SRC, TGT))
    dlogits = rng.normal(size=(2, 5, 13))
    tied.backward(dlogits)
    free.backward(dlogits)
    summands = [free.output.w.grad.T, free.tgt_input.embedding.table.grad]
    summands += [free.src_input.embedding.table.grad] if one_table else []
    assert all(s.any() for s in summands)
    np.testing.assert_allclose(tied.output.table.grad, sum(summands), rtol=1e-12, atol=1e-12)


# --- what a leak would break -----------------------------------------------------------------------------------------


def test_every_output_depends_on_every_source_token(model):
    before = model(SRC, TGT)
    for s in range(7):
        changed = SRC.copy()
        changed[0, s] = 6
        after = model(changed, TGT)
        assert (after[0] != before[0]).any(axis=1).all()
        assert np.array_equal(after[1], before[1])  # the rows of a batch do not meet


def test_the_content_of_padding_does_not_matter(rng, model):
    before, real = model(SRC, TGT), TGT != PAD
    model.src_input.embedding.table.data[PAD] += rng.normal(size=12)
    model.tgt_input.embedding.table.data[PAD] += rng.normal(size=12)
    after = model(SRC, TGT)
    assert np.array_equal(after[real], before[real])
    assert (after[~real] != before[~real]).any()


def test_the_length_of_padding_does_not_matter(model):
    before, real = model(SRC, TGT), TGT != PAD
    longer = model(np.pad(SRC, ((0, 0), (0, 2))), np.pad(TGT, ((0, 0), (0, 3))))
    np.testing.assert_allclose(longer[:, :5][real], before[real], rtol=1e-12, atol=1e-12)


def test_a_row_alone_is_the_row_in_the_batch(model):
    logits = model(SRC, TGT)
    for row in range(2):
        src, tgt = SRC[row][SRC[row] != PAD][None], TGT[row][TGT[row] != PAD][None]
        np.testing.assert_allclose(model(src, tgt)[0], logits[row, : tgt.shape[1]], rtol=1e-12, atol=1e-12)


def test_the_order_of_the_words_matters(model):
    swapped = SRC[:, [1, 0, 2, 3, 4, 5, 6]]
    assert abs(model(swapped, TGT) - model(SRC, TGT)).max() > 1e-3


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


# --- wiring ----------------------------------------------------------------------------------------------------------


def test_forward_is_encode_then_decode(model):
    memory = model.encode(SRC)
    assert memory.shape == (2, 7, 12)
    assert np.array_equal(model.decode(TGT, memory, SRC), model(SRC, TGT))
    assert model(SRC, TGT).shape == (2, 5, 13)
    assert np.array_equal(model(SRC.tolist(), TGT.tolist()), model(SRC, TGT))


def test_what_enters_the_first_block(model):
    model.eval(keep=True)(SRC, TGT)
    for stack, ids, embed in ((model.encoder, SRC, model.src_input), (model.decoder, TGT, model.tgt_input)):
        expected = 12**0.5 * embed.embedding.table.data[ids] + F.sinusoidal_encoding(ids.shape[1], 12, np.float64)
        np.testing.assert_allclose(embed(ids), expected, rtol=1e-12)
        if not model.config.norm_first:
            attention = stack[0].attention if stack is model.encoder else stack[0].self_attention
            np.testing.assert_allclose(attention.intermediates()["x"], expected, rtol=1e-12)


def test_pre_norm_ends_each_stack_with_a_norm(random_model):
    model = random_model(norm_first=True)
    for norm in (model.encoder_norm, model.decoder_norm):
        norm.gamma, norm.beta = np.ones(12), np.zeros(12)
    np.testing.assert_allclose(model.encode(SRC).std(axis=-1), 1, rtol=1e-3)
    model(SRC, TGT)
    np.testing.assert_allclose(model.intermediates()["output.x"].std(axis=-1), 1, rtol=1e-3)
    assert random_model().encoder_norm is random_model().decoder_norm is None


def test_attention_sees_what_it_may(model):
    model(SRC, TGT)
    shown = model.intermediates()
    future = np.triu(np.ones((5, 5), bool), 1)
    for layer in range(2):
        encoder = shown[f"encoder.{layer}.attention.weights"]
        cross = shown[f"decoder.{layer}.cross_attention.weights"]
        own = shown[f"decoder.{layer}.self_attention.weights"]
        assert (encoder.shape, cross.shape, own.shape) == ((2, 3, 7, 7), (2, 3, 5, 7), (2, 3, 5, 5))
        for weights, hidden in (
            (encoder, (SRC == PAD)[:, None, None, :]),
            (cross, (SRC == PAD)[:, None, None, :]),
            (own, future | (TGT == PAD)[:, None, None, :]),
        ):
            np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)
            assert np.array_equal(weights == 0, np.broadcast_to(hidden, weights.shape))


# --- at the start ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, {"norm_first": True}, {"tie_embeddings": True}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_fresh_model_knows_nothing(rng, kind, seed):
    sizes = {"d_model": 64, "num_heads": 4, "num_encoder_layers": 2, "num_decoder_layers": 2, "d_ff": 96}
    model = Transformer(TransformerConfig(50, 60, seed=seed, **sizes, **kind))
    src, tgt, out = rng.integers(3, 50, (16, 9)), rng.integers(3, 60, (16, 8)), rng.integers(3, 60, (16, 8))
    loss = F.cross_entropy(model.eval()(src, tgt), out)[0]
    assert np.log(60) - 0.1 < loss < np.log(60) + 0.4


def test_the_default_is_the_paper_s_base_model():
    config = TransformerConfig(37000, 37000)
    assert (config.d_model, config.num_heads, config.d_ff, config.dropout) == (512, 8, 2048, 0.1)
    assert (config.num_encoder_layers, config.num_decoder_layers, config.max_len) == (6, 6, 512)
    assert (config.norm_first, config.activation, config.tie_embeddings) == (False, "relu", False)
    assert (config.pad_id, config.bos_id, config.eos_id, config.dtype, config.seed) == (0, 1, 2, "float32", 0)


def number_of_parameters(c):
    """By formula: matrices, then biases, then norms."""
    D, F = c.d_model, c.d_ff
    attention, feed_forward, norm = 4 * D * D + 4 * D, 2 * D * F + F + D, 2 * D
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    tables = c.src_vocab_size * D + (
        0 if c.tie_embeddings and c.src_vocab_size == c.tgt_vocab_size else c.tgt_vocab_size * D
    )
    output = 0 if c.tie_embeddings else c.tgt_vocab_size * D + c.tgt_vocab_size
    ends = 2 * norm if c.norm_first else 0
    return c.num_encoder_layers * encoder + c.num_decoder_layers * decoder + tables + output + ends


def test_number_of_parameters(random_model, kind):
    model = random_model(**kind)
    assert model.num_parameters() == number_of_parameters(model.config)


def test_number_of_parameters_of_the_base_model():
    with blank():
        model = Transformer(TransformerConfig(10, 12))
    assert model.num_parameters() == number_of_parameters(model.config)
    assert number_of_parameters(TransformerConfig(37000, 37000, tie_embeddings=True)) == 63_082_496  # "65 · 10⁶"


# --- modes, seeds, dtype, state --------------------------------------------------------------------------------------


def test_eval_has_no_dropout(random_model):
    dropping, plain = random_model(dropout=0.4), random_model(dropout=0.0)
    assert not np.array_equal(dropping(SRC, TGT), dropping(SRC, TGT))
    assert np.array_equal(dropping.eval()(SRC, TGT), plain(SRC, TGT))
    assert not np.array_equal(dropping.train()(SRC, TGT), plain(SRC, TGT))


def test_dropout_is_everywhere_the_paper_has_it(random_model):
    """On the sums of embeddings and positions and on the output of every sub-layer (§5.4)."""
    model = random_model(dropout=0.4)
    model(SRC, TGT)
    kept = {name: keep.mean() for name, keep in model.intermediates().items() if name.endswith(".keep")}
    places = ["src_input", "tgt_input", *(f"encoder.{i}.add_norm{j}" for i in (0, 1) for j in (1, 2))]
    places += [f"decoder.{i}.add_norm{j}" for i in (0, 1) for j in (1, 2, 3)]
    assert set(kept) == {f"{place}.dropout.keep" for place in places}
    assert all(0.4 < mean < 0.8 for mean in kept.values())


def test_a_seed_gives_every_matrix_its_own_values(random_model):
    model = Transformer(random_model().config)
    matrices = [p.data for p in model.parameters() if p.data.ndim == 2]
    assert len({m.flat[0] for m in matrices}) == len(matrices)


def test_float32_and_float64_agree(random_model):
    model = random_model(dtype="float32")
    single = model(SRC, TGT)
    double = model.astype(np.float64)(SRC, TGT)
    assert double.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-5 * abs(double).max())


def test_a_bad_state_changes_nothing(random_model):
    one, other = random_model(seed=1), random_model(seed=2)
    before, state = other.state_dict(), one.state_dict()
    state["output.b"] = np.zeros(12)
    with pytest.raises(ValueError, match=r"output\.b must have shape \(13,\), got \(12,\)"):
        other.load_state_dict(state)
    with pytest.raises(ValueError, match=r"missing decoder.* and 82 more"):
        other.load_state_dict({"output.b": np.ones(13)})
    assert all(np.array_equal(values, before[name]) for name, values in other.state_dict().items())


def test_astype_changes_the_config_too(random_model):
    model = random_model().astype("float32")
    assert model.config.dtype == "float32" and type(model)(model.config).output.w.dtype == np.float32
    assert model.astype("float64").config.dtype == "float64"
