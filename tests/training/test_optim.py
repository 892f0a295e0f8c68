"""Optimizers against their formulas, written out tensor by tensor; schedules; clipping."""

import math

import numpy as np
import pytest

from transformer_np import training
from transformer_np.inspection.samples import MODELS, small_model
from transformer_np.layers import Linear
from transformer_np.module import Parameter
from transformer_np.training import SGD, Adam, AdamW, Muon, cosine_schedule, noam_schedule, orthogonalised
from transformer_np.training.optim import BLOCK, clip_arrays

SHAPES = ((7,), (190, 200), (), (3, 4, 5))  # the second alone is larger than a block
STEPS = 10


def make_parameters(dtype=np.float64, shapes=SHAPES):
    rng = np.random.default_rng(1)
    return [Parameter(rng.normal(size=shape).astype(dtype)) for shape in shapes]


def gradients_of(step, shapes=SHAPES):
    """Other gradients in every step; some elements have none, as the embedding of a word that did not occur."""
    rng = np.random.default_rng([2, step])
    return [rng.normal(size=shape) * (rng.random(shape) < 0.7) for shape in shapes]


def run(optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        optimizer.lr = 0.01 * step
        for parameter, gradient in zip(optimizer.parameters, gradients_of(step), strict=True):
            parameter.grad += gradient
        optimizer.step()
    return [parameter.data for parameter in optimizer.parameters]


# --- the formulas ----------------------------------------------------------------------------------------------------


def by_hand_adam(betas, eps, weight_decay=0.0, factor=1.0):
    """Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2, line 12. The last two: one number, or one
    for each parameter."""
    (beta1, beta2), results = betas, []
    for i, parameter in enumerate(make_parameters()):
        theta, m, v = parameter.data.copy(), 0.0, 0.0
        decay, rate = (np.broadcast_to(given, len(SHAPES))[i] for given in (weight_decay, factor))
        for t in range(1, STEPS + 1):
            g, lr = gradients_of(t)[i], rate * 0.01 * t
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
            theta = theta - lr * (m_hat / (np.sqrt(v_hat) + eps) + decay * theta)
        results.append(theta)
    return results


def by_hand_sgd(momentum):
    results = []
    for i, parameter in enumerate(make_parameters()):
        theta, velocity = parameter.data.copy(), 0.0
        for t in range(1, STEPS + 1):
            velocity = momentum * velocity + gradients_of(t)[i]
            theta = theta - 0.01 * t * velocity
        results.append(theta)
    return results


def by_parameter(parameters):
    return AdamW(parameters, weight_decay=0.3, decays=lambda p: p.data.ndim > 1, rates=lambda p: 1 / (1 + p.data.ndim))


def with_one_matrix(parameters):
    return Muon(parameters, matrices=lambda p: p.shape == SHAPES[1], betas=(0.9, 0.98), weight_decay=0.3)


def by_hand_muon():
    """Jordan et al. 2024, with the singular values of each step: σ → a σ + b σ³ + c σ⁵, three times."""
    results = by_hand_adam((0.9, 0.98), 1e-8, factor=0.2)
    w, m = make_parameters()[1].data, 0.0
    for t in range(1, STEPS + 1):
        g, lr = gradients_of(t)[1], 0.01 * t
        m = 0.9 * m + 0.1 * g
        u, sigma, vt = np.linalg.svd(0.1 * g + 0.9 * m, full_matrices=False)
        sigma /= np.linalg.norm(sigma)
        for a, b, c in ((8.2052, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250)):
            sigma = a * sigma + b * sigma**3 + c * sigma**5
        w = w - lr * (0.3 * w + (200 / 190) ** 0.5 * u * sigma @ vt)
    return [results[0], w, *results[2:]]


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda p: Adam(p, betas=(0.9, 0.98), eps=1e-3), lambda: by_hand_adam((0.9, 0.98), 1e-3)),
        (lambda p: Adam(p), lambda: by_hand_adam((0.9, 0.999), 1e-8)),
        (lambda p: AdamW(p, weight_decay=0.3), lambda: by_hand_adam((0.9, 0.999), 1e-8, 0.3)),
        (by_parameter, lambda: by_hand_adam((0.9, 0.999), 1e-8, (0, 0.3, 0, 0.3), (1 / 2, 1 / 3, 1, 1 / 4))),
        (with_one_matrix, by_hand_muon),
        (lambda p: SGD(p), lambda: by_hand_sgd(0.0)),
        (lambda p: SGD(p, momentum=0.9), lambda: by_hand_sgd(0.9)),
    ],
    ids=["Adam", "Adam, defaults", "AdamW", "AdamW by parameter", "Muon", "SGD", "SGD with momentum"],
)
def test_ten_steps(make, expected):
    assert math.prod(SHAPES[1]) > BLOCK
    for found, wanted in zip(run(make(make_parameters()), range(1, STEPS + 1)), expected(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW, with_one_matrix])
