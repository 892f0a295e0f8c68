"""The line of a mistake: one edit of the student's code makes the answer right."""

from textwrap import dedent

import numpy as np
import pytest

from transformer_np.homework import all_exercises, checking
from transformer_np.homework.judging import family
from transformer_np.homework.judging.family import MOST_ITEMS
from transformer_np.homework.judging.traced import kept, same

PLAIN = """
    def softmax_backward(dy, y, axis=-1):
        s = np.sum(dy * y, axis=axis, keepdims=True)
        return y * (dy - s)
"""


@pytest.mark.parametrize(
    ("old", "new", "marked", "repaired"),
    [
        ("dy - s", "dy + s", "dy + s", "dy - s"),
        ("axis=axis, keep", "axis=-1, keep", "np.sum(dy * y, axis=-1, keepdims=True)", "axis=axis"),
        (", keepdims=True", "", "np.sum(dy * y, axis=axis)", "keepdims=True"),
        ("np.sum(dy * y,", "np.sum(dy,", "dy", "dy * y"),
        ("y * (dy - s)", "dy - s", "dy - s", ""),
        ("np.sum(", "np.mean(", "mean", "np.sum("),
    ],
)
def test_the_expression_is_marked_and_the_repair_is_not_shown(verdict_on, old, new, marked, repaired):
    verdict = verdict_on("softmax_backward", PLAIN.replace(old, new))
    *_, here, line, marks = verdict.message.splitlines()
    assert here == f"One change in line {verdict.line} makes it right:"
    assert line[marks.index("^") : len(marks)] == marked
    assert repaired in verdict.repair
    assert not repaired or verdict.repair.strip() not in verdict.message


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "dropout_backward",
            """
            def dropout_backward(dy, keep, p):
                with np.errstate(all="ignore"):
                    return np.where(keep, dy / p, 0).astype(dy.dtype)
            """,
            "The results are right with 1 minus the value of `p` in its place.",
        ),
        (
            "softmax_backward",
            """
            def softmax_backward(dy, y, axis=-1):
                weighted = dy * y
                return weighted - y * (dy * y).mean(axis=axis, keepdims=True)
            """,
            "`mean` is not the function that belongs here.",
        ),
        (
            "scaled_dot_product_attention_backward",
            """
            def scaled_dot_product_attention_backward(dout, q, k, v, weights):
                d_k = q.shape[-1]
                d_weights = dout @ np.swapaxes(v, -1, -2)
                d_values = np.swapaxes(weights, -1, -2) @ dout
                summed = np.sum(d_weights * weights, axis=-1, keepdims=True)
                d_scores = weights * (d_weights - summed)
                d_scores = d_scores / np.sqrt(d_k).astype(q.dtype)
                d_queries = d_scores @ q
                d_keys = np.swapaxes(d_scores, -1, -2) @ k
                return d_queries, d_keys, d_values
            """,
            "`q` and `k` are in each other's place.",
        ),
    ],
)
def test_the_sentence_of_an_edit_names_the_code(verdict_on, name, code, said):
    code = "from transformer_np.functional import gelu, silu\n" + dedent(code)
    assert said in verdict_on(name, code).message


def test_a_helper_is_searched_too(verdict_on):
    verdict = verdict_on(
        "softmax",
        """
        def shifted(x, axis):
            return x + np.maximum(x.max(axis, keepdims=True), np.finfo(float).min)


        def softmax(x, axis=-1):
            e = np.exp(shifted(x, axis))
            total = e.sum(axis, keepdims=True)
            return e / np.where(total == 0, 1, total)
        """,
    )
    assert verdict.line == 4


