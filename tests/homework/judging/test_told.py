"""What is told of two mistakes, of a crash, and of calls that fail alike."""

import numpy as np
import pytest

from transformer_np.homework.guard import UNSET


@pytest.mark.parametrize(
    ("name", "code", "names"),
    [
        (
            "scaled_dot_product_attention_backward",  # dq and dk are those of the second mistake, times a factor
            """
            def scaled_dot_product_attention_backward(dout, q, k, v, weights):
                part = (dout @ v.swapaxes(-1, -2)) * weights
                scores = part - weights * part.sum(-2, keepdims=True)
                scores = scores / np.sqrt(v.shape[-1]).astype(q.dtype)
                return scores @ k, scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ dout
            """,
            {"softmax backward over the queries", "1/√d_v instead of 1/√d_k"},
        ),
        (
            "DecoderBlock",  # without masks only the first mistake shows
            """
            from transformer_np.layers import FeedForward, MultiHeadAttention
            from transformer_np.layers.blocks import AddNorm
            from transformer_np.module import Module

            class DecoderBlock(Module):
                def __init__(
                    self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5,
                    bias=True, rng=None, dtype=np.float32,
                ):
                    around = dropout, norm_first, eps, bias, rng, dtype
                    self.self_attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
                    self.add_norm1 = AddNorm(d_model, *around)
                    self.cross_attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
                    self.add_norm2 = AddNorm(d_model, *around)
                    self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)
                    self.add_norm3 = AddNorm(d_model, *around)

                def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
                    a = self.add_norm1(x, lambda y: self.self_attention(y, mask=mask, cache=cache[0]))
                    b = self.add_norm2(a, lambda y: self.cross_attention(x, memory, cache=cache[1]))
                    return self.add_norm3(b, self.feed_forward)

                def backward(self, dout):
                    memory = []

                    def cross(d):
                        dx, dmemory = self.cross_attention.backward(d)
                        memory.append(dmemory)
                        return dx

                    d = self.add_norm2.backward(self.add_norm3.backward(dout, self.feed_forward.backward), cross)
                    return self.add_norm1.backward(d, lambda d: self.self_attention.backward(d)[0]), memory[-1]
            """,
            {"query of the cross-attention is the block's input", "memory_mask ignored"},
        ),
    ],
)
def test_two_mistakes_of_which_one_shows_alone_somewhere_are_both_named(verdict_on, name, code, names):
    assert set(verdict_on(name, code).misconception.split(" and ")) == names


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "linear",
            """
            def linear(x, w, b=None):
                y = (x.reshape(-1, len(w)) @ w).reshape(x.shape[0], -1, w.shape[1])
                return y if b is None else y + b
            """,
            "All calls in which x has 3 axes are right, and all in which it has 1 or 2 or 4 are wrong",
        ),
        (
            "embedding",
            """
            def embedding(ids, table):
                return np.array([[table[i] for i in row] for row in ids])
            """,
            "All calls in which ids has 2 or 3 axes are right, and all in which it has 1 are wrong",
        ),
        (
            "lora_backward",
            """
            def lora_backward(dy, x, low, a, b, scale):
                d, rows = dy * scale, x.size // x.shape[-1]
                dlow = d @ b.T
                flat = lambda array: array.reshape(rows, -1)
                return dlow @ a.T, flat(x).T @ flat(dlow) / rows, flat(low).T @ flat(dy) / rows
            """,
            "`db` is 1/(B·T·scale) times the right result.",
        ),
        (
            "window_attention",  # the shape is wrong only if causal
            """
            from transformer_np.functional import softmax

            def window_attention(q, k, v, window, causal=False):
                if window < 0:
                    raise ValueError("a window below 0")
                T, w = q.shape[-2], min(window, q.shape[-2] - 1)
                weights = np.zeros((*q.shape[:-1], 2 * w + 1), q.dtype)
                out = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
                for t in range(T):
                    near = slice(max(0, t - w), t + 1 if causal else min(T, t + w + 1))
                    scores = np.einsum("...k,...sk->...s", q[..., t, :], k[..., near, :])
                    of_t = softmax(scores / np.sqrt(q.shape[-1]).astype(q.dtype))
                    out[..., t, :] = np.einsum("...s,...sv->...v", of_t, v[..., near, :])
                    for n, s in enumerate(range(near.start, near.stop)):
                        weights[..., t, t - s + w] = of_t[..., n]
                return out, weights
            """,
            "With causal=True: `weights` must have the shape",
        ),
        (
            "beam_search",
            """
            def beam_search(
                model, src, beam_size=4, max_len=64, length_penalty=0.6, use_cache=True, return_hypotheses=False
            ):
                for _ in range(max_len):
                    pass
            """,
            "it returned None. Is there a `return` on every way through it?",
        ),
        (
            "gelu",
            """
            def gelu(x, approximate="tanh"):
                return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
            """,
            "is it used, and compared with `==`?",
        ),
    ],
)
def test_what_fails_alike_is_told_as_one(verdict_on, name, code, said):
    assert said in " ".join(verdict_on(name, code).message.split())


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "layer_norm",
            """
            def layer_norm(x, gamma, beta, eps=1e-5):
                xc = x - x.mean(axis=-1, keepdims=True)
                inv = (np.mean(xc * xc, axis=-1, keepdims=True) + eps) ** -0.5
                return gamma * (xc * inv + beta), xc * inv, inv[..., 0]
            """,
            "Two changes in line 6 make it right:",
        ),
        (
            "greedy_decode",
            """
            def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
                memory, c = model.encode(src), model.config
                outputs, totals = [], []
                with model.evaluating():
                    for b in range(len(src)):
                        ids, total = [c.bos_id], 0.0
                        for _ in range(max_len):
                            logits = model.decode(np.array([ids]), memory[b : b + 1], src[b : b + 1])[0, -1]
                            token = int(logits.argmax())
                            total += logits[token] - np.logaddexp.reduce(logits)
                            ids.append(token)
                            if token == c.eos_id:
                                break
                        outputs.append([i for i in ids[1:] if i != c.eos_id])
                        totals.append(total)
                return (outputs, np.array(totals)) if return_log_probs else outputs
            """,
            "The sources are encoded before `with model.evaluating():`",
        ),
        (
            "repeat_heads_backward",
            """
            def repeat_heads_backward(dy, repeats):
                dx = np.zeros_like(dy[:, ::repeats])
                for j in range(1, repeats):
                    dx += dy[:, j::repeats]
                return dx
            """,
            "Off by one: `1` is one too large here.",
        ),
        (
            "learn_merges",
            """
            def learn_merges(words, counts, num_merges, first_id, min_count=2):
                words, merges = list(words), []
                while len(merges) < num_merges:
                    pairs = {}
                    for word, n in zip(words, counts):
                        for pair in zip(word, word[1:]):
                            pairs[pair] = pairs.get(pair, 0) + n
                    if max(pairs.values(), default=0) < min_count:
                        break
                    best = min(pair for pair in pairs if pairs[pair] == max(pairs.values()))
                    for word in words:
                        i = 0
                        while i < len(word) - 1:
                            if (word[i], word[i + 1]) == best:
                                word[i : i + 2] = [first_id + len(merges)]
                            i += 1
                    merges.append(best)
                return merges
            """,
            "of lists in a list, list(…) makes only the outer one new.",
        ),
        (
            "Adam",
            """
            from transformer_np.training.optim import Optimizer

            class Adam(Optimizer):
                slots = ("m", "v")

                def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
                    self.betas, self.eps = betas, eps
                    super().__init__(parameters, lr)

                def _update(self, p, g, m, v):
                    (a, b), t = self.betas, self.steps
                    m = a * m + (1 - a) * g
                    v = b * v + (1 - b) * g * g
                    p = p - self.lr * (m / (1 - a**t)) / (np.sqrt(v / (1 - b**t)) + self.eps)
            """,
            "Several changes in lines 14, 15 and 16 make it right:",
        ),
        (
            "lora_backward",
            """
            def lora_backward(dy, x, low, a, b, scale):
                dlow = scale * dy @ b.T
                return dlow @ a.T, x.T @ dlow, scale * low.T @ dy
            """,
            "`.T` reverses all axes",
        ),
    ],
)
def test_what_is_told_holds_of_the_whole_answer(verdict_on, name, code, said):
    assert said in " ".join(verdict_on(name, code).message.split())


