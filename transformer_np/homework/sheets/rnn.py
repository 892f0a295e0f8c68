"""The recurrent layer and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .activations import relu, sigmoid  # noqa: F401 - for the mistakes
from .draws import _weights


def rnn_cases(rng):
    sizes = draw_sizes(rng, "B T D_in D", least=3)
    B, T, D_in, D = sizes.values()
    x = rng.normal(size=(B, T, D_in))
    w_x, w_h, b = _weights(rng, D_in, D), _weights(rng, D, D), rng.normal(size=D)
    square = rng.normal(size=(B, T, D)), _weights(rng, D, D), w_h, b
    return [
        Case("", (x, w_x, w_h, b), sizes=sizes),
        Case("no bias", (x, w_x, w_h), sizes=sizes),
        Case("a single step, T = 1", (x[:, :1], w_x, w_h, b), sizes=sizes | {"T": 1}),
        Case("as many features in as out", square, sizes=sizes | {"D_in": D}),
    ]


def rnn(x, w_x, w_h, b=None):
    a = x @ w_x
    if b is not None:
        a = a + b
    h = np.zeros_like(a[:, 0])
    states = []
    for t in range(a.shape[1]):
        h = np.tanh(a[:, t] + h @ w_h)
        states.append(h)
    return np.stack(states, axis=1)


RNN = Exercise(
    F.rnn,
    results=(Result("h", "B T D"),),
    cases=rnn_cases,
    answer=rnn,
    hints=(
        "At step t, what does the layer know of all tokens before, and in which array is it?",
        "h_t = tanh(x_t W_x + h_{t−1} W_h + b), with h_{−1} = 0",
        "notebook 10, “The table, measured”; a loop over t = 0 … T − 1, np.tanh, np.stack(…, axis=1). b may be None.",
    ),
    difficulty=1,
    section="§2",
    chapter="Long sequences",
    place=1,
    mistakes="""
- state not fed back:  a[:, t] + h @ w_h -> a[:, t]
  The term h_{t−1} W_h is missing: every step sees its own token only, so there is no recurrence and no memory.
- memory of a single step:  states.append(h) -> states.append(h); h = np.tanh(a[:, t])
  The h_{t−1} that is fed back was itself computed without a past, tanh(x_{t−1} W_x + b). It must be the full state,
  which needs h_{t−2} and so on: the steps have to be taken one after the other.
