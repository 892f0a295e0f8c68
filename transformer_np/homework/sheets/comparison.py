"""What attention is compared with: a recurrent layer, a causal convolution, attention in a window."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def sizes_without_squares(rng, letters):
    """Sizes without a square for K: 1/√4 would pass for a mean over two."""
    while True:
        sizes = draw_sizes(rng, letters)
        if sizes.get("K") not in (4, 9):
            return sizes


def _weights(rng, *shape):
    """A random matrix that keeps the variance of what it multiplies."""
    return rng.normal(size=shape) * shape[-2] ** -0.5


def far_apart(rng, q, k, signs=(-1, 1)):
    """q and k of the same shapes whose scores are some ±10,000 and so far apart in each row that rounding, in float32
    too, does not decide between them; the largest is another one in each row."""
    across = rng.choice(signs, size=(*q.shape[:-1], 1)) * rng.uniform(0.5, 1.5, size=(*q.shape[:-1], 1))
    ranks = rng.permutation(np.arange(k.shape[-2])) - (k.shape[-2] // 2 if len(signs) > 1 else -1)
    return across * (100 + rng.random(q.shape)), ranks[:, None] * (100 + rng.random(k.shape))


# --- rnn ------------------------------------------------------------------------------------------------------------


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
        squash = _sigmoid
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


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


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
)


# --- causal_conv1d --------------------------------------------------------------------------------------------------


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
)


# --- window_attention -----------------------------------------------------------------------------------------------


def _window_cases(rng):
    sizes = sizes_without_squares(rng, "B H K K_v")
    B, H, K, K_v = sizes.values()
    T = int(rng.integers(7, 10))
    w = int(rng.integers(2, 4))
    sizes |= {"T": T}

    def qkv(*lead, T=T, K_v=K_v):
        return tuple(rng.normal(size=(*lead, T, width)) for width in (K, K, K_v))

    q, k, v = plain = qkv(B)
    square = qkv(B, T=2 * w + 1)
    return [
        Case("", (*plain, w), sizes=sizes),
        Case("causal=True", (*plain, w), {"causal": True}, sizes),
        Case("a window of 0", (*plain, 0), sizes=sizes),
        Case("a window larger than the sequence", (*plain, T + 2), sizes=sizes),
        Case("a causal window larger than the sequence", (*plain, T + 1), {"causal": True}, sizes),
        Case("a window as wide as the sequence", (*square, w), sizes=sizes | {"T": 2 * w + 1}),
        Case("heads, q of shape (B, H, T, K)", (*qkv(B, H), w), {"causal": True}, sizes),
        Case("one sequence, q of shape (T, K)", (*qkv(), w), sizes=sizes),
        Case("scores of ±10,000", (*far_apart(rng, q, k), v, w), {"causal": True}, sizes),
        Case("a longer sequence", (*qkv(T=37), w), sizes=sizes | {"T": 37}),
        Case("K_v = K", (*qkv(B, K_v=K), w), sizes=sizes | {"K_v": K}),
    ]


def _band(T, window, ahead):
    """The key of every column of the band, (T, R), from `window` before the query to `ahead` after it."""
    return np.arange(T)[:, None] + np.arange(-window, ahead + 1)


def _softmax(scores, axis=-1, made=lambda name: False):
    if not made("largest score not subtracted"):
        scores = scores - np.maximum(scores.max(axis=axis, keepdims=True), np.finfo(float).min)
    weights = np.exp(scores)
    if made("not divided by the sum"):
        return weights
    total = weights.sum(axis=axis, keepdims=True)
    if not made("largest score not subtracted"):
        total = np.where(total == 0, 1, total)
    return weights / total


def _scale(made, K, K_v):
    """What the scores are multiplied by."""
    if made("no 1/√d_k"):
        return 1
    if made("1/d_k instead of 1/√d_k"):
        return 1 / K
    if made("multiplied by √d_k"):
        return K**0.5
    return (K_v if made("√ of the values' size") else K) ** -0.5


def _wrong_window_attention(made, q, k, v, window, causal=False):
    T = q.shape[-2]
    if made("causal ignored"):
        causal = False
    if made("always causal"):
        causal = True
    if made("window taken for the whole width"):
        window = max(window - 1, 0) if causal else window // 2
    if made("window one too large"):
        window += 1
    near = window - made("window one too small")
    if not made("window not cut to T − 1"):
        window = min(window, T - 1)
    behind, ahead = window, 0 if causal else window
    if causal and made("looks ahead instead of back"):
        behind, ahead = 0, window
    if causal and made("columns of the future kept"):
        ahead = window
    key = _band(T, behind, ahead)  # (T, R)
    inside = (key >= 0) & (key < T)
    query = np.arange(T)[:, None]
    seen = inside & (np.abs(key - query) <= max(near, 0))
    if causal and made("columns of the future kept"):
        seen &= key <= query
    if made("first key of the window left out"):
        seen &= (query - key < window) | (key == query)
    if made("last key of the window left out") and not causal:
        seen &= (key - query < window) | (key == query)
    if (causal and made("the token itself hidden")) or (window and made("own position hidden")):
        seen &= key != query
    if made("wraps round"):
        key, seen = key % T, np.ones_like(seen)
    if made("end tokens repeated"):
        key, seen = np.clip(key, 0, T - 1), np.ones_like(seen)
    place = np.clip(key, 0, T - 1)
    scores = q @ k.swapaxes(-1, -2) * _scale(made, q.shape[-1], v.shape[-1])  # (..., T, T), a column a key
    band = np.broadcast_to(place, (*scores.shape[:-1], key.shape[1]))
    visible = np.zeros((T, T), bool)
    visible[np.broadcast_to(query, key.shape)[seen], place[seen]] = True
    if made("0 instead of −inf outside the window"):
        full = _softmax(np.where(visible, scores, 0), made=made)
    elif made("softmax before the window"):
        full = np.where(visible, _softmax(scores, made=made), 0)
    elif made("softmax over the queries"):
        full = _softmax(np.where(visible, scores, -np.inf), axis=-2, made=made)
    else:
        full = None
    if full is None:
        chosen = np.take_along_axis(scores, band, axis=-1)  # (..., T, R)
        counted = made("zeros beyond the ends counted") or made("zeros beyond the ends counted, then hidden")
        chosen = np.where(seen, chosen, np.where(inside, -np.inf, 0) if counted else -np.inf)
        weights = np.ones_like(chosen) * seen if made("no softmax, all alike") else _softmax(chosen, made=made)
        if made("no softmax, all alike"):
            weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1)
    else:
        weights = np.where(inside, np.take_along_axis(full, band, axis=-1), 0)
    values = k if made("keys in place of the values") else v
    used = np.where(inside | seen, weights, 0)
    out = np.einsum("...tr,...trk->...tk", used, values[..., place, :])
    if made("0 instead of −inf outside the window"):
        out = full @ values
    if made("zeros beyond the ends counted, then hidden"):
        weights = used
    if made("scores in place of the weights"):
        return out, np.where(visible, scores, -np.inf)
    if made("band of scores in place of the weights"):
        return out, np.where(seen, np.take_along_axis(scores, band, axis=-1), -np.inf)
    if made("weights as (T, T)"):
        weights = full if full is not None else _spread(used, key, T)
    if made("columns in reverse order"):
        weights = weights[..., ::-1]
    if made("columns from the first key there is"):
        first = np.minimum(np.argmax(inside, axis=-1)[:, None] + np.arange(key.shape[1]), key.shape[1])
        padded = np.concatenate([weights, np.zeros_like(weights[..., :1])], axis=-1)
        weights = np.take_along_axis(padded, np.broadcast_to(first, weights.shape), axis=-1)
    return out, weights


def _spread(band, key, T):
    """The band (..., T, R), whose columns are the keys `key` (T, R), as an array (..., T, T)."""
    full = np.zeros((*band.shape[:-1], T))
    for t in range(T):
        for j, s in enumerate(key[t]):
            if 0 <= s < T:
                full[..., t, s] += band[..., t, j]
    return full


WINDOW_ATTENTION = Exercise(
    F.window_attention,
    (Result("out", "... T K_v"), Result("weights", "... T R")),
    _window_cases,
    {
        "no 1/√d_k": "The scores are not scaled: the factor 1/√d_k (1/sqrt(K)) is missing.",
        "1/d_k instead of 1/√d_k": (
            "The scores are divided by d_k instead of √d_k: the square root is missing, or the scale is there twice."
        ),
        "multiplied by √d_k": "The scores are multiplied by √d_k (sqrt(K)) where they have to be divided by it.",
        "√ of the values' size": (
            "The scale is 1/√d_v, with the size of the values. A score is a product of query and key: 1/√d_k, "
            "q.shape[-1]."
        ),
        "causal ignored": (
            "`causal` is ignored: with causal=True it still looks into the future. Then the keys are t − window … t, "
            "and the band has window + 1 columns."
        ),
        "always causal": (
            "It never looks at the keys behind the query, as if causal were True always. By default the window is open "
            "to both sides, |t − s| ≤ window."
        ),
        "looks ahead instead of back": (
            "With causal=True it sees t … t + window, the future instead of the past: the inequality is the wrong way "
            "round. Causal is s ≤ t."
        ),
        "own position hidden": (
            "A query does not see its own position, with or without causal. The distance |t − s| = 0 is in the window."
        ),
        "the token itself hidden": (
            "With causal=True the token itself is hidden, s < t, and the first one sees nothing. Causal is s ≤ t."
        ),
        "columns of the future kept": (
            "With causal=True the weights still have 2 · window + 1 columns, with zeros for the future. The band then "
            "has window + 1 columns, the last of them the token itself."
        ),
        "first key of the window left out": (
            "In the past the window is one key too short: the key s = t − window, at the distance `window`, is left "
            "out. Off by one."
        ),
        "last key of the window left out": (
            "In the future the window is one key too short: the key s = t + window is left out. A slice or a range "
            "ends before its end, so that has to be t + window + 1."
        ),
        "window one too small": (
            "The window is one too small: |t − s| < window instead of |t − s| ≤ window. The key at the distance "
            "`window` itself is seen."
        ),
        "window one too large": (
            "The window is one too large: |t − s| ≤ window + 1 instead of |t − s| ≤ window. Off by one."
        ),
        "window taken for the whole width": (
            "`window` is taken for the number of keys in all. It is the distance on each side: 2 · window + 1 keys, or "
            "window + 1 if causal."
        ),
        "window not cut to T − 1": (
            "A window beyond T − 1 counts as T − 1, since no key is further away: the band has at most 2 T − 1 "
            "columns, T if causal. Here it has columns for distances that do not exist."
        ),
        "zeros beyond the ends counted": (
            "The zeros that stand for keys before the start and after the end take part in the softmax: a score of 0 "
            "is exp(0) = 1 in the sum. Where there is no key the score is −inf."
        ),
        "zeros beyond the ends counted, then hidden": (
            "Where there is no key the weight is set to 0 after the softmax, but its exp(0) = 1 is still in the sum: "
            "the weights at both ends add to less than 1. Set the score to −inf before the softmax."
        ),
        "0 instead of −inf outside the window": (
            "The scores outside the window are set to 0 instead of −inf: a score of 0 still has the weight exp(0) = 1 "
            "in the sum, and those keys are seen."
        ),
        "softmax before the window": (
            "The softmax runs over all keys and the window is cut out of the weights afterwards: they are not "
            "normalised, a row adds to less than 1. Hide first (−inf), then softmax."
        ),
        "softmax over the queries": (
            "The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do "
            "not add to 1."
        ),
        "not divided by the sum": (
            "The exponentials are not divided by their sum: the softmax is not normalised and the weights of a query "
            "do not add to 1."
        ),
        "no softmax, all alike": (
            "The scores play no part: every key in the window has the same weight. A = softmax of the scores."
        ),
        "largest score not subtracted": (
            "The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf "
            "is NaN."
        ),
        "wraps round": (
            "Beyond the ends it goes on at the other end, as np.roll and negative indices do: the first tokens see the "
            "last ones. There is no key there, weight 0."
        ),
        "end tokens repeated": (
            "Beyond the ends the first or last token is seen again and again, as with np.clip on the index or padding "
            "of mode “edge”. There is no key there, weight 0."
        ),
        "keys in place of the values": "The weights multiply the keys K instead of the values V: out = A V.",
        "weights as (T, T)": (
            "The weights are returned as (T, T), one column a key. They are to be the band (T, R): column j is the key "
            "t − window + j."
        ),
        "scores in place of the weights": (
            "The second result is the scores, (T, T), before the softmax. It is the weights, as the band (T, R)."
        ),
        "band of scores in place of the weights": (
            "The second result is the scores, before the softmax. It is the weights, which add to 1 in each row."
        ),
        "columns in reverse order": (
            "The columns of the weights are in reverse order: column j is the key t − window + j, the farthest in the "
            "past first."
        ),
        "columns from the first key there is": (
            "Near the start the columns begin with the first key there is. Column j is always the key t − window + j, "
            "also where there is none and the weight is 0."
        ),
    },
    _wrong_window_attention,
    (
        "Which keys has query t, which column of the weights is which of them, and what is in a column without a key?",
        "A = softmax(Q Kᵀ / √d_k) over |t − s| ≤ window (and s ≤ t if causal), weights[t, j] = A[t, t − window + j]",
        "notebook 10, “A window”; scores of −inf where there is no key. Right first: all (T, T) scores, then cut out "
        "the band.",
    ),
    difficulty=3,
    section="Vaswani et al. 2017, §4",
)


def _window_backward_cases(rng):
    cases = []
    for forward in _window_cases(rng):
        if "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        q, k, v, window = forward.arguments
        out, weights = F.window_attention(q, k, v, window, **forward.options)
        arguments = rng.normal(size=out.shape), q, k, v, weights, window
        cases.append(Case(forward.label, arguments, forward.options, forward.sizes))
    return cases


def _wrong_window_attention_backward(made, dout, q, k, v, weights, window, causal=False):
    T, R = q.shape[-2], weights.shape[-1]
    cut = min(window, T - 1)
    if made("causal ignored") and causal and cut:
        raise IndexError
    if made("window not cut to T − 1") and window > cut:
        raise IndexError
    if made("softmax taken of the weights"):
        key = _band(T, cut, 0 if causal else cut)
        weights = _softmax(np.where((key >= 0) & (key < T), weights, -np.inf))
    key = np.arange(T)[:, None] - cut + np.arange(R)  # (T, R)
    if made("columns in reverse order"):
        key = key[:, ::-1]
    if made("columns counted from the query on"):
        key = key + cut
    if made("columns counted from 0"):
        key = np.broadcast_to(np.arange(R), key.shape)
    if made("band one column off"):
        key = key + 1
    if made("band taken for weights (T, T)"):
        if R != T:
            raise ValueError
        key = np.broadcast_to(np.arange(T), key.shape)
    weights = _spread(weights, key, T)  # (..., T, T)
    dscores = _dscores(made, dout @ v.swapaxes(-1, -2), weights, R)
    scaled = dscores * _scale(made, q.shape[-1], v.shape[-1])
    before = dscores if made("scale only in dQ") else scaled
    dq = (dscores if made("scale only in dK") else scaled) @ (q if made("Q and K swapped") else k)
    transposed = before if made("dscores not transposed") else before.swapaxes(-1, -2)
    dk = transposed @ (k if made("Q and K swapped") else q)
    spread = weights if made("A not transposed") else weights.swapaxes(-1, -2)
    if made("dscores in place of A in dV"):
        spread = scaled.swapaxes(-1, -2)
    dv = spread @ dout
    if made("overwritten instead of added") or made("only the token's own query"):
        last = np.arange(T) if made("only the token's own query") else np.minimum(np.arange(T) + R - 1 - cut, T - 1)
        dk = before[..., last, np.arange(T)][..., None] * q[..., last, :]
        dv = weights[..., last, np.arange(T)][..., None] * dout[..., last, :]
    if made("mean over the window"):
        dk, dv = dk / R, dv / R
    return dq, dk, dv


def _dscores(made, dweights, weights, length):
    """The backward of softmax: A · (dA − Σ dA · A)."""
    total = (dweights * weights).sum(axis=-1, keepdims=True)
    if made("sum of the softmax missing"):
        total = 0
    if made("sum of the softmax added"):
        total = -total
    if made("mean instead of the sum"):
        total = total / length
    if made("sum not weighted by A"):
        total = (dweights * (weights > 0)).sum(axis=-1, keepdims=True)
    if made("only the diagonal of the softmax"):
        return dweights * weights * (1 - weights)
    if made("softmax left out"):
        return dweights * (weights > 0)
    if made("A missing before the bracket"):
        return (dweights - total) * (weights > 0)
    if made("sum not multiplied by A"):
        return (dweights * weights - total) * (weights > 0)
    return weights * (dweights - total)


WINDOW_ATTENTION_BACKWARD = Exercise(
    F.window_attention_backward,
    (Result("dq", "... T K"), Result("dk", "... T K"), Result("dv", "... T K_v")),
    _window_backward_cases,
    {
        "no 1/√d_k": (
            "The scale is missing: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k too, in "
            "dQ and in dK."
        ),
        "1/d_k instead of 1/√d_k": (
            "The factor is 1/d_k instead of 1/√d_k: the square root is missing, or the scale is there twice."
        ),
        "multiplied by √d_k": "dscores is multiplied by √d_k (sqrt(K)) where it has to be divided by it.",
        "√ of the values' size": (
            "The scale is 1/√d_v, with the size of the values. The scores were divided by √d_k, q.shape[-1]."
        ),
        "scale only in dQ": (
            "The factor 1/√d_k is in dQ and missing in dK. It belongs to dscores, from which both are made."
        ),
        "scale only in dK": (
            "The factor 1/√d_k is in dK and missing in dQ. It belongs to dscores, from which both are made."
        ),
        "sum of the softmax missing": (
            "The backward of the softmax is A · (dA − Σ dA · A) along the keys; here the sum is missing."
        ),
        "sum of the softmax added": (
            "In the backward of the softmax the sum Σ dA · A is added where it has to be subtracted: a sign is wrong."
        ),
        "mean instead of the sum": (
            "In the backward of the softmax Σ dA · A is a sum over the keys; here it is a mean over the R columns."
        ),
        "sum not weighted by A": (
            "In the backward of the softmax the sum is Σ dA instead of Σ dA · A: each dA counts with its weight."
        ),
        "sum not multiplied by A": (
            "This is A · dA − Σ dA · A: the factor A stands before both terms, A · (dA − Σ dA · A). A bracket is "
            "missing."
        ),
        "A missing before the bracket": "The factor A in front is missing: dscores = A · (dA − Σ dA · A).",
        "only the diagonal of the softmax": (
            "This is dA · A · (1 − A), the diagonal of the softmax's Jacobian alone. Every score is in the sum under "
            "every weight: the off-diagonal terms −Aᵢ Aⱼ are missing."
        ),
        "softmax left out": (
            "The backward of the softmax is left out: dA is used as if it were the gradient of the scores."
        ),
        "softmax taken of the weights": (
            "The weights are put through softmax once more, as if they were scores. They are the forward's output."
        ),
        "Q and K swapped": "dQ and dK are made with the wrong partner: dQ = dscores K, dK = dscoresᵀ Q.",
        "dscores not transposed": (
            "dK is dscores Q; it is dscoresᵀ Q. A row of dscores is a query, a row of dK is a key: key s gathers from "
            "all queries that saw it."
        ),
        "A not transposed": (
            "dV is A dout; it is Aᵀ dout. A row of A is a query, a row of dV is a key: key s gathers from all queries "
            "that saw it."
        ),
        "dscores in place of A in dV": "dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.",
        "overwritten instead of added": (
            "In dK and dV a query overwrites what the queries before it gave, `=` instead of `+=` (or an index that "
            "comes up twice). A key was seen by many queries, and its gradients add; np.add.at counts repeated indices."
        ),
        "only the token's own query": (
            "dK and dV gather from the query at the key's own place only. A key was seen by every query at a distance "
            "of at most `window`, and their gradients add."
        ),
        "mean over the window": "dK and dV are divided by the R columns of the window. They are sums over queries.",
        "columns in reverse order": (
            "The columns of the weights are read in reverse order. Column j is the key t − window + j, the farthest in "
            "the past first."
        ),
        "columns counted from the query on": (
            "Column j is read as the key t + j. It is t − window + j: the window begins `window` keys before the query."
        ),
        "band taken for weights (T, T)": (
            "The weights are used as if they were (T, T), one column a key. They are the band (T, R): column j is the "
            "key t − window + j."
        ),
        "columns counted from 0": (
            "Column j is read as key j. It is the key t − window + j: the band moves with the query."
        ),
        "band one column off": "The band is read one column off: column j is the key t − window + j, without + 1.",
        "causal ignored": (
            "`causal` is ignored: it looks for 2 · window + 1 columns in weights that have window + 1 if causal."
        ),
        "window not cut to T − 1": (
            "A window beyond T − 1 counts as T − 1: the weights have at most 2 T − 1 columns, T if causal. Here it "
            "looks for columns that are not there."
        ),
    },
    _wrong_window_attention_backward,
    (
        "Which queries saw key s, and in which column of their rows?",
        "dV = Aᵀ dout, dA = dout Vᵀ, dscores = A · (dA − Σ dA · A) / √d_k, dQ = dscores K, dK = dscoresᵀ Q, in the "
        "band only",
        "notebook 10, “A window”, and 06 for attention's backward. weights[t, j] belongs to the key t − window + j.",
    ),
    difficulty=3,
    section="Vaswani et al. 2017, §4",
)

EXERCISES = [
    RNN,
    RNN_BACKWARD,
    CAUSAL_CONV1D,
    CAUSAL_CONV1D_BACKWARD,
    WINDOW_ATTENTION,
    WINDOW_ATTENTION_BACKWARD,
]