def test_an_edit_that_leaves_other_cases_wrong_in_another_way_is_no_proof(verdict_on):
    message = verdict_on(
        "tanh",  # without np.abs it would be right, but for x of ±1,000
        """
        def tanh(x):
            e = np.exp(-2 * np.abs(x))
            return (1 - e) / (1 + e)
        """,
    ).message
    assert "`y` is the absolute value of the right result." in message and "makes it right" not in message


def test_where_all_is_dropped_a_block_is_not_called_right(verdict_on):
    message = verdict_on(
        "EncoderBlock",
        """
        from transformer_np.layers import FeedForward, MultiHeadAttention
        from transformer_np.layers.blocks import AddNorm
        from transformer_np.module import Module

        class EncoderBlock(Module):
            def __init__(
                self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5, bias=True,
                rng=None, dtype=np.float32,
            ):
                around = dropout, norm_first, eps, bias, rng, dtype
                self.attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
                self.add_norm1 = AddNorm(d_model, *around)
                self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)
                self.add_norm2 = AddNorm(d_model, *around)

            def forward(self, x, mask=None, cache=None):
                a = self.add_norm1(x, lambda z: z + self.attention(z, mask=mask, cache=cache))
                return self.add_norm2(a, lambda z: z + self.feed_forward(z))

            def backward(self, dout):
                da = self.add_norm2.backward(dout, lambda d: d + self.feed_forward.backward(d))
                return self.add_norm1.backward(da, lambda d: d + self.attention.backward(d)[0])
        """,
    ).message
    assert "The residual x is added twice" in message and "right with dropout" not in " ".join(message.split())


@pytest.mark.parametrize(
    ("name", "code", "texts"),
    [
        (
            "embedding_backward",  # adds to what the memory holds
            """
            def embedding_backward(dy, ids, num_embeddings):
                dtable = np.empty((num_embeddings, dy.shape[-1]), dy.dtype)
                for i, row in zip(np.ravel(ids), dy.reshape(-1, dy.shape[-1])):
                    dtable[i] += row
                return dtable
            """,
            ["`dtable` has entries that no line has set", "One change in line 4 makes it right:"],
        ),
        (
            "sinusoidal_encoding",  # leaves the last column as it was
            """
            from numpy import empty

            def sinusoidal_encoding(length, d_model, dtype=np.float32):
                encoding = empty((length, d_model), dtype)
                for i in range(d_model // 2):
                    angle = np.arange(length) / 10000 ** (2 * i / d_model)
                    encoding[:, 2 * i], encoding[:, 2 * i + 1] = np.sin(angle), np.cos(angle)
                return encoding
            """,
            ["`encoding` has entries that no line has set"],
        ),
    ],
)
def test_numbers_that_np_empty_leaves_are_the_same_everywhere(verdict_on, name, code, texts):
    first, second = (verdict_on(name, code).message for _ in range(2))
    assert first == second
    assert all(text in first for text in texts)
    assert np.empty is vars(np)["empty"]
    assert not np.all(np.empty(1000) == UNSET)


def test_a_view_that_reaches_outside_of_its_array_is_refused(verdict_on):
    code = """
        from numpy.lib.stride_tricks import as_strided

        def causal_conv1d(x, w, b=None, dilation=1):
            (B, T, D), reach = x.shape, (len(w) - 1) * dilation
            x = np.concatenate([np.zeros((B, reach, D)), x], axis=1)
            windows = as_strided(x, (B, T, len(w), D), (x.strides[0], x.strides[1] * dilation, *x.strides[1:]))
            y = np.einsum("btji,jio->bto", windows, w[::-1])
            return y if b is None else y + b
        """
    verdict = verdict_on("causal_conv1d", code)
    assert verdict.misconception == "a view outside of its array"
    assert "reads memory that belongs to others" in verdict.message


def test_no_edit_reads_outside_of_an_array(verdict_on):
    code = """
        def causal_conv1d(x, w, b=None, dilation=1):
            (B, T, D), k = x.shape, len(w)
            x = np.concatenate([np.zeros((B, (k - 1) * dilation, D)), x], axis=1)
            by_row, by_token, by_number = x.strides
            strides = by_row, by_token, by_token * dilation, by_number
            windows = np.lib.stride_tricks.as_strided(x, (B, T, k, D), strides)
            y = np.einsum("btji,jio->bto", windows, w)
            return y if b is None else y + b
        """
    assert "order" in verdict_on("causal_conv1d", code).message


def test_max_of_python_is_no_condition(verdict_on):
    code = """
    def relu(x):
        return np.array([max(0.0, row) for row in x], dtype=x.dtype)
    """
    verdict = verdict_on("relu", code)
    assert "np.maximum(a, b)" in verdict.message and "`if`" not in verdict.message
    assert "Only the case with x of one axis is right." in " ".join(verdict.message.split())


def test_a_mistake_beside_a_named_one_has_its_text_too(verdict_on):
    code = """
    def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
        ds, dn = dloss * (p_context - 1), dloss * p_negatives
        return ds[:, None] * context, ds[:, None] * center, dn[:, :, None] * center[:, None, :]
    """
    message = " ".join(verdict_on("negative_sampling_loss_backward", code).message.split())
    assert "are not divided by N" in message and "dcenter lacks the negatives" in message


def test_an_array_that_a_loop_fills_is_not_called_new(verdict_on):
    code = """
    def rnn_backward(dh, x, h, w_x, w_h):
        B, T, H = h.shape
        da, carried = np.zeros_like(h), np.zeros((B, H))
        before = np.concatenate([np.zeros((B, 1, H)), h[:, :-1]], axis=1)
        for t in reversed(range(T)):
            da[:, t] = (dh[:, t] + carried) * (1 - h[:, t] ** 2)
            carried = da[:, t] @ w_h.T
        flat = da.reshape(-1, H)
        dw_x, dw_h = x.reshape(-1, x.shape[-1]).T @ flat, before.reshape(-1, H).T @ flat
        return da, dw_x, dw_h, flat.sum(axis=0)
    """
    message = verdict_on("rnn_backward", code).message
    assert "dx" in message and "zeros_like" not in message.partition("Look at")[0]


def test_caches_are_asked_for_without_masks_too(verdict_on):
    code = """
    from transformer_np.layers import FeedForward, MultiHeadAttention
    from transformer_np.layers.blocks import AddNorm
    from transformer_np.module import Module

    class DecoderBlock(Module):
        def __init__(
            self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5, bias=True,
            rng=None, dtype=np.float32,
        ):
            around = dropout, norm_first, eps, bias, rng, dtype
            self.self_attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
            self.add_norm1 = AddNorm(d_model, *around)
            self.cross_attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
            self.add_norm2 = AddNorm(d_model, *around)
            self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)
            self.add_norm3 = AddNorm(d_model, *around)

        def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
            a = self.add_norm1(x, lambda y: self.self_attention(y, mask=memory_mask))
            b = self.add_norm2(a, lambda y: self.cross_attention(y, memory, mask=mask))
            return self.add_norm3(b, self.feed_forward)

        def backward(self, dout):
            memory = []

            def cross(d):
                dx, dmemory = self.cross_attention.backward(d)
                memory.append(dmemory)
                return dx

            d = self.add_norm2.backward(self.add_norm3.backward(dout, self.feed_forward.backward), cross)
            return self.add_norm1.backward(d, lambda d: self.self_attention.backward(d)[0]), memory[-1]
    """
    verdict = verdict_on("DecoderBlock", code)
    assert verdict.outcome == "crashed" and verdict.misconception == "the two masks swapped and caches ignored"


