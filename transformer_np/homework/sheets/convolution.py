"""The causal convolution and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def _conv_cases(rng):
    sizes = draw_sizes(rng, "B D_in D_out")
    B, D_in, D_out = sizes.values()
    k = int(rng.choice([3, 5]))  # odd: there is one way only to pad on both sides
    T = 2 * k + 3 + int(rng.integers(2))
    sizes = {"B": B, "T": T, "k": k, "D_in": D_in, "D_out": D_out}
    x, w, b = rng.normal(size=(B, T, D_in)), rng.normal(size=(k, D_in, D_out)), rng.normal(size=D_out)
    square = x, rng.normal(size=(k, D_in, D_in)), rng.normal(size=D_in)
    short = T // 2 + 1  # two taps reach it, the third looks at what lies before the start
    return [
        Case("", (x, w, b), sizes=sizes),
        Case("dilation 2", (x, w, b), {"dilation": 2}, sizes),
        Case("dilation 3", (x, w, b), {"dilation": 3}, sizes),
        Case("no bias", (x, w), sizes=sizes),
        Case(
            "taps that lie wholly before the start",
            (x[:, :short], w[:3], b),
            {"dilation": short - 1},
            sizes | {"T": short, "k": 3},
        ),
        Case("as many features out as in", square, sizes=sizes | {"D_out": D_in}),
        Case("one token and one tap", (x[:, :1], w[:1], b), sizes=sizes | {"T": 1, "k": 1}),
    ]


def _at(x, place, made):
    """x (B, T, D) at any places, 0 outside of it: (B, len(place), D)."""
    T = x.shape[1]
    if made("wraps round"):
        return x[:, place % T]
    inside = (place >= 0) & (place < T)
    if made("first token repeated before the start"):
        inside = np.ones_like(inside)
    return x[:, np.clip(place, 0, T - 1)] * inside[:, None]


def _lags(made, k, dilation):
    """How far back each tap looks."""
    lags = np.arange(k) * dilation
    if made("dilation ignored"):
        lags = np.arange(k)
    if made("dilation counted as tokens left out"):
        lags = np.arange(k) * (dilation + 1)
    if made("dilation forgotten in the taps"):
        lags = lags[-1] - np.arange(k)[::-1]
    if made("off by one token"):
        lags = lags + 1
    if made("taps counted from 1"):
        lags = lags + dilation
    if made("looks into the future"):
        lags = -lags
    return lags


def _taps(made, k, lags):
    """The taps in use, and the matrix that each takes."""
    taps = [(int(lag), j) for j, lag in enumerate(lags)]
    if made("taps in reverse order"):
        taps = [(lag, k - 1 - j) for lag, j in taps]
    if made("last tap left out"):
        taps = taps[:-1]
    if made("first tap left out"):
        taps = taps[1:]
    return taps


def _wrong_causal_conv1d(made, x, w, b=None, dilation=1):
    if made("over the batch axis"):
        x = x.swapaxes(0, 1)
    T, k, reach = x.shape[1], len(w), (len(w) - 1) * dilation
    if made("token 0 never seen"):
        x = np.where(np.arange(T)[:, None] > 0, x, 0)
    if made("W_j transposed"):
        w = w.swapaxes(1, 2)
    if made("crashes where a tap lies before the start") and reach > T:
        raise ValueError
    place = np.arange(T)
    if made("no padding"):
        place = np.arange(reach, T)
    if made("padding not cut off"):
        place = np.arange(T + reach)
    if made("cut off at the wrong end"):
        place = place + reach
    if made("padded on both sides"):
        place = place + reach // 2
    if made("dilation forgotten in the padding"):
        place = np.arange((k - 1) * (dilation - 1), T)
    y = np.zeros((len(x), len(place), w.shape[2]))
    for lag, j in _taps(made, k, _lags(made, k, dilation)):
        matrix = w[0] if made("the same matrix for every tap") else w[j]
        y = y * (not made("only the last tap is left")) + _at(x, place - lag, made) @ matrix
        if b is not None and made("bias added at every tap that meets a token"):
            y = y + b * (place >= lag)[:, None] * (j > 0)
    if made("first results left at zero"):
        y[:, : min(reach, T)] = 0
    if made("mean over the taps"):
        y = y / k
    if b is not None and not made("bias forgotten"):
        where = (np.arange(y.shape[1]) >= reach)[:, None] if made("no bias near the start") else 1
        y = y + b * where * (k if made("bias added at every tap") else 1)
    if made("dilation taken for a stride"):
        lags = _lags(lambda name: False, k, 1)
        y = sum(_at(x, place - lag, made) @ w[j] for lag, j in _taps(made, k, lags))
        y = (y if b is None else y + b)[:, ::dilation]
    return y.swapaxes(0, 1) if made("over the batch axis") else y


CAUSAL_CONV1D = Exercise(
    F.causal_conv1d,
    (Result("y", "B T D_out"),),
    _conv_cases,
    {
        "looks into the future": (
            "Tap j reads x_{t + j·dilation}: it looks into the future, so it is not causal. It reads x_{t − "
            "j·dilation}."
        ),
        "taps in reverse order": (
            "The matrices are used in reverse order: W_{k−1} meets the token itself, as in PyTorch. Here w[0] meets "
            "the token itself and w[j] the token j·dilation places before it."
        ),
        "cut off at the wrong end": (
            "With zeros on both sides the result is too long, and the first numbers of it are cut off instead of the "
            "last: each token sees k − 1 tokens after it. Cut off at the end, or pad in front only."
        ),
        "padded on both sides": (
            "The zeros are shared out to both sides, “same” padding: half of the taps look into the future. A causal "
            "convolution has all of its (k − 1)·dilation zeros in front."
        ),
        "no padding": (
            "There is no padding, so the result has only T − (k − 1)·dilation tokens. Before the start x is 0; put (k "
            "− 1)·dilation zeros in front and every token has a result."
        ),
        "padding not cut off": (
            "The result is (k − 1)·dilation tokens too long: padded on both sides and not cut off. Behind token T − 1 "
            "there is nothing to compute."
        ),
        "off by one token": (
            "Every tap looks one token too far back, x_{t − 1 − j·dilation}: the token itself is not seen. w[0] meets "
            "x_t."
        ),
        "taps counted from 1": (
            "Tap j looks (j + 1)·dilation tokens back: j is counted from 1, so the token itself is not seen. w[0] "
            "meets x_t."
        ),
        "wraps round": (
            "Before the start it reads from the end of the sequence, as np.roll and negative indices do: the first "
            "tokens see the last ones. Before the start x is 0."
        ),
        "first token repeated before the start": (
            "Before the start the first token is repeated (padding of mode “edge”). There x is 0."
        ),
        "first results left at zero": (
            "The first (k − 1)·dilation results are left without the taps that fit. A token near the start sees what "
            "there is, and x = 0 before the start."
        ),
        "bias added at every tap that meets a token": (
            "The bias is added inside the loop, at every tap that meets a token: up to k times. It is added once."
        ),
        "no bias near the start": (
            "The first (k − 1)·dilation results lack the bias. It is added everywhere, also where some taps find "
            "nothing."
        ),
        "token 0 never seen": (
            "Token 0 is never seen, t − j·dilation > 0 instead of ≥ 0: off by one. The sequence begins at 0."
        ),
        "first tap left out": "The tap j = 0 is left out: the token itself is not seen. j runs from 0 to k − 1.",
        "last tap left out": "The last tap, j = k − 1, is left out: there are k taps, j runs from 0 to k − 1.",
        "only the last tap is left": (
            "Each tap overwrites what the tap before it gave, `=` instead of `+=`: only W_{k−1} is left. y is the sum "
            "over j."
        ),
        "the same matrix for every tap": "Every tap uses w[0]. Each distance j has a matrix of its own, W_j.",
        "mean over the taps": "The sum over the taps is divided by k. A convolution is a sum, not a mean.",
        "dilation ignored": "The dilation is ignored: the taps are j tokens apart from t instead of j·dilation.",
        "dilation counted as tokens left out": (
            "The taps are dilation + 1 apart, as if the dilation counted the tokens left out between them. It is the "
            "distance itself: with 1 the tokens seen are neighbours."
        ),
        "dilation forgotten in the taps": (
            "The padding of (k − 1)·dilation knows the dilation, the taps do not: they are neighbours, far in the "
            "past. Tap j looks j·dilation back."
        ),
        "dilation forgotten in the padding": (
            "The padding is k − 1 zeros and does not know the dilation, so the result is too short. It takes (k − "
            "1)·dilation zeros."
        ),
        "dilation taken for a stride": (
            "The dilation is used as a stride: only every dilation-th result is there. Dilation spreads the taps; "
            "every token has a result."
        ),
        "bias forgotten": "The bias b is not added.",
        "bias added at every tap": (
            "The bias b is added at every tap, k times in all. It is added once, behind the sum."
        ),
        "W_j transposed": (
            "It uses W_jᵀ. w is (k, D_in, D_out) and a row meets W_j from the left, x W_j; with D_in = D_out the "
            "shapes fit either way, otherwise it crashes."
        ),
        "over the batch axis": (
            "The convolution runs along axis 0, which is the batch: a sequence sees the sequences above it. Time is "
            "axis 1 of (B, T, D_in)."
        ),
        "crashes where a tap lies before the start": (
            "It fails where (k − 1)·dilation exceeds T: then a tap looks at nothing but what lies before the start, "
            "and x[:, : T − j·dilation] has a negative end, which counts from the back. Such a tap gives 0."
        ),
    },
    _wrong_causal_conv1d,
    (
        "Which tokens may token t see, and what stands where there is none?",
        "y_t = Σ_j x_{t − j·dilation} W_j + b, j = 0 … k − 1, with x = 0 before the start",
        "notebook 10, “The table, measured”; zeros in front, or the whole sequence shifted by j·dilation once for "
        "each tap.",
    ),
    difficulty=2,
    section="van den Oord et al. 2016, §2.1",
    chapter="Long sequences",
    place=3,
)


def _conv_backward_cases(rng):
    cases = []
    for forward in _conv_cases(rng):
        if forward.label == "no bias":  # the backward does not know it
            continue
        x, w, _ = forward.arguments
        dy = rng.normal(size=(*x.shape[:2], w.shape[2]))
        cases.append(Case(forward.label, (dy, x, w), forward.options, forward.sizes))
    return cases


def _wrong_causal_conv1d_backward(made, dy, x, w, dilation=1):
    (B, T, _), k = x.shape, len(w)
    reach = (k - 1) * dilation
    if made("crashes where a tap lies before the start") and reach > T:
        raise ValueError
    lags = _lags(made, k, dilation)
    place = np.arange(T)
    if made("padding not cut off dx"):
        place = np.arange(-reach, T)
    if made("padding of dx cut off at the wrong end"):
        place = place - reach
    if made("padded on both sides"):
        lags = lags - reach // 2
    dx, dw = np.zeros((B, len(place), w.shape[1])), [np.zeros((B, T, *w.shape[1:]))] * k
    for lag, j in _taps(made, k, lags):
        sign = -1 if made("dx shifted the wrong way") else 1
        matrix = w[j] if made("W_j not transposed") else w[j].T
        share = _at(dy, place + sign * (0 if made("dx not shifted") else lag), made) @ matrix
        met = (place + lag < T)[:, None]
        dx = (np.where(met, 0, dx) if made("dx overwritten at every tap") else dx) + share
        if made("dx of the first tap only") and j:
            dx = dx - share
        lag_w = 0 if made("x not shifted in dW") else -lag if made("x shifted the wrong way in dW") else lag
        dw[j] = _at(x, np.arange(T) - lag_w, made)[..., :, None] * dy[..., None, :]  # (B, T, D_in, D_out)
        if made("x not shifted in dW, the start left out") or made("x not shifted in dW, the end left out"):
            counts = np.arange(T) >= lag if made("x not shifted in dW, the start left out") else np.arange(T) < T - lag
            dw[j] = (x * counts[:, None])[..., :, None] * dy[..., None, :]
    dw, db = np.stack(dw), dy[None]  # (k, B, T, …), (1, B, T, D_out)
    if made("gradients of the last sequence only"):
        dw, db = dw[:, -1:], db[:, -1:]
    if made("gradients of the last step only"):
        dw, db = dw[:, :, -1:], db[:, :, -1:]
    over = {1, 2}
    if made("dW not summed over the batch"):
        over = {2}
    bias_over = {1, 2}
    if made("db not summed over the batch") or made("db not summed at all"):
        bias_over -= {1}
    if made("db not summed over time") or made("db not summed at all"):
        bias_over -= {2}
    dw, db = dw.sum(axis=tuple(over)), db.sum(axis=tuple(bias_over))[0]
    shrink = (B if made("mean over the batch") else 1) * (T if made("mean over time") else 1)
    if made("db added at every tap"):
        db = db * k
    if made("dW transposed"):
        dw = dw.swapaxes(-1, -2)
    return dx, dw / shrink, db / shrink


CAUSAL_CONV1D_BACKWARD = Exercise(
    F.causal_conv1d_backward,
    (Result("dx", "B T D_in"), Result("dw", "k D_in D_out"), Result("db", "D_out")),
    _conv_backward_cases,
    {
        "dx shifted the wrong way": (
            "dx reads dy_{t − j·dilation}, shifted the same way as in the forward. x_t went forward to y_{t + "
            "j·dilation}, so its gradient comes back from there: dx_t = Σ_j dy_{t + j·dilation} W_jᵀ."
        ),
        "dx not shifted": (
            "In dx every tap takes dy_t. x_t met W_j on its way to y_{t + j·dilation}: dx_t = Σ_j dy_{t + j·dilation} "
            "W_jᵀ."
        ),
        "x not shifted in dW": (
            "Every dW_j is Σ x_tᵀ dy_t, without the shift. W_j met the token j·dilation before: dW_j = Σ x_{t − "
            "j·dilation}ᵀ dy_t."
        ),
        "x not shifted in dW, the start left out": (
            "dW_j is the sum of x_tᵀ dy_t from t = j·dilation on: both are cut at the start, and x is not shifted. W_j "
            "met the token j·dilation before: dW_j = Σ x_{t − j·dilation}ᵀ dy_t."
        ),
        "x not shifted in dW, the end left out": (
            "dW_j is the sum of x_tᵀ dy_t without the last j·dilation tokens: both are cut at the end, and x is not "
            "shifted. W_j met the token j·dilation before: dW_j = Σ x_{t − j·dilation}ᵀ dy_t."
        ),
        "x shifted the wrong way in dW": (
            "dW_j pairs dy_t with x_{t + j·dilation}, in the future. W_j met x_{t − j·dilation}."
        ),
        "taps in reverse order": (
            "The taps are in reverse order: W_{k−1} is taken for the token itself, as in PyTorch. Here w[0] met the "
            "token itself, and dw[j] belongs to w[j]."
        ),
        "padded on both sides": (
            "This is the backward of a convolution padded on both sides (“same”), which looks into the future. Here "
            "tap j looks j·dilation back and never ahead."
        ),
        "padding not cut off dx": (
            "dx is (k − 1)·dilation tokens too long: it still holds the gradient of the zeros in front. Cut them off; "
            "dx has the shape of x."
        ),
        "padding of dx cut off at the wrong end": (
            "dx starts with the gradient of the padding: the (k − 1)·dilation places were cut off at the end. The "
            "zeros stood in front."
        ),
        "off by one token": (
            "Every tap is taken to look one token too far back, j·dilation + 1. w[0] met the token itself."
        ),
        "taps counted from 1": (
            "Tap j is taken to look (j + 1)·dilation back: j is counted from 1. w[0] met the token itself."
        ),
        "wraps round": (
            "What is shifted beyond one end comes in again at the other, as np.roll and negative indices do. Beyond "
            "both ends there is 0."
        ),
        "first tap left out": "The tap j = 0 is left out. j runs from 0 to k − 1.",
        "last tap left out": "The last tap, j = k − 1, is left out. j runs from 0 to k − 1.",
        "dx overwritten at every tap": (
            "dx is overwritten at every tap, `=` instead of `+=`. x_t reached up to k outputs, and their gradients add."
        ),
        "dx of the first tap only": (
            "dx is dy_t W_0ᵀ alone. x_t reached y_{t + j·dilation} through every W_j, so there are k terms to add."
        ),
        "W_j not transposed": (
            "dx is computed with W_j instead of W_jᵀ. With D_in = D_out the shapes fit either way, otherwise it "
            "crashes."
        ),
        "dW transposed": "The matrices in dw are transposed, dyᵀ x. It is x_{t − j·dilation}ᵀ dy_t, (D_in, D_out).",
        "dilation ignored": "The dilation is ignored: the taps are taken j tokens apart from t instead of j·dilation.",
        "dilation counted as tokens left out": (
            "The taps are taken dilation + 1 apart, as if the dilation counted the tokens left out between them. It is "
            "the distance itself."
        ),
        "dilation forgotten in the taps": (
            "The padding of (k − 1)·dilation knows the dilation, the taps do not: they are taken for neighbours. Tap j "
            "looks j·dilation back."
        ),
        "gradients of the last sequence only": (
            "The gradients of w and b are those of the last sequence of the batch only, overwritten instead of added: "
            "they are sums over the batch."
        ),
        "gradients of the last step only": (
            "The gradients of w and b are those of the last token only, overwritten instead of added: they are sums "
            "over time too."
        ),
        "dW not summed over the batch": "dw keeps an axis of B: it is not summed over the batch.",
        "db not summed over the batch": "db keeps an axis of B: the bias gradient is not summed over the batch.",
        "db not summed over time": "db keeps an axis of T: the bias gradient is not summed over time.",
        "db not summed at all": (
            "db is dy itself, (B, T, D_out): the bias gradient is not summed. b met every token, so it is the sum over "
            "batch and time."
        ),
        "db added at every tap": "db is k times too large: it is added once for each tap, but b stands in y_t once.",
        "mean over the batch": (
            "The gradients of w and b are a mean over the batch, too small by the factor 1/B. They are sums: if the "
            "loss is a mean, that is already in dy."
        ),
        "mean over time": (
            "The gradients of w and b are a mean over time, too small by the factor 1/T. They are sums: if the loss is "
            "a mean, that is already in dy."
        ),
        "crashes where a tap lies before the start": (
            "It fails where (k − 1)·dilation exceeds T: then a tap saw nothing but what lies before the start, and "
            "x[:, : T − j·dilation] has a negative end, which counts from the back. Such a tap has the gradient 0."
        ),
    },
    _wrong_causal_conv1d_backward,
    (
        "Which outputs did x_t reach, and through which matrix each?",
        "dx_t = Σ_j dy_{t + j·dilation} W_jᵀ,  dW_j = Σ_t x_{t − j·dilation}ᵀ dy_t,  db = Σ_t dy_t, the sums over the "
        "batch too",
        "notebook 10, “The table, measured”; what the forward shifted to the right goes back to the left, by as much.",
    ),
    difficulty=3,
    section="van den Oord et al. 2016, §2.1",
    chapter="Long sequences",
    place=4,
)


EXERCISES = [CAUSAL_CONV1D, CAUSAL_CONV1D_BACKWARD]
