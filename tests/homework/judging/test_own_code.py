"""What a verdict may say of, and do with, the code of a student's file: the exercise's own definition alone."""

import warnings

import pytest

ATTENTION = """
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    da = dout @ v.swapaxes(-1, -2)
    ds = weights * (da - (da * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    found = {"dv": weights.swapaxes(-1, -2) @ dout, "dk": ds.swapaxes(-1, -2) @ q}
    return ds @ k, *found.values()
"""
LOUD = """
def noted(function):
    print("decorated")
    return function

print("loaded")

def counted(calls=print("default")):
    return calls

@noted
def tanh_backward(dy, y, calls=counted()):
    return dy * (1 - y)
"""


@pytest.mark.parametrize(
    ("other", "body"),
    [
        ("def tanh(x):\n    return np.tanh(x)\n", "return dy * (1 - tanh(y) ** 2)"),
        ("def tanh(x):\n    return np.sinh(x) / np.cosh(x)\n", "t = tanh(y)\n    return dy * (1 - t * t)"),
        ("tanh = lambda x: np.tanh(x)\n", "return dy - dy * tanh(y) * tanh(y)"),
    ],
)
def test_no_line_of_another_exercise_is_to_be_changed(verdict_on, other, body):
    verdict = verdict_on("tanh_backward", f"{other}\ndef tanh_backward(dy, y):\n    {body}\n")
    assert verdict.misconception == "y taken for x"
    assert verdict.line is None or verdict.line > 1 + len(other.splitlines())
    assert not any(line.strip() and line.strip() in verdict.message for line in other.splitlines())


def test_a_private_helper_may_be_changed(verdict_on):
    verdict = verdict_on(
        "tanh_backward",
        """
        def slope(y):
            return 1 - y

        def tanh_backward(dy, y):
            return dy * slope(y)
        """,
    )
    assert verdict.line == 4


def test_nothing_of_the_file_runs_again(verdict_on, capsys):
    assert verdict_on("tanh_backward", LOUD).line
    assert capsys.readouterr().out.split() == ["loaded", "default", "decorated"]


def test_an_answer_that_gives_something_else_the_next_time_has_a_line_only_where_an_edit_makes_it_right(verdict_on):
    code = """
    numbers = iter(range(10**6))

    def tanh_backward(dy, y):
        return dy * (1 - y**{power}) + next(numbers)
    """
    verdict = verdict_on("tanh_backward", code.format(power=2))
    assert not verdict.passed and "One change in line 6 makes it right:" in verdict.message
    assert verdict_on("tanh_backward", code.format(power=3)).line is None


@pytest.mark.parametrize("name", ["StopIteration", "GeneratorExit", "SystemExit", "RecursionError"])
def test_an_exception_of_the_answer_ends_no_search(verdict_on, name):
    code = f"""
    def tanh_backward(dy, y):
        if dy.ndim == 1:
            raise {name}
        return dy * (1 - y)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        verdict = verdict_on("tanh_backward", code)
    assert "1 − y" in verdict.message or verdict.misconception


def test_results_in_another_order_alone_are_told(verdict_on):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        verdict = verdict_on("scaled_dot_product_attention_backward", ATTENTION)
    assert verdict.outcome == "wrong shape" and "order" in verdict.message
    assert "is left" not in verdict.message


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "sampling_distribution",
            """
            def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
                logits = logits / temperature
                p = np.exp(logits - logits.max(-1, keepdims=True))
                return p / p.sum(-1, keepdims=True)
            """,
            "A division by 0 first occurs in line 4:\n    logits = logits / temperature",
        ),
        (
            "softmax",
            """
            def softmax(x, axis=-1):
                powers = np.exp(x)
                return powers / powers.sum(axis, keepdims=True)
            """,
            "Infinity first occurs in line 4:\n    powers = np.exp(x)",
        ),
    ],
)
def test_nan_and_infinity_are_told_with_the_line_where_they_first_occur(verdict_on, name, code, said):
    assert said in verdict_on(name, code).message