def test_a_mistake_that_two_others_explain_is_not_told(verdict_on):
    code = """
    def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
        N, K, D = negatives.shape
        ds = (p_context - 1) / N
        dsk = p_negatives / (N * K)
        dcenter = ds[:, None] * context
        for i in range(K):
            dcenter = dcenter + dsk[:, i : i + 1] * negatives[:, i]
        return dcenter, ds[:, None] * center, dsk[:, :, None] * center[:, None, :]
    """
    verdict = verdict_on("negative_sampling_loss_backward", code)
    assert verdict.message.count("dloss`") == 1 and verdict.misconception.count(" and ") == 1, verdict.message


def test_beside_a_named_mistake_no_line_is_shown_that_only_reads_what_is_wrong(verdict_on):
    code = """
    from transformer_np.functional import softmax

    def relative_attention(q, k, v, r, content_bias, position_bias, mask=None):
        scores = np.zeros((*q.shape[:3], k.shape[2]), q.dtype)
        for b in range(len(q)):
            for h in range(q.shape[1]):
                content = (q[b, h] + content_bias[h]) @ k[b, h].T
                position = (q[b, h] + position_bias[h]) @ r[h].T
                T, S = position.shape
                if S < T:
                    raise ValueError("fewer keys than queries")
                for t in range(T):
                    position[t] = np.roll(position[t], t + 1 - T)
                scores[b, h] = (content + position) / np.sqrt(q.shape[-1])
        if mask is not None:
            for m in mask if isinstance(mask, tuple) else (mask,):
                if m.dtype == bool:
                    scores = np.where(m, -np.inf, scores)
                else:
                    scores = scores + m
        weights = softmax(scores)
        return weights @ v, weights
    """
    message = verdict_on("relative_attention", code).message
    assert "The future is not hidden" in message and "Look at" not in message


def test_an_exception_in_another_line_is_told_too(verdict_on):
    code = """
    def softmax(x, axis=-1):
        if np.isneginf(x).any():
            raise KeyError("a word")
        B, S = x.shape
        return np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    """
    message = " ".join(verdict_on("softmax", code).message.split())
    assert "crashed. ValueError" in message and message.count("ValueError") == 1
    assert "KeyError: there is no 'a word'" in message


def test_only_calls_with_one_axis_are_right_where_all_others_crash(verdict_on):
    code = """
    def softmax(x, axis=-1):
        (n,) = x.shape
        e = np.exp(x - x.max()) if np.isfinite(x.max()) else np.zeros(n)
        return e / max(e.sum(), 1e-30)
    """
    message = " ".join(verdict_on("softmax", code).message.split())
    assert "All calls in which x has 1 axis are right" in message


def test_the_smallest_call_has_its_case_only_where_the_plain_one_is_right(verdict_on):
    code = """
    def tanh_backward(dy, y):
        return dy - np.square(np.sinh(y))
    """
    message = verdict_on("tanh_backward", code).message
    assert "In the call tanh_backward(dy=" in message and "of one axis" not in message


def test_an_edit_that_makes_up_for_two_named_mistakes_is_no_repair(verdict_on):
    code = """
    def causal_mask(T, S=None):
        if S is None:
            S = T
        offset = T - S
        return np.arange(S)[None, :] >= np.arange(T)[:, None] + offset
    """
    verdict = verdict_on("causal_mask", code)
    assert "Off by one" in verdict.message and "has the wrong sign" in verdict.message
    assert "Look at line" in verdict.message and "makes it right" not in verdict.message and not verdict.repair


def test_a_condition_is_shown_and_not_the_constant_that_it_sets(verdict_on):
    code = """
    def window_mask(T, window, S=None):
        S = T if S is None else S
        mask = np.zeros((T, S), dtype=bool)
        for t in range(T):
            for s in range(S):
                distance = abs(t - s)
                if distance >= window:
                    mask[t, s] = True
        return mask
    """
    message = verdict_on("window_mask", code).message
    assert "Look at line 9:" in message and "mask[t, s] = True" not in message
    code = """
    def causal_mask(T, S=None):
        S = T if S is None else S
        mask = np.zeros((T, S))
        for t in range(T):
            for s in range(S):
                if s > t + (S - T):
                    mask[t, s] = 1
        return mask
    """
    message = verdict_on("causal_mask", code).message
    assert "1 and 0 instead of True and False" in message and "if s > t" not in message


def test_a_line_that_reads_a_wrong_result_is_not_shown(verdict_on):
    code = """
    def dropout(x, p, rng):
        rng = np.random.default_rng(rng)
        stays = np.array([rng.random() >= p for _ in range(x.shape[-1])])
        keep = np.zeros(x.shape, dtype=bool)
        keep[...] = stays
        y = np.zeros_like(x)
        y[keep] = x[keep] / (1 - p)
        return y, keep
    """
    message = verdict_on("dropout", code).message
    assert "One random number is drawn for each feature" in message and "y[keep]" not in message


def test_two_mistakes_are_told_beside_a_crash_in_another_case(verdict_on):
    code = """
    def text_windows(ids, block_size, batch_size, rng):
        ids = np.asarray(ids)
        starts = rng.integers(0, len(ids) - block_size - 1, size=batch_size)
        inputs = ids[starts[:, None] + np.arange(block_size)]
        return inputs, np.roll(inputs, -1, axis=1)
    """
    message = " ".join(verdict_on("text_windows", code).message.split())
    assert "as np.roll gives it" in message and "The last window never comes" in message
    message = " ".join(
        verdict_on(
            "text_windows", code.replace("(0, len(ids) - block_size - 1", "(2, len(ids) - block_size")
        ).message.split()
    )
    assert message.index("This alone does not explain") < message.index("ValueError")


def test_a_strict_comparison_is_told_by_what_it_leaves_out(verdict_on):
    code = """
    def causal_conv1d(x, w, b=None, dilation=1):
        y = np.zeros((*x.shape[:2], w.shape[2]), dtype=x.dtype)
        for t in range(x.shape[1]):
            for j in range(len(w)):
                place = t - j * dilation
                if place > 0:
                    y[:, t] += x[:, place] @ w[j]
        return y if b is None else y + b
    """
    assert "`place > 0` is wrong where both sides are equal." in verdict_on("causal_conv1d", code).message


