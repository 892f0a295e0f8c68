"""Beam search."""

from itertools import combinations

import numpy as np

from ...decoding import beam_search
from ..exercise import Case, Exercise, Result
from .greedy import _START_AND_END
from .scripted import MARGIN, _as_array, _log_probs, _model, _sources

# What a source sentence shows only now and then: answers with the one and with the other mistake differ in some row of
# the plain case. "": without a mistake.
_SCORES = (
    "",
    "no length penalty",
    "multiplied by the penalty",
    "length^α instead of ((5 + length)/6)^α",
    "divided by the length, whatever length_penalty",
    "length_penalty times length added",
    "length counted without the end token",
    "length counted with the start token",
    "probability instead of its logarithm",
    "length_penalty always 0.6",
)
_SELDOM_SEEN = (
    ("", "ended hypotheses free their place"),
    ("", "ended hypotheses free their place, stops at beam_size"),
    ("ended hypotheses free their place", "ended hypotheses free their place, stops at beam_size"),
    ("", "one beam too many"),
    ("", "cut off at max_len: not counted"),
    *combinations(_SCORES, 2),
)


def _beam_cases(rng):
    return [
        _beam_case(rng, "", False, 5, 3, 2.5, _SELDOM_SEEN),
        _beam_case(rng, "length_penalty=0", False, 5, 3, 0, (("", "ended hypothesis can be pushed out"),)),
        _beam_case(rng, "other ids for padding, start and end", True, 4, 4, 0.8, ()),
    ]


def _beam_case(rng, label, other_ids, max_len, beam_size, length_penalty, to_show, rows=6):
    """Source sentences in which no rounding decides, and which show all of `to_show`."""

    def found(name, row, margins=None):
        return _search(frozenset([name]).__contains__, model, row, beam_size, max_len, length_penalty, margins)

    while True:
        model = _model(rng, other_ids)
        candidates = _sources(rng, model, 80)
        if length_penalty == 0:
            _push_out(model, candidates[0])
        chosen, open_pairs = [], list(to_show)
        for row in candidates:
            margins = []
            found("", row, margins)
            if min(margins) < MARGIN:
                continue
            outputs = {name: found(name, row) for name in {name for pair in open_pairs for name in pair}}
            shown = [pair for pair in open_pairs if outputs[pair[0]] != outputs[pair[1]]]
            if shown or not open_pairs or len(chosen) < 2:
                chosen.append(row)
            open_pairs = [pair for pair in open_pairs if pair not in shown]
            if not open_pairs and len(chosen) >= rows:
                break
        if not open_pairs and len(chosen) >= rows:
            break
    src = np.array(chosen)
    sizes = {"B": len(src), "S": src.shape[1], "V": model.config.tgt_vocab_size}
    return Case(label, (model, src, beam_size, max_len, length_penalty), sizes=sizes)


def _push_out(model, src):
    """Write a beginning of three for this source: c ends early, and both others go on a step better, then badly."""
    c = model.config
    a, b, d, *_ = (i for i in range(c.tgt_vocab_size) if i not in (c.pad_id, c.bos_id, c.eos_id))
    for ids, following in (
        ([], {a: 0.49, b: 0.3, d: 0.19}),
        ([a], {b: 0.96}),
        ([b], {b: 0.96}),
        ([d], {c.eos_id: 0.96}),
        ([a, b], {a: 0.5, d: 0.47}),
        ([b, b], {a: 0.96}),
    ):
        model.write(src, [c.bos_id, *ids], following)


def _score(made, log_prob, length, penalty):
    """What ranks a finished hypothesis; length counts the end token where there is one."""
    if made("no length penalty"):
        return log_prob
    if made("divided by the length, whatever length_penalty"):
        return log_prob / length
    if made("length_penalty times length added"):
        return log_prob + penalty * length
    if made("length counted with the start token"):
        length += 1
    if made("length_penalty always 0.6"):
        penalty = 0.6
    base = length if made("length^α instead of ((5 + length)/6)^α") else (5 + length) / 6
    if made("multiplied by the penalty"):
        return log_prob * base**penalty
    if made("probability instead of its logarithm"):
        return np.exp(log_prob) / base**penalty
    return log_prob / max(base, 1) ** penalty


