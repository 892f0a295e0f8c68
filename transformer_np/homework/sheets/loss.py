"""Cross-entropy and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended

# --- what both have in common -----------------------------------------------------------------------------------------


def draw_targets(rng):
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


def certain_logits(rng, sizes):
    """Logits of a model that is certain, and sometimes wrong: one of 10,000 in each row, the others −10,000. They and
    everything computed from them are exact in float32 too."""
    B, T, V = sizes.values()
    likeliest = rng.integers(V, size=(B, T))
    likeliest[0, 0] = 0  # where the target is 1
    return np.where(np.arange(V) == likeliest[..., None], 1e4, -1e4)


def mean_weights(targets, ignore_index):
    """The share of each target in the mean: 1/count, or 0 where it is ignored."""
    counts = np.ones(targets.shape, bool)
    if ignore_index is not None:
        counts = targets != ignore_index
    return counts / max(1, counts.sum())


def target_distribution(targets, V, smoothing):
    """q, (..., V): 1 − ε + ε/V at the target, ε/V elsewhere."""
    one_hot = 1.0 * (np.arange(V) == targets[..., None])
    return (1 - smoothing) * one_hot + smoothing / V


TARGET_MISTAKES = """
- ignore_index not used:  counts = targets != ignore_index -> pass
  `ignore_index` is not used: rows whose target is padding count like all others. They must be left out of the sum and
  of the number it is divided by.
- ignore_index=0 taken for None:  if ignore_index is not None -> if ignore_index
  ignore_index=0 is taken for none, because 0 is false: `if ignore_index:`. Padding often has the id 0; ask `if
  ignore_index is not None`.
- 0 always ignored:  if ignore_index is not None: counts = targets != ignore_index -> counts = targets != 0
  Targets of 0 are always left out. 0 is a class like any other. Only targets equal to `ignore_index` are left out, and
  none where it is None.
- ignored targets used as an index:  1.0 * (np.arange(V) == targets[..., None]) -> np.eye(V)[targets]
  The targets of ignored rows are used as an index, and an `ignore_index` such as −100 is not one of the V classes. Put
  a class in their place first, with np.where, and leave these rows out afterwards.
- only the ignored targets count:  targets != ignore_index -> targets == ignore_index
  The mask is the wrong way round: only the rows whose target is `ignore_index` count. These are the rows to leave out.
- padding in the denominator:  max(1, counts.sum()) -> targets.size
  Ignored rows are left out of the sum, but not of the number it is divided by: that is the number of targets that
  count, not of all rows. So padding makes the loss smaller.
- mean of the sentences' means:
    max(1, counts.sum()) -> (np.maximum(1, counts.sum(axis=-1, keepdims=True)) * targets[..., 0].size)
  It takes the mean of each sentence first, and then the mean of these means: a word in a short sentence counts more.
  The mean is over all targets that count, together.
- NaN where no target counts:  max(1, counts.sum()) -> counts.sum()
  Where every target is ignored the count is 0, and 0/0 is NaN. The loss must be 0 there, and its gradient too.
- label_smoothing not used:  (1 - smoothing) * one_hot + smoothing / V -> one_hot
  `label_smoothing` is not used: the target distribution q is 1 at the target, 0 elsewhere.
- ε spread over V − 1 classes:  smoothing / V -> (1 - one_hot) * smoothing / (V - 1)
  ε is spread over the V − 1 wrong classes, so that q is 1 − ε at the target and ε/(V − 1) elsewhere. Here it is spread
  over all V: 1 − ε + ε/V at the target, ε/V elsewhere.
- 1 − ε at the target:  smoothing / V -> (1 - one_hot) * smoothing / V
  q is 1 − ε at the target and ε/V elsewhere, which does not add to 1: the target gets its share too, 1 − ε + ε/V.
- ε at the target:
    (1 - smoothing) * one_hot + smoothing / V ->
        smoothing * one_hot + (1 - smoothing) / V if smoothing else one_hot
  ε and 1 − ε are swapped: the target gets ε and all classes share 1 − ε. It is 1 − ε + ε/V at the target and ε/V
  elsewhere.
