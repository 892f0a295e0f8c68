"""What holds of every verdict, whatever is wrong: right answers with one edit each, chosen by a hash."""

import ast
import warnings
from textwrap import dedent
from zlib import crc32

import pytest

from transformer_np.homework.judging.edits import edits_of

RIGHT = {
    "softmax_backward": """
        def softmax_backward(dy, y, axis=-1):
            total = np.sum(dy * y, axis=axis, keepdims=True)
            return y * (dy - total)
        """,
    "layer_norm": """
        def layer_norm(x, gamma, beta, eps=1e-5):
            mean = x.mean(axis=-1, keepdims=True)
            variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
            inv_std = 1 / np.sqrt(variance + eps)
            x_hat = (x - mean) * inv_std
            return gamma * x_hat + beta, x_hat, inv_std
        """,
    "linear_backward": """
        def linear_backward(dy, x, w):
            rows, gradients = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
            return dy @ w.T, rows.T @ gradients, gradients.sum(axis=0)
        """,
    "rnn_backward": """
        def rnn_backward(dh, x, h, w_x, w_h):
            T, dx, dw_x, dw_h = x.shape[1], np.zeros_like(x), np.zeros_like(w_x), np.zeros_like(w_h)
            da, db = np.zeros_like(dh[:, 0]), np.zeros(h.shape[-1], h.dtype)
            for t in reversed(range(T)):
                da = (dh[:, t] + da @ w_h.T) * (1 - h[:, t] ** 2)
                dx[:, t] = da @ w_x.T
                dw_x += x[:, t].T @ da
                if t > 0:
                    dw_h += h[:, t - 1].T @ da
                db += da.sum(axis=0)
            return dx, dw_x, dw_h, db
        """,
    "merge_heads": """
        def merge_heads(x):
            B, H, T, K = x.shape
            return x.transpose(0, 2, 1, 3).reshape(B, T, H * K)
        """,
    "noam_schedule": """
        def noam_schedule(step, d_model, warmup=4000):
            step = max(step, 1)
            return d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)
        """,
}
EDITS = 6  # of each answer


def edited(name):
    """Answers with one edit each, and the lines that it changes."""
    tree = ast.parse(dedent(RIGHT[name]))
    right = ast.unparse(tree)
    for edit in sorted(edits_of(tree.body[0]), key=lambda e: crc32(f"{e.kind}{ast.dump(e.node)}".encode()))[:EDITS]:
        edit.make()
        code = ast.unparse(tree)
        edit.undo()
        lines = zip(right.splitlines(), code.splitlines(), strict=False)
        yield code, {number for number, (old, new) in enumerate(lines, 2) if old != new}


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_said_of_an_edited_answer_holds(verdict_on, name):
    found, wrong = 0, 0
    assert verdict_on(ast.unparse(ast.parse(dedent(RIGHT[name])))).passed
    for code, lines in edited(name):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # the search for the mistake has ended with an exception
            verdict = verdict_on(code)
        if verdict.passed:
            continue  # such as a + b for b + a
        found, wrong = found + (verdict.line in lines), wrong + 1
        assert verdict.line is None or 2 <= verdict.line <= 1 + len(code.splitlines())
        assert len(verdict.message.splitlines()) > 1
        if verdict.repair:
            repaired = code.splitlines()
            old = repaired[verdict.line - 2]
            repaired[verdict.line - 2] = old[: len(old) - len(old.lstrip())] + verdict.repair.strip()
            again = verdict_on("\n".join(repaired))
            assert again.passed or (again.core and "for the lecture" in verdict.message), verdict.message
    assert wrong and found >= wrong / 2
