"""Drawing a text from a model: the distribution, the cache, the context, stopping."""

import itertools

import numpy as np
import pytest

from transformer_np.decoding import generate, generate_steps, sampling_distribution
from transformer_np.models import GPT, GPTConfig

V, L = 13, 7


@pytest.fixture
def model(random_module):
    config = GPTConfig(V, L, 12, 3, 2, 10, dtype="float64")
    return random_module(GPT(config), 2.0)


PROMPT = np.array([[3, 12, 3], [0, 5, 8]])


@pytest.mark.parametrize("use_cache", [True, False])
def test_the_weights_of_all_steps_are_those_of_the_whole_text(model, use_cache):
    ids, steps = generate(model, [[1, 2, 3], [4, 2, 5]], 4, temperature=0, use_cache=use_cache, return_weights=True)
    assert np.array_equal(ids, generate(model, [[1, 2, 3], [4, 2, 5]], 4, temperature=0))
    model.eval()(ids[:, :-1])
    assert len(steps) == 4 and len(steps[0]) == len(model.blocks)
    for i, block in enumerate(model.blocks):
        for end, weights in enumerate((step[f"blocks.{i}.attention"] for step in steps), 3):
            assert weights.shape[2] == (1 if use_cache and end > 3 else end)
            whole = block.attention.weights[:, :, end - weights.shape[2] : end, :end]
            np.testing.assert_allclose(weights, whole, rtol=1e-4, atol=1e-6)


def test_draws_follow_the_probabilities(model):
    """χ² of 4,000 first tokens against the distribution they are drawn from: below the 1-in-10,000 quantile."""
    number, options = 4000, {"temperature": 1.5, "top_k": 6, "top_p": 0.95}
    drawn = generate(model, np.tile(PROMPT[:1], (number, 1)), 1, rng=0, **options)[:, -1]
    with model.evaluating():
        expected = number * sampling_distribution(model(PROMPT[:1])[0, -1], **options)
    counts = np.bincount(drawn, minlength=V)
    possible = expected > 0
    assert 3 <= possible.sum() <= 6 and counts[~possible].sum() == 0
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 25.7  # 5 degrees of freedom


def test_a_row_that_has_stopped_is_padded(model):
    free = generate(model, PROMPT, 8, temperature=2.0, rng=6)
    stop = int(free[0, 4])
    found = generate(model, PROMPT, 8, temperature=2.0, rng=6, stop_ids=[stop], pad_id=1)
    for row, text in zip(found, free, strict=True):
        places = np.flatnonzero(text[3:] == stop) + 4
        end = places[0] if len(places) else len(text)
        assert np.array_equal(row[:end], text[: len(row)][:end]) and (row[end:] == 1).all()
    assert (found[0, 5:] == 1).all()


def test_room_for_many_tokens_takes_no_time_before_they_are_written(model):
    _, first = itertools.islice(generate_steps(model, PROMPT, 10**7), 2)
    assert first.shape == (2, 4)


def test_all_rows_stopped_is_the_end_and_a_stop_token_in_the_prompt_stops_none(model):
    first = generate(model, PROMPT, 1, temperature=0)[:, -1]
    found = generate(model, PROMPT, 50, temperature=0, stop_ids=first.tolist())
    assert found.shape == (2, 4)
    assert np.array_equal(generate(model, PROMPT, 0), PROMPT)
    found = generate(model, [[3, 3, 3]], 3, temperature=0)
    stop = next(i for i in range(V) if i not in found[0])
    assert generate(model, [[stop, 3, 3]], 3, rng=0, top_k=1, stop_ids=[stop]).shape[1] > 3


def test_what_the_model_would_have_said_inside_a_longer_prompt_does_not_stop_it(model):
    prompts = [[3], [0, 5, 8, 1]]
    free = generate(model, prompts, 3, temperature=0)
    said = int(generate(model, [[0]], 1, temperature=0)[0, 1])  # but the prompt has a 5 there
    assert said != 5 and said not in free[1, 4:]
    found = generate(model, prompts, 3, temperature=0, stop_ids=[said])
    assert np.array_equal(found[1], free[1][: found.shape[1]]) and found.shape[1] > 4


@pytest.mark.parametrize(
    "prompt, message",
    [
        ([], "at least one row"), ([[]], "prompt is empty"), ([[1], []], "prompt is empty"),
        ([[1] * (L + 1)], "prompt is 8 tokens long, more than the model's context max_len = 7"),
        ([[V]], "prompt must lie in 0 … 12, got 13"), ([1, 2], "axes"), (5, "prompt must be a list of lists"),
    ],
)  # fmt: skip
def test_prompts_that_will_not_do(model, prompt, message):
    with pytest.raises((ValueError, TypeError), match=message):
        generate(model, prompt, 1)
