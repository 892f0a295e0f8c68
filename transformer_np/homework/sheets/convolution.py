"""The causal convolution and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .rnn import products


def conv_cases(rng):
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


def shifted(x, places):
    """x_{t − places} at token t, and 0 where there is no such token."""
    T = x.shape[1]
    t = np.arange(T) - places
    inside = (0 <= t) & (t < T)
    return x[:, t % T] * inside[:, None]


def causal_conv1d(x, w, b=None, dilation=1):
    B, T, _ = x.shape
    k, _, D_out = w.shape
    y = np.zeros((B, T, D_out))
    for j in range(k):
        back = j * dilation
        y = y + shifted(x, back) @ w[j]
    if b is not None:
        y = y + b
    return y


CAUSAL_CONV1D = Exercise(
    F.causal_conv1d,
    results=(Result("y", "B T D_out"),),
    cases=conv_cases,
    answer=causal_conv1d,
    hints=(
        "Which tokens may token t see, and what stands where there is none?",
        "y_t = Σ_j x_{t − j·dilation} W_j + b, j = 0 … k − 1, with x = 0 before the start",
        "notebook 10, “The table, measured”; zeros in front, or the whole sequence shifted by j·dilation once for "
        "each tap.",
    ),
    difficulty=2,
    section="van den Oord et al. 2016, §2.1",
    chapter="Long sequences",
    place=3,
    mistakes="""
- looks into the future:  j * dilation -> -j * dilation
  Tap j reads x_{t + j·dilation}: it looks into the future, so it is not causal. It reads x_{t − j·dilation}.
- taps in reverse order:  w[j] -> w[k - 1 - j]
  The matrices are used in reverse order: W_{k−1} meets the token itself, as in PyTorch. Here w[0] meets the token
  itself and w[j] the token j·dilation places before it.
- cut off at the wrong end:  j * dilation -> (j - k + 1) * dilation
  With zeros on both sides the result is too long, and the first numbers of it are cut off instead of the last: each
  token sees k − 1 tokens after it. Cut off at the end, or pad in front only.
