"""Cross-entropy and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes

# --- cross_entropy ---------------------------------------------------------------------------------------------------


def _draw(rng):
    """Logits, targets, targets with padding of another length in each sentence, and the sizes."""
    sizes = draw_sizes(rng, "B T V", least=3)
    B, T, V = sizes.values()
    logits = 1.5 * rng.normal(size=(B, T, V))
    targets = rng.integers(1, V, size=(B, T))
    targets[0, :2] = 1  # an id that occurs twice
    targets[0, 2], targets[1, 0] = 2, V - 1
    padded = targets.copy()
    padded[0, -1:] = padded[1, -2:] = 0  # at least one target is left in every sentence
    return logits, targets, padded, sizes


def _certain(rng, sizes):
    """Logits of a model that is certain, and sometimes wrong: one of 10,000 in each row, the others −10,000. They and
    what comes of them are exact in float32 too."""
    B, T, V = sizes.values()
    likeliest = rng.integers(V, size=(B, T))
    likeliest[0, 0] = 0  # where the target is 1
    return np.where(np.arange(V) == likeliest[..., None], 1e4, -1e4)


def _cross_entropy_cases(rng):
    logits, targets, padded, sizes = _draw(rng)
    rows = {"T": sizes["T"], "V": sizes["V"]}
    large = _certain(rng, sizes)
    with_zero = targets.copy()
    with_zero[-1, -1] = 0  # a class like any other
    return [
        Case("", (logits, with_zero), sizes=sizes),
        Case("ignore_index=0", (logits, padded), {"ignore_index": 0}, sizes),
        Case("ignore_index=-100", (logits, np.where(padded == 0, -100, padded)), {"ignore_index": -100}, sizes),
        Case("label_smoothing=0.3", (logits, with_zero), {"label_smoothing": 0.3}, sizes),
        Case("label smoothing and padding", (logits, padded), {"ignore_index": 0, "label_smoothing": 0.2}, sizes),
        Case("logits of shape (T, V)", (logits[0], targets[0]), sizes=rows),
        Case("logits of ±10,000", (large, targets), sizes=sizes),
        Case("all targets ignored", (logits[0], np.full_like(targets[0], 2)), {"ignore_index": 2}, rows),
    ]


_FLOORS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 2.0**-52, 1e-16, 1e-20, 1e-30, 1e-100, 1e-300)


def _log_softmax(made, logits):
    """log p and p, or what is taken for them."""
    axis = -1
    if made("softmax over the batch"):
        axis = 0
    if made("softmax over the positions"):
        axis = -2
    if made("softmax over all numbers at once"):
        axis = tuple(range(logits.ndim))
    shift = 0 if made("largest logit not subtracted") else logits.max(axis=axis, keepdims=True)
    powers = np.exp(logits - shift)
    total = powers.sum(axis=axis, keepdims=True)
    probs = powers / total
    if made("logarithm of the rounded p") or made("largest logit not subtracted"):
        return np.log(probs), probs
    for floor in _FLOORS:
        if made(_kept_above(floor)):
            return np.log(probs + floor), probs
    return logits - shift - np.log(total), probs


def _kept_above(floor):
    return f"p kept above {floor:g}"


def _target_distribution(made, targets, V, smoothing):
    """q, (..., V)."""
    q = (np.arange(V) == targets[..., None]) * 1.0
    if made("label_smoothing not used") or not smoothing:
        return q
    if made("ε spread over V − 1 classes"):
        return q * (1 - smoothing) + (1 - q) * smoothing / (V - 1)
    if made("1 − ε at the target"):
        return q * (1 - smoothing) + (1 - q) * smoothing / V
    if made("ε at the target"):
        return q * smoothing + (1 - smoothing) / V
    if made("target not lowered by ε"):
        return q + smoothing / V
    if made("ε not spread"):
        return q * (1 - smoothing)
    if made("ε not divided by V"):
        return q * (1 - smoothing) + smoothing
    return q * (1 - smoothing) + smoothing / V


def _counted(made, targets, ignore_index):
    """Which targets count."""
    if made("0 always ignored"):
        return targets != 0
    if ignore_index is None or made("ignore_index not used"):
        return np.ones(targets.shape, bool)
    if made("ignore_index=0 taken for None") and not ignore_index:
        return np.ones(targets.shape, bool)
    if made("only the ignored targets count"):
        return targets == ignore_index
    return targets != ignore_index


def _denominator(made, targets, counts, V):
    """What the sum is divided by: one number, or one for each row."""
    if made("sum for mean"):
        return 1
    if made("divided by the batch"):
        return len(targets)
    if made("divided by the positions"):
        return targets.shape[-1]
    if made("padding in the denominator"):
        return targets.size
    if made("mean over the classes too"):
        return max(1, counts.sum()) * V
    if made("mean of the sentences' means"):
        return np.maximum(1, counts.sum(axis=-1, keepdims=True)) * (targets.size // targets.shape[-1])
    return counts.sum() if made("NaN where no target counts") else max(1, counts.sum())


def _wrong_cross_entropy(made, logits, targets, ignore_index=None, label_smoothing=0.0):
    V = logits.shape[-1]
    counts = _counted(made, targets, ignore_index)
    log_probs, probs = _log_softmax(made, logits)
    returned = probs
    chosen = targets
    if made("ignored targets used as an index"):
        np.zeros(V)[targets]
    if made("targets shifted"):
        log_probs, chosen, counts = log_probs[..., :-1, :], targets[..., 1:], counts[..., 1:]
    q = _target_distribution(made, chosen, V, label_smoothing)
    if made("softmax twice"):
        log_probs, returned = _log_softmax(lambda name: False, probs)
    if made("ε mixed into p"):
        q = _target_distribution(made, chosen, V, 0.0)
        log_probs = np.log((1 - label_smoothing) * probs + label_smoothing / V) if label_smoothing else log_probs
    if made("logit for log p"):
        log_probs = logits
    if made("base 2"):
        log_probs = log_probs / np.log(2)
    if made("base 10"):
        log_probs = log_probs / np.log(10)
    if made("p for log p"):
        log_probs = probs
    surprise = -_times(q, log_probs).sum(axis=-1)
    if made("0 · log 0"):
        surprise = -(q * np.log(probs)).sum(axis=-1)
    if made("1 − p for −log p"):
        surprise = _times(q, 1 - probs).sum(axis=-1)
    if made("squared error"):
        surprise = ((probs - q) ** 2).sum(axis=-1)
    if made("binary cross-entropy"):
        surprise = surprise - _times(1 - q, np.log1p(-probs)).sum(axis=-1)
    if made("entropy of p"):
        surprise = -_times(probs, log_probs).sum(axis=-1)
    if made("q and p swapped"):
        surprise = -_times(probs, np.log(np.maximum(q, 1e-12))).sum(axis=-1)
    if made("likeliest class for the target"):
        surprise = -log_probs.max(axis=-1)
    if made("mean over all classes"):
        surprise = -log_probs.mean(axis=-1)
    if made("logarithm of the sum only"):
        surprise = surprise + _times(q, logits).sum(axis=-1)
    if made("entropy of q subtracted"):
        surprise = surprise + _times(q, np.log(np.where(q > 0, q, 1))).sum(axis=-1)
    if made("minus sign missing"):
        surprise = -surprise
    if made("not averaged"):
        return surprise * counts, probs
    loss = (np.where(counts, surprise, 0) / _denominator(made, targets, counts, V)).sum()
    if made("every target in every row"):
        loss = -log_probs[counts][:, chosen[counts]].mean() if counts.any() else 0.0
    if made("padding in the smoothing term"):
        unsmoothed = -_times(_target_distribution(made, chosen, V, 0.0), log_probs).sum(axis=-1)
        loss = (1 - label_smoothing) * np.where(counts, unsmoothed, 0).sum() / max(1, counts.sum())
        loss += label_smoothing * -log_probs.mean()
    if made("padding in the sum of the smoothing term"):
        loss = (np.where(counts, surprise, label_smoothing * -log_probs.mean(axis=-1))).sum() / max(1, counts.sum())
    if made("exponential of the loss"):
        loss = np.exp(loss)
    if made("logits for probs"):
        returned = logits
    if made("log p for probs"):
        returned = log_probs
    if made("probs of the targets only"):
        returned = np.where(counts, _times(np.arange(V) == targets[..., None], probs).sum(axis=-1), 0)
    if made("probs 0 in ignored rows"):
        returned = returned * counts[..., None]
    if made("probs flattened"):
        returned = returned.reshape(-1, V)
    if made("probs of the rows that count"):
        returned = returned[counts]
    return loss, returned


def _times(weights, values):
    """weights · values, 0 where the weight is 0, even where the value is infinite."""
    return np.where(weights == 0, 0, weights * np.where(weights == 0, 0, values))


_IGNORING = {
    "ignore_index not used": (
        "`ignore_index` is not used: rows whose target is padding count like all others, where they are to be left out "
        "of the sum and of the number it is divided by."
    ),
    "ignore_index=0 taken for None": (
        "ignore_index=0 is taken for none, because 0 is false: `if ignore_index:`. Padding often has the id 0; ask `if "
        "ignore_index is not None`."
    ),
    "0 always ignored": (
        "Targets of 0 are always left out. 0 is a class like any other; left out is `ignore_index`, and nothing where "
        "it is None."
    ),
    "ignored targets used as an index": (
        "The targets of ignored rows are used as an index, and an `ignore_index` such as −100 is not one of the V "
        "classes. Put a class in their place first, with np.where, and leave these rows out afterwards."
    ),
    "only the ignored targets count": (
        "The mask is the wrong way round: only the rows whose target is `ignore_index` count, and just they should not."
    ),
    "padding in the denominator": (
        "Ignored rows are left out of the sum, but not of the number it is divided by: that is the number of targets "
        "that count, not of all rows. So padding makes the loss smaller."
    ),
    "mean of the sentences' means": (
        "Each sentence has a mean of its own first, and then comes the mean of these: a word in a short sentence "
        "counts more. The mean is over all targets that count, together."
    ),
    "NaN where no target counts": (
        "Where every target is ignored the count is 0, and 0/0 is NaN. The loss is to be 0 there, and its gradient too."
    ),
}
_SMOOTHING = {
    "label_smoothing not used": (
        "`label_smoothing` is not used: the target distribution q is 1 at the target, 0 elsewhere."
    ),
    "ε spread over V − 1 classes": (
        "ε is spread over the V − 1 wrong classes, so that q is 1 − ε at the target and ε/(V − 1) elsewhere. Here it "
        "is spread over all V: 1 − ε + ε/V at the target, ε/V elsewhere."
    ),
    "1 − ε at the target": (
        "q is 1 − ε at the target and ε/V elsewhere, which does not add to 1: the target gets its share too, 1 − ε + "
        "ε/V."
    ),
    "ε at the target": (
        "ε and 1 − ε have changed places: the target gets ε and all classes share 1 − ε. It is 1 − ε + ε/V at the "
        "target and ε/V elsewhere."
    ),
    "target not lowered by ε": (
        "ε/V is added to every class, but the target keeps its 1: q adds to 1 + ε. It is 1 − ε + ε/V at the target."
    ),
    "ε not spread": (
        "q is 1 − ε at the target and 0 elsewhere: what the target gives away is not spread. Each class gets ε/V of it."
    ),
    "ε not divided by V": "Every class gets ε instead of ε/V: ε is shared by V classes, so that q adds to 1.",
}

CROSS_ENTROPY = Exercise(
    F.cross_entropy,
    (Result("loss", ""), Result("probs", "... V")),
    _cross_entropy_cases,
    {
        **_IGNORING,
        **_SMOOTHING,
        "sum for mean": (
            "The loss is the sum over the targets, not their mean: it is not divided by the number of targets that "
            "count, and grows with the batch."
        ),
        "divided by the batch": (
            "The sum is divided by the size of the batch, the first axis, only. The mean is over all targets that "
            "count, every position of every sentence."
        ),
        "divided by the positions": (
            "The sum is divided by the number of positions T only. The mean is over all targets that count, every "
            "position of every sentence."
        ),
        "mean over the classes too": (
            "The mean runs over the V classes too, so that the loss is too small by the factor V. Over the classes q · "
            "log p is a sum; the mean is over the targets that count."
        ),
        "not averaged": (
            "This is one loss for each target. The loss is one number, the mean over the targets that count."
        ),
        "padding in the smoothing term": (
            "The smoothing term −ε · mean(log p) is averaged over all rows, those of padding too. Like the rest of the "
            "loss it is a mean over the targets that count."
        ),
        "padding in the sum of the smoothing term": (
            "In rows of padding only the term of the target is left out of the sum: the smoothing term −ε · mean(log "
            "p) of these rows is still in it. Neither may count there."
        ),
        "ε mixed into p": (
            "The smoothing is mixed into the prediction p instead of into the target distribution q: −Σ q log p with q "
            "= 1 − ε + ε/V at the target and ε/V elsewhere; p stays softmax(logits)."
        ),
        "entropy of q subtracted": (
            "This is the Kullback-Leibler divergence, Σ q log(q/p): the entropy of q is subtracted. The cross-entropy "
            "is −Σ q log p alone. Both have the same gradient."
        ),
        "base 2": "The logarithm is to base 2, so the loss is in bits. It is the natural logarithm: nats per token.",
        "base 10": "The logarithm is to base 10. It is the natural logarithm, np.log: nats per token.",
        "p for log p": "This is −p of the target: the logarithm is missing. The loss is −log p.",
        "1 − p for −log p": "This is 1 − p of the target where it has to be its surprise, −log p.",
        "logit for log p": (
            "This is minus the logit of the target: the logits never went through a softmax. log p = logit − log Σ "
            "exp(logits)."
        ),
        "softmax twice": "p goes through a softmax once more before the logarithm. One is enough: p = softmax(logits).",
        "0 · log 0": (
            "q · log p is summed over all classes, with the logarithm of a p that was rounded to 0: where q is 0 that "
            "is 0 · (−inf), which is NaN. Stay with logits, log p = x − max x − log Σ exp(x − max x), or take log p at "
            "the target alone."
        ),
        "logarithm of the rounded p": (
            "The logarithm is taken of p after it was rounded to 0: −log 0 is inf. Stay with logits instead: log p = x "
            "− max x − log Σ exp(x − max x) never needs the logarithm of something so small."
        ),
        "largest logit not subtracted": (
            "The largest logit is not subtracted before the exponential: exp(710) is already too large for a float64, "
            "and inf/inf is NaN."
        ),
        **{
            _kept_above(floor): (
                f"p is kept above {floor:g} for the logarithm (clip, or p + {floor:g}), so the loss of a target that "
                f"is held impossible can never be above −log({floor:g}). Use log p = x − max x − log Σ exp(x − max "
                "x), which needs no such floor."
            )
            for floor in _FLOORS
        },
        "targets shifted": (
            "The targets are shifted once more against the logits. Here row t of the logits belongs to target t; the "
            "caller has shifted them."
        ),
        "every target in every row": (
            "Indexing with [:, targets] takes the classes of all targets in every row, and the mean is over all these "
            "pairs. Row n has only its own target: index rows and classes together, [np.arange(N), targets]."
        ),
        "softmax over the batch": (
            "The softmax runs over the first axis, the batch; p adds to 1 over the V classes, axis −1."
        ),
        "softmax over the positions": (
            "The softmax runs over the positions, axis −2; p adds to 1 over the V classes, axis −1."
        ),
        "softmax over all numbers at once": (
            "The softmax runs over the whole array; p adds to 1 over the V classes of each row, axis −1."
        ),
        "squared error": "This is the squared error Σ (p − q)² instead of the cross-entropy −Σ q log p.",
        "binary cross-entropy": (
            "This is the binary cross-entropy: the terms −(1 − q) log(1 − p) of the other classes do not belong to it. "
            "One of V classes is right, and −Σ q log p says all."
        ),
        "entropy of p": (
            "This is −Σ p log p, the entropy of the prediction: the target distribution q is missing, −Σ q log p."
        ),
        "q and p swapped": "p and q have changed places: this is −Σ p log q instead of −Σ q log p.",
        "likeliest class for the target": (
            "This is −log of the largest p of a row. It has to be the p of the target, likely or not."
        ),
        "mean over all classes": (
            "This is the mean of −log p over all classes of a row; the target is not picked. It has to be the log p of "
            "the target."
        ),
        "logarithm of the sum only": (
            "This is log Σ exp(x) alone: the logit of the target is not subtracted. −log p = log Σ exp(x) − x at the "
            "target."
        ),
        "minus sign missing": "The minus sign is missing: log p is negative or 0, and the loss is −log p.",
        "exponential of the loss": "This is exp(loss), the perplexity. The loss is the mean surprise itself.",
        "logits for probs": "The logits are returned as probs; the backward needs softmax(logits).",
        "log p for probs": "log p is returned as probs; the backward needs p = softmax(logits), without the logarithm.",
        "probs of the targets only": (
            "Only the p of each target is returned as probs. The backward needs the p of every class, (…, V)."
        ),
        "probs 0 in ignored rows": (
            "probs is set to 0 in the rows that do not count. It is softmax(logits) everywhere; the loss leaves them "
            "out."
        ),
        "probs of the rows that count": (
            "Only the rows that count are returned as probs, in the shape (N, V). It has the shape of the logits, (…, "
            "V), with the ignored rows in their places."
        ),
        "probs flattened": "probs is returned as (N, V). It has the shape of the logits, (…, V).",
    },
    _wrong_cross_entropy,
    (
        "How surprised is a model that gave the true word the probability p, and over which words is the mean?",
        "loss = −Σ q log p / count,  log p = x − log Σ exp(x);  q is 1 − ε + ε/V at the target, ε/V elsewhere",
        "notebook 06, section 4, and notebook 07, “The loss”; np.take_along_axis. Subtract the largest logit first.",
    ),
    difficulty=2,
    section="Vaswani et al. 2017, §5.4",
    chapter="Training and decoding",
    place=1,
)


# --- cross_entropy_backward ------------------------------------------------------------------------------------------


def _cross_entropy_backward_cases(rng):
    logits, targets, padded, sizes = _draw(rng)
    rows = {"T": sizes["T"], "V": sizes["V"]}
    probs, certain = F.softmax(logits), F.softmax(_certain(rng, sizes))
    with_zero = targets.copy()
    with_zero[-1, -1] = 0
    return [
        Case("", (probs, with_zero), sizes=sizes),
        Case("ignore_index=0", (probs, padded), {"ignore_index": 0}, sizes),
        Case("ignore_index=-100", (probs, np.where(padded == 0, -100, padded)), {"ignore_index": -100}, sizes),
        Case("label_smoothing=0.3", (probs, with_zero), {"label_smoothing": 0.3}, sizes),
        Case("label smoothing and padding", (probs, padded), {"ignore_index": 0, "label_smoothing": 0.2}, sizes),
        Case("dloss=-0.7", (probs, with_zero), {"dloss": -0.7}, sizes),
        Case("probs of shape (T, V)", (probs[0], targets[0]), {"dloss": 2.0}, rows),
        Case("some probabilities exactly 0", (certain, targets), sizes=sizes),
        Case("all targets ignored", (probs[0], np.full_like(targets[0], 2)), {"ignore_index": 2}, rows),
    ]


def _wrong_cross_entropy_backward(made, probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    V = probs.shape[-1]
    counts = _counted(made, targets, ignore_index)
    if made("ignored targets used as an index"):
        np.zeros(V)[targets]
    q = _target_distribution(made, targets, V, label_smoothing)
    at_target = np.arange(V) == targets[..., None]
    p = F.softmax(probs) if made("probs taken for the logits") else probs
    if made("log p for p"):
        p = np.log(p)
    if made("target not subtracted"):
        dlogits = p.copy()
    elif made("1 subtracted everywhere"):
        dlogits = p - 1
    elif made("1 subtracted in every row at every target's class"):
        dlogits = p.copy()
        dlogits[..., np.unique(targets[counts])] -= 1
    elif made("q alone"):
        dlogits = -q
    elif made("1 added at the target"):
        dlogits = p + q
    else:
        dlogits = q - p if made("q − p") else p - q
    if made("only at the target"):
        dlogits = dlogits * at_target
    if made("zero at the target"):
        dlogits = dlogits * ~at_target
    if made("gradient with respect to p"):
        dlogits = -q / p
    if made("diagonal of the softmax only"):
        dlogits = -q * (1 - p)
    if made("softmax backward once more"):
        dlogits = F.softmax_backward(dlogits, probs)
    if made("times p (1 − p)"):
        dlogits = dlogits * p * (1 - p)
    if made("times 2"):
        dlogits = 2 * dlogits
    if made("dloss not used"):
        dloss = 1.0
    if made("divided by dloss"):
        dloss = 1 / dloss
    denominator = _denominator(made, targets, counts, V)
    if np.ndim(denominator):
        denominator = denominator[..., None]
    dlogits = dlogits * dloss / denominator
    if made("ignored rows keep their gradient"):
        return dlogits
    if made("ignored rows keep p"):
        return np.where(counts[..., None], dlogits, probs * dloss / denominator)
    # NaN · 0 is NaN, as the student's own product with the mask would be
    dlogits = dlogits * counts[..., None]
    return dlogits.reshape(-1, V) if made("dlogits flattened") else dlogits


CROSS_ENTROPY_BACKWARD = Exercise(
    F.cross_entropy_backward,
    (Result("dlogits", "... V"),),
    _cross_entropy_backward_cases,
    {
        **_IGNORING,
        **_SMOOTHING,
        "ignored rows keep their gradient": (
            "The rows whose target is `ignore_index` keep their gradient p − q. They are not in the loss, so it is 0 "
            "there; otherwise the model learns to write padding."
        ),
        "ignored rows keep p": (
            "In the rows whose target is `ignore_index` only q is set to 0, and p stays. They are not in the loss: the "
            "whole row of the gradient is 0."
        ),
        "sum for mean": (
            "The gradient is not divided by the number of targets that count. The loss is a mean, so each row has a "
            "share of 1/count."
        ),
        "divided by the batch": (
            "The gradient is divided by the size of the batch, the first axis, only. The loss is the mean over all "
            "targets that count, every position of every sentence."
        ),
        "divided by the positions": (
            "The gradient is divided by the number of positions T only. The loss is the mean over all targets that "
            "count, every position of every sentence."
        ),
        "mean over the classes too": (
            "The gradient is divided by the number of classes V too. The loss is a mean over the targets that count, "
            "not over the classes."
        ),
        "dloss not used": (
            "`dloss` is not used: the gradient from above is a factor of the whole, dloss · (p − q) / count."
        ),
        "divided by dloss": "The gradient is divided by `dloss`; it has to be multiplied by it.",
        "target not subtracted": "This is p / count: the target distribution q is not subtracted, p − q.",
        "1 subtracted everywhere": (
            "1 is subtracted from every probability. It is subtracted only at the target, where q is 1: p − q."
        ),
        "1 subtracted in every row at every target's class": (
            "`[…, targets] -= 1` takes the classes of all targets in every row. Row n has only its own target: index "
            "rows and classes together, [np.arange(N), targets], or use np.put_along_axis."
        ),
        "q alone": "This is −q / count: the probabilities p are missing, p − q.",
        "1 added at the target": "This is p + q: the target distribution is added where it has to be subtracted.",
        "q − p": (
            "This is q − p; the sign is wrong. The gradient is p − q: a step against it raises the logit of the target."
        ),
        "only at the target": (
            "Only the logit of the target gets a gradient. Every logit is in the sum of the softmax, so the others get "
            "p − q too: p, without smoothing."
        ),
        "zero at the target": "The logit of the target gets no gradient. It gets p − q, which is negative there.",
        "gradient with respect to p": (
            "This is −q/p, the gradient with respect to the probabilities. Wanted is that of the logits: the way "
            "through the softmax is missing, and after it p − q is left."
        ),
        "diagonal of the softmax only": (
            "This is −q (1 − p): −q/p sent through the diagonal of the softmax alone. Without its off-diagonal terms "
            "only the target gets a gradient; with them p − q is left."
        ),
        "softmax backward once more": (
            "p − q is sent through the softmax backward once more. It is already the gradient of the logits: softmax "
            "and logarithm together."
        ),
        "times p (1 − p)": (
            "p − q is multiplied by p (1 − p), the derivative of a sigmoid. It is already the gradient of the logits."
        ),
        "times 2": "There is a factor 2, as for a squared error. The gradient of the cross-entropy is p − q.",
        "probs taken for the logits": "probs is already the softmax; here it is put through softmax once more.",
        "log p for p": "The logarithm of p is taken: the gradient is p − q, with p itself.",
        "dlogits flattened": "dlogits is returned as (N, V). It has the shape of the logits, (…, V).",
    },
    _wrong_cross_entropy_backward,
    (
        "What did the model say, what should it have said, and which rows were asked at all?",
        (
            "dlogits = dloss · (p − q) / count, 0 in the rows that do not count; q is 1 − ε + ε/V at the target, ε/V "
            "elsewhere"
        ),
        "notebook 06, section 4; np.put_along_axis, or rows and targets as two index arrays. Mind a count of 0.",
    ),
    difficulty=2,
    section="Vaswani et al. 2017, §5.4",
    chapter="Training and decoding",
    place=2,
)

EXERCISES = [CROSS_ENTROPY, CROSS_ENTROPY_BACKWARD]