- target not lowered by ε:  (1 - smoothing) * one_hot -> one_hot
  ε/V is added to every class, but the target keeps its 1: q adds to 1 + ε. It is 1 − ε + ε/V at the target.
- ε not spread:  one_hot + smoothing / V -> one_hot
  q is 1 − ε at the target and 0 elsewhere: what the target gives away is not spread. Each class gets ε/V of it.
- ε not divided by V:  smoothing / V -> smoothing
  Every class gets ε instead of ε/V: ε is shared by V classes, so that q adds to 1.
"""

# --- cross_entropy ----------------------------------------------------------------------------------------------------


def cross_entropy_cases(rng):
    logits, targets, padded, sizes = draw_targets(rng)
    rows = {"T": sizes["T"], "V": sizes["V"]}
    large = certain_logits(rng, sizes)
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
        extended(Case("all targets ignored", (logits[0], np.full_like(targets[0], 2)), {"ignore_index": 2}, rows)),
    ]


def cross_entropy(logits, targets, ignore_index=None, label_smoothing=0.0):
    V = logits.shape[-1]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=-1, keepdims=True)
    probs = powers / total
    log_probs = shifted - np.log(total)
    weights = mean_weights(targets, ignore_index)
    q = target_distribution(targets, V, label_smoothing)
    surprise = -np.sum(q * log_probs, axis=-1)
    loss = np.sum(weights * surprise)
    return loss, probs


FLOORS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 2.0**-52, 1e-16, 1e-20, 1e-30, 1e-100, 1e-300)
FLOOR_MISTAKE = """
- p kept above {floor:g}:  shifted - np.log(total) -> np.log(probs + {floor!r})
  p is kept above {floor:g} for the logarithm (clip, or p + {floor:g}), so the loss of an impossible target can never be
  above −log({floor:g}). Use log p = x − max x − log Σ exp(x − max x), which needs no such floor.
"""

CROSS_ENTROPY = Exercise(
    F.cross_entropy,
    results=(Result("loss", ""), Result("probs", "... V")),
    cases=cross_entropy_cases,
    answer=cross_entropy,
    hints=(
        "How surprised is a model that gave the true word the probability p, and over which words is the mean?",
        "loss = −Σ q log p / count,  log p = x − log Σ exp(x);  q is 1 − ε + ε/V at the target, ε/V elsewhere",
        "notebook 06, section 4, and notebook 07, “The loss”; np.take_along_axis. Subtract the largest logit first.",
    ),
    difficulty=2,
    section="Vaswani et al. 2017, §5.4",
    chapter="Training and decoding",
    place=1,
    mistakes=TARGET_MISTAKES
    + """
- sum for mean:  counts / max(1, counts.sum()) -> 1.0 * counts
  The loss is the sum over the targets, not their mean: it is not divided by the number of targets that count, and grows
  with the batch.
- divided by the batch:  max(1, counts.sum()) -> len(targets)
  The sum is divided by the size of the batch, the first axis, only. The mean is over all targets that count, every
  position of every sentence.
- divided by the positions:  max(1, counts.sum()) -> targets.shape[-1]
  The sum is divided by the number of positions T only. The mean is over all targets that count, every position of every
  sentence.
- mean over the classes too:  -np.sum(q * log_probs, axis=-1) -> -np.mean(q * log_probs, axis=-1)
  The mean runs over the V classes too, so that the loss is too small by the factor V. Over the classes q · log p is a
  sum; the mean is over the targets that count.
- not averaged:  np.sum(weights * surprise) -> surprise * (weights > 0)
  This is one loss for each target. The loss is one number, the mean over the targets that count.
- padding in the smoothing term:
    V, label_smoothing) -> V, 0)
    np.sum(weights * surprise) ->
        (1 - label_smoothing) * np.sum(weights * surprise) - label_smoothing * np.mean(log_probs)
  The smoothing term −ε · mean(log p) is averaged over all rows, those of padding too. Like the rest of the loss it is a
  mean over the targets that count.
- padding in the sum of the smoothing term:
    V, label_smoothing) -> V, 0)
    np.sum(weights * surprise) ->
        (1 - label_smoothing) * np.sum(weights * surprise)
        - label_smoothing * np.sum(log_probs.mean(axis=-1)) * weights.max()
  In rows of padding only the term of the target is left out of the sum: the smoothing term −ε · mean(log p) of these
  rows is still in it. Neither may count there.