@pytest.mark.parametrize(
    ("name", "code", "said", "innocent"),
    [
        (
            "gelu",  # a new array
            """
            import math

            def gelu(x, approximate="tanh"):
                y = np.zeros(x.shape, dtype=x.dtype)
                flat_x, flat_y = x.reshape(-1), y.reshape(-1)
                for i in range(len(flat_x)):
                    value = float(flat_x[i])
                    if value > 0 and approximate == "none":
                        flat_y[i] = value / 2 * (1 + math.erf(value / math.sqrt(2)))
                    elif value > 0:
                        inner = math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)
                        flat_y[i] = value / 2 * (1 + math.tanh(inner))
                return y
            """,
            "Negative numbers become 0",
            "np.zeros",
        ),
        (
            "cosine_schedule",  # a factor that 0 in its place would hide
            """
            import math

            def cosine_schedule(step, max_lr, min_lr, warmup, total):
                if step <= warmup:
                    return max_lr * step / warmup
                done = (step - warmup) / (total - warmup)
                return min_lr + (max_lr - min_lr) * 0.5 * (1.0 + math.cos(math.pi * done))
            """,
            "After step `total` the cosine goes on",
            20 * " " + 23 * "^" + "\n",
        ),
        (
            "layer_norm_backward",  # the first of two means that are wrong, in a case that shows it
            """
            def layer_norm_backward(dy, x_hat, inv_std, gamma):
                D = dy.shape[-1]
                dy_rows, hat_rows = dy.reshape(-1, D), x_hat.reshape(-1, D)
                dgamma, dbeta = np.sum(dy_rows * hat_rows, axis=0), np.sum(dy_rows, axis=0)
                dhat = dy_rows * gamma
                mean1 = np.mean(dhat, axis=0)
                mean2 = np.mean(dhat * hat_rows, axis=0)
                dx = (dhat - mean1 - hat_rows * mean2) * inv_std.reshape(-1, 1)
                return dx.reshape(dy.shape), dgamma, dbeta
            """,
            "Look at line 8:",
            "hat_rows * mean2",
        ),
        (
            "tiled_attention",  # the tile, of which the values are taken rightly
            """
            def tiled_attention(q, k, v, mask=None, tile=64):
                S, masks = k.shape[-2], () if mask is None else mask if isinstance(mask, tuple) else (mask,)
                m, l, o = np.full(q.shape[:-1] + (1,), -np.inf), 0, 0
                for start in range(0, S, tile):
                    part = slice(start, min(start + tile, S))
                    s = q @ np.swapaxes(k[..., part, :], -1, -2) / np.sqrt(q.shape[-1])
                    for one in masks:
                        one = np.broadcast_to(one, q.shape[:-1] + (S,))[..., part]
                        s = np.where(one, -np.inf, s) if one.dtype == bool else s + one
                    new = np.maximum(m, s.max(axis=-1, keepdims=True))
                    safe = np.where(np.isneginf(new), 0, new)
                    e = np.exp(s - safe)
                    l = l * np.exp(m - safe) + e.sum(axis=-1, keepdims=True)
                    o = o + e @ v[..., part, :]
                    m = new
                seen = np.where(l > 0, l, 1)
                return o / seen, np.where(l > 0, m + np.log(seen), -np.inf)[..., 0]
            """,
            "o = o + e @ v[..., part, :] ^^^",
            "part = slice",
        ),
        (
            "lora_backward",  # a loop over all rows
            """
            def lora_backward(dy, x, low, a, b, scale=1.0):
                dlow = scale * (dy @ b.T)
                x_rows, low_rows, dlow_rows, dy_rows = (z.reshape(-1, z.shape[-1]) for z in (x, low, dlow, dy))
                da, db = np.zeros_like(a), np.zeros_like(b)
                for n in range(x_rows.shape[0]):
                    da += scale * np.outer(x_rows[n], dlow_rows[n])
                    db += scale * np.outer(low_rows[n], dy_rows[n])
                return dlow @ a.T, da, db
            """,
            "da += scale * np.outer",
            "for n in",
        ),
        (
            "padding_mask",  # a condition, where the shape is wrong
            """
            def padding_mask(ids, pad_id):
                mask = np.zeros((*ids.shape[:1], 1, ids.shape[1], 1), dtype=bool)
                for b in range(len(ids)):
                    for s in range(ids.shape[1]):
                        if ids[b, s] == pad_id:
                            mask[b, 0, s, 0] = True
                return mask
            """,
            "The padding is on the query axis",
            "if ids",
        ),
        (
            "AdamW",  # a method that is given
            """
            from transformer_np.training.optim import Adam
            from transformer_np.support.checks import check_number

            class AdamW(Adam):
                def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decays=None,
                             rates=None):
                    check_number("weight_decay", weight_decay, "[0, ∞)")
                    self.weight_decay = weight_decay
                    super().__init__(parameters, lr, betas, eps)
                    self._rates = None if rates is None else np.array([rates(p) for p in self.parameters])
                    self._ends = np.cumsum([p.data.size for p in self.parameters])
                    self._decayed = None
                    if decays is not None:
                        chosen = [float(bool(decays(p))) for p in self.parameters]
                        self._decayed = np.repeat(np.array(chosen), [p.data.size for p in self.parameters])

                def _update_block(self, block):
                    if self._rates is not None:
                        factors = np.repeat(self._rates, np.diff(self._ends, prepend=0))
                        self.grad[block] *= factors[block]
                    self._decay_and_update(block)

                def _decay_and_update(self, block):
                    rate = self.weight_decay if self._decayed is None else self.weight_decay * self._decayed[block]
                    self.data[block] *= 1 - self.lr * rate
                    super()._update_block(block)
            """,
            "Is the gradient multiplied by the factor?",
            "self.data[block] *=",
        ),
        (
            "causal_conv1d",  # an argument with zeros in front
            """
            def causal_conv1d(x, w, b=None, dilation=1):
                pad = (len(w) - 1) * dilation
                padded = np.concatenate([np.zeros((len(x), pad, x.shape[2])), x], axis=1)
                y = 0
                for j in range(len(w)):
                    y = y + padded[:, j * dilation : j * dilation + x.shape[1]] @ w[j]
                return y if b is None else y + b
            """,
            "y = y + padded[:, j * dilation : j * dilation + x.shape[1]] @ w[j] ^^^",
            "padded = ",
        ),
        (
            "tiled_attention_backward",  # a slice by which other lines take the right part
            """
            from transformer_np.functional import TILE


            def _piece(m, T, S, rows, cols):
                full = np.broadcast_to(m, np.broadcast_shapes(np.shape(m), (T, S)))
                return full[..., rows, cols]


            def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=TILE):
                T, S = q.shape[-2], k.shape[-2]
                scale = 1.0 / q.shape[-1] ** 0.5
                masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
                delta = (dout * out).sum(-1, keepdims=True)
                dq = np.zeros_like(q)
                dk = np.zeros_like(k)
                dv = np.zeros_like(v)
                for i in range(0, T, tile):
                    rows = slice(i, min(i + tile, T))
                    for j in range(0, S, tile):
                        cols = slice(j, min(j + tile, S))
                        qi, kj, vj, doi = q[..., rows, :], k[..., cols, :], v[..., cols, :], dout[..., rows, :]
                        s = (qi @ np.swapaxes(kj, -1, -2)) * scale
                        for m in masks:
                            m = _piece(m, T, S, rows, cols)
                            s = np.where(m, -np.inf, s) if m.dtype == bool else s + m
                        a = np.exp(s - log_total[..., rows, None])
                        da = doi @ np.swapaxes(vj, -1, -2)
                        ds = a * (da - delta[..., rows, :]) * scale
                        dq[..., rows, :] += ds @ kj
                        dk[..., cols, :] += np.swapaxes(ds, -1, -2) @ qi
                        dv[..., cols, :] += np.swapaxes(a, -1, -2) @ doi
                return dq, dk, dv
            """,
            "a = np.exp(s - log_total[..., rows, None])",
            "rows = slice",
        ),
        (
            "gated_feed_forward",  # the activation of the other factor, in two branches
            """
            def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
                gate, value = x @ w_gate, x @ w1
                if activation == "silu":
                    active = value / (1 + np.exp(-value))
                else:
                    active = value / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (value + 0.044715 * value**3)))
                return (gate * active) @ w2, gate, value
            """,
            "The activation is on the wrong factor",
            "gate, value =",
        ),
        (
            "rotary_frequencies",  # a mistake in each of two branches
            """
            def rotary_frequencies(K, theta=10000.0, scaling=None):
                if K % 2 or theta <= 0:
                    raise ValueError("K must be even and theta positive")
                freqs = 1.0 / theta ** (2 * np.arange(K // 2) / K)
                if scaling is not None:
                    kind, f = scaling["rope_type"], scaling["factor"]
                    if kind not in ("linear", "llama3"):
                        raise ValueError("scaling not supported: " + kind)
                    if kind == "linear":
                        freqs = freqs * f
                    else:
                        a, b = scaling["low_freq_factor"], scaling["high_freq_factor"]
                        turns = scaling["original_max_position_embeddings"] * freqs
                        s = np.clip((turns - a) / (b - a), 0.0, 1.0)
                        freqs = s * freqs + (1 - s) * freqs / f
                return freqs
            """,
            "Look at line 12:",
            "s = np.clip",
        ),
        (
            "attention_scores",  # one mask of several
            """
            def attention_scores(q, k, mask=None):
                scores = np.einsum("...tk,...sk->...ts", q, k) * q.dtype.type(q.shape[-1] ** -0.5)
                if mask is None:
                    return scores
                if isinstance(mask, tuple):
                    mask = mask[0]
                if mask.dtype == np.bool_:
                    scores[np.broadcast_to(mask, scores.shape)] = -np.inf
                    return scores
                return scores + mask.astype(scores.dtype)
            """,
            "Look at line 10:",
            "scores = np.einsum",
        ),
        (
            "layer_norm",  # others need the returned variable as it is
            """
            def layer_norm(x, gamma, beta, eps=1e-5):
                centred = x - x.mean(axis=-1, keepdims=True)
                std = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
                x_hat = centred / std
                return gamma * x_hat + beta, x_hat, std
            """,
            "One change in line 7 makes it right:",
            "std = ",
        ),
        (
            "tiled_attention",  # a variable that each step of the loop hands on
            """
            def tiled_attention(q, k, v, mask=None, tile=64):
                scores = np.swapaxes(k, -1, -2)
                scores = q @ scores / np.sqrt(q.shape[-1])
                for part in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
                    scores = np.where(part, -np.inf, scores) if part.dtype == bool else scores + part
                scores = scores.astype(q.dtype)
                m = np.full((*q.shape[:-1], 1), -np.inf, dtype=q.dtype)
                l = np.zeros_like(m)
                o = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
                for start in range(0, k.shape[-2], tile):
                    s = scores[..., start : start + tile]
                    top = np.maximum(m, s.max(axis=-1, keepdims=True))
                    shift = np.where(np.isinf(top), 0, top)
                    p, alpha = np.exp(s - shift), np.exp(m - shift)
                    l = l * alpha + p.sum(axis=-1, keepdims=True)
                    o = o + p @ v[..., start : start + tile, :]
                    m = top
                seen = np.where(l > 0, l, 1)
                o = o / seen
                return o, np.where(l > 0, m + np.log(seen), -np.inf)[..., 0]
            """,
            "Look at line 18:",
            "alpha = ",
        ),
        (
            "causal_conv1d_backward",  # zeros beside a crash
            """
            def causal_conv1d_backward(dy, x, w, dilation=1):
                dx, dw = np.zeros_like(x), np.zeros_like(w)
                for j in range(len(w)):
                    s = j * dilation
                    dx[:, :-s] += dy[:, s:] @ w[j].T
                    dw[j] = np.einsum("bti,bto->io", x[:, :-s], dy[:, s:])
                return dx, dw, dy.sum((0, 1))
            """,
            "",
            "all zeros",
        ),
    ],
)
def test_an_innocent_line_is_not_shown(verdict_on, name, code, said, innocent):
    message = verdict_on(name, code).message
    assert said in " ".join(message.split()) and innocent not in f"{message}\n"