def _search(made, model, src, beam_size, max_len, penalty, margins=None):
    """Beam search for one source sentence; `margins` collects how far what is kept is from what is not."""
    c = model.config
    bos_id, eos_id = (1, 2) if made("start and end id written as numbers") else (c.bos_id, c.eos_id)
    start = [bos_id]
    if made("starts from the end token"):
        start = [eos_id]
    if made("starts from padding"):
        start = [c.pad_id]
    if made("source as the beginning of the target"):
        start = list(map(int, src))
    first, place = len(start), 0 if made("logits of the first place") else -1
    only_last, raw = made("only the last token fed"), made("logits summed instead of log p")
    max_len += made("one token too many") - made("one token too few") + 10 * made("max_len ignored")
    if made("greedy, whatever beam_size"):
        beam_size = 1
    if made("one beam too few"):
        beam_size = max(1, beam_size - 1)
    if made("one beam too many"):
        beam_size += 1
    goes_on = made("goes on behind the end token") or made("goes on behind the end token, cut afterwards")
    pushed_out = made("ended hypothesis can be pushed out")
    frees = made("ended hypotheses free their place") or made("ended hypotheses free their place, stops at beam_size")
    beams, ended = [(0.0, start)], []  # log p and ids
    for _ in range(max_len):
        candidates = []
        for parent, (total, ids) in enumerate(beams):
            log_probs = _log_probs(model, src, ids[-1:] if only_last else ids, place, raw)
            if made("probabilities summed instead of log p"):
                log_probs = np.exp(log_probs).tolist()
            if made("only the last token's log p"):
                total = 0.0
            own = [(total + log_p, parent, token) for token, log_p in enumerate(log_probs)]
            if made("each beam only its own likeliest token") and len(beams) > 1:
                own = [max(own)]
            candidates += own
        candidates.sort(key=lambda x: (x[0], -x[1]), reverse=not made("the unlikeliest kept"))
        if pushed_out:
            ranked = sorted(
                [(x[0], "new", x) for x in candidates] + [(e[0], "old", e) for e in ended],
                reverse=True,
                key=lambda r: r[0],
            )
            ended = [r[2] for r in ranked[:beam_size] if r[1] == "old"]
            kept = [r[2] for r in ranked[:beam_size] if r[1] == "new"]
        else:
            count = beam_size if frees or made("ended hypotheses thrown away") else beam_size - len(ended)
            kept = candidates[:count]
            if margins is not None and count < len(candidates):
                margins.append(candidates[count - 1][0] - candidates[count][0])
        if made("row and token swapped"):
            kept = [(total, token, parent) for total, parent, token in kept]
        alive = []
        for i, (total, parent, token) in enumerate(kept):
            if made("tokens put on the wrong beginnings"):
                parent = i % len(beams)
            ids = [*beams[parent][1], token]
            if token == eos_id and not goes_on:
                ended.append((total, ids))
            else:
                alive.append((total, ids))
        beams = alive
        if made("stops at the first that ends") and ended:
            break
        if made("ended hypotheses free their place, stops at beam_size") and len(ended) >= beam_size:
            break
        if not beams:
            break
    if made("ended hypotheses thrown away"):
        ended = []
    if not (ended and made("cut off at max_len: not counted")):
        ended = ended + beams
    if not ended:
        return []
    scored = []
    for total, ids in ended:
        written = ids[first:]
        length = len(written) - (made("length counted without the end token") and written[-1:] == [eos_id])
        scored.append((_score(made, total, length, penalty), written))
    worst = made("the worst hypothesis") or made("sorted the wrong way at the end")
    if made("the first that ended"):
        ids = scored[0][1]
    else:
        scored.sort(key=lambda x: x[0], reverse=not worst)
        ids = scored[0][1]
    if margins is not None and len(scored) > 1:
        margins.append(scored[0][0] - scored[1][0])
    if made("goes on behind the end token"):
        return ids
    if eos_id in ids:
        ids = ids[: ids.index(eos_id) + made("end token kept")]
    return [*start, *ids] if made("start token kept") else ids


def _wrong_beam(made, model, src, beam_size, max_len, length_penalty):
    rows = [src[0]] * len(src) if made("all rows from the first source") else src
    return [_search(made, model, row, beam_size, max_len, length_penalty) for row in rows]


