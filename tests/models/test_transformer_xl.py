"""Transformer-XL: gradients, the memory, and that a text may be cut anywhere."""

import numpy as np
import pytest

from transformer_np.decoding import generate
from transformer_np.models import TransformerXL

V, D, H, L, FF, MEM = 13, 12, 3, 2, 10, 7
B, T = 2, 5


SIZES = {"vocab_size": V, "d_model": D, "num_heads": H, "num_layers": L, "d_ff": FF, "mem_len": MEM}
MODEL = "TransformerXL", {**SIZES, "dropout": 0.0}


@pytest.fixture
def ids(rng):
    return rng.integers(V, size=(B, 20))


def in_segments(model, ids, length):
    """The logits of a text that is read in segments."""
    mems, parts = None, []
    for start in range(0, ids.shape[1], length):
        logits, mems = model(ids[:, start : start + length], mems)
        parts.append(logits)
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("length", [1, 4, 5, 10])
@pytest.mark.parametrize("norm_first", [True, False])
def test_segments_in_a_row_are_one_long_segment(make, ids, length, norm_first):
    """As long as every layer still remembers all positions before the last segment, 20 − length of them. That the
    layers see further back together does not help: what one does not see itself is missing from its softmax."""
    model = make(norm_first=norm_first, mem_len=20 - length)
    whole, _ = model(ids)
    np.testing.assert_allclose(in_segments(model, ids, length), whole, rtol=1e-8, atol=1e-10)
    model.mem_len = 20 - length - 1  # one position is forgotten before the last segment
    short = in_segments(model, ids, length)
    if length < 10:
        np.testing.assert_allclose(short[:, :-length], whole[:, :-length], rtol=1e-8, atol=1e-10)
    assert abs(short[:, -length:] - whole[:, -length:]).max() > 1e-4


def test_the_context_grows_by_mem_len_with_every_layer(make, ids):
    """One token at a time a layer sees mem_len positions back, L layers L · mem_len."""
    model = make(mem_len=3)
    logits = in_segments(model, ids, 1)[:, -1]
    for distance in range(12):
        changed = ids.copy()
        changed[:, 19 - distance] = (changed[:, 19 - distance] + 1) % V
        reached = not np.array_equal(in_segments(model, changed, 1)[:, -1], logits)
        assert reached == (distance <= L * 3)


def test_without_a_memory_every_segment_is_the_first(make, ids):
    model = make(mem_len=0)
    _, mems = model(ids[:, :T])
    assert [memory.shape for memory in mems] == [(B, 0, D)] * L
    assert np.array_equal(model(ids[:, T : 2 * T], mems)[0], model(ids[:, T : 2 * T])[0])


def test_decoding_reads_each_token_once(make, ids):
    model, lengths, forward = make(), [], TransformerXL.forward
    model.forward = lambda ids, mems=None: lengths.append(ids.shape[1]) or forward(model, ids, mems)
    assert generate(model, ids[:, :4], 25, rng=0).shape == (B, 29)  # longer than the memory
    assert lengths == [4] + 24 * [1]


@pytest.mark.parametrize(
    ("mems", "error", "message"),
    [
        ([np.ones((B, 4, D))], ValueError, r"mems must be 2 memories, one per layer, got 1"),
        ([np.ones((B + 1, 4, D))] * 2, ValueError, r"mems\[0\] must have .* = \(2, 4, 12\), got \(3, 4, 12\)"),
        ([np.ones((B, 4, D)), np.ones((B, 3, D))], ValueError, r"mems\[1\] must have shape .* got \(2, 3, 12\)"),
        ([np.ones(D)] * 2, ValueError, r"mems\[0\] must have shape .* got \(12,\)"),
        ([np.ones((B, 4, D), np.float32)] * 2, ValueError, r"memory is float32 but x is float64"),
        (np.ones((L, B, 4, D)), TypeError, "mems must be a list of arrays"),
        ([np.ones((B, 4, D)), np.ones((B, 4, D), int)], TypeError, r"mems\[1\] must be an array of floats"),
    ],
)
def test_mems_that_do_not_fit(make, ids, mems, error, message):
    with pytest.raises(error, match=message):
        make()(ids[:, :T], mems)