def test_float32_stays_float32(kind):
    optimizer = kind(make_parameters(np.float32))
    data = run(optimizer, [1, 2])
    arrays = [optimizer.data, optimizer.grad, *optimizer.averages.values(), *data]
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
    as_numpy = run(kind(make_parameters(np.float32)), np.array([1, 2]))  # a learning rate in float64
    assert all(map(np.array_equal, as_numpy, data))


# --- the flat buffer -------------------------------------------------------------------------------------------------


def test_refuses_to_go_on_after_astype_or_another_optimizer():
    layer = Linear(3, 4, rng=0)
    first = Adam(layer.parameters())
    layer.astype(np.float64)
    before = layer.w.data.copy()
    with pytest.raises(RuntimeError, match="astype"):
        first.step()
    frozen = Adam(layer.parameters())
    layer.freeze().unfreeze()  # makes new gradients, which no buffer has
    with pytest.raises(RuntimeError, match="unfreeze"):
        frozen.step()
    second, third = Adam(layer.parameters()), Adam(layer.parameters())
    layer.w.grad += 1
    with pytest.raises(RuntimeError, match="another optimizer"):
        second.step()
    assert np.array_equal(layer.w.data, before) and first.steps == second.steps == 0
    third.step()
    assert not np.array_equal(layer.w.data, before)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Adam([]), "empty"),
        (lambda: Adam([Parameter(np.ones(2))] * 2), "same Parameter twice"),
        (lambda: Adam([Parameter(np.ones(2)), Parameter(np.ones(2, np.float32))]), "float32.*float64"),
        (lambda: Adam(make_parameters(), betas=(0.9, 1.0)), r"betas must lie in \[0, 1\)"),
        (lambda: AdamW(make_parameters(), rates=lambda p: -p.data.max()), r"what rates returns must lie in \[0, ∞\)"),
        (lambda: Muon(make_parameters(), momentum=1.0), r"momentum must lie in \[0, 1\)"),
        (lambda: Muon(make_parameters()), r"shape \(3, 4, 5\): Muon needs two axes"),
    ],
)
def test_what_an_optimizer_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- Muon ------------------------------------------------------------------------------------------------------------


def test_orthogonalised_keeps_zeros_and_its_argument(rng):
    assert (orthogonalised(np.zeros((3, 4))) == 0).all()
    g = rng.normal(size=(5, 3))
    before = g.copy()
    assert orthogonalised(g).shape == (5, 3) and np.array_equal(g, before)


def test_members_of_a_team_share_the_work_of_muon_and_not_its_elements():
    """A matrix takes more work than three vectors of as many elements: it has a member of its own."""
    muon = Muon([Parameter(np.ones(4096)) for _ in range(3)] + [Parameter(np.ones((64, 64)))])
    assert [muon.part(rank, 2) for rank in range(2)] == [slice(0, 12288), slice(12288, 16384)]


@pytest.mark.parametrize("name", MODELS)
def test_in_blocks_has_the_weights_of_linear_maps_alone(name):
    model = small_model(name)
    chosen = training.in_blocks(model)
    names = {name for name, p in model.named_parameters() if chosen(p)}
    assert all(p.data.ndim == 2 for _, p in model.named_parameters() if chosen(p))
    assert bool(names) == (name != "Word2Vec")
    rest = {name.rpartition(".")[2] for name, p in model.named_parameters() if not chosen(p) and p.data.ndim == 2}
    assert rest <= {"table", "w", "u", "v", "center", "context"}


# --- schedules and clipping ------------------------------------------------------------------------------------------


def test_steps_count_from_one_and_the_warmup_comes_before_the_end():
    wrong = {noam_schedule: [(0, 64, 400), (1, 64, 0)], cosine_schedule: [(0, 1, 0, 5, 10), (1, 1, 0, 10, 10)]}
    for schedule, calls in wrong.items():
        for arguments in calls:  # numbers below 0: tests/test_every_number.py
            with pytest.raises(ValueError, match="must"):
                schedule(*arguments)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_is_returned_and_nothing_scaled(bad):
    parameters = [Parameter(np.zeros(n)) for n in (1, 2)]
    parameters[0].grad, parameters[1].grad = np.array([3.0]), np.array([bad, 4.0])
    assert not math.isfinite(training.clip_grad_norm(parameters, 1.0))
    assert parameters[0].grad.tolist() == [3] and parameters[1].grad[1] == 4


def test_clip_arrays_names_a_wrong_argument():
    for wrong in ("int8", np.ones(3), [1.0], [np.ones(2, int)], [np.ones(2), "x"]):
        with pytest.raises(TypeError, match="gradients must be a list of arrays of floats, got"):
            clip_arrays(wrong, 1.0)