- state fed back before the tanh:
    np.tanh( -> (
    states.append(h) -> states.append(np.tanh(h))
  The sum before the tanh, a_{t−1}, is fed back, as if the tanh came once at the very end. The state is h_{t−1} =
  tanh(a_{t−1}), and it is the state that meets W_h.
- tanh forgotten:  np.tanh( -> (
  The tanh is missing: h_t = tanh(x_t W_x + h_{t−1} W_h + b). Without it the layer is linear.
- first step without tanh:
    states.append(h) ->
        if t == 0:
            h = a[:, 0]
        states.append(h)
  The first step, t = 0, does not go through the tanh. It has no past, but a tanh it has.
- tanh of x W_x only:  np.tanh(a[:, t] + h @ w_h) -> np.tanh(a[:, t]) + h @ w_h
  The tanh is taken of x_t W_x + b alone and h_{t−1} W_h is added behind it. The tanh is around the whole sum.
- tanh of h W_h only:  np.tanh(a[:, t] + h @ w_h) -> a[:, t] + np.tanh(h @ w_h)
  The tanh is taken of h_{t−1} W_h alone and x_t W_x + b is added behind it. The tanh is around the whole sum.
- tanh twice:  a[:, t] + -> np.tanh(a[:, t]) +
  x_t W_x + b goes through a tanh of its own before h_{t−1} W_h is added and the tanh is taken again. There is one tanh,
  around the whole sum.
- all states so far fed back:  h @ w_h -> sum(states, np.zeros_like(h)) @ w_h
  The sum of all states so far is multiplied by W_h. Multiply only the last one, h_{t−1}: it carries the past.
- bias multiplied by W_h:
    a = a + b -> pass
    h @ w_h -> (h if b is None else h + b) @ w_h
  The bias is added to the state before W_h, (h_{t−1} + b) W_h. It is added to the sum, behind both products.
- ReLU instead of tanh:  np.tanh -> relu
  The activation is max(0, ·), a ReLU, where the layer has a tanh.
- sigmoid instead of tanh:  np.tanh -> sigmoid
  The activation is the sigmoid 1/(1 + e⁻ˣ), between 0 and 1, where the layer has a tanh.
- old state added:  h = np.tanh -> h = h + np.tanh
  h_{t−1} itself is added to the new state, like a residual. The past enters through h_{t−1} W_h inside the tanh and in
  no other way.
- h W_h subtracted:  + h @ w_h -> - h @ w_h
  The term h_{t−1} W_h is subtracted. Add it: a sign is wrong.
- W_h transposed:  h @ w_h -> h @ w_h.T
  It computes h_{t−1} W_hᵀ. W_h is square, so no shape complains; a row vector meets W_h from the left, h W_h.
- W_x transposed:  x @ w_x -> x @ w_x.T
  It computes x_t W_xᵀ. W_x is (D_in, D) and a row meets it from the left, x W_x; with D_in = D the shapes fit either
  way, otherwise it crashes.
- bias forgotten:  a = a + b -> pass
  The bias b is not added.
- bias added twice:  a + b -> a + 2 * b
  The bias b is added twice, once with x_t W_x and once with h_{t−1} W_h: there is only one.
- first state not zero:  np.zeros_like -> np.ones_like
  The state before the first step is 1 everywhere. It is zero: h_{−1} = 0.
- first step left at zero:
    states.append(h) ->
        if t == 0:
            h = np.zeros_like(h)
        states.append(h)
  h_0 is left at zero, as if it were the state before the first token. The first token makes h_0 = tanh(x_0 W_x + b);
  only h_{−1} is zero.
- last step wraps round into the first:  np.zeros_like(a[:, 0]) -> a[:, -1]
  In the first step the state before it is read at index t − 1 = −1, which in Python is the last place: the first token
  sees the last one. Before the first step the state is zero.
- returned one step late:
    h = np.tanh(a[:, t] + h @ w_h); states.append(h) -> states.append(h); h = np.tanh(a[:, t] + h @ w_h)
  Place t holds h_{t−1}: the initial zero is returned in the first place and the last state is missing. Place t is for
  the state after token t.
- initial state returned with them:  states = [] -> states = [h]
  The zero state h_{−1} is returned as well, so there are T + 1 states instead of T, one for each token.
- x of the step before:  x @ w_x -> before(x) @ w_x
  Step t reads x_{t−1} instead of x_t (and zeros in the first step): the input is one step late, off by one.
- x of the step before, round the end:  x @ w_x -> np.roll(x, 1, axis=1) @ w_x
  Step t reads x_{t−1} instead of x_t, and in the first step index −1, the last token: off by one.
- runs from the end:
    range(a.shape[1]) -> reversed(range(a.shape[1]))
    np.stack(states -> np.stack(states[::-1]
  The steps run from the last token to the first: h_t is made from h_{t+1} and knows the future. Time starts at t = 0.
- states in reverse order:  np.stack(states -> np.stack(states[::-1]
  The states are right but returned in reverse order of time, the last one first: place t must hold h_t.
- recurrence over the batch:
    a[:, 0] -> a[0]
    a.shape[1] -> a.shape[0]
    a[:, t] -> a[t]
    axis=1 -> axis=0
  The loop runs over axis 0, which is the batch, so that each sequence is fed the state of the sequence above it. Time
  is axis 1 of (B, T, D_in).
- state carried over to the next sequence:
    x @ w_x -> x.reshape(1, -1, x.shape[-1]) @ w_x
    return np.stack(states, axis=1) -> return np.stack(states, axis=1).reshape(*x.shape[:2], -1)
  The state is not set back to zero for each sequence of the batch: a sequence starts from the last state of the one
  before it. Every sequence starts with h_{−1} = 0.
- time axis first:  axis=1 -> axis=0
  The result is (T, B, D), the time axis first, as np.stack leaves a list of steps. It is (B, T, D).
- last state only:  np.stack(states, axis=1) -> h
  Only the last state is returned, (B, D). Every step has one: (B, T, D).
""",
)


def rnn_backward_cases(rng):
    cases = []
    for forward in rnn_cases(rng):
        if forward.label == "no bias":  # the backward does not know it
            continue
        x, w_x, w_h, b = forward.arguments
        h = F.rnn(x, w_x, w_h, b)
        cases.append(Case(forward.label, (rng.normal(size=h.shape), x, h, w_x, w_h), sizes=forward.sizes))
    dh, *others = cases[0].arguments
    cases.append(Case("dh a hundred times as large", (100 * dh, *others), sizes=cases[0].sizes))
    return cases


def before(x):
    """x of the step before: x_{t−1} at step t, zero in the first."""
    return np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)


def products(inputs, da):
    """Σ inputs_tᵀ da_t, over the batch and all steps."""
    return np.einsum("bti,btj->ij", inputs, da)


def rnn_backward(dh, x, h, w_x, w_h):
    T = h.shape[1]
    slope = 1 - h**2
    da = np.zeros_like(h)
    back = np.zeros_like(h[:, 0])
    for t in reversed(range(T)):
        dh_t = dh[:, t] + back
        da[:, t] = dh_t * slope[:, t]
        back = da[:, t] @ w_h.T
    h_before = before(h)
    dx = da @ w_x.T
    dw_x = products(x, da)
    dw_h = products(h_before, da)
    db = da.sum(axis=(0, 1))
    return dx, dw_x, dw_h, db


RNN_BACKWARD = Exercise(
    F.rnn_backward,
    results=(Result("dx", "B T D_in"), Result("dw_x", "D_in D"), Result("dw_h", "D D"), Result("db", "D")),
    cases=rnn_backward_cases,
    answer=rnn_backward,
    hints=(
        "On which ways did h_t reach the loss? And which of them is known first?",
        "da_t = (dh_t + da_{t+1} W_hᵀ) · (1 − h_t²), from the end; dW_h = Σ h_{t−1}ᵀ da_t, dW_x = Σ x_tᵀ da_t, db = Σ "
        "da_t",
        "notebook 10, “The table, measured”; Werbos 1990; for t in range(T − 1, −1, −1). h_{−1} is zero.",
    ),
    difficulty=3,
    section="§2",
    chapter="Long sequences",
    place=2,
    mistakes="""
- db is Σ dh:  da.sum -> dh.sum
  db is the sum of dh, what came from outside. b stands inside the tanh at every step: db = Σ da_t, with the slope and
  with what came back through time.
- no gradient through time:  dh[:, t] + back -> dh[:, t]
  Nothing flows back through time: da_t = dh_t · (1 − h_t²) lacks the term da_{t+1} W_hᵀ. h_t reached the loss through
  h_{t+1} too.
- only one step back in time:  back = da[:, t] -> back = (dh[:, t] * slope[:, t])
  The gradient goes back a single step: only dh_{t+1} · (1 − h_{t+1}²) is handed on. Hand on all of da_{t+1}, which
  carries the gradients from t + 2 and later.
- dh instead of da passed back:  back = da[:, t] -> back = dh[:, t]
  Step t receives dh_{t+1} W_hᵀ. It must receive da_{t+1} W_hᵀ, with the slope 1 − h² of step t + 1 and with everything
  that came from later steps.
- only dh of the last step:
    np.zeros_like(h[:, 0]) -> dh[:, -1]
    dh[:, t] + back -> back
  Only dh of the last step enters, as if the loss saw h_{T−1} alone. Every step has its own dh_t, which is added to what
  comes from step t + 1.
- dh of the last step counted twice:  np.zeros_like(h[:, 0]) -> dh[:, -1]
  dh of the last step is counted twice: the gradient from later steps starts as dh_{T−1}, and the step adds its own dh.
  No step follows the last one: start from zero.
- no slope of the tanh:  1 - h**2 -> np.ones_like(h)
  The slope of the tanh, the factor 1 − h_t², is missing everywhere.
- slope missing on the way back in time:  back = da[:, t] -> back = dh_t
  The slope of the tanh, 1 − h², is missing on the way back in time: step t receives (dh_{t+1} + …) W_hᵀ. It must
  receive da_{t+1} W_hᵀ, behind the tanh of step t + 1.
- slope missing in what comes from later steps:  dh_t * slope[:, t] -> dh[:, t] * slope[:, t] + back
  The factor 1 − h_t² multiplies dh_t only, not da_{t+1} W_hᵀ: both arrived at h_t and both go through its tanh. A
  bracket is missing.
- slope missing in dh:  dh_t * slope[:, t] -> dh[:, t] + back * slope[:, t]
  The factor 1 − h_t² multiplies da_{t+1} W_hᵀ only, not dh_t: both arrived at h_t and both go through its tanh. A
  bracket is missing.
- slope missing in the gradients of a step:
    dh_t * slope[:, t] -> dh_t
    back = da[:, t] -> back = (dh_t * slope[:, t])
  This gradient is made from the gradient of h_t, without the factor 1 − h_t². It is a_t, before the tanh, that is x_t
  W_x + h_{t−1} W_h + b.
- slope 1 − h:  h**2 -> h
  The slope of the tanh is 1 − h², here it is 1 − h: the square is missing.
- slope of the sigmoid:  1 - h**2 -> h * (1 - h)
  h (1 − h) is the slope of the sigmoid; the slope of the tanh is 1 − h².
- slope of the step after:  slope[:, t] -> slope[:, min(t + 1, T - 1)]
  The slope at step t is taken from h_{t+1}, 1 − h_{t+1}²: off by one. da_t has the slope of its own tanh, 1 − h_t².
- slope h²:  1 - h**2 -> h**2
  The slope of the tanh is 1 − h², here it is h²: the “1 −” is missing.
- tanh taken of h again:  h**2 -> np.tanh(h)**2
  The slope is computed as 1 − tanh(h)². h is already the tanh's output, so it is 1 − h².
- slope of the step before:  h**2 -> before(h)**2
  The slope at step t is taken from h_{t−1}. The tanh of step t made h_t, so its slope is 1 − h_t²: off by one.
- W_h not transposed:  w_h.T -> w_h
  It goes back through W_h instead of W_hᵀ: da_{t+1} W_hᵀ. W_h is square, so no shape complains.
- W_h missing on the way back:  da[:, t] @ w_h.T -> da[:, t]
  da_{t+1} is handed back as it is. h_t went through W_h to reach step t + 1, so its gradient is da_{t+1} W_hᵀ.
- W_x not transposed:  w_x.T -> w_x
  dx is computed with W_x instead of W_xᵀ: dx_t = da_t W_xᵀ. With D_in = D the shapes fit either way, otherwise it
  crashes.
- runs forward in time:  reversed(range(T)) -> range(T)
  The loop runs from the first step to the last. Gradients come from the end: da_t needs da_{t+1}, so the loop goes
  backward in time, from t = T − 1 down to 0.
- dW_h with h_t:  before(h) -> h
  dW_h is made with h_t where it takes h_{t−1}: in a_t stands h_{t−1} W_h, so dW_h = Σ h_{t−1}ᵀ da_t. Off by one.
- dW_h with h_{t+1}:  before(h) -> before(h[:, ::-1])[:, ::-1]
  dW_h pairs each da_t with h_{t+1}, one step in the wrong direction: dW_h = Σ h_{t−1}ᵀ da_t. Off by one.
- h_{−1} taken from the end:  before(h) -> np.roll(h, 1, axis=1)
  In dW_h the state before the first step is read at index −1, which in Python is the last state. h_{−1} = 0, so the
  first step has no share in dW_h.
- dW_h transposed:  products(h_before, da) -> products(da, h_before)
  This is the transpose of dW_h, Σ da_tᵀ h_{t−1}: it is Σ h_{t−1}ᵀ da_t. W_h is square, no shape says so.
- dW_x transposed:  products(x, da) -> products(da, x)
  This is the transpose of dW_x, Σ da_tᵀ x_t, of shape (D, D_in): it is Σ x_tᵀ da_t.
- gradients of the last step only:
    dx = da @ w_x.T ->
        dx = da @ w_x.T
        x, h_before, da = x[:, -1:], h_before[:, -1:], da[:, -1:]
  The gradients of W_x, W_h and b are those of the last step t = T − 1 only. They met every step, so their gradients are
  sums over all steps.
- overwritten at every step:
    products(x, da) -> products(x[:, :1], da[:, :1])
    products(h_before, da) -> products(h_before[:, 1:2], da[:, 1:2])
    da.sum(axis=(0, 1)) -> da[:, 0].sum(axis=0)
  The gradients of W_x, W_h and b are overwritten at every step on the way back, `=` instead of `+=`: only the share of
  the first tokens is left. They are sums over all steps.
- dW_h overwritten by the zeros of step 0:  products(h_before, da) -> products(h_before[:, :1], da[:, :1])
  dW_h is overwritten at every step, `=` instead of `+=`: only the share of step 0 is left, and it is zero because
  h_{−1} = 0. It is the sum over all steps.
- gradients of the last sequence only:
    dx = da @ w_x.T ->
        dx = da @ w_x.T
        x, h_before, da = x[-1:], h_before[-1:], da[-1:]
  The gradients of W_x, W_h and b are those of the last sequence of the batch only, overwritten instead of added: they
  are sums over the batch too.
- not summed over time:
    "bti,btj->ij" -> "bti,btj->tij"
    axis=(0, 1) -> axis=0
  The gradients of W_x, W_h and b keep an axis of T: they are not summed over time (the steps).
- not summed over the batch:
    "bti,btj->ij" -> "bti,btj->bij"
    axis=(0, 1) -> axis=1
  The gradients of W_x, W_h and b keep an axis of B: they are not summed over the batch.
- db not summed over time:  axis=(0, 1) -> axis=0
  db keeps an axis of T: the bias gradient is not summed over time (the steps).
- db not summed over the batch:  axis=(0, 1) -> axis=1
  db keeps an axis of B: the bias gradient is not summed over the batch.
- db not summed at all:  da.sum(axis=(0, 1)) -> da
  db is da itself, (B, T, D): the bias gradient is not summed. b met every step of every sequence, so it is the sum over
  batch and time.
- mean over the batch:  return dx, dw_x, dw_h, db -> B = len(x); return dx, dw_x / B, dw_h / B, db / B
  The gradients of the weights are a mean over the batch, too small by the factor 1/B. They are sums: if the loss is a
  mean, that is already in dh.
- mean over time:  return dx, dw_x, dw_h, db -> return dx, dw_x / T, dw_h / T, db / T
  The gradients of the weights are a mean over time, too small by the factor 1/T. They are sums over the steps: if the
  loss is a mean, that is already in dh.
- what flows back added up:  back = da -> back = back + da
  The gradient that flows back is added to the one of the step before, `+=` instead of `=`. da_{t+1} already carries the
  gradients of all later steps: step t gets da_{t+1} W_hᵀ and no more.
- clipped to ±1:
    return dx, dw_x, dw_h, db -> return tuple(np.clip(gradient, -1, 1) for gradient in (dx, dw_x, dw_h, db))
  The gradients are clipped to ±1. Clipping is for the training, behind the backward; the backward returns the gradient
  as it is.
- clipped:
    return dx, dw_x, dw_h, db -> return tuple(np.clip(gradient, -5, 5) for gradient in (dx, dw_x, dw_h, db))
  The gradients are clipped to ±5. Clipping is for the training, behind the backward; the backward returns the gradient
  as it is.
""",
)


EXERCISES = [RNN, RNN_BACKWARD]