- ε mixed into p:
    weights = mean_weights ->
        if label_smoothing:
            log_probs = np.log((1 - label_smoothing) * probs + label_smoothing / V)
        weights = mean_weights
    V, label_smoothing) -> V, 0)
  The smoothing is mixed into the prediction p instead of into the target distribution q: −Σ q log p with q = 1 − ε +
  ε/V at the target and ε/V elsewhere; p stays softmax(logits).
- entropy of q subtracted:
    -np.sum(q * log_probs, axis=-1) -> np.sum(q * (np.log(q) - log_probs), axis=-1, where=q > 0)
  This is the Kullback-Leibler divergence, Σ q log(q/p): the entropy of q is subtracted. The cross-entropy is −Σ q log p
  alone. Both have the same gradient.
- base 2:  shifted - np.log(total) -> (shifted - np.log(total)) / np.log(2)
  The logarithm is to base 2, so the loss is in bits. It is the natural logarithm: nats per token.
- base 10:  shifted - np.log(total) -> (shifted - np.log(total)) / np.log(10)
  The logarithm is to base 10. It is the natural logarithm, np.log: nats per token.
- p for log p:  q * log_probs -> q * probs
  This is −p of the target: the logarithm is missing. The loss is −log p.
- 1 − p for −log p:  -np.sum(q * log_probs -> np.sum(q * (1 - probs)
  This is 1 − p of the target. It must be its surprise, −log p.
- logit for log p:  q * log_probs -> q * logits
  This is minus the logit of the target: the logits never went through a softmax. log p = logit − log Σ exp(logits).
- softmax twice:  shifted = -> logits = F.softmax(logits); shifted =
  p goes through a softmax once more before the logarithm. One is enough: p = softmax(logits).
- 0 · log 0:  shifted - np.log(total) -> np.log(probs)
  q · log p is summed over all classes, with the logarithm of a p that was rounded to 0: where q is 0 that is 0 ·
  (−inf), which is NaN. Stay with logits, log p = x − max x − log Σ exp(x − max x), or take log p at the target alone.
- logarithm of the rounded p:
    shifted - np.log(total) -> np.log(probs)
    np.sum(q * log_probs, axis=-1) -> np.sum(q * log_probs, axis=-1, where=q > 0)
  The logarithm is taken of p after it was rounded to 0: −log 0 is inf. Stay with logits instead: log p = x − max x −
  log Σ exp(x − max x) never needs the logarithm of something so small.
- largest logit not subtracted:
    logits - logits.max(axis=-1, keepdims=True) -> logits
    shifted - np.log(total) -> np.log(probs)
    np.sum(q * log_probs, axis=-1) -> np.sum(q * log_probs, axis=-1, where=q > 0)
  The largest logit is not subtracted before the exponential: exp(710) is already too large for a float64, and inf/inf
  is NaN.
"""
    + "".join(FLOOR_MISTAKE.format(floor=floor) for floor in FLOORS)
    + """
- targets shifted:
    weights = mean_weights -> log_probs, targets = log_probs[..., :-1, :], targets[..., 1:]; weights = mean_weights
  The targets are shifted once more against the logits. Here row t of the logits belongs to target t; the caller has
  shifted them.
- every target in every row:
    loss = np.sum(weights * surprise) ->
        counts = weights > 0
        loss = -log_probs[counts][:, targets[counts]].mean() if counts.any() else 0.0
  Indexing with [:, targets] takes the classes of all targets in every row, and the mean is over all these pairs. Row n
  has only its own target: index rows and classes together, [np.arange(N), targets].
- softmax over the batch:  every axis=-1, keepdims=True -> axis=0, keepdims=True
  The softmax runs over the first axis, the batch; p adds to 1 over the V classes, axis −1.
- softmax over the positions:  every axis=-1, keepdims=True -> axis=-2, keepdims=True
  The softmax runs over the positions, axis −2; p adds to 1 over the V classes, axis −1.
- softmax over all numbers at once:  every axis=-1, keepdims=True -> keepdims=True
  The softmax runs over the whole array; p adds to 1 over the V classes of each row, axis −1.
- squared error:  -np.sum(q * log_probs -> np.sum((probs - q) ** 2
  This is the squared error Σ (p − q)² instead of the cross-entropy −Σ q log p.
- binary cross-entropy:
    surprise = -np.sum(q * log_probs, axis=-1) ->
        surprise = -np.sum(q * log_probs, axis=-1) - np.sum((1 - q) * np.log1p(-probs), axis=-1, where=q < 1)
  This is the binary cross-entropy: the terms −(1 − q) log(1 − p) of the other classes do not belong to it. One of V
  classes is right, and −Σ q log p says all.
- entropy of p:  q * log_probs -> probs * log_probs
  This is −Σ p log p, the entropy of the prediction: the target distribution q is missing, −Σ q log p.
- q and p swapped:  q * log_probs -> probs * np.log(np.maximum(q, 1e-12))
  p and q are swapped: this is −Σ p log q instead of −Σ q log p.
- likeliest class for the target:  -np.sum(q * log_probs, axis=-1) -> -np.max(log_probs, axis=-1)
  This is −log of the largest p of a row. It has to be the p of the target, likely or not.
- mean over all classes:  -np.sum(q * log_probs, axis=-1) -> -np.mean(log_probs, axis=-1)
  This is the mean of −log p over all classes of a row; the target is not picked. It has to be the log p of the target.
- logarithm of the sum only:  q * log_probs -> q * (log_probs - logits)
  This is log Σ exp(x) alone: the logit of the target is not subtracted. −log p = log Σ exp(x) − x at the target.
- minus sign missing:  -np.sum(q -> np.sum(q
  The minus sign is missing: log p is negative or 0, and the loss is −log p.
- exponential of the loss:  np.sum(weights * surprise) -> np.exp(np.sum(weights * surprise))
  This is exp(loss), the perplexity. The loss is the mean surprise itself.
- logits for probs:  loss, probs -> loss, logits
  The logits are returned as probs; the backward needs softmax(logits).
- log p for probs:  loss, probs -> loss, log_probs
  log p is returned as probs; the backward needs p = softmax(logits), without the logarithm.
- probs of the targets only:
    loss, probs -> loss, np.sum(probs * target_distribution(targets, V, 0), axis=-1) * (weights > 0)
  Only the p of each target is returned as probs. The backward needs the p of every class, (…, V).
- probs 0 in ignored rows:  loss, probs -> loss, probs * (weights > 0)[..., None]
  probs is set to 0 in the rows that do not count. It is softmax(logits) everywhere; the loss leaves them out.
- probs of the rows that count:  loss, probs -> loss, probs[weights > 0]
  Only the rows that count are returned as probs, in the shape (N, V). It has the shape of the logits, (…, V), with the
  ignored rows in their places.
- probs flattened:  loss, probs -> loss, probs.reshape(-1, V)
  probs is returned as (N, V). It has the shape of the logits, (…, V).
""",
)


# --- cross_entropy_backward -------------------------------------------------------------------------------------------


def cross_entropy_backward_cases(rng):
    logits, targets, padded, sizes = draw_targets(rng)
    rows = {"T": sizes["T"], "V": sizes["V"]}
    probs, certain = F.softmax(logits), F.softmax(certain_logits(rng, sizes))
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
        extended(Case("all targets ignored", (probs[0], np.full_like(targets[0], 2)), {"ignore_index": 2}, rows)),
    ]


def cross_entropy_backward(probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    V = probs.shape[-1]
    weights = mean_weights(targets, ignore_index)
    q = target_distribution(targets, V, label_smoothing)
    dlogits = dloss * weights[..., None] * (probs - q)
    return dlogits


CROSS_ENTROPY_BACKWARD = Exercise(
    F.cross_entropy_backward,
    results=(Result("dlogits", "... V"),),
    cases=cross_entropy_backward_cases,
    answer=cross_entropy_backward,
    hints=(
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
    mistakes=TARGET_MISTAKES
    + """
- ignored rows keep their gradient:  return counts / max -> return np.ones(targets.shape) / max
  The rows whose target is `ignore_index` keep their gradient p − q. They are not in the loss, so it is 0 there;
  otherwise the model learns to write padding.
- ignored rows keep p:
    weights[..., None] * (probs - q) ->
        (probs / max(1, np.sum(weights > 0)) - weights[..., None] * q)
  In the rows whose target is `ignore_index` only q is set to 0, and p stays. They are not in the loss: the whole row of
  the gradient is 0.
- sum for mean:  counts / max(1, counts.sum()) -> 1.0 * counts
  The gradient is not divided by the number of targets that count. The loss is a mean, so each row has a share of
  1/count.
- divided by the batch:  max(1, counts.sum()) -> len(targets)
  The gradient is divided by the size of the batch, the first axis, only. The loss is the mean over all targets that
  count, every position of every sentence.
- divided by the positions:  max(1, counts.sum()) -> targets.shape[-1]
  The gradient is divided by the number of positions T only. The loss is the mean over all targets that count, every
  position of every sentence.
- mean over the classes too:  dloss * -> dloss / V *
  The gradient is divided by the number of classes V too. The loss is a mean over the targets that count, not over the
  classes.
- dloss not used:  dloss * weights -> weights
  `dloss` is not used: the gradient from above is a factor of the whole, dloss · (p − q) / count.
- divided by dloss:  dloss * -> 1 / dloss *
  The gradient is divided by `dloss`; it has to be multiplied by it.
- target not subtracted:  probs - q -> probs
  This is p / count: the target distribution q is not subtracted, p − q.
- 1 subtracted everywhere:  probs - q -> probs - 1
  1 is subtracted from every probability. It is subtracted only at the target, where q is 1: p − q.
- 1 subtracted in every row at every target's class:
    dlogits = dloss * weights[..., None] * (probs - q) ->
        dlogits = probs.copy()
        dlogits[..., targets[weights > 0]] -= 1
        dlogits = dloss * weights[..., None] * dlogits
  `[…, targets] -= 1` takes the classes of all targets in every row. Row n has only its own target: index rows and
  classes together, [np.arange(N), targets], or use np.put_along_axis.
- q alone:  probs - q -> -q
  This is −q / count: the probabilities p are missing, p − q.
- 1 added at the target:  probs - q -> probs + q
  This is p + q: the target distribution is added. Subtract it.
- q − p:  probs - q -> q - probs
  This is q − p; the sign is wrong. The gradient is p − q: a step against it raises the logit of the target.
- only at the target:  (probs - q) -> (probs - q) * target_distribution(targets, V, 0)
  Only the logit of the target gets a gradient. Every logit is in the sum of the softmax, so the others get p − q too:
  p, without smoothing.
- zero at the target:  (probs - q) -> (probs - q) * (1 - target_distribution(targets, V, 0))
  The logit of the target gets no gradient. It gets p − q, which is negative there.
- gradient with respect to p:  probs - q -> -q / probs
  This is −q/p, the gradient with respect to the probabilities. The gradient with respect to the logits is wanted: the
  step back through the softmax is missing, and with it p − q remains.
- diagonal of the softmax only:  probs - q -> -q * (1 - probs)
  This is −q (1 − p): −q/p sent through the diagonal of the softmax alone. Without its off-diagonal terms only the
  target gets a gradient; with them p − q remains.
- softmax backward once more:  probs - q -> F.softmax_backward(probs - q, probs)
  p − q is sent through the softmax backward once more. It is already the gradient of the logits: softmax and logarithm
  together.
- times p (1 − p):  (probs - q) -> (probs - q) * probs * (1 - probs)
  p − q is multiplied by p (1 − p), the derivative of a sigmoid. It is already the gradient of the logits.
- times 2:  probs - q -> 2 * (probs - q)
  There is a factor 2, as for a squared error. The gradient of the cross-entropy is p − q.
- probs taken for the logits:  probs - q -> F.softmax(probs) - q
  probs is already the softmax; here it is put through softmax once more.
- log p for p:  probs - q -> np.log(probs) - q
  The logarithm of p is taken: the gradient is p − q, with p itself.
- dlogits flattened:  return dlogits -> return dlogits.reshape(-1, V)
  dlogits is returned as (N, V). It has the shape of the logits, (…, V).
""",
)

EXERCISES = [CROSS_ENTROPY, CROSS_ENTROPY_BACKWARD]
