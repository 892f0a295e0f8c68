"""The recurrent layer and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .activations import sigmoid
from .draws import _weights


def _rnn_cases(rng):
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


def _wrong_rnn(made, x, w_x, w_h, b=None):
    if made("recurrence over the batch"):
        x = x.swapaxes(0, 1)
    shape = x.shape
    if made("state carried over to the next sequence"):
        x = x.reshape(1, -1, shape[-1])
    if made("runs from the end"):
        x = x[:, ::-1]
    if made("x of the step before"):
        x = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
    if made("x of the step before, round the end"):
        x = np.roll(x, 1, axis=1)
    if b is None or made("bias forgotten"):
        b = np.zeros(len(w_h))
    a = x @ (w_x.T if made("W_x transposed") else w_x) + b * (2 if made("bias added twice") else 1)
    if made("bias multiplied by W_h"):
        a = a - b
    if made("W_h transposed"):
        w_h = w_h.T
    if made("h W_h subtracted"):
        w_h = -w_h
    squash = np.tanh
    if made("tanh forgotten"):
        squash = np.asarray
    if made("ReLU instead of tanh"):
        squash = _relu
    if made("sigmoid instead of tanh"):
        squash = sigmoid
    h, state = [], np.zeros_like(a[:, 0])
    if made("first state not zero"):
        state = state + 1
    for t in range(a.shape[1]):
        fed = (state + (b if made("bias multiplied by W_h") else 0)) @ w_h
        if made("all states so far fed back"):
            fed = sum(h, np.zeros_like(state)) @ w_h
        if made("state not fed back"):
            fed = 0 * fed
        if made("last step wraps round into the first") and t == 0:
            fed = a[:, -1] @ w_h
        before = a[:, t] + fed
        if made("tanh of x W_x only"):
            new = squash(a[:, t]) + fed
        elif made("tanh of h W_h only"):
            new = a[:, t] + squash(fed)
        elif made("tanh twice"):
            new = squash(squash(a[:, t]) + fed)
        else:
            new = squash(before)
        if made("old state added"):
            new = new + state
        if t == 0 and made("first step left at zero"):
            new = np.zeros_like(new)
        if t == 0 and made("first step without tanh"):
            new = before
        h.append(new)
        state = before if made("state fed back before the tanh") else new
        if made("memory of a single step"):
            state = squash(a[:, t])
    h = np.stack(h, axis=1)
    if made("runs from the end"):
        h = h[:, ::-1]
    h = h.reshape(*shape[:2], -1)
    if made("recurrence over the batch"):
        h = h.swapaxes(0, 1)
    zero = np.zeros_like(h[:, :1])
    if made("states in reverse order"):
        h = h[:, ::-1]
    if made("returned one step late"):
        h = np.concatenate([zero, h[:, :-1]], axis=1)
    if made("initial state returned with them"):
        h = np.concatenate([zero, h], axis=1)
    if made("time axis first"):
        return h.swapaxes(0, 1)
    return h[:, -1] if made("last state only") else h


def _relu(x):
    return np.maximum(x, 0)


RNN = Exercise(
    F.rnn,
    (Result("h", "B T D"),),
    _rnn_cases,
    {
        "state not fed back": (
            "The term h_{t−1} W_h is missing: every step sees its own token only, so there is no recurrence and no "
            "memory."
        ),
        "memory of a single step": (
            "The h_{t−1} that is fed back was itself computed without a past, tanh(x_{t−1} W_x + b). It must be the "
            "full state, which needs h_{t−2} and so on: the steps have to be taken one after the other."
        ),
        "state fed back before the tanh": (
            "What is fed back is the sum before the tanh, a_{t−1}, as if the tanh came once at the very end. The state "
            "is h_{t−1} = tanh(a_{t−1}), and it is the state that meets W_h."
        ),
        "tanh forgotten": "The tanh is missing: h_t = tanh(x_t W_x + h_{t−1} W_h + b). Without it the layer is linear.",
        "first step without tanh": (
            "The first step, t = 0, does not go through the tanh. It has no past, but a tanh it has."
        ),
        "tanh of x W_x only": (
            "The tanh is taken of x_t W_x + b alone and h_{t−1} W_h is added behind it. The tanh is around the whole "
            "sum."
        ),
        "tanh of h W_h only": (
            "The tanh is taken of h_{t−1} W_h alone and x_t W_x + b is added behind it. The tanh is around the whole "
            "sum."
        ),
        "tanh twice": (
            "x_t W_x + b goes through a tanh of its own before h_{t−1} W_h is added and the tanh is taken again. There "
            "is one tanh, around the whole sum."
        ),
        "all states so far fed back": (
            "What meets W_h is the sum of all states so far. It is the last one alone, h_{t−1}: that carries the past."
        ),
        "bias multiplied by W_h": (
            "The bias is added to the state before W_h, (h_{t−1} + b) W_h. It is added to the sum, behind both "
            "products."
        ),
        "ReLU instead of tanh": "The activation is max(0, ·), a ReLU, where the layer has a tanh.",
        "sigmoid instead of tanh": (
            "The activation is the sigmoid 1/(1 + e⁻ˣ), between 0 and 1, where the layer has a tanh."
        ),
        "old state added": (
            "h_{t−1} itself is added to the new state, like a residual. The past enters through h_{t−1} W_h inside the "
            "tanh and in no other way."
        ),
        "h W_h subtracted": "The term h_{t−1} W_h is subtracted where it has to be added: a sign is wrong.",
        "W_h transposed": (
            "It computes h_{t−1} W_hᵀ. W_h is square, so no shape complains; a row vector meets W_h from the left, h "
            "W_h."
        ),
        "W_x transposed": (
            "It computes x_t W_xᵀ. W_x is (D_in, D) and a row meets it from the left, x W_x; with D_in = D the shapes "
            "fit either way, otherwise it crashes."
        ),
        "bias forgotten": "The bias b is not added.",
        "bias added twice": (
            "The bias b is added twice, once with x_t W_x and once with h_{t−1} W_h: there is only one."
        ),
        "first state not zero": "The state before the first step is 1 everywhere. It is zero: h_{−1} = 0.",
        "first step left at zero": (
            "h_0 is left at zero, as if it were the state before the first token. The first token makes h_0 = tanh(x_0 "
            "W_x + b); what is zero is h_{−1}."
        ),
        "last step wraps round into the first": (
            "In the first step the state before it is read at index t − 1 = −1, which in Python is the last place: the "
            "first token sees the last one. Before the first step the state is zero."
        ),
        "returned one step late": (
            "Place t holds h_{t−1}: the initial zero is returned in the first place and the last state is missing. "
            "Place t is for the state after token t."
        ),
        "initial state returned with them": (
            "The zero state h_{−1} is returned as well, so there are T + 1 states instead of T, one for each token."
        ),
        "x of the step before": (
            "Step t reads x_{t−1} instead of x_t (and zeros in the first step): the input is one step late, off by one."
        ),
        "x of the step before, round the end": (
            "Step t reads x_{t−1} instead of x_t, and in the first step index −1, the last token: off by one."
        ),
        "runs from the end": (
            "The steps run from the last token to the first: h_t is made from h_{t+1} and knows the future. Time "
            "starts at t = 0."
        ),
        "states in reverse order": (
            "The states are right but returned in reverse order of time, the last one first: place t must hold h_t."
        ),
        "recurrence over the batch": (
            "The loop runs over axis 0, which is the batch, so that each sequence is fed the state of the sequence "
            "above it. Time is axis 1 of (B, T, D_in)."
        ),
        "state carried over to the next sequence": (
            "The state is not set back to zero for each sequence of the batch: a sequence starts from the last state "
            "of the one before it. Every sequence starts with h_{−1} = 0."
        ),
        "time axis first": (
            "The result is (T, B, D), the time axis first, as np.stack leaves a list of steps. It is (B, T, D)."
        ),
        "last state only": "Only the last state is returned, (B, D). Every step has one: (B, T, D).",
    },
    _wrong_rnn,
    (
        "At step t, what does the layer know of all tokens before, and in which array is it?",
        "h_t = tanh(x_t W_x + h_{t−1} W_h + b), with h_{−1} = 0",
        "notebook 10, “The table, measured”; a loop over t = 0 … T − 1, np.tanh, np.stack(…, axis=1). b may be None.",
    ),
    difficulty=1,
    section="§2",
    chapter="Long sequences",
    place=1,
)


def _rnn_backward_cases(rng):
    cases = []
    for forward in _rnn_cases(rng):
        if forward.label == "no bias":  # the backward does not know it
            continue
        x, w_x, w_h, b = forward.arguments
        h = F.rnn(x, w_x, w_h, b)
        cases.append(Case(forward.label, (rng.normal(size=h.shape), x, h, w_x, w_h), sizes=forward.sizes))
    dh, *others = cases[0].arguments
    cases.append(Case("dh a hundred times as large", (100 * dh, *others), sizes=cases[0].sizes))
    return cases


def _wrong_rnn_backward(made, dh, x, h, w_x, w_h):
    B, T, _ = h.shape
    slope = 1 - h**2
    if made("no slope of the tanh"):
        slope = np.ones_like(h)
    if made("slope 1 − h"):
        slope = 1 - h
    if made("slope of the sigmoid"):
        slope = h * (1 - h)
    if made("slope h²"):
        slope = h**2
    if made("tanh taken of h again"):
        slope = 1 - np.tanh(h) ** 2
    if made("slope of the step before"):
        slope = 1 - _before(h) ** 2
    if made("slope of the step after"):
        slope = np.concatenate([slope[:, 1:], slope[:, -1:]], axis=1)
    back_matrix = w_h if made("W_h not transposed") else w_h.T
    da, carried = np.zeros_like(h), np.zeros_like(h[:, 0])
    for t in range(T) if made("runs forward in time") else range(T - 1, -1, -1):
        own = dh[:, t]
        if made("only dh of the last step") and t < T - 1:
            own = np.zeros_like(own)
        if made("dh of the last step counted twice") and t == T - 1:
            own = 2 * own
        total, before_it = own + carried, carried
        if made("slope missing in what comes from later steps"):
            passed = own * slope[:, t] + carried
        elif made("slope missing in dh"):
            passed = own + carried * slope[:, t]
        else:
            passed = total * slope[:, t]
        da[:, t] = total if made("slope missing in the gradients of a step") else passed
        if made("slope missing on the way back in time"):
            passed = total
        if made("only one step back in time"):
            passed = own * slope[:, t]
        if made("dh instead of da passed back"):
            passed = own
        carried = passed if made("W_h missing on the way back") else passed @ back_matrix
        if made("what flows back added up"):
            carried = before_it + carried
        if made("no gradient through time"):
            carried = np.zeros_like(carried)
    dx = da @ (w_x if made("W_x not transposed") else w_x.T)
    before = _before(h)
    if made("h_{−1} taken from the end"):
        before = np.roll(h, 1, axis=1)
    if made("dW_h with h_t"):
        before = h
    if made("dW_h with h_{t+1}"):
        before = _before(h[:, ::-1])[:, ::-1]
    by_step = [  # (B, T, …): the share of every sequence and step
        x[..., :, None] * da[..., None, :],
        before[..., :, None] * da[..., None, :],
        da,
    ]
    sums = []
    for i, share in enumerate(by_step):
        if made("gradients of the last step only"):
            share = share[:, -1:]
        if made("overwritten at every step"):
            share = share[:, 1:2] if i == 1 else share[:, :1]
        if made("dW_h overwritten by the zeros of step 0") and i == 1:
            share = share[:, :1]
        if made("gradients of the last sequence only"):
            share = share[-1:]
        bias = i == 2
        over = [
            axis
            for axis, what in enumerate(("the batch", "time"))
            if not made(f"not summed over {what}")
            and not (bias and (made(f"db not summed over {what}") or made("db not summed at all")))
        ]
        total = share.sum(axis=tuple(over))
        sums.append(total / (B if made("mean over the batch") else 1) / (T if made("mean over time") else 1))
    dw_x, dw_h, db = sums
    if made("dW_x transposed"):
        dw_x = dw_x.swapaxes(-1, -2)
    if made("dW_h transposed"):
        dw_h = dw_h.swapaxes(-1, -2)
    if made("db is Σ dh"):
        db = dh.sum(axis=(0, 1))
    results = dx, dw_x, dw_h, db
    if made("clipped to ±1"):
        return tuple(np.clip(result, -1, 1) for result in results)
    return tuple(np.clip(result, -5, 5) for result in results) if made("clipped") else results


def _before(h):
    """The state before every step, zero before the first."""
    return np.concatenate([np.zeros_like(h[:, :1]), h[:, :-1]], axis=1)


RNN_BACKWARD = Exercise(
    F.rnn_backward,
    (Result("dx", "B T D_in"), Result("dw_x", "D_in D"), Result("dw_h", "D D"), Result("db", "D")),
    _rnn_backward_cases,
    {
        "db is Σ dh": (
            "db is the sum of dh, what came from outside. b stands inside the tanh at every step: db = Σ da_t, with "
            "the slope and with what came back through time."
        ),
        "no gradient through time": (
            "Nothing flows back through time: da_t = dh_t · (1 − h_t²) lacks the term da_{t+1} W_hᵀ. h_t reached the "
            "loss through h_{t+1} too."
        ),
        "only one step back in time": (
            "The gradient goes back a single step: what is handed on is dh_{t+1} · (1 − h_{t+1}²) alone instead of all "
            "of da_{t+1}, which carries what came from t + 2 and later."
        ),
        "dh instead of da passed back": (
            "What goes back to step t is dh_{t+1} W_hᵀ. It has to be da_{t+1} W_hᵀ, with the slope 1 − h² of step t + "
            "1 and with everything that came from later steps."
        ),
        "only dh of the last step": (
            "Only dh of the last step enters, as if the loss saw h_{T−1} alone. Every step has its own dh_t, which is "
            "added to what comes from step t + 1."
        ),
        "dh of the last step counted twice": (
            "dh of the last step is counted twice: what flows back starts from dh_{T−1}, and the step adds its own dh. "
            "Behind the last step nothing comes back: start from zero."
        ),
        "no slope of the tanh": "The slope of the tanh, the factor 1 − h_t², is missing everywhere.",
        "slope missing on the way back in time": (
            "The slope of the tanh, 1 − h², is missing on the way back in time: what is handed to step t is (dh_{t+1} "
            "+ …) W_hᵀ where it has to be da_{t+1} W_hᵀ, behind the tanh of step t + 1."
        ),
        "slope missing in what comes from later steps": (
            "The factor 1 − h_t² multiplies dh_t only, not da_{t+1} W_hᵀ: both arrived at h_t and both go through its "
            "tanh. A bracket is missing."
        ),
        "slope missing in dh": (
            "The factor 1 − h_t² multiplies da_{t+1} W_hᵀ only, not dh_t: both arrived at h_t and both go through its "
            "tanh. A bracket is missing."
        ),
        "slope missing in the gradients of a step": (
            "This gradient is made from the gradient of h_t, without the factor 1 − h_t². It is a_t, before the tanh, "
            "that is x_t W_x + h_{t−1} W_h + b."
        ),
        "slope 1 − h": "The slope of the tanh is 1 − h², here it is 1 − h: the square is missing.",
        "slope of the sigmoid": "h (1 − h) is the slope of the sigmoid; the slope of the tanh is 1 − h².",
        "slope of the step after": (
            "The slope at step t is taken from h_{t+1}, 1 − h_{t+1}²: off by one. da_t has the slope of its own tanh, "
            "1 − h_t²."
        ),
        "slope h²": "The slope of the tanh is 1 − h², here it is h²: the “1 −” is missing.",
        "tanh taken of h again": (
            "The slope is computed as 1 − tanh(h)². h is already the tanh's output, so it is 1 − h²."
        ),
        "slope of the step before": (
            "The slope at step t is taken from h_{t−1}. The tanh of step t made h_t, so its slope is 1 − h_t²: off by "
            "one."
        ),
        "W_h not transposed": (
            "It goes back through W_h instead of W_hᵀ: da_{t+1} W_hᵀ. W_h is square, so no shape complains."
        ),
        "W_h missing on the way back": (
            "da_{t+1} is handed back as it is. h_t went through W_h to reach step t + 1, so its gradient is da_{t+1} "
            "W_hᵀ."
        ),
        "W_x not transposed": (
            "dx is computed with W_x instead of W_xᵀ: dx_t = da_t W_xᵀ. With D_in = D the shapes fit either way, "
            "otherwise it crashes."
        ),
        "runs forward in time": (
            "The loop runs from the first step to the last. Gradients come from the end: da_t needs da_{t+1}, so the "
            "loop goes backward in time, from t = T − 1 down to 0."
        ),
        "dW_h with h_t": (
            "dW_h is made with h_t where it takes h_{t−1}: in a_t stands h_{t−1} W_h, so dW_h = Σ h_{t−1}ᵀ da_t. Off "
            "by one."
        ),
        "dW_h with h_{t+1}": (
            "dW_h pairs each da_t with h_{t+1}, one step in the wrong direction: dW_h = Σ h_{t−1}ᵀ da_t. Off by one."
        ),
        "h_{−1} taken from the end": (
            "In dW_h the state before the first step is read at index −1, which in Python is the last state. h_{−1} = "
            "0, so the first step has no share in dW_h."
        ),
        "dW_h transposed": (
            "This is the transpose of dW_h, Σ da_tᵀ h_{t−1}: it is Σ h_{t−1}ᵀ da_t. W_h is square, no shape says so."
        ),
        "dW_x transposed": "This is the transpose of dW_x, Σ da_tᵀ x_t, of shape (D, D_in): it is Σ x_tᵀ da_t.",
        "gradients of the last step only": (
            "The gradients of W_x, W_h and b are those of the last step t = T − 1 only. They met every step, so their "
            "gradients are sums over all steps."
        ),
        "overwritten at every step": (
            "The gradients of W_x, W_h and b are overwritten at every step on the way back, `=` instead of `+=`: what "
            "is left is the share of the first tokens. They are sums over all steps."
        ),
        "dW_h overwritten by the zeros of step 0": (
            "dW_h is overwritten at every step, `=` instead of `+=`: what is left at the end is the share of step 0, "
            "which is zero as h_{−1} = 0. It is the sum over all steps."
        ),
        "gradients of the last sequence only": (
            "The gradients of W_x, W_h and b are those of the last sequence of the batch only, overwritten instead of "
            "added: they are sums over the batch too."
        ),
        "not summed over time": (
            "The gradients of W_x, W_h and b keep an axis of T: they are not summed over time (the steps)."
        ),
        "not summed over the batch": (
            "The gradients of W_x, W_h and b keep an axis of B: they are not summed over the batch."
        ),
        "db not summed over time": "db keeps an axis of T: the bias gradient is not summed over time (the steps).",
        "db not summed over the batch": "db keeps an axis of B: the bias gradient is not summed over the batch.",
        "db not summed at all": (
            "db is da itself, (B, T, D): the bias gradient is not summed. b met every step of every sequence, so it is "
            "the sum over batch and time."
        ),
        "mean over the batch": (
            "The gradients of the weights are a mean over the batch, too small by the factor 1/B. They are sums: if "
            "the loss is a mean, that is already in dh."
        ),
        "mean over time": (
            "The gradients of the weights are a mean over time, too small by the factor 1/T. They are sums over the "
            "steps: if the loss is a mean, that is already in dh."
        ),
        "what flows back added up": (
            "What flows back is added to what flowed back before, `+=` instead of `=`, from step to step. da_{t+1} "
            "already carries all that came from later steps: step t gets da_{t+1} W_hᵀ and no more."
        ),
        "clipped to ±1": (
            "The gradients are clipped to ±1. Clipping is for the training, behind the backward; the backward returns "
            "the gradient as it is."
        ),
        "clipped": (
            "The gradients are clipped to ±5. Clipping is for the training, behind the backward; the backward returns "
            "the gradient as it is."
        ),
    },
    _wrong_rnn_backward,
    (
        "On which ways did h_t reach the loss? And which of them is known first?",
        "da_t = (dh_t + da_{t+1} W_hᵀ) · (1 − h_t²), from the end; dW_h = Σ h_{t−1}ᵀ da_t, dW_x = Σ x_tᵀ da_t, db = Σ "
        "da_t",
        "notebook 10, “The table, measured”; Werbos 1990; for t in range(T − 1, −1, −1). h_{−1} is zero.",
    ),
    difficulty=3,
    section="§2",
    chapter="Long sequences",
    place=2,
)


EXERCISES = [RNN, RNN_BACKWARD]
