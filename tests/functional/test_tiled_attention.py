"""Attention tile by tile, against the attention that holds all scores; and that it holds nothing of their size."""

from contextlib import contextmanager
from threading import Barrier, get_ident

import numpy as np
import pytest
from shared import peak_of

from transformer_np import functional as F
from transformer_np.functional import tiled
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.layers import GroupedQueryAttention, MultiHeadAttention
from transformer_np.layers import tiles as attention
from transformer_np.masks import additive, causal_mask, padding_mask, window_mask

B, H, T, S, K, K_V = 2, 3, 10, 13, 4, 5
PADDING = padding_mask((np.arange(S) < np.array([9, 13])[:, None]).astype(int), 0)
MASKS = {
    "none": None, "padding": PADDING, "causal, padding": (causal_mask(T, S), PADDING),
    "float": np.random.default_rng(1).normal(size=(1, H, T, S)),
}  # fmt: skip


def both(q, k, v, dout, mask, tile):
    """(out, dq, dk, dv) of the plain attention and of the tiled one."""
    out, weights = F.scaled_dot_product_attention(q, k, v, mask)
    plain = out, *F.scaled_dot_product_attention_backward(dout, q, k, v, weights)
    out, log_total = F.tiled_attention(q, k, v, mask, tile)
    return plain, (out, *F.tiled_attention_backward(dout, q, k, v, out, log_total, mask, tile))


@pytest.fixture
def arrays(rng):
    return [rng.normal(size=(B, H, *shape)) for shape in ((T, K), (S, K), (S, K_V), (T, K_V))]


# --- the same numbers, and what they take ----------------------------------------------------------------------------


@pytest.mark.parametrize("mask", ["none", "causal", "causal and padding"])
def test_float32(rng, mask):
    """Several tiles of the default size, heads as split_heads cuts them."""
    n = 600
    q, k, v, dout = (F.split_heads(rng.normal(size=(2, n, 3 * 16)).astype(np.float32), 3) for _ in range(4))
    padding = padding_mask((np.arange(n) >= np.array([[450], [n]])).astype(int), 1)
    mask = {"none": None, "causal": causal_mask(n), "causal and padding": (causal_mask(n), padding)}[mask]
    exact, _ = both(*(x.astype(float) for x in (q, k, v, dout)), mask, tiled.TILE)
    for expected, other, actual in zip(exact, *both(q, k, v, dout, mask, tiled.TILE), strict=True):
        assert actual.dtype == np.float32
        assert np.linalg.norm(actual - other) <= 1e-6 * np.linalg.norm(other)
        assert np.linalg.norm(actual - expected) <= 1e-6 * np.linalg.norm(expected)


def test_hidden_tiles_are_not_computed(arrays, monkeypatch):
    """A causal mask of n tiles in a row leaves n (n + 1) / 2 of the n² tiles."""
    computed = []
    monkeypatch.setattr(tiled, "hide", lambda scores, masks: computed.append(len(masks)))
    q, k, v, dout = (x[0, 0, :8] for x in arrays)
    out, log_total = F.tiled_attention(q, k, v, causal_mask(8), 2)
    assert len(computed) == 10
    assert sum(computed) == 4  # and only those on the diagonal have anything to hide
    F.tiled_attention_backward(dout, q, k, v, out, log_total, additive(causal_mask(8), float), 2)
    assert len(computed) == 20
    assert sum(computed) == 8