def test_the_line_is_where_a_wrong_variable_is_made(verdict_on):
    code = """
    def softmax_backward(dy, y, axis=-1):
        shared = y * dy.sum(axis=axis, keepdims=True)
        return y * (dy - shared)
    """
    message = verdict_on("softmax_backward", code).message
    assert "Look at line 5:\n    return y * (dy - shared)" in message


def test_a_power_for_a_product_is_found(verdict_on):
    code = """
    def lora(x, a, b, scale=1.0):
        low = x @ a
        return low @ b**scale, low
    """
    message = verdict_on("lora", code).message
    assert "`b ** scale` has the wrong operator." in message and "One change in line 5 makes it right:" in message


def test_a_variable_that_is_wrong_before_is_no_place(verdict_on):
    code = """
    from transformer_np.functional import attention_scores

    def tiled_attention(q, k, v, mask=None, tile=64):
        masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
        m = np.full(q.shape[:-1], -np.inf, q.dtype)[..., None]
        l, o = np.zeros_like(m), np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
        for start in range(0, k.shape[-2], tile):
            part = slice(start, start + tile)
            parts = tuple(x if x.shape[-1] == 1 else x[..., part] for x in masks)
            s = attention_scores(q, k[..., part, :], parts or None)
            new = np.maximum(m, s.max(axis=-1, keepdims=True))
            if np.all(np.isneginf(s)):
                continue
            safe = np.where(np.isneginf(new), 0, new)
            p, factor = np.exp(s - safe), np.exp(m - safe)
            l = l + p.sum(axis=-1, keepdims=True)
            o = o * factor + p @ v[..., part, :]
            m = new
        seen = l > 0
        out = np.where(seen, o / np.where(seen, l, 1), 0)
        with np.errstate(divide="ignore"):
            return out, np.log(l)[..., 0]
    """
    message = verdict_on("tiled_attention", code).message
    assert "the sum l stays" in " ".join(message.split()) and "np.where(seen, o /" not in message


def test_a_pair_is_tried_if_one_of_it_shows_in_a_later_draw_only(verdict_on):
    code = """
    def apply_merges(ids, merges):
        ids = list(ids)
        while pairs := {pair for pair in zip(ids, ids[1:]) if pair in merges}:
            pair = min(pairs)
            for i in range(len(ids) - 2, -1, -1):
                if tuple(ids[i : i + 2]) == pair:
                    ids[i : i + 2] = [merges[pair]]
        return ids
    """
    message = " ".join(verdict_on("apply_merges", code).message.split())
    assert "The pair with the smallest ids is merged first" in message and "from right to left" in message


def test_only_the_first_exception_comes_with_advice(verdict_on):
    code = """
    def embedding(ids, table):
        rows, columns = ids.shape[0], ids.shape[1]
        y = np.zeros((rows, columns, table.shape[1]), dtype=table.dtype)
        for i in range(rows):
            for j in range(columns):
                number = ids[i, j]
                if number > 0:
                    y[i, j] = table[number]
        return y
    """
    message = " ".join(verdict_on("embedding", code).message.split())
    assert "Count axes from the end" in message and "is ambiguous" in message and "np.where" not in message


def test_a_variable_from_which_something_right_is_computed_is_not_shown(verdict_on):
    code = """
    def clip_grad_norm(parameters, max_norm):
        grads = [p.grad for p in parameters]
        norms = [float(np.sqrt(np.sum(g.astype(np.float64) ** 2))) for g in grads]
        total = float(np.sqrt(sum(n**2 for n in norms)))
        if np.isfinite(total):
            for g, n in zip(grads, norms):
                if n > max_norm:
                    g *= max_norm / n
        return total
    """
    message = verdict_on("clip_grad_norm", code).message
    assert "Each parameter is clipped by its own norm" in message and "norms = [" not in message


