"""The distribution a token is drawn from."""

import numpy as np

from ... import decoding
from ...functional import softmax
from ..exercise import Case, Exercise, Result, draw_sizes


def _top_p(rng, probabilities):
    """A limit that no row's cumulative sum comes near to, and that cuts every row somewhere in the middle."""
    sums = np.cumsum(-np.sort(-probabilities, axis=-1), axis=-1)
    choices = [p for p in rng.uniform(0.6, 0.85, size=200) if np.abs(sums - p).min() > 3e-3]
    return float(round(choices[0], 4)) if choices else None


def sampling_cases(rng):
    while True:
        sizes = draw_sizes(rng, "B V") | {"V": int(rng.integers(8, 12))}
        logits = 1.3 * rng.normal(size=(sizes["B"], sizes["V"]))
        gaps = np.diff(np.sort(logits, axis=-1), axis=-1)
        temperature = float(round(rng.uniform(1.4, 2.0), 2))
        top_k = int(rng.integers(3, 5))
        flat = softmax(logits / temperature)
        cut = np.where(flat >= -np.sort(-flat, axis=-1)[:, top_k - 1 : top_k], flat, 0)
        left = cut.sum(axis=-1, keepdims=True)
        cut /= left
        limits = [_top_p(rng, p) for p in (softmax(logits), flat, cut)]
        if None in limits or gaps.min() < 1e-2 or softmax(logits).max(axis=-1).min() < 0.25:
            continue
        least = cut.min(axis=-1, where=cut > 0, initial=1, keepdims=True)
        if np.any((left < limits[2]) & (least < 1 - limits[2])):  # what comes first, top-k or top-p, shows
            break
    large = 1e4 * np.sign(logits) + np.round(16 * logits) / 16  # a float32 holds them as they are
    ties = np.round(logits)
    ties[:, rng.permutation(sizes["V"])[: sizes["V"] // 2]] = 3.0  # more than top_k of them
    several = np.stack([logits, logits[::-1, ::-1]])
    return [
        Case("", (logits,), sizes=sizes),
        Case("a temperature above 1", (logits,), {"temperature": temperature}, sizes),
        Case("temperature=0", (logits,), {"temperature": 0}, sizes),
        Case("top_k", (logits,), {"top_k": top_k}, sizes),
        Case("top_k=1", (logits,), {"top_k": 1}, sizes),
        Case("top_p", (logits,), {"top_p": limits[0]}, sizes),
        Case("a top_p below every largest probability", (logits,), {"top_p": 0.2}, sizes),
        Case("temperature and top_p", (logits,), {"temperature": temperature, "top_p": limits[1]}, sizes),
        Case(
            "temperature, top_k and top_p", (logits,),
            {"temperature": temperature, "top_k": top_k, "top_p": limits[2]}, sizes,
        ),
        Case("logits of ±10,000", (large,), {"temperature": 0.5}, sizes),
        Case("equally likely tokens", (ties,), {"top_k": top_k}, sizes),
        Case("logits of shape (2, B, V)", (several,), {"top_k": top_k}, sizes),
        Case("one row, logits of shape (V,)", (logits[0],), {"temperature": temperature, "top_k": top_k}, sizes),
    ]  # fmt: skip


def view_distribution(case, output):
    """The probabilities, and which of them are not 0: a token that is cut off can never be drawn."""
    probabilities = np.asarray(output)
    return probabilities, probabilities > 0


def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        temperature, top_k, top_p = 1.0, 1, None  # the likeliest token alone
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    p = powers / powers.sum(axis=-1, keepdims=True)
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=-1)
    kept = np.ones(p.shape, bool)
    if top_k is not None:
        kept[..., top_k:] = False
    if top_p is not None:
        share = ranked * kept
        share = share / share.sum(axis=-1, keepdims=True)
        before = np.cumsum(share, axis=-1) - share
        kept &= before < top_p
    ranked = np.where(kept, ranked, 0)
    ranked = ranked / ranked.sum(axis=-1, keepdims=True)
    probabilities = np.empty_like(p)
    np.put_along_axis(probabilities, order, ranked, axis=-1)
    return probabilities


SAMPLING_DISTRIBUTION = Exercise(
    decoding.sampling_distribution,
    results=(Result("probabilities", "... V"), Result("which of them are not 0", "... V")),
    cases=sampling_cases,
    answer=sampling_distribution,
    hints=(
        "What do the three options do: to the logits, to the number of tokens, to their sum?",
        "p = softmax(logits / temperature); keep the k largest, divide by their sum; keep tokens while the sum before "
        "them is < top_p; divide by the sum",
        'notebook 08, "One distribution" and exercise 1; np.argsort, np.cumsum, np.put_along_axis.',
    ),
    difficulty=2,
    section="notebook 08",
    chapter="Generation",
    place=1,
    view=view_distribution,
    mistakes="""
- multiplied by the temperature:  logits / temperature -> logits * temperature
  The logits are multiplied by the temperature. They are divided by it, logits / temperature: below 1 sharpens, above 1
  flattens.
- temperature ignored:  logits / temperature -> logits
  temperature is not used: softmax(logits) instead of softmax(logits / temperature).
- square root of the temperature:  logits / temperature -> logits / temperature**0.5
  The logits are divided by √temperature. It is logits / temperature.
- temperature after the softmax:  logits / temperature -> softmax(logits) / temperature
  The temperature divides probabilities, not logits, and a softmax comes after that: softmax(softmax(logits) /
  temperature). There is one softmax, of logits / temperature.
- temperature after the cut:
    logits / temperature -> logits
    ranked = np.where(kept, ranked, 0) ->
        ranked = np.take_along_axis(softmax(logits / temperature), order, axis=-1)
        ranked = np.where(kept, ranked, 0)
  The temperature comes after the cut: top_p is measured on softmax(logits). It must be measured on softmax(logits /
  temperature), the distribution that is cut.
- temperature 0 is not the likeliest token:
    if temperature == 0: temperature, top_k, top_p = 1.0, 1, None -> pass
  temperature 0 gives NaN: logits / 0. It is the limit of ever smaller temperatures, where the likeliest token alone is
  left with probability 1, and needs a case of its own.
- temperature 0 taken for none:  temperature, top_k, top_p = 1.0, 1, None -> temperature = 1.0
  temperature 0 is treated as no temperature, as 1; `if temperature:` is false for 0. It must leave the likeliest token
  alone.
- temperature 0 is even:
    temperature, top_k, top_p = 1.0, 1, None -> return np.full(logits.shape, 1 / logits.shape[-1])
  temperature 0 gives every token the same probability. It must leave the likeliest alone.
- top_k ignored:  if top_k is not None: kept[..., top_k:] = False -> pass
  top_k is not used: all tokens keep a probability, though only the k likeliest may.
- one token more than top_k:  kept[..., top_k:] -> kept[..., top_k + 1 :]
  top_k + 1 tokens are kept: an off-by-one in the cut.
- one token less than top_k:  kept[..., top_k:] -> kept[..., top_k - 1 :]
  top_k − 1 tokens are kept: an off-by-one, the k-th likeliest is cut off too.
- top_k as a threshold over all rows:
    kept[..., top_k:] = False -> kept = ranked >= np.sort(ranked, axis=None)[-top_k]
  The k-th largest probability of the whole array is the limit for all rows. Every row keeps its own k likeliest tokens.
- the unlikeliest kept:  kept[..., top_k:] -> kept[..., :-top_k]
  The k unlikeliest tokens are kept instead of the k likeliest: the wrong end of the order.
- top_k smallest cut off:  kept[..., top_k:] -> kept[..., -top_k:]
  The k smallest probabilities are cut off. All but the k largest must be.
- top_p ignored:  kept &= before < top_p -> pass
  top_p is not used: no token is cut off by it.
- token that reaches top_p left out:  before < top_p -> before + share <= top_p
  The token with which the sum reaches top_p is cut off: cumsum ≤ top_p. It belongs to the tokens that together just
  reach p: keep where the sum *before* a token is below p. So the likeliest always stays.
- token that reaches top_p left out, except the first:
    kept &= before < top_p -> kept[..., 1:] &= (before + share)[..., 1:] <= top_p
  The token with which the sum reaches top_p is cut off, cumsum ≤ top_p, but for the likeliest. It belongs to the tokens
  that together just reach p: keep where the sum *before* a token is below p.
- one token more than top_p needs:  kept &= before < top_p -> kept[..., 1:] &= before[..., :-1] < top_p
  One token more is kept than is needed to reach top_p: an off-by-one. The token that reaches p is the last.
- top_p from the smallest:
    np.cumsum(share, axis=-1) - share -> np.cumsum(share[..., ::-1], axis=-1)[..., ::-1] - share
  The sum for top_p starts at the smallest probability (ascending order). It starts at the likeliest token.
- top_p in the order of the ids:
    before = np.cumsum(share, axis=-1) - share ->
        by_id = np.empty_like(share)
        np.put_along_axis(by_id, order, share, axis=-1)
        before = np.take_along_axis(np.cumsum(by_id, axis=-1) - by_id, order, axis=-1)
  The sum for top_p runs in the order of the ids, unsorted. Sort by probability first, the likeliest first.
- top_p as a smallest probability:  before < top_p -> share >= top_p
  top_p is used as a limit for single probabilities, p ≥ top_p. It limits their sum, from the likeliest on.
- top_p as a share of the largest probability:  before < top_p -> share >= top_p * share.max(axis=-1, keepdims=True)
  Tokens are kept whose probability is at least top_p times the largest: that is min-p. top_p limits the sum of the
  probabilities, from the likeliest on.
- complement of top_p:  before < top_p -> before < 1 - top_p
  The likeliest tokens are kept up to a sum of 1 − top_p instead of top_p.
- top_p before top_k:  share = share / share.sum(axis=-1, keepdims=True) -> pass
  top_p is measured on all probabilities, before top_k or without dividing by the sum of the k that are left. Top-k
  comes first, its probabilities are brought back to 1, then top-p cuts.
- top_k dropped where there is top_p:  if top_k is not None: -> if top_k is not None and top_p is None:
  Where top_p is given, top_k is not applied, an `elif` for an `if`. Both cut, top-k first, then top-p.
- logits of the others set to 0:
    ranked = np.where(kept, ranked, 0) ->
        ranked = softmax(np.where(kept, np.take_along_axis(logits, order, axis=-1), 0) / temperature)
  The logits of the tokens that are cut off are set to 0, and exp(0) = 1. They must be −inf, or their probabilities 0.
- the others get a small rest:  np.where(kept, ranked, 0) -> np.where(kept, ranked, 1e-9)
  The tokens that are cut off keep a tiny probability instead of 0, and can still be drawn. They must be exactly 0.
- softmax of the probabilities that are left:
    np.where(kept, ranked, 0) -> np.where(kept, ranked if kept.all() else np.exp(ranked), 0)
  The probabilities that are left go through a second softmax. They are divided by their sum.
- softmax of the result:
    ranked = ranked / ranked.sum(axis=-1, keepdims=True) ->
        ranked = np.where(kept, np.exp(ranked / ranked.sum(axis=-1, keepdims=True)), 0)
        ranked = ranked / ranked.sum(axis=-1, keepdims=True)
  The probabilities go through a second softmax at the end, whether something was cut off or not. There is one softmax,
  of logits / temperature; after a cut, the rest is divided by its sum.
- even among those kept:  np.where(kept, ranked, 0) -> np.where(kept, ranked if kept.all() else 1, 0)
  The tokens that are kept all get the same probability. They share it in proportion: p divided by the sum of those
  kept.
- not brought back to 1:  ranked / ranked.sum(axis=-1, keepdims=True) -> ranked
  The probabilities are not renormalised after the cut: a row no longer adds to 1. Divide by the sum of the rest.
- left in the order of likelihood:  return probabilities -> return ranked
  The probabilities are returned sorted, the likeliest first. They must stand at the ids of their tokens: undo the sort.
- put back in the wrong order:
    return probabilities ->
        order = np.argsort(-probabilities, axis=-1, kind="stable")
        return np.take_along_axis(ranked, order, axis=-1)
  The sort is undone with the order itself instead of its inverse: ranked[order]. It is probabilities[order] = ranked,
  np.put_along_axis.
- over the wrong axis:
    scaled.max(axis=-1 -> scaled.max(axis=0
    powers.sum(axis=-1 -> powers.sum(axis=0
    ranked / ranked.sum(axis=-1, keepdims=True) -> ranked
  The softmax is over the first axis. A row over the vocabulary, the last axis, adds to 1.
- largest logit not subtracted:  scaled - scaled.max(axis=-1, keepdims=True) -> scaled
  exp of a logit as large as 10,000 is inf, and inf/inf NaN: subtract the largest logit before the exponential, as
  `softmax` does.
- the logarithm of it:  return probabilities -> return np.log(probabilities)
  The logarithms of the probabilities are returned instead of the probabilities.
- always argmax:  return probabilities -> return np.eye(p.shape[-1])[probabilities.argmax(axis=-1)]
  The likeliest token always gets probability 1, as with temperature 0. The others keep their share unless they are cut
  off.
""",
)


EXERCISES = [SAMPLING_DISTRIBUTION]
