"""The encoder-only model: gradients through all it can be asked for, what it may see, and what it refuses."""

import numpy as np
import pytest

from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.models import Bert, BertConfig

V, L, D, H, FF, N, C = 11, 9, 12, 3, 10, 2, 4  # vocabulary, length, features, heads, inside, blocks, classes
IDS = np.array([[4, 10, 4, 0, 7], [7, 2, 2, 0, 0]])  # some tokens come more than once, some not at all, 0 is padding
SEGMENTS = np.array([[0, 0, 1, 2, 2], [1, 0, 1, 2, 0]])
METHODS = ("forward", "classify", "mlm_logits", "classify_tokens", "span_scores")


SIZES = {"vocab_size": V, "max_len": L, "d_model": D, "num_heads": H, "num_layers": N, "d_ff": FF, "dropout": 0.0}
HEADS_TOO = {"num_classes": C, "token_classes": 6, "span_head": True, "tie_embeddings": False}
MODEL = "Bert", {**SIZES, **HEADS_TOO, "type_vocab_size": 3}


def outputs(model, *inputs, **options):
    return {method: getattr(model, method)(*inputs, **options) for method in METHODS}


# --- gradients -------------------------------------------------------------------------------------------------------

HEADS = {"forward": (), "classify": ("pooler.", "classifier."), "mlm_logits": ("mlm_head.",)}
HEADS |= {"classify_tokens": ("token_classifier.",), "span_scores": ("span_head.",)}


@pytest.mark.parametrize("options", [{}, {"tie_embeddings": True}, {"dropout": 0.3}], ids=str)
@pytest.mark.parametrize("method", METHODS[1:])
def test_gradients_of_every_parameter(make, method, options):
    """With what each head adds; those of the body alone are asked for in test_every_model.py."""
    model = make(**options)
    report = check_gradients(getattr(model, method), IDS, segments=SEGMENTS, max_entries=1 if options else 2)
    assert [entry.name for entry in report.entries] == [name for name, _ in model.named_parameters()]
    assert report.passed, str(report)


@pytest.mark.parametrize("method", METHODS)
def test_which_parameters_have_a_gradient(make, method):
    """The body always, of the heads only that which was asked: what was called last counts."""
    model = make()
    for other in METHODS:
        getattr(model, other)(IDS, segments=SEGMENTS)
    output = getattr(model, method)(IDS, segments=SEGMENTS)
    model.zero_grad()
    assert model.backward(np.random.default_rng(1).normal(size=output.shape)) is None
    for name, parameter in model.named_parameters():
        of_a_head = name.startswith(sum(HEADS.values(), ()))
        if not name.endswith("b_k"):  # the bias of the keys shifts all scores of a query alike
            assert parameter.grad.any() == (not of_a_head or name.startswith(HEADS[method])), name


def test_gradients_where_only_some_places_are_asked_for(make):
    places = np.array([[True, False, False, False, True], [False, True, False, False, False]])
    model = make()
    report = check_gradients(model.mlm_logits, IDS, places=places, max_entries=3)
    assert report.passed, str(report)
    np.testing.assert_allclose(model.mlm_logits(IDS, places=places), model.mlm_logits(IDS)[places], rtol=1e-10)


# --- what the outputs are made of, and what a token may see ----------------------------------------------------------


def test_dropout_also_before_the_classifier(make):
    model = make(dropout=0.5)
    model.dropout.p = 0.0
    for block in model.blocks:
        block.add_norm1.dropout.p = block.add_norm2.dropout.p = 0.0
    assert np.array_equal(model(IDS), model(IDS))
    for method in METHODS[1:]:
        same = np.array_equal(getattr(model, method)(IDS), getattr(model, method)(IDS))
        assert same == (method == "mlm_logits")


def test_padding_has_none(make):
    """Other ids behind the padding, or more of it, change nothing in the tokens that count."""
    model = make().eval()
    padding = np.array([[False, False, False, True, False], [False, False, False, True, True]])
    changed = np.where(padding, 9, IDS)
    longer = np.pad(changed, ((0, 0), (0, 3)), constant_values=5)
    longer_padding = np.pad(padding, ((0, 0), (0, 3)), constant_values=True)
    expected = outputs(model, IDS)  # padding where the id is 0
    for ids, hidden in ((IDS, padding), (changed, padding), (longer, longer_padding)):
        found = outputs(model, ids, padding=hidden)
        np.testing.assert_allclose(found["classify"], expected["classify"], rtol=1e-12)
        for method in set(METHODS) - {"classify"}:
            np.testing.assert_allclose(found[method][:, :5][~padding], expected[method][~padding], rtol=1e-10)
    assert not np.allclose(model(changed)[~padding], expected["forward"][~padding])  # 9 is no padding by itself


# --- at the start, what is left out, and bad input -------------------------------------------------------------------


def test_a_model_without_heads(make):
    model = make(num_classes=None, pooler=False, mlm_head=False, token_classes=None, span_head=False)
    names = [name for name, _ in model.named_parameters()]
    assert not [name for name in names if name.startswith(sum(HEADS.values(), ()))]
    assert check_gradients(model, IDS, max_entries=1).passed
    for asked, name in (
        (lambda: model.pool(model(IDS)), "no pooler; create it with pooler=True"),
        (lambda: model.classify(IDS), r"no classifier; create it with num_classes=…"),
        (lambda: model.mlm_logits(IDS), "no mlm_head; create it with mlm_head=True"),
        (lambda: model.classify_tokens(IDS), "no token_classifier; create it with token_classes=…"),
        (lambda: model.span_scores(IDS), "no span_head; create it with span_head=True"),
    ):
        with pytest.raises(ValueError, match=name):
            asked()


def test_the_parameters_of_bert_base():
    """109,482,240 in the encoder with its pooler, as in the published model; counted on a smaller one."""

    def expected(V, L, D, FF, N):
        block = 4 * (D * D + D) + 2 * D * FF + FF + D + 4 * D
        return (V + L + 2) * D + 2 * D + N * block + D * D + D

    assert Bert(BertConfig(50, 20, 24, 3, 2, 30, mlm_head=False)).num_parameters() == expected(50, 20, 24, 30, 2)
    assert expected(30522, 512, 768, 3072, 12) == 109_482_240


@pytest.mark.parametrize(
    "ids, options, error, message",
    [
        (np.array([[3, 1], [0, 0]]), {}, ValueError, "ids has nothing but padding in row 1"),
        (IDS, {"padding": np.ones((2, 5), bool)}, ValueError, "nothing but padding in row 0"),
        (IDS, {"padding": np.zeros((2, 4), bool)}, ValueError, r"padding must have the shape of ids, \(2, 5\), got"),
        (IDS, {"padding": np.zeros((2, 5))}, TypeError, "padding must be Boolean, got float64"),
        (IDS, {"segments": SEGMENTS[:1]}, ValueError, r"segments must have the shape of ids, \(2, 5\), got \(1, 5\)"),
        (IDS, {"segments": SEGMENTS + 1}, ValueError, "segments must lie in 0 … 2, got 3"),
        (IDS, {"places": np.zeros((2, 5), bool)}, ValueError, "places has no True"),
        (IDS, {"places": np.ones((5,), bool)}, ValueError, "places must have the shape of ids"),
        (IDS, {"places": np.ones((2, 5), int)}, TypeError, "places must be Boolean"),
    ],
)
def test_input_that_is_refused(make, ids, options, error, message):
    model = make()
    for method in ("mlm_logits",) if "places" in options else METHODS:
        with pytest.raises(error, match=message):
            getattr(model, method)(ids, **options)