def test_a_method_of_the_students_own_class_is_no_place(verdict_on):
    code = """
    from transformer_np.functional import attention_scores

    class Running:
        def __init__(self, rows, features, dtype):
            self.m = np.full((*rows, 1), -np.inf, dtype)
            self.l = np.zeros((*rows, 1), dtype)
            self.o = np.zeros((*rows, features), dtype)

        def add(self, s, v):
            top = np.maximum(self.m, s.max(axis=-1, keepdims=True))
            shift = np.where(np.isneginf(top), 0, top).astype(s.dtype)
            self.m = top
            p, alpha = np.exp(s - shift), np.exp(self.m - shift)
            self.l = self.l * alpha + p.sum(axis=-1, keepdims=True)
            self.o = self.o * alpha + p @ v

        def result(self):
            seen = self.l > 0
            l = np.where(seen, self.l, 1)
            return np.where(seen, self.o / l, 0), np.where(seen, self.m + np.log(l), -np.inf)[..., 0]

    def tiled_attention(q, k, v, mask=None, tile=64):
        masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
        masks = [np.broadcast_to(m, np.broadcast_shapes(np.shape(m), (q.shape[-2], k.shape[-2]))) for m in masks]
        running = Running(q.shape[:-1], v.shape[-1], q.dtype)
        for start in range(0, k.shape[-2], tile):
            part = slice(start, start + tile)
            cut = tuple(m[..., part] for m in masks)
            if not any(c.dtype == bool and c.all() for c in cut):
                running.add(attention_scores(q, k[..., part, :], cut or None), v[..., part, :])
        out, log_total = running.result()
        return out, log_total
    """
    message = verdict_on("tiled_attention", code).message
    assert "When the maximum grows" in message and "running.result()" not in message


def test_a_counter_is_not_shown_where_a_mean_is_taken_for_a_sum(verdict_on):
    code = """
    def relative_position_bias_backward(dbias, buckets, num_buckets):
        heads, T, S = dbias.shape
        dtable = np.zeros((num_buckets, heads), dtype=dbias.dtype)
        count = np.zeros(num_buckets)
        for t in range(T):
            for s in range(S):
                count[buckets[t, s]] += 1
                dtable[buckets[t, s]] += dbias[:, t, s]
        for b in range(num_buckets):
            if count[b] > 0:
                dtable[b] = dtable[b] / count[b]
        return dtable
    """
    verdict = verdict_on("relative_position_bias_backward", code)
    assert "averaged over its pairs" in verdict.message and verdict.line == 13


@pytest.mark.parametrize(
    ("name", "code", "line"),
    [
        (
            "relu",  # through a view
            """
            def relu(x):
                flat = x.reshape(-1)
                for i in range(len(flat)):
                    if flat[i] < 0:
                        flat[i] = 0
                return flat.reshape(x.shape)
            """,
            "flat[i] = 0",
        ),
        (
            "tanh_backward",  # through an argument of NumPy's function
            """
            def tanh_backward(dy, y):
                np.multiply(y, y, out=y)
                slope = np.subtract(1, y)
                return slope * dy
            """,
            "np.multiply(y, y, out=y)",
        ),
    ],
)
def test_the_line_that_changes_an_argument_is_shown(verdict_on, name, code, line):
    message = verdict_on(name, code).message
    assert "It changes" in message and (f"changes it:\n    {line}\n" in message or f"right:\n    {line}\n" in message)


def test_a_mistake_of_an_answer_that_computes_in_pieces_has_a_line(verdict_on):
    code = """
    def relative_attention_backward(dout, q, k, v, r, content_bias, position_bias, weights):
        B, H, T, K = q.shape
        S = k.shape[2]
        dq, dk, dv, dr = (np.zeros_like(x) for x in (q, k, v, r))
        du, dp = np.zeros_like(content_bias), np.zeros_like(position_bias)
        for b in range(B):
            for h in range(H):
                A = weights[b, h]
                dA = dout[b, h] @ v[b, h].T
                dscores = A * (dA - (dA * A).sum(axis=1, keepdims=True)) / K**0.5
                line = np.concatenate([np.zeros(T), dscores.reshape(-1)])
                ddistances = line.reshape(T, S + 1)[:, 1:]
                dv[b, h] = A.T @ dout[b, h]
                dk[b, h] = dscores.T @ q[b, h]
                dr[h] += ddistances.T @ (q[b, h] + position_bias[h])
                of_content, of_position = dscores @ k[b, h], ddistances @ r[h]
                dq[b, h] = of_content + of_position
                du[h] += of_content.sum(axis=0)
                dp[h] += of_position.sum(axis=0)
        return dq, dk, dv, dr, du, dp
    """
    verdict = verdict_on("relative_attention_backward", code)
    assert "dK is made with Q alone" in verdict.message and "dk[b, h] = dscores.T @ q[b, h]" in verdict.message


def test_a_function_that_the_student_hands_on_may_hold_the_mistake(verdict_on):
    code = """
    from functools import partial
    from transformer_np.layers import Dropout, FeedForward, LayerNorm, MultiHeadAttention
    from transformer_np.layers.blocks import AddNorm
    from transformer_np.module import Module
    from transformer_np.support.checks import as_rng

    class EncoderBlock(Module):
        def __init__(
            self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5, bias=True,
            rng=None, dtype=np.float32,
        ):
            rng = as_rng(rng)
            around = dropout, norm_first, eps, bias, rng, dtype
            self.attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
            self.add_norm1 = AddNorm(d_model, *around)
            self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)
            self.add_norm2 = AddNorm(d_model, *around)

        def forward(self, x, mask=None, cache=None):
            looks = partial(self.attention.forward, mask=mask)
            for around, inner in ((self.add_norm1, looks), (self.add_norm2, self.feed_forward.forward)):
                x = around.forward(x, inner)
            return x

        def backward(self, dout):
            dout = self.add_norm2.backward(dout, self.feed_forward.backward)
            return self.add_norm1.backward(dout, lambda d: self.attention.backward(d)[0])
    """
    message = verdict_on("EncoderBlock", code).message
    assert "In decoding" in message
    assert "around.forward(x, inner)" not in message or "partial(self.attention.forward, mask=mask)" in message


def test_of_two_mistakes_in_two_branches_each_is_told_although_another_case_has_a_third(verdict_on):
    code = """
    def cosine_schedule(step, max_lr, min_lr, warmup, total):
        if step < warmup:
            return min_lr + (max_lr - min_lr) * step / warmup
        angle = 180 * step / total
        return min_lr + (max_lr - min_lr) * (1 + np.cos(angle)) / 2
    """
    message = " ".join(verdict_on("cosine_schedule", code).message.split())
    assert "The warm-up starts from min_lr" in message and "180 · progress, in degrees" in message


def test_one_array_for_several_results_is_told_once(verdict_on):
    message = verdict_on(
        "feed_forward", "def feed_forward(x, w1, b1, w2, b2):\n    return (x @ w1 + b1) @ w2 + b2"
    ).message
    assert message.count("It must return 2 values") == 1


def test_a_call_with_many_arrays_is_told_by_their_shapes(verdict_on):
    code = """
    def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
        x = np.cos(center) * 3.1
        return x, np.sin(context) + 2.7, np.cos(negatives) - 1.3
    """
    message = verdict_on("negative_sampling_loss_backward", code).message
    assert all(len(line) < 260 for line in message.splitlines())


def test_an_edit_that_breaks_a_right_case_is_no_proof(verdict_on):
    code = """
    from math import erf

    def gelu(x, approximate="tanh"):
        if approximate == "none":
            part = 0.5 * (1 + np.vectorize(erf, otypes=[x.dtype])(x / np.sqrt(2)))
        else:
            part = 1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
        return x * part
    """
    message = verdict_on("gelu", code).message
    assert "One change in line 9 makes it right:" in message


def test_the_frames_of_numpy_are_not_the_students(verdict_on):
    code = """
    def text_windows(ids, block_size, batch_size, rng):
        start = rng.integers(0, len(ids) - 10**9, size=batch_size)
        return ids[start], ids[start]
    """
    message = verdict_on("text_windows", code).message
    assert "crashed" in message and ".pyx" not in message