def test_a_method_of_a_class_is_searched(verdict_on):
    verdict = verdict_on(
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
                m[:] = a * m + (1 - a) * g
                v[:] = b * v + (1 - b) * g**2
                p += self.lr * (m / (1 - a**t)) / (np.sqrt(v / (1 - b**t)) + self.eps)
        """,
    )
    assert verdict.line == 17


def test_an_edit_that_never_ends_is_given_up(verdict_on):
    verdict = verdict_on(
        "apply_merges",
        """
        def apply_merges(ids, merges):
            ids = list(ids)
            for pair in merges:
                i = 0
                while i < len(ids) - 1:
                    if (ids[i], ids[i + 1]) == pair:
                        ids[i : i + 2] = [merges[pair] + 1]
                    i += 1
            return ids
        """,
    )
    assert not verdict.passed


def test_an_expression_of_the_right_answer_proves_a_line_and_is_not_shown(verdict_on):
    verdict = verdict_on("softmax_backward", "def softmax_backward(dy, y, axis=-1):\n    return dy * y * (1 - y)")
    assert verdict.line == 3
    assert verdict.repair == ""
    assert "np.sum" not in verdict.message


def test_a_line_that_only_avoids_an_earlier_mistake_is_not_shown(verdict_on):
    code = """
        def softmax_backward(dy, y, axis=-1):
            half = np.sin(dy) * 0.3
            s = half.sum(axis=axis, keepdims=True)
            return y * (dy - s)
        """
    assert verdict_on("softmax_backward", code).line in (4, 5)  # not line 6, where half would be left unused


def test_two_edits_show_two_lines(verdict_on):
    verdict = verdict_on(
        "linear_backward",
        """
        def linear_backward(dy, x, w):
            dx = dy @ w.T * 2
            dw = x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
            db = -dy.reshape(-1, dy.shape[-1]).sum(axis=0)
            return dx, dw, db
        """,
    )
    assert verdict.line == 4
    assert "Two changes make it right, one in line 4:" in verdict.message
    assert "and one in line 6:" in verdict.message


@pytest.mark.parametrize(
    ("in_erf", "said"),
    [
        ("z", "In the exact form √2 is missing inside erf"),
    ],
)
def test_what_a_repair_leaves_wrong_is_told_too(verdict_on, in_erf, said):
    code = f"""
    from math import erf
    def gelu(x, approximate="tanh"):
        c = float(np.sqrt(2) / np.pi)
        if approximate == "tanh":
            return x * 0.5 * (1 + np.tanh(c * (x + 0.044715 * x**3)))
        return x * 0.5 * (1 + np.array([erf({in_erf}) for z in x.ravel()], dtype=x.dtype).reshape(x.shape))
    """
    verdict = verdict_on("gelu", code)
    assert verdict.line == 5 and said in " ".join(verdict.message.split())


def test_a_rotation_turned_back_has_no_wrong_line(verdict_on):
    verdict = verdict_on(
        "rotary_backward",
        """
        from transformer_np import functional as F

        def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
            angle = np.asarray(positions)
            return F.rotary(dy, angle, theta, scaling, adjacent)
        """,
    )
    assert verdict.line in (None, 7)


def test_what_is_all_wrong_has_no_line(verdict_on):
    code = """
        def layer_norm_backward(dy, x_hat, inv_std, gamma):
            a = np.cos(dy) * gamma
            b = a.max(axis=0) + x_hat
            c = np.tanh(b * inv_std)
            return c * a, c.sum((0, 1)), a.min((0, 1))
        """
    verdict = verdict_on("layer_norm_backward", code)
    assert verdict.line is None
    assert "line" not in verdict.message


def test_an_edit_that_doubles_a_list_in_every_step_is_given_up(verdict_on):
    verdict = verdict_on(
        "apply_merges",
        """
        def apply_merges(ids, merges):
            ids = list(ids)
            for pair, new in sorted(merges.items(), key=lambda item: item[1]):
                i = len(ids) - 2
                while i >= 0:
                    if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
                        ids = ids[:i] + [new] + ids[i + 2 :]
                    i -= 1
            return ids
        """,
    )
    assert verdict.misconception == "merged from right to left"


def test_lists_that_hold_the_same_list_twice_are_kept_to_a_depth():
    value = [1, [2.0, (3, [4])]]
    assert same([kept(value)], [value])
    for _ in range(60):  # 2^60 items
        value = [value, value]
    assert not same([kept(value)], [kept(value)])


def test_an_error_in_the_search_for_a_line_costs_the_line_alone(verdict_on, monkeypatch):
    def fails(*_):
        raise ValueError("the results of an edit cannot be read")

    wrong, found = PLAIN.replace("dy - s", "dy + s"), []
    for search in (lambda *_: None, fails):
        monkeypatch.setattr(checking, "find_place", search)
        found.append(verdict_on("softmax_backward", wrong).message)
    assert found[0] == found[1] and "wrong gradient" in found[0]


@pytest.mark.parametrize(
    ("name", "code", "marked"),
    [
        (
            "split_heads",  # not the bare `return heads`
            """
            def split_heads(x, num_heads):
                B, T, D = x.shape
                heads = x.reshape(B, num_heads, T, -1)
                return heads
            """,
            ["heads = x.reshape(B, num_heads, T, -1)"],
        ),
        (
            "unscaled_attention",  # where the scores lack the bias, with a mask and without one
            """
            def unscaled_attention(q, k, v, bias=None, mask=None):
                scores = q @ k.swapaxes(-1, -2)
                for m in mask if isinstance(mask, tuple) else (mask,):
                    if m is not None:
                        scores = np.where(m, q.dtype.type(-np.inf), scores) if m.dtype == bool else scores + m
                weights = softmax(scores)
                if bias is not None:
                    weights = weights + bias
                return weights @ v, weights
            """,
            ["weights = softmax(scores)"],
        ),
        (
            "rms_norm",  # y would need one value of `length`, inv_rms another
            """
            def rms_norm(x, gamma, eps=1e-6):
                length = np.sqrt(np.linalg.norm(x, axis=-1, keepdims=True) ** 2 + eps)
                x_hat = x / length
                return x_hat * gamma, x_hat, length
            """,
            ["length = np.sqrt(np.linalg.norm(x, axis=-1, keepdims=True) ** 2 + eps)"],
        ),
    ],
)
def test_the_line_to_look_at_is_one_where_another_value_helps(verdict_on, name, code, marked):
    code = "from transformer_np.functional import softmax\n" + dedent(code)
    *_, shown = verdict_on(name, code).message.partition("Look at")
    lines = [line.strip() for line in shown.splitlines() if line.startswith("    ")]
    assert [line for line in lines if set(line) != {"^"}] == marked


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "silu_backward",
            """
            def silu_backward(dy, x):
                slope = x * (1 - x)
                return dy * slope
            """,
            "Look at line 4:",
        ),
        (
            "silu_backward",  # with another `s` it would be right, too
            """
            def silu_backward(dy, x):
                s = 0.5 * (1 + np.tanh(0.5 * x))
                return dy * s
            """,
            "Look at line 5:",
        ),
        (
            "window_mask",
            """
            def window_mask(T, window, S=None):
                S = T if S is None else S
                mask = np.ones((T, S), dtype=bool)
                for t in range(T):
                    mask[t, max(0, t - window) : t + window + 1] = False
                return mask
            """,
            "Look at line 7:",
        ),
        (
            "window_attention_backward",
            """
            from transformer_np.functional import scaled_dot_product_attention_backward

            def window_attention_backward(dout, q, k, v, weights, window, causal=False):
                T = q.shape[-2]
                full = np.zeros(weights.shape[:-1] + (T,), weights.dtype)
                for t in range(T):
                    for j in range(weights.shape[-1]):
                        s = (t if causal else t - min(window, T - 1)) + j
                        if 0 <= s < T:
                            full[..., t, s] = weights[..., t, j]
                return scaled_dot_product_attention_backward(dout, q, k, v, full)
            """,
            "column j is read as the key t + j",
        ),
        (
            "layer_norm_backward",  # line 4 is right, as dgamma shows
            """
            def layer_norm_backward(dy, x_hat, inv_std, gamma):
                product, d = dy * x_hat, dy * gamma
                dgamma = product.reshape(-1, len(gamma)).sum(axis=0)
                through = x_hat * product.mean(axis=-1, keepdims=True)
                dx = (d - d.mean(axis=-1, keepdims=True) - through) * inv_std
                return dx, dgamma, dy.reshape(-1, len(gamma)).sum(axis=0)
            """,
            "Look at line 6:",
        ),
    ],
)
def test_of_the_line_to_look_at_no_more_is_said_than_is_known(verdict_on, name, code, said):
    assert said in " ".join(verdict_on(name, code).message.split())


def test_new_arrays_are_not_what_is_wrong_but_what_is_written_into_them(verdict_on):
    code = """
        def sinusoidal_encoding(length, d_model, dtype=np.float32):
            pe = np.zeros((length, d_model), dtype=dtype)
            for pos in range(length):
                for col in range(d_model):
                    angle = pos / 10000 ** (col / d_model)
                    if col % 2 == 0:
                        pe[pos, col] = np.sin(angle)
                    else:
                        pe[pos, col] = np.cos(angle)
            return pe
        """
    lines = [verdict_on("sinusoidal_encoding", code).line for _ in range(8)]
    assert lines == [7] * 8  # whatever np.empty finds in the memory


@pytest.mark.parametrize(
    ("name", "code", "told", "untrue"),
    [
        (
            "embedding_backward",
            """
            def embedding_backward(dy, ids, num_embeddings):
                grad = np.zeros((num_embeddings, dy.shape[-1]), dtype=ids.dtype)
                for token, row in zip(ids.reshape(-1), dy.reshape(-1, dy.shape[-1])):
                    grad[token] = grad[token] + row
                return grad
            """,
            "The dtype here is wrong",
            "factor",
        ),
        (
            "relu",
            """
            def relu(x):
                x[x < 0] = 0
                return x
            """,
            "relu: The results are right, but",
            "wrong value",
        ),
        (
            "merge_heads",
            """
            def merge_heads(x):
                return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=1)
            """,
            "The returned `x` must have the shape",
            ". `x` must",
        ),
    ],
)
def test_only_what_is_true_is_told(verdict_on, name, code, told, untrue):
    message = verdict_on(name, code).message
    assert told in message and untrue not in message


@pytest.mark.parametrize(
    ("name", "code", "told", "untrue"),
    [
        (
            "relu",  # no case asks for the other branch
            """
            def relu(x, leaky=False):
                if leaky:
                    return np.maximum(x, 0)
                return np.tanh(x)
            """,
            "relu: wrong value",
            "if leaky",
        ),
        (
            "linear",
            """
            def linear(x, w, b=None):
                return x @ w + (b if b else 0)
            """,
            "One change in line 4 makes it right:",
            "other variable",
        ),
        (
            "scaled_dot_product_attention_backward",  # the names of d_k need not be exchanged
            """
            def scaled_dot_product_attention_backward(dout, q, k, v, weights):
                d_k = q.shape[-1]
                d_weights = dout @ np.swapaxes(v, -1, -2)
                d_scores = weights * (d_weights - np.sum(d_weights * weights, axis=-1, keepdims=True))
                d_scores = d_scores / np.sqrt(d_k).astype(q.dtype)
                d_q = d_scores @ q
                d_k = np.swapaxes(d_scores, -1, -2) @ k
                return d_q, d_k, np.swapaxes(weights, -1, -2) @ dout
            """,
            "d_q = d_scores @ q",
            "d_k = q.shape",
        ),
        (
            "greedy_decode",  # the results are those for max_len = 5 in all cases
            """
            def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
                tokens, total = np.full((len(src), 1), model.config.bos_id), np.zeros(len(src))
                done = np.zeros(len(src), dtype=bool)
                with model.evaluating():
                    memory = model.encode(src)
                    for _ in range(max_len - 1):
                        logits = model.decode(tokens, memory, src)[:, -1].astype(float)
                        log_p = logits - np.logaddexp.reduce(logits, axis=-1)[:, None]
                        best = np.where(done, model.config.eos_id, log_p.argmax(-1))
                        total += np.where(done, 0, log_p[range(len(src)), best])
                        done |= best == model.config.eos_id
                        tokens = np.column_stack([tokens, best])
                        if done.all():
                            break
                rows = [row[1:] for row in tokens.tolist()]
                eos = model.config.eos_id
                rows = [row[: row.index(eos)] if eos in row else row for row in rows]
                return (rows, total) if return_log_probs else rows
            """,
            "range(max_len - 1)",
            "not used",
        ),
    ],
)
def test_an_edit_or_a_mistake_that_proves_nothing_is_not_told(verdict_on, name, code, told, untrue):
    message = verdict_on(name, code).message
    assert told in message and untrue not in message


def test_no_edit_doubles_what_is_returned(verdict_on):
    verdict = verdict_on(
        "additive",
        """
        def additive(mask, dtype=np.float32):
            out = np.zeros(np.shape(mask), dtype)
            out[mask] = np.finfo(dtype).min
            return out
        """,
    )
    assert "return out" not in verdict.message


def two_results(x, y, K):
    a = x + 1
    b = a / np.sqrt(K)
    c = a * y
    return b, c


def test_a_comparison_that_never_holds_any_more_is_no_repair(verdict_on):
    verdict = verdict_on(
        "linear_backward",
        """
        def linear_backward(dy, x, w):
            dw = x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
            if dy.ndim == 3:
                db = dy.sum(axis=1)
            else:
                db = dy.reshape(-1, dy.shape[-1]).sum(axis=0)
            return dy @ w.T, dw, db
        """,
    )
    assert verdict.line == 6


def test_a_condition_is_shown_as_a_whole_and_a_copy_not_at_all(verdict_on):
    verdict = verdict_on(
        "clip_grad_norm",
        """
        def clip_grad_norm(parameters, max_norm):
            grads = [p.grad for p in parameters]
            norm = float(np.sqrt(np.sum([np.vdot(g, g) for g in grads])))
            if not np.isfinite(norm) or norm == 0:
                return norm
            for g in grads:
                g *= max_norm / norm
            return norm
        """,
    )
    assert "^" * len("not np.isfinite(norm) or norm == 0") in verdict.message
    verdict = verdict_on(
        "sampling_distribution",
        """
        def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
            rows = logits.reshape(-1, logits.shape[-1])
            out = np.zeros_like(rows)
            for i, row in enumerate(rows):
                order = np.argsort(-row, kind="stable")
                if temperature == 0:
                    out[i, order[0]] = 1
                    continue
                z = np.exp((row - row.max()) / temperature)
                p = (z / z.sum())[order]
                if top_k is not None:
                    p[top_k:] = 0
                    p = p / p.sum()
                if top_p is not None:
                    inside = np.cumsum(p) <= top_p
                    inside[0] = True
                    p = np.where(inside, p, 0)
                    p = p / p.sum()
                out[i, order] = p
            return out.reshape(logits.shape)
        """,
    )
    assert verdict.misconception == "token that reaches top_p left out, except the first"
    assert "out[i, order] = p" not in verdict.message


def test_where_a_sum_of_each_round_begins_is_not_shown(verdict_on):
    verdict = verdict_on(
        "greedy_decode",
        """
        def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
            outs, log_probs = [], []
            with model.evaluating():
                for b in range(len(src)):
                    memory, ids, lp = model.encode(src[b : b + 1]), [model.config.bos_id], 0.0
                    for _ in range(max_len):
                        row = model.decode(np.array([ids]), memory, src[b : b + 1])[0, -1]
                        token = int(np.argmax(row))
                        if token == model.config.eos_id:
                            break
                        lp += float(row[token] - row.max() - np.log(np.exp(row - row.max()).sum()))
                        ids.append(token)
                    outs.append(ids[1:])
                    log_probs.append(lp)
            return (outs, np.array(log_probs)) if return_log_probs else outs
        """,
    )
    assert verdict.misconception == "log p without the end token"
    assert "0.0" not in verdict.message


def test_brackets_around_a_sum_before_a_quotient_are_missing(verdict_on):
    verdict = verdict_on("relu", "def relu(x):\n    return x + np.abs(x) / 2\n")
    assert (verdict.misconception, verdict.repair) == ("brackets", "    return (x + np.abs(x)) / 2")


def test_the_place_that_needs_another_value_is_shown_not_where_it_is_right_for_others(verdict_on):
    verdict = verdict_on(
        "rotary_backward",
        """
        def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
            K = dy.shape[-1]
            angle = np.asarray(positions)[:, None] * rotary_frequencies(K, theta, scaling)
            cos, sin = np.cos(angle), np.sin(angle)
            first, second = (slice(0, K, 2), slice(1, K, 2)) if adjacent else (slice(K // 2), slice(K // 2, K))
            dx = np.zeros_like(dy)
            dx[..., first] = dy[..., first] * cos + dy[..., second] * sin
            dx[..., second] = dy[..., first] * sin + dy[..., second] * cos
            return dx

        from transformer_np.functional import rotary_frequencies
        """,
    )
    assert "dx[..., second] = dy[..., first] * sin + dy[..., second] * cos" in verdict.message
    assert "np.sin(angle)" not in verdict.message


# --- the line of a named mistake, and what is said of an edit --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "marked"),
    [
        (
            "additive",  # another value of `hidden` is NaN too, and cannot be put in its place
            """
            def additive(mask, dtype=np.float32):
                number = np.asarray(mask).astype(dtype)
                hidden = number * dtype(-np.inf)
                return hidden
            """,
            "number * dtype(-np.inf)",
        ),
    ],
)
def test_the_line_of_a_named_mistake_is_where_its_values_are_made(verdict_on, name, code, marked):
    verdict = verdict_on(name, code)
    *_, line, marks = verdict.message.splitlines()
    assert verdict.misconception in all_exercises()[name].mistakes
    assert line[marks.index("^") : len(marks)] == marked


def test_a_dict_with_keys_that_hold_all_earlier_keys_is_stopped():
    def grown():
        keys = {}
        for _ in range(40):
            steps()
            keys[tuple(keys)] = 1  # its hash takes 2^n steps

    steps = family._Steps(1000)
    with pytest.raises(family.Endless):
        grown()


def test_a_list_that_grows_in_a_loop_is_stopped_in_the_next_round():
    def grown():
        ids = [0] * (MOST_ITEMS + 1)
        counted()
        return ids

    counted = family._Steps(1000)
    with pytest.raises(family.Endless):
        grown()
