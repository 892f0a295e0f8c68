"""The distribution a token is drawn from."""

import numpy as np

from ... import decoding
from ...functional import softmax
from ..exercise import Case, draw_sizes
from .draws import only
from .sheet import Sheet

SHEET = Sheet(__file__)


def _top_p(rng, probabilities):
    """A limit that no row's cumulative sum comes near to, and that cuts every row somewhere in the middle."""
    sums = np.cumsum(-np.sort(-probabilities, axis=-1), axis=-1)
    choices = [p for p in rng.uniform(0.6, 0.85, size=200) if np.abs(sums - p).min() > 3e-3]
    return float(round(choices[0], 4)) if choices else None


_RANKED = ("ranked without a stable sort", "larger ids first", "larger ids first, not stable")


def _ties(rng, rows, top_k):
    """Logits (rows, 40) with more than top_k equal ones at the top: enough for a sort that is not stable to show."""
    while True:
        ties = np.round(rng.normal(size=(rows, 40)))
        ties[:, rng.permutation(40)[:20]] = 3.0
        ranked = [SAMPLING_DISTRIBUTION.variant(name)(ties, top_k=top_k).tobytes() for name in ((), *zip(_RANKED))]
        if len(set(ranked)) == len(ranked):
            return ties


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
        shows = (left < limits[2]) & (least < 1 - limits[2])  # what comes first, top-k or top-p
        if np.any(shows) and np.any(left * (1 - least) >= limits[2]):  # and that top-p is there
            break
    large = 1e4 * np.sign(logits) + np.round(16 * logits) / 16  # a float32 holds them as they are
    large[-1] -= 3e4  # a row that lies far below the others
    ties, of_ties = _ties(rng, sizes["B"], top_k), sizes | {"V": 40}

    def case(label, logits=logits, sizes=sizes, **options):
        return Case(label, (logits,), options, sizes)

    return [
        case(""),
        case("a temperature above 1", temperature=temperature),
        case("a temperature below 1", temperature=1 / temperature),
        case("temperature=0", temperature=0),
        case("temperature=0 among equally likely tokens", ties, of_ties, temperature=0),
        case("top_k", top_k=top_k),
        case("top_k=1", top_k=1),
        case("top_p", top_p=limits[0]),
        case("a top_p below every largest probability", top_p=0.2),
        case("temperature plus top_p", temperature=temperature, top_p=limits[1]),
        case("temperature plus top_k plus top_p", temperature=temperature, top_k=top_k, top_p=limits[2]),
        case("logits of ±10,000", large),
        case("top_k among equally likely tokens", ties, of_ties, top_k=top_k),
        case("top_k with logits of shape (2, B, V)", np.stack([logits, logits[::-1, ::-1]]), top_k=top_k),
        case("top_k with logits of shape (V,)", logits[0], only(sizes, "V"), top_k=top_k),
    ]


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


SAMPLING_DISTRIBUTION = SHEET.exercise(
    decoding.sampling_distribution, sampling_distribution, sampling_cases,
    {"probabilities": "... V", "tokens that are not 0": "... V"},
    view=view_distribution,
)  # fmt: skip


EXERCISES = [SAMPLING_DISTRIBUTION]