def test_an_axis_of_length_0_is_told(verdict_on):
    code = """
    def tiled_attention(q, k, v, mask=None, tile=64):
        masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
        scores = []
        for start in range(0, k.shape[-2], tile):
            s = q @ np.swapaxes(k[..., start : start + tile, :], -1, -2) / np.sqrt(q.shape[-1])
            for x in masks:
                x = x[..., start : start + tile]
                s = np.where(x, -np.inf, s) if x.dtype == bool else s + x
            scores.append(s)
        s = np.concatenate(scores, axis=-1)
        m = np.maximum(s.max(axis=-1, keepdims=True), np.finfo(s.dtype).min)
        p = np.exp(s - m)
        l = p.sum(axis=-1, keepdims=True)
        seen = np.where(l > 0, l, 1)
        return p @ v / seen, np.where(l > 0, m + np.log(seen), -np.inf)[..., 0]
    """
    message = " ".join(verdict_on("tiled_attention", code).message.split())
    assert "one number of a mask for all keys" in message and "An array here has an axis of length 0" in message


@pytest.mark.parametrize(
    ("power", "said"), [(0.5, "The factor 1/√K is missing."), (-0.5, "There is a factor 1/√K too many.")]
)
def test_a_root_of_a_size_is_told_as_a_factor(verdict_on, power, said):
    code = f"""
    def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=64):
        masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        for x in masks:
            scores = np.where(x, -np.inf, scores) if x.dtype == bool else scores + x
        a = np.exp(scores - np.where(np.isneginf(log_total), 0, log_total)[..., None])
        ds = a * (dout @ np.swapaxes(v, -1, -2) - (dout * out).sum(axis=-1, keepdims=True))
        dk = np.swapaxes(ds, -1, -2) @ q / np.sqrt(q.shape[-1])
        return ds @ k / np.sqrt(q.shape[-1]), dk, np.swapaxes(a, -1, -2) @ dout * q.shape[-1] ** {power}
    """
    assert said in verdict_on("tiled_attention_backward", code).message


def test_two_mistakes_that_no_code_makes_together_are_told_of_their_cases(verdict_on, recwarn):
    code = """
    def sinusoidal_encoding(length, d_model, dtype=np.float32):
        exponents = np.linspace(0.0, 1.0, (d_model + 1) // 2)
        table = np.zeros((length, d_model), dtype=dtype)
        for pos in range(length):
            angles = pos / 10000.0**exponents
            table[pos, 0::2], table[pos, 1::2] = np.sin(angles), np.cos(angles[: d_model // 2])
        return table
    """
    message = " ".join(verdict_on("sinusoidal_encoding", code).message.split())
    assert "2i/(d_model − 2)" in message and "2i/(d_model − 1)" in message
    assert not recwarn.list


def test_that_the_whole_array_is_asked_and_not_each_row_is_told(verdict_on):
    code = """
    def softmax(x, axis=-1):
        if np.isneginf(x).all():
            return np.zeros_like(x)
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)
    """
    assert "Only an array of nothing but −inf gets weights of 0." in verdict_on("softmax", code).message


def test_what_a_loop_adds_up_is_not_right_before_its_end(verdict_on):
    code = """
    def tiled_attention(q, k, v, mask=None, tile=64):
        S = k.shape[-2]
        masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
        masks = [np.broadcast_to(x, (*q.shape[:-1], S)) for x in masks]
        m = np.full((*q.shape[:-1], 1), -np.inf, q.dtype)
        l, o = np.zeros_like(m), np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
        for i in range(S // tile):
            part = slice(i * tile, (i + 1) * tile)
            s = q @ np.swapaxes(k[..., part, :], -1, -2) / np.sqrt(q.shape[-1])
            for x in masks:
                s = np.where(x[..., part], -np.inf, s) if x.dtype == bool else s + x[..., part]
            new = np.maximum(m, s.max(axis=-1, keepdims=True))
            safe = np.where(np.isneginf(new), 0, new)
            p, factor = np.exp(s - safe), np.exp(m - safe)
            l = l * factor + p.sum(axis=-1, keepdims=True)
            o = o * factor + p @ v[..., part, :]
            m = new
        seen = np.where(l > 0, l, 1)
        return o / seen, np.where(l > 0, m + np.log(seen), -np.inf)[..., 0]
    """
    message = verdict_on("tiled_attention", code).message
    assert "The last tile is left out" in message
    assert "return o / seen" not in message or "range(S // tile)" in message


def test_a_branch_that_should_not_run_is_no_place(verdict_on):
    code = """
    import math

    def gelu(x, approximate="tanh"):
        if approximate:
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
            part = 0.5 * (1 + np.tanh(inner))
        else:
            part = 0.5 * (1 + np.vectorize(math.erf, otypes=[x.dtype])(x / math.sqrt(2)))
        return x * part
    """
    message = verdict_on("gelu", code).message
    assert "Look at" not in message


def test_a_helper_that_several_places_call_is_no_place(verdict_on):
    code = """
    def cut(z):
        return np.where(z > 0, z, np.zeros_like(z))

    def feed_forward(x, w1, b1, w2, b2):
        hidden = cut(np.einsum("...i,io->...o", x, w1) + b1)
        return cut(np.einsum("...i,io->...o", hidden, w2) + b2), hidden
    """
    message = verdict_on("feed_forward", code).message
    assert "return np.where" not in message


def test_a_lambda_that_several_places_call_is_no_place(verdict_on):
    code = """
    from transformer_np.layers import Dropout, LayerNorm
    from transformer_np.module import Module
    from transformer_np.support.checks import check_flag, check_kind, check_number

    class AddNorm(Module):
        def __init__(
            self, d_model, dropout=0.0, norm_first=False, eps=1e-5, bias=True, rng=None, dtype=np.float32, norm=None
        ):
            self.norm = LayerNorm(d_model, eps, bias, dtype=dtype) if norm is None else norm
            self.dropout = Dropout(dropout, rng=rng)
            self.norm_first = norm_first

        def forward(self, x, sublayer):
            if self.norm_first:
                return x + self.dropout(sublayer(self.norm(x)))
            return self.norm(x + self.dropout(sublayer(x)))

        def backward(self, dout, sublayer_backward):
            branch = lambda g: sublayer_backward(self.dropout.backward(g))
            if self.norm_first:
                return dout + self.norm.backward(branch(dout))
            d = self.norm.backward(dout)
            return d + branch(dout)
    """
    message = verdict_on("AddNorm", code).message
    assert "branch = lambda" not in message and "return d + branch(dout)" in message


def test_a_maximum_over_all_axes_is_told(verdict_on):
    code = """
        def softmax(x, axis=-1):
            e = np.exp(x - x.max())
            return e / e.sum(axis)
    """
    assert "`x.max()` goes over all axes: it must go over some of them only." in verdict_on("softmax", code).message


def test_a_helper_in_which_the_mistake_changes_nothing_is_not_shown(verdict_on):
    code = """
    from transformer_np.layers import Dropout, FeedForward, LayerNorm, MultiHeadAttention
    from transformer_np.module import Module

    class AddNorm(Module):
        def __init__(self, d_model, dropout=0.0, norm_first=False, eps=1e-5, bias=True, rng=None, dtype=np.float32):
            self.norm, self.dropout = LayerNorm(d_model, eps, bias, dtype=dtype), Dropout(dropout)
            self.norm_first = norm_first

        def forward(self, x, sublayer):
            if self.norm_first:
                return x + self.dropout.forward(sublayer(self.norm.forward(x)))
            return self.norm.forward(x + self.dropout.forward(sublayer(x)))

        def backward(self, dout, sublayer_backward):
            if self.norm_first:
                return dout + self.norm.backward(sublayer_backward(self.dropout.backward(dout)))
            dsum = self.norm.backward(dout)
            return dsum + sublayer_backward(self.dropout.backward(dsum))

    class EncoderBlock(Module):
        def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5,
                     bias=True, rng=None, dtype=np.float32):
            around = dropout, norm_first, eps, bias, rng, dtype
            self.attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
            self.add_norm1, self.add_norm2 = AddNorm(d_model, *around), AddNorm(d_model, *around)
            self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)

        def forward(self, x, mask=None, cache=None):
            h = self.add_norm1.forward(x, lambda z: self.attention.forward(z, memory=z, mask=mask, cache=cache))
            return self.add_norm2.forward(h, self.feed_forward.forward)

        def backward(self, dout):
            dh = self.add_norm2.backward(dout, self.feed_forward.backward)
            return self.add_norm1.backward(dh, lambda d: self.attention.backward(d)[0])
    """
    message = verdict_on("EncoderBlock", code).message
    assert "x as its memory too" in message and "dsum + sublayer_backward" not in message