- padded on both sides:  j * dilation -> (j - k // 2) * dilation
  The zeros are shared out to both sides, “same” padding: half of the taps look into the future. A causal convolution
  has all of its (k − 1)·dilation zeros in front.
- no padding:  return y -> return y[:, (k - 1) * dilation :]
  There is no padding, so the result has only T − (k − 1)·dilation tokens. Before the start x is 0; put (k − 1)·dilation
  zeros in front and every token has a result.
- padding not cut off:
    B, T, _ = x.shape ->
        x = np.pad(x, ((0, 0), (0, (len(w) - 1) * dilation), (0, 0)))
        B, T, _ = x.shape
  The result is (k − 1)·dilation tokens too long: padded on both sides and not cut off. Behind token T − 1 there is
  nothing to compute.
- off by one token:  j * dilation -> j * dilation + 1
  Every tap looks one token too far back, x_{t − 1 − j·dilation}: the token itself is not seen. w[0] meets x_t.
- taps counted from 1:  j * dilation -> (j + 1) * dilation
  Tap j looks (j + 1)·dilation tokens back: j is counted from 1, so the token itself is not seen. w[0] meets x_t.
- wraps round:  x[:, t % T] * inside[:, None] -> x[:, t % T]
  Before the start it reads from the end of the sequence, as np.roll and negative indices do: the first tokens see the
  last ones. Before the start x is 0.
- first token repeated before the start:  x[:, t % T] * inside[:, None] -> x[:, np.maximum(t, 0)]
  Before the start the first token is repeated (padding of mode “edge”). There x is 0.
- first results left at zero:
    if b is not None: ->
        y[:, : (k - 1) * dilation] = 0
        if b is not None:
  The first (k − 1)·dilation results are left without the taps that fit. A token near the start sees what there is, and
  x = 0 before the start.
- bias added at every tap that meets a token:
    y = y + shifted(x, back) @ w[j] ->
        y = y + shifted(x, back) @ w[j]
        if b is not None:
            y[:, back:] += b
    y = y + b -> pass
  The bias is added inside the loop, at every tap that meets a token: up to k times. It is added once.
- no bias near the start:  y = y + b -> y[:, (k - 1) * dilation :] += b
  The first (k − 1)·dilation results lack the bias. It is added everywhere, also where some taps find nothing.
- token 0 never seen:  0 <= t -> 0 < t
  Token 0 is never seen, t − j·dilation > 0 instead of ≥ 0: off by one. The sequence begins at 0.
- first tap left out:  range(k) -> range(1, k)
  The tap j = 0 is left out: the token itself is not seen. j runs from 0 to k − 1.
- last tap left out:  range(k) -> range(k - 1)
  The last tap, j = k − 1, is left out: there are k taps, j runs from 0 to k − 1.
- only the last tap is left:  y = y + shifted -> y = shifted
  Each tap overwrites what the tap before it gave, `=` instead of `+=`: only W_{k−1} is left. y is the sum over j.
- the same matrix for every tap:  w[j] -> w[0]
  Every tap uses w[0]. Each distance j has a matrix of its own, W_j.
- mean over the taps:  w[j] -> w[j] / k
  The sum over the taps is divided by k. A convolution is a sum, not a mean.
- dilation ignored:  j * dilation -> j
  The dilation is ignored: the taps are j tokens apart from t instead of j·dilation.
- dilation counted as tokens left out:  j * dilation -> j * (dilation + 1)
  The taps are dilation + 1 apart, as if the dilation counted the tokens left out between them. It is the distance
  itself: with 1 the tokens seen are neighbours.
- dilation forgotten in the taps:  j * dilation -> (k - 1) * dilation - (k - 1 - j)
  The padding of (k − 1)·dilation knows the dilation, the taps do not: they are neighbours, far in the past. Tap j looks
  j·dilation back.
- dilation forgotten in the padding:  return y -> return y[:, (k - 1) * (dilation - 1) :]
  The padding is k − 1 zeros and does not know the dilation, so the result is too short. It takes (k − 1)·dilation
  zeros.
- dilation taken for a stride:
    j * dilation -> j
    return y -> return y[:, ::dilation]
  The dilation is used as a stride: only every dilation-th result is there. Dilation spreads the taps; every token has a
  result.
- bias forgotten:  y = y + b -> pass
  The bias b is not added.
- bias added at every tap:  y + b -> y + k * b
  The bias b is added at every tap, k times in all. It is added once, behind the sum.
- W_j transposed:  w[j] -> w[j].T
  It uses W_jᵀ. w is (k, D_in, D_out) and a row meets W_j from the left, x W_j; with D_in = D_out the shapes fit either
  way, otherwise it crashes.
- over the batch axis:
    B, T, _ = x.shape ->
        x = x.swapaxes(0, 1)
        B, T, _ = x.shape
    return y -> return y.swapaxes(0, 1)
  The convolution runs along axis 0, which is the batch: a sequence sees the sequences above it. Time is axis 1 of (B,
  T, D_in).
- crashes where a tap lies before the start:
    y = y + shifted(x, back) @ w[j] -> y[:, back:] += x[:, : T - back] @ w[j]
  It fails where (k − 1)·dilation exceeds T: then a tap looks at nothing but what lies before the start, and x[:, : T −
  j·dilation] has a negative end, which counts from the back. Such a tap gives 0.
""",
)


def conv_backward_cases(rng):
    cases = []
    for forward in conv_cases(rng):
        if forward.label == "no bias":  # the backward does not know it
            continue
        x, w, _ = forward.arguments
        dy = rng.normal(size=(*x.shape[:2], w.shape[2]))
        cases.append(Case(forward.label, (dy, x, w), forward.options, forward.sizes))
    return cases


def causal_conv1d_backward(dy, x, w, dilation=1):
    B, T, D_in = x.shape
    k = len(w)
    dx, dw = np.zeros((B, T, D_in)), np.zeros_like(w)
    for j in range(k):
        back = j * dilation
        dx = dx + shifted(dy, -back) @ w[j].T
        dw[j] = products(shifted(x, back), dy)
    db = dy.sum(axis=(0, 1))
    return dx, dw, db


CAUSAL_CONV1D_BACKWARD = Exercise(
    F.causal_conv1d_backward,
    results=(Result("dx", "B T D_in"), Result("dw", "k D_in D_out"), Result("db", "D_out")),
    cases=conv_backward_cases,
    answer=causal_conv1d_backward,
    hints=(
        "Which outputs did x_t reach, and through which matrix each?",
        "dx_t = Σ_j dy_{t + j·dilation} W_jᵀ,  dW_j = Σ_t x_{t − j·dilation}ᵀ dy_t,  db = Σ_t dy_t, the sums over the "
        "batch too",
        "notebook 10, “The table, measured”; what the forward shifted to the right goes back to the left, by as much.",
    ),
    difficulty=3,
    section="van den Oord et al. 2016, §2.1",
    chapter="Long sequences",
    place=4,
    mistakes="""
- dx shifted the wrong way:  shifted(dy, -back) -> shifted(dy, back)
  dx reads dy_{t − j·dilation}, shifted the same way as in the forward. x_t went forward to y_{t + j·dilation}, so its
  gradient comes back from there: dx_t = Σ_j dy_{t + j·dilation} W_jᵀ.
- dx not shifted:  shifted(dy, -back) -> dy
  In dx every tap takes dy_t. x_t met W_j on its way to y_{t + j·dilation}: dx_t = Σ_j dy_{t + j·dilation} W_jᵀ.
- x not shifted in dW:  shifted(x, back) -> x
  Every dW_j is Σ x_tᵀ dy_t, without the shift. W_j met the token j·dilation before: dW_j = Σ x_{t − j·dilation}ᵀ dy_t.
- x not shifted in dW, the start left out:  shifted(x, back), dy -> x[:, back:], dy[:, back:]
  dW_j is the sum of x_tᵀ dy_t from t = j·dilation on: both are cut at the start, and x is not shifted. W_j met the
  token j·dilation before: dW_j = Σ x_{t − j·dilation}ᵀ dy_t.
- x not shifted in dW, the end left out:
    shifted(x, back), dy -> x[:, : max(T - back, 0)], dy[:, : max(T - back, 0)]
  dW_j is the sum of x_tᵀ dy_t without the last j·dilation tokens: both are cut at the end, and x is not shifted. W_j
  met the token j·dilation before: dW_j = Σ x_{t − j·dilation}ᵀ dy_t.
- x shifted the wrong way in dW:  shifted(x, back) -> shifted(x, -back)
  dW_j pairs dy_t with x_{t + j·dilation}, in the future. W_j met x_{t − j·dilation}.
- taps in reverse order:  j * dilation -> (k - 1 - j) * dilation
  The taps are in reverse order: W_{k−1} is taken for the token itself, as in PyTorch. Here w[0] met the token itself,
  and dw[j] belongs to w[j].
- padded on both sides:  j * dilation -> (j - k // 2) * dilation
  This is the backward of a convolution padded on both sides (“same”), which looks into the future. Here tap j looks
  j·dilation back and never ahead.
- padding not cut off dx:
    np.zeros((B, T, D_in)) -> 0
    shifted(dy, -back) -> shifted(np.pad(dy, ((0, 0), ((k - 1) * dilation, 0), (0, 0))), -back)
  dx is (k − 1)·dilation tokens too long: it still holds the gradient of the zeros in front. Cut them off; dx has the
  shape of x.
- padding of dx cut off at the wrong end:  shifted(dy, -back) -> shifted(dy, (k - 1) * dilation - back)
  dx starts with the gradient of the padding: the (k − 1)·dilation places were cut off at the end. The zeros stood in
  front.
- off by one token:  j * dilation -> j * dilation + 1
  Every tap is taken to look one token too far back, j·dilation + 1. w[0] met the token itself.
- taps counted from 1:  j * dilation -> (j + 1) * dilation
  Tap j is taken to look (j + 1)·dilation back: j is counted from 1. w[0] met the token itself.
- wraps round:  x[:, t % T] * inside[:, None] -> x[:, t % T]
  Numbers that are shifted beyond one end come in again at the other, as np.roll and negative indices do. Beyond both
  ends there is 0.
- first tap left out:  range(k) -> range(1, k)
  The tap j = 0 is left out. j runs from 0 to k − 1.
- last tap left out:  range(k) -> range(k - 1)
  The last tap, j = k − 1, is left out. j runs from 0 to k − 1.
- dx overwritten at every tap:
    dx = dx + shifted(dy, -back) @ w[j].T -> dx[:, : max(T - back, 0)] = dy[:, back:] @ w[j].T
  dx is overwritten at every tap, `=` instead of `+=`. x_t reached up to k outputs, and their gradients add.
- dx of the first tap only:  dx = dx + shifted(dy, -back) @ w[j].T -> dx = dy @ w[0].T
  dx is dy_t W_0ᵀ alone. x_t reached y_{t + j·dilation} through every W_j, so there are k terms to add.
- W_j not transposed:  w[j].T -> w[j]
  dx is computed with W_j instead of W_jᵀ. With D_in = D_out the shapes fit either way, otherwise it crashes.
- dW transposed:  return dx, dw -> return dx, dw.swapaxes(1, 2)
  The matrices in dw are transposed, dyᵀ x. It is x_{t − j·dilation}ᵀ dy_t, (D_in, D_out).
- dilation ignored:  j * dilation -> j
  The dilation is ignored: the taps are taken j tokens apart from t instead of j·dilation.
- dilation counted as tokens left out:  j * dilation -> j * (dilation + 1)
  The taps are taken dilation + 1 apart, as if the dilation counted the tokens left out between them. It is the distance
  itself.
- dilation forgotten in the taps:  j * dilation -> (k - 1) * dilation - (k - 1 - j)
  The padding of (k − 1)·dilation knows the dilation, the taps do not: they are taken for neighbours. Tap j looks
  j·dilation back.
- gradients of the last sequence only:
    shifted(x, back), dy -> shifted(x, back)[-1:], dy[-1:]
    dy.sum(axis=(0, 1)) -> dy[-1].sum(axis=0)
  The gradients of w and b are those of the last sequence of the batch only, overwritten instead of added: they are sums
  over the batch.
- gradients of the last step only:
    shifted(x, back), dy -> shifted(x, back)[:, -1:], dy[:, -1:]
    dy.sum(axis=(0, 1)) -> dy[:, -1].sum(axis=0)
  The gradients of w and b are those of the last token only, overwritten instead of added: they are sums over time too.
- dW not summed over the batch:
    np.zeros_like(w) -> np.zeros((k, B, *w.shape[1:]))
    "bti,btj->ij" -> "bti,btj->bij"
  dw keeps an axis of B: it is not summed over the batch.
- db not summed over the batch:  axis=(0, 1) -> axis=1
  db keeps an axis of B: the bias gradient is not summed over the batch.
- db not summed over time:  axis=(0, 1) -> axis=0
  db keeps an axis of T: the bias gradient is not summed over time.
- db not summed at all:  dy.sum(axis=(0, 1)) -> dy
  db is dy itself, (B, T, D_out): the bias gradient is not summed. b met every token, so it is the sum over batch and
  time.
- db added at every tap:  db = dy.sum -> db = k * dy.sum
  db is k times too large: it is added once for each tap, but b stands in y_t once.
- mean over the batch:  return dx, dw, db -> return dx, dw / B, db / B
  The gradients of w and b are a mean over the batch, too small by the factor 1/B. They are sums: if the loss is a mean,
  that is already in dy.
- mean over time:  return dx, dw, db -> return dx, dw / T, db / T
  The gradients of w and b are a mean over time, too small by the factor 1/T. They are sums: if the loss is a mean, that
  is already in dy.
- crashes where a tap lies before the start:  shifted(x, back), dy -> x[:, : T - back], dy[:, back:]
  It fails where (k − 1)·dilation exceeds T: then a tap saw nothing but what lies before the start, and x[:, : T −
  j·dilation] has a negative end, which counts from the back. Such a tap has the gradient 0.
""",
)


EXERCISES = [CAUSAL_CONV1D, CAUSAL_CONV1D_BACKWARD]