def peak(n):
    """Bytes at most held by forward and backward of one head of n positions, above its inputs."""
    q, k, v, dout = np.ones((4, n, 16), np.float32)

    def forward_and_backward():
        mask = causal_mask(n), window_mask(n, n // 2), padding_mask(np.zeros((1, n), int), 1)[0, 0]
        out, log_total = F.tiled_attention(q, k, v, mask)
        F.tiled_attention_backward(dout, q, k, v, out, log_total, mask)

    return peak_of(forward_and_backward)


def test_memory_grows_with_the_length():
    peaks = [peak(n) for n in (1024, 2048, 4096)]
    assert peaks[2] - peaks[1] < 2.2 * (peaks[1] - peaks[0])  # a square would quadruple
    assert peaks[2] < 4096**2 / 4  # bytes: not even Booleans of that number


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_bit(rng, monkeypatch, threads):
    arrays = [F.split_heads(rng.normal(size=(2, 300, 3 * 16)), 3) for _ in range(4)]
    monkeypatch.setattr(tiled, "blas_threads", lambda: 1)
    _, one = both(*arrays, causal_mask(300), 128)
    monkeypatch.setattr(tiled, "blas_threads", lambda: threads)
    _, several = both(*arrays, causal_mask(300), 128)
    assert all(np.array_equal(a, b) for a, b in zip(one, several, strict=True))


@pytest.mark.parametrize(("allowed", "threads"), [(None, 1), (1, 1), (2, 2), (5, 5), (6, 6), (9, 6)])
def test_as_many_threads_as_a_matrix_product_may_use(monkeypatch, allowed, threads):
    """At most one per head; one where nothing tells how many: without threadpoolctl, as after a plain install."""
    at_work, all_are_here, limits = [], Barrier(threads, timeout=20), []

    @contextmanager
    def limit(number):
        limits.append(number)
        yield
        limits.append("ended")

    def work(indices):
        at_work.append((get_ident(), list(limits)))
        all_are_here.wait()  # raises if fewer come
        done.extend(indices)

    done = []
    monkeypatch.setattr(tiled, "blas_threads", lambda: allowed)
    monkeypatch.setattr(tiled, "limit_blas_threads", limit)
    tiled._share_out(work, (B, H))
    assert sorted((b, h) for b, heads in done for h in range(H)[heads]) == list(np.ndindex(B, H))
    assert len(at_work) == len({thread for thread, _ in at_work}) == threads
    if threads == 1:
        assert at_work == [(get_ident(), [])]  # here, and its products may use what they are allowed
    else:
        assert [during for _, during in at_work] == [[1]] * threads
        assert limits == [1, "ended"]


def test_an_error_in_a_thread_is_raised(monkeypatch):
    def broken(indices):
        for b, heads in indices:
            if b == 1 and 2 in range(H)[heads]:
                raise RuntimeError("in head 1, 2")

    monkeypatch.setattr(tiled, "blas_threads", lambda: 2)
    with pytest.raises(RuntimeError, match="in head 1, 2"):
        tiled._share_out(broken, (B, H))


# --- masks, and the layer and the models that choose it --------------------------------------------------------------


@pytest.mark.parametrize("make", [causal_mask, lambda n: window_mask(n, 3)])
def test_masks_of_positions_are_lines(make):
    assert peak_of(lambda: make(4000)) < 4000 * 100
    mask = make(4000)
    assert mask.shape == (4000, 4000)
    with pytest.raises(ValueError, match="read-only"):
        mask[0, 0] = True


@pytest.fixture
def always_tiled(monkeypatch):
    """A switch: from the call on, layers go by tiles whatever the size, in tiles of 3. Returns the calls."""
    calls, attend = [], F.tiled_attention

    def spy(q, k, v, mask=None):
        calls.append(q.shape)
        return attend(q, k, v, mask, 3)

    def switch():
        monkeypatch.setattr(attention, "TILED_BYTES", 0)
        monkeypatch.setattr(attention, "TILED_LENGTH", 0)
        monkeypatch.setattr(F, "tiled_attention", spy)
        return calls

    return switch


def run(module, *inputs, dout, **options):
    """(output, what backward returns, every parameter's gradient, attention weights) of one pass."""
    module.zero_grad()
    out = module(*inputs, **options)
    dx = module.backward(dout)
    weights = [m.weights for _, m in module.named_modules() if isinstance(m, MultiHeadAttention)]
    gradients = [p.grad.copy() for p in module.parameters()]
    return [x for x in (out, *(dx if isinstance(dx, tuple) else (dx,)), *gradients, *weights) if x is not None]


def assert_near(plain, by_tiles):
    for expected, actual in zip(plain, by_tiles, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


ATTENTIONS = {
    "biases": lambda: MultiHeadAttention(12, H, dtype=np.float64),
    "no biases": lambda: MultiHeadAttention(12, H, bias=False, dtype=np.float64),
    "groups": lambda: GroupedQueryAttention(12, H, num_kv_heads=1, dtype=np.float64),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_layer(rng, random_module, always_tiled, mask, kind):
    layer, mask = random_module(ATTENTIONS[kind]()), MASKS[mask]
    x, memory, dout = (rng.normal(size=(B, n, 12)) for n in (T, S, T))
    plain = run(layer, x, memory, mask=mask, dout=dout)
    plain_self = run(layer, x, dout=dout)
    calls = always_tiled()
    assert_near(plain, run(layer, x, memory, mask=mask, dout=dout))
    assert_near(plain_self, run(layer, x, dout=dout))
    assert len(calls) == 2
    assert check_gradients(layer, x, memory, mask=mask, max_entries=2).passed


def test_weights_are_there_when_asked_for(rng, always_tiled):
    layer = MultiHeadAttention(12, H, rng=0, dtype=np.float64)
    x = rng.normal(size=(B, T, 12))
    layer(x, mask=causal_mask(T))
    expected = layer.weights
    calls = always_tiled()
    for mode in (layer.train, layer.eval):
        mode()(x, mask=causal_mask(T))
        assert "weights" not in layer.intermediates()
        assert np.array_equal(layer.weights, expected)
    assert len(calls) == 2
    layer.eval(keep=True)(x, mask=causal_mask(T))
    assert np.array_equal(layer.intermediates()["weights"], expected)
    assert len(calls) == 2


def test_tiles_are_for_what_is_large(rng, monkeypatch):
    calls = []
    attend = F.tiled_attention
    monkeypatch.setattr(F, "tiled_attention", lambda *a: calls.append(a[0].shape) or attend(*a))
    layer = MultiHeadAttention(4, 4, rng=0)
    for n, expected in ((1023, 0), (1024, 1)):  # 4 heads of 1024² scores of 4 bytes are 16 MiB
        layer(rng.normal(size=(1, n, 4)).astype(np.float32))
        assert len(calls) == expected
    layer(rng.normal(size=(260, 128, 4)).astype(np.float32))  # more bytes, but each head is small
    layer(rng.normal(size=(1, 1, 4)).astype(np.float32), rng.normal(size=(1, 2**20, 4)).astype(np.float32))  # one query
    assert len(calls) == 1