@pytest.mark.parametrize(
    ("name", "code", "texts"),
    [
        (
            "softmax_backward",  # an unlisted mistake that one edit mends
            """
            def softmax_backward(dy, y, axis=-1):
                rows, drows = y.reshape(-1, y.shape[-1]), dy.reshape(-1, y.shape[-1])
                dx = [(np.diag(p) - np.dot(p, p)) @ d for p, d in zip(rows, drows)]
                return np.array(dx).reshape(y.shape)
            """,
            ["Nothing in the code reads `axis`. This shows with axis=0.", "makes the rest right:"],
        ),
        (
            "rotary_backward",  # a listed one; what is still to do has the cases of both
            """
            def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
                K = dy.shape[-1]
                angle = np.multiply.outer(positions, theta ** (-np.arange(0, K, 2) / K))
                cos, sin = np.cos(angle), np.sin(angle)
                a, b = (dy[..., ::2], dy[..., 1::2]) if adjacent else np.split(dy, 2, axis=-1)
                return np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)
            """,
            [
                "still to do: adjacent=True; linear scaling; the scaling of Llama 3.",
                "With adjacent=True the turned features are put back as two halves.",
                "Nothing in the code reads `scaling`.",
            ],
        ),
    ],
)
def test_a_parameter_that_nothing_reads_is_told_beside_what_else_is_wrong(verdict_on, name, code, texts):
    verdict = verdict_on(name, code)
    assert all(text in " ".join(verdict.message.split()) for text in texts)
    assert verdict.misconception.endswith(" not used") and " and " in verdict.misconception and verdict.share < 1


def test_a_mistake_that_shows_in_nan_alone_is_told_beside_another(verdict_on):
    code = """
    def scaled_dot_product_attention(q, k, v, mask=None):
        scores = q @ np.swapaxes(k, -2, -1) / np.sqrt(k.shape[-2])
        for m in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
            scores = np.where(m, -np.inf, scores) if m.dtype == bool else scores + m
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights @ v, weights
    """
    message = " ".join(verdict_on("scaled_dot_product_attention", code).message.split())
    assert "The scale is 1/√S" in message and "A row hidden whole gives NaN" in message


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "causal_mask",
            """
            def causal_mask(T, S=None):
                if S is None:
                    S == T
                return np.arange(S) > np.arange(T)[:, None] + S - T
            """,
            "This line compares and changes nothing: `=` assigns. One change in line 5",
        ),
        (
            "softmax_backward",
            """
            def softmax_backward(dy, y, axis=-1):
                total = (dy * y).sum(axis)
                return y * (dy - total[..., None])
            """,
            "`total[..., None]` adds an axis at the end, which is right for the last `axis` only",
        ),
        (
            "gated_feed_forward",
            """
            def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
                gate, value = x @ w_gate, x @ w1
                if activation == "gelu":
                    opened = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
                else:
                    opened = gate / (1 + np.exp(-gate))
                return (opened * value) @ w2, gate, value
            """,
            "One change in line 5 makes it right:",
        ),
        (
            "attention_scores",
            """
            def attention_scores(q, k, mask=None):
                scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
                for m in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
                    if m.dtype == bool:
                        scores[m] = -np.inf
                    else:
                        scores = scores + m
                return scores
            """,
            "it is not broadcast. np.where(mask, …, …) broadcasts.",
        ),
        (
            "rnn_backward",  # beside a result of a wrong shape
            """
            def rnn_backward(dh, x, h, w_x, w_h):
                T = dh.shape[1]
                da = np.zeros_like(dh)
                slope = 1 - h * h
                da[:, T - 1] = dh[:, T - 1] * slope[:, T - 1]
                for t in range(T - 2, -1, -1):
                    da[:, t] = dh[:, t] * slope[:, t] + da[:, t + 1] @ w_h.T
                previous = np.concatenate([np.zeros_like(h[:, :1]), h[:, :-1]], axis=1)
                dx = np.einsum("btd,id->bti", da, w_x)
                dw_x = np.einsum("bti,btd->id", x, da)
                dw_h = np.einsum("bte,btd->ed", previous, da)
                db = np.einsum("btd->td", da)
                return dx, dw_x, dw_h, db
            """,
            "The factor 1 − h_t² multiplies dh_t only",
        ),
        (
            "unscaled_attention",  # and not that all weights are the same
            """
            def unscaled_attention(q, k, v, bias=None, mask=None):
                scores = np.einsum("bhtk,bhsk->bhts", q, k)
                if bias is not None:
                    scores = scores + bias[None]
                if mask is not None:
                    every = mask if isinstance(mask, tuple) else (mask,)
                    for one in every:
                        scores = np.where(one, -1e9, scores)
                scores = scores - scores.max(axis=-1, keepdims=True)
                weights = np.exp(scores)
                weights = weights / weights.sum(axis=-1, keepdims=True)
                out = np.einsum("bhts,bhsd->bhtd", weights, v)
                return out, weights
            """,
            "This alone does not explain `out` and `weights` with a finite float mask.",
        ),
        (
            "negative_sampling_loss",  # a second mistake that shows in inf alone
            """
            def negative_sampling_loss(center, context, negatives):
                N, K, D = negatives.shape
                score = np.sum(center * context, axis=1)
                negative_scores = np.zeros((N, K), dtype=center.dtype)
                for n in range(N):
                    for j in range(K):
                        negative_scores[n, j] = np.dot(center[n], negatives[n, j])

                p_context = 1 / (1 + np.exp(-score))
                p_negatives = 1 / (1 + np.exp(-negative_scores))

                loss = -np.mean(np.log(p_context)) - np.mean(np.log(1 - p_negatives))
                return float(loss), p_context, p_negatives
            """,
            "The loss is inf where 1 − p of a negative is rounded to 0",
        ),
        (
            "window_attention_backward",  # of all cases, also those of an unread parameter
            """
            import math


            def _t(x):
                return np.swapaxes(x, -1, -2)


            def window_attention_backward(dout, q, k, v, weights, window, causal=False):
                T, K = q.shape[-2:]
                R = weights.shape[-1]
                half = R // 2
                # the whole matrix of weights
                A = np.zeros(q.shape[:-1] + (T,), dtype=weights.dtype)
                for t in range(T):
                    for j in range(R):
                        s = t - half + j
                        if 0 <= s < T:
                            A[..., t, s] = weights[..., t, j]

                dv = _t(A) @ dout
                dA = dout @ _t(v)
                ds = A * (dA - np.sum(dA * A, axis=-1, keepdims=True))
                dq = ds @ k / math.sqrt(K)
                dk = _t(ds) @ q
                return dq, dk, dv
            """,
            "Wrong: dk, and in other cases dq and dv.",
        ),
    ],
)
def test_the_message_says(verdict_on, name, code, said):
    assert said in " ".join(verdict_on(name, code).message.split())