BEAM_SEARCH = Exercise(
    beam_search,
    (Result("ids", "B T"),),
    _beam_cases,
    {
        "no length penalty": (
            "length_penalty is not used: hypotheses are ranked by log p alone, and short ones win. The score is log p "
            "/ ((5 + length)/6)^length_penalty."
        ),
        "length_penalty always 0.6": (
            "The length penalty is always that of length_penalty = 0.6, the default: the argument is not handed on. "
            "The score is log p / ((5 + length)/6)^length_penalty."
        ),
        "multiplied by the penalty": (
            "log p is multiplied by the length penalty: as log p is negative, longer hypotheses get worse still. It "
            "must be divided: log p / ((5 + length)/6)^length_penalty."
        ),
        "length^α instead of ((5 + length)/6)^α": (
            "The score divides by length^length_penalty. The normalisation asked for is that of Wu et al. 2016, ((5 + "
            "length)/6)^length_penalty, which favours long hypotheses less."
        ),
        "divided by the length, whatever length_penalty": (
            "log p is divided by the length itself, the mean per token, whatever length_penalty says. The divisor is "
            "((5 + length)/6)^length_penalty: length_penalty is an exponent."
        ),
        "length_penalty times length added": (
            "The penalty is added, log p + length_penalty · length. It is a divisor: log p / ((5 + "
            "length)/6)^length_penalty."
        ),
        "length counted without the end token": (
            "The length in the penalty leaves the end token out. log p counts the end token, so the length counts it "
            "too."
        ),
        "length counted with the start token": (
            "The length in the penalty counts the start token too: one too many. It counts the tokens written, with "
            "the end token."
        ),
        "probabilities summed instead of log p": (
            "Probabilities are added up along a hypothesis. The probability of a sequence is their product, so it is "
            "their logarithms that add up: Σ log p."
        ),
        "probability instead of its logarithm": (
            "The probability p itself is divided by the penalty. It must be its logarithm, log p / penalty: log p is "
            "negative, p is not, and the penalty then works the other way round."
        ),
        "logits summed instead of log p": (
            "Logits are added up, not log-probabilities. Logits of different steps cannot be compared: log softmax "
            "first."
        ),
        "only the last token's log p": (
            "A beginning is ranked by the log p of its last token alone. The log p of all its tokens add up: new total "
            "= old total + log p."
        ),
        "greedy, whatever beam_size": (
            "What comes out is greedy decoding's. Either beam_size is not used, or all beams start as equal copies of "
            "the start token and stay equal: at the first step there is one beginning only."
        ),
        "one beam too few": "It keeps beam_size − 1 beginnings at every step, not beam_size.",
        "one beam too many": "It keeps beam_size + 1 beginnings at every step, not beam_size.",
        "logits of the first place": (
            "The logits are taken at the first place of the target, [:, 0]. What comes next stands at the last place, "
            "[:, -1]."
        ),
        "each beam only its own likeliest token": (
            "Every beam is extended by its own likeliest token only, so that the beams never compete. The beam_size "
            "best of all extensions of all beams are kept, (beams · V) candidates; several may come from one beam."
        ),
        "the unlikeliest kept": (
            "It keeps the candidates with the smallest log p: the sort is ascending, and the wrong end of it is taken."
        ),
        "tokens put on the wrong beginnings": (
            "The new tokens are put on the beams in their old order. A token must go behind the beginning it was found "
            "with: the beams (ids, totals, cache) have to be reordered by their parents, row = index // V."
        ),
        "row and token swapped": (
            "Row and token are swapped when the index into the flattened (beams, V) candidates is taken apart: the "
            "beam is index // V, the token index % V."
        ),
        "stops at the first that ends": (
            "The search stops as soon as one hypothesis has ended. It is over when the beam is full of ended ones, or "
            "after max_len steps."
        ),
        "the first that ended": (
            "The hypothesis that ended first is returned. All of them, and those cut off at max_len, are compared by "
            "their score at the end."
        ),
        "the worst hypothesis": (
            "The hypothesis with the lowest score is returned. The best has the highest, nearest to 0 from below: sort "
            "in descending order."
        ),
        "ended hypotheses thrown away": (
            "Hypotheses that end are dropped: only what is still alive at max_len can win. They must be kept aside "
            "with their log p and length, and compared at the end."
        ),
        "ended hypotheses free their place": (
            "An ended hypothesis gives its place in the beam away: always beam_size new beginnings are kept. It keeps "
            "its place, so only beam_size − (number ended) go on."
        ),
        "ended hypotheses free their place, stops at beam_size": (
            "An ended hypothesis gives its place in the beam away, and the search stops at beam_size ended ones. It "
            "keeps its place, so only beam_size − (number ended) beginnings go on."
        ),
        "ended hypothesis can be pushed out": (
            "Ended hypotheses compete with the new candidates at every step, by log p, and can be pushed out of the "
            "beam. One that has ended keeps its place."
        ),
        "cut off at max_len: not counted": (
            "What is cut off at max_len is left out as soon as any hypothesis has ended. It competes as it is, with "
            "its own log p and length."
        ),
        "goes on behind the end token": (
            "A hypothesis is extended behind its end token, which counts like any other token. At the end token it is "
            "finished: put it aside, and extend the others."
        ),
        "goes on behind the end token, cut afterwards": (
            "A hypothesis is extended behind its end token and only cut afterwards: the log p of what was written "
            "behind it still counts. At the end token a hypothesis is finished."
        ),
        **_START_AND_END,
    },
    _wrong_beam,
    (
        "If the likeliest first word leads nowhere, what must have been kept to turn back?",
        "keep the beam_size largest of Σ log p over all (beams · V) extensions; at the end the largest log p / ((5 + "
        "length)/6)^length_penalty, the end token counted",
        'notebook 07, "Greedy against beam search" and its exercise 2; np.argsort of the flattened candidates, then '
        "// V and % V.",
    ),
    difficulty=3,
    section="Wu et al. 2016, §7",
    chapter="Training and decoding",
    place=8,
    view=_as_array,
)


EXERCISES = [BEAM_SEARCH]
