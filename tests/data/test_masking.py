"""Masked texts: which tokens are chosen, and what replaces them."""

import numpy as np
import pytest

from transformer_np.data import CharTokenizer, MaskedBatches, mask_tokens, with_mask
from transformer_np.data.masking import IGNORED, as_encoder_input

V, MASK = 40, 39
TEXTS = [[1, *range(4 + i, 12 + i), 2] for i in range(25)]


def test_the_shares_of_the_paper():
    """15 % are chosen: 80 % of them become <mask>, 10 % another token, 10 % stay."""
    ids = np.random.default_rng(0).integers(0, V, (200, 400))
    holes, targets = mask_tokens(ids, V, 1)
    ordinary, chosen = (ids > 3) & (ids != MASK), targets != IGNORED
    assert not chosen[~ordinary].any() and (targets[chosen] == ids[chosen]).all()
    assert (holes[~chosen] == ids[~chosen]).all()
    assert chosen.sum() / ordinary.sum() == pytest.approx(0.15, abs=0.005)
    hidden, replaced = chosen & (holes == MASK), chosen & (holes != MASK) & (holes != ids)
    assert hidden.sum() / chosen.sum() == pytest.approx(0.8, abs=0.01)
    assert replaced.sum() / chosen.sum() == pytest.approx(
        0.1 * 34 / 35, abs=0.01
    )  # one of 35 draws is the token itself
    assert set(holes[replaced].tolist()) == set(range(4, MASK))  # every ordinary token, and no other


def test_mask_is_never_a_replacement():
    """With two tokens to draw from, one wrong bound would show at once."""
    holes, targets = mask_tokens(np.full((200, 300), 4), 7, 0)
    chosen = targets != IGNORED
    share = (holes[chosen] == 6).mean()
    assert share == pytest.approx(0.8, abs=0.015) and set(holes[chosen].tolist()) == {4, 5, 6}
    assert (holes[chosen] == 5).mean() == pytest.approx(0.05, abs=0.01)


def test_at_least_one_token_is_chosen():
    for seed in range(20):
        _, targets = mask_tokens([[1, 5, 2], [1, 3, 2]], V, seed)
        assert targets.tolist() == [[IGNORED, 5, IGNORED], [IGNORED] * 3]


def masks_of(batches):
    return [(batch.targets != IGNORED).tolist() for batch in batches]


def test_the_masks_depend_on_seed_and_step():
    batches = MaskedBatches(TEXTS, 5, V)
    assert len({str(mask) for mask in masks_of(batches.batch(step) for step in range(10))}) == 10
    again, other = MaskedBatches(TEXTS, 5, V), MaskedBatches(TEXTS, 5, V, seed=1)
    assert masks_of([again.batch(7)]) == masks_of([batches.batch(7)]) != masks_of([other.batch(7)])
    held_out = masks_of(batches.in_order())
    assert len({str(mask) for mask in held_out}) == 5 and held_out == masks_of(again.in_order())


def test_encoder_input():
    assert as_encoder_input([5, 6, 7, 8], 5) == [1, 5, 6, 7, 2]
    assert as_encoder_input([5, 6, 7], 5) == [1, 5, 6, 7, 2]
    assert as_encoder_input([], 3) == [1, 2]


def test_the_mask_is_the_last_token():
    tokenizer = with_mask(CharTokenizer.train(["ab <mask>"]))
    assert tokenizer.vocabulary[-1] == "<mask>" and len(tokenizer) - 1 not in tokenizer.encode("a <mask> b")
