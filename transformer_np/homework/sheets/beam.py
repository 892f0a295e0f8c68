"""Beam search."""

from itertools import combinations

import numpy as np

from ... import decoding
from ..exercise import Case, Exercise, Result, extended
from ..rewriting import Mistakes
from .greedy import START_AND_END
from .scripted import (
    MARGIN,
    as_array,
    log_probs,
    next_logits,  # noqa: F401 - for the mistakes
    scripted_model,
    sources,
)

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


def beam_cases(rng):
    plain = _beam_case(rng, "", False, 5, 3, 2.5, _SELDOM_SEEN)
    return [
        plain,
        _beam_case(rng, "length_penalty=0", False, 5, 3, 0, (("", "ended hypothesis can be pushed out"),)),
        _beam_case(rng, "other ids for padding, start and end", True, 4, 4, 0.8, ()),
        extended(Case("return_hypotheses=True", plain.arguments, {"return_hypotheses": True}, plain.sizes)),
    ]


def drive_beam(answer, model, src, beam_size, max_len, length_penalty, return_hypotheses=False):
    """The output; each Hypothesis as a triple, because only numbers and lists come out of a submission's process."""
    if not return_hypotheses:
        return answer(model, src, beam_size, max_len, length_penalty)
    found = answer(model, src, beam_size, max_len, length_penalty, return_hypotheses=True)
    return [[(h.ids, h.log_prob, h.score) if hasattr(h, "ids") else h for h in of_row] for of_row in found]


def ids_and_hypotheses(case, output):
    """The ids as one array, and log p and score of all hypotheses, (B, beams, 2); 0 where they are not asked for."""
    if not case.options:
        return *as_array(case, output), np.zeros(len(output))
    numbers = [[(float(log_p), float(score)) for _, log_p, score in of_row] for of_row in output]
    return *as_array(case, [of_row[0][0] for of_row in output]), np.array(numbers)


def _beam_case(rng, label, other_ids, max_len, beam_size, length_penalty, to_show, rows=6):
    """Source sentences in which no rounding decides, and which show all of `to_show`."""

    def found(name, row):
        answer = BEAM_SEARCH.variant({name} if name else ())
        return answer(model, row[None], beam_size, max_len, length_penalty)[0]

    with_margins = WITH_MARGINS.variant(["margins"])
    while True:
        model = scripted_model(rng, other_ids)
        candidates = sources(rng, model, 80)
        if length_penalty == 0:
            _push_out(model, candidates[0])
        chosen, open_pairs = [], list(to_show)
        for row in candidates:
            if min(with_margins(model, row[None], beam_size, max_len, length_penalty)) < MARGIN:
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


def beam_search(model, src, beam_size=4, max_len=64, length_penalty=0.6, return_hypotheses=False):
    bos_id, eos_id = model.config.bos_id, model.config.eos_id
    outputs = []
    hypotheses = []
    for row in src:
        beams, ended = [(0.0, [bos_id])], []  # log p and ids
        for _ in range(max_len):
            candidates = [
                (total + log_p, parent, token)
                for parent, (total, ids) in enumerate(beams)
                for token, log_p in enumerate(log_probs(model, row, ids))
            ]
            candidates.sort(key=lambda c: -c[0])
            kept = candidates[: beam_size - len(ended)]
            extended = [(total, [*beams[parent][1], token]) for total, parent, token in kept]
            ended += [(total, ids) for total, ids in extended if ids[-1] == eos_id]
            beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id]
        finished = []
        numbers = []
        for total, ids in ended + beams:
            written = ids[1:]
            score = total / ((5 + len(written)) / 6) ** length_penalty
            finished.append((score, written))
            numbers.append((total, score))
        _, written = max(finished, key=lambda f: f[0])
        if eos_id in written:
            written = written[: written.index(eos_id)]
        outputs.append(written)
        hypotheses.append([(written, *pair) for pair in sorted(numbers, key=lambda pair: -pair[1])])
    if return_hypotheses:
        return hypotheses
    return outputs


# The right answer, which returns how far what it kept was from what it did not keep.
WITH_MARGINS = Mistakes(
    beam_search,
    """
- margins:
    outputs = [] -> outputs, margins = [], []
    kept = candidates[: beam_size - len(ended)] ->
        count = beam_size - len(ended)
        kept = candidates[:count]
        margins += [kept[-1][0] - candidates[count][0]] if count < len(candidates) else []
    _, written = max ->
        scores = sorted(score for score, _ in finished)
        margins += [scores[-1] - scores[-2]] if len(scores) > 1 else []
        _, written = max
    return outputs -> return margins
""",
)


BEAM_SEARCH = Exercise(
    decoding.beam_search,
    results=(Result("ids", "B T"), Result("hypotheses", "B hypothesis number")),
    cases=beam_cases,
    answer=beam_search,
    hints=(
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
    drive=drive_beam,
    view=ids_and_hypotheses,
    mistakes="""
- return_hypotheses ignored:  return hypotheses -> pass
  `return_hypotheses` is not used: the ids are returned alone. With it, each row has the list of its hypotheses.
- hypotheses not sorted:  sorted(numbers, key=lambda pair: -pair[1]) -> numbers
  The hypotheses are not sorted. The best comes first, the one with the highest score.
- the worst hypothesis first:  key=lambda pair: -pair[1] -> key=lambda pair: pair[1]
  The hypotheses are sorted the wrong way round. The best comes first, the one with the highest score.
- hypotheses sorted by log p:  key=lambda pair: -pair[1] -> key=lambda pair: -pair[0]
  The hypotheses are sorted by log p. They are ranked by the score, log p / length penalty.
- only the best hypothesis:  -pair[1])] -> -pair[1])[:1]]
  Only the best hypothesis of each row is returned. With return_hypotheses all of the beam come, best first.
- no length penalty:  total / ((5 + len(written)) / 6) ** length_penalty -> total
  length_penalty is not used: hypotheses are ranked by log p alone, and short ones win. The score is log p / ((5 +
  length)/6)^length_penalty.
- length_penalty always 0.6:  ** length_penalty -> ** 0.6
  The length penalty is always that of length_penalty = 0.6, the default: the argument is not handed on. The score is
  log p / ((5 + length)/6)^length_penalty.
- multiplied by the penalty:  score = total / -> score = total *
  log p is multiplied by the length penalty: as log p is negative, longer hypotheses get worse still. It must be
  divided: log p / ((5 + length)/6)^length_penalty.
- length^α instead of ((5 + length)/6)^α:  ((5 + len(written)) / 6) -> len(written)
  The score divides by length^length_penalty. The normalisation asked for is that of Wu et al. 2016, ((5 +
  length)/6)^length_penalty, which favours long hypotheses less.
- divided by the length, whatever length_penalty:
    ((5 + len(written)) / 6) ** length_penalty -> len(written)
  log p is divided by the length itself, the mean per token, whatever length_penalty says. The divisor is ((5 +
  length)/6)^length_penalty: length_penalty is an exponent.
- length_penalty times length added:
    total / ((5 + len(written)) / 6) ** length_penalty -> total + length_penalty * len(written)
  The penalty is added, log p + length_penalty · length. It is a divisor: log p / ((5 + length)/6)^length_penalty.
- length counted without the end token:
    ((5 + len(written)) / 6) -> max(1, (5 + len(written) - (written[-1] == eos_id)) / 6)
  The length in the penalty leaves the end token out. log p counts the end token, so the length counts it too.
- length counted with the start token:  5 + len(written) -> 5 + len(ids)
  The length in the penalty counts the start token too: one too many. It counts the tokens written, with the end token.
- probabilities summed instead of log p:  log_probs(model, row, ids) -> np.exp(log_probs(model, row, ids))
  Probabilities are added up along a hypothesis. The probability of a sequence is their product, so it is their
  logarithms that add up: Σ log p.
- probability instead of its logarithm:  score = total / -> score = np.exp(total) /
  The probability p itself is divided by the penalty. It must be its logarithm, log p / penalty: log p is negative, p is
  not, and the penalty then works the other way round.
- logits summed instead of log p:  log_probs(model, row, ids) -> next_logits(model, row, ids)
  Logits are added up, not log-probabilities. Logits of different steps cannot be compared: log softmax first.
- only the last token's log p:  total + log_p -> log_p
  A beginning is ranked by the log p of its last token alone. The log p of all its tokens add up: new total = old total
  + log p.
- greedy, whatever beam_size:  beam_size - len(ended) -> 1 - len(ended)
  The output is the same as with greedy decoding. Either beam_size is not used, or all beams start as equal copies of
  the start token and stay equal: at the first step there is one beginning only.
- one beam too few:  beam_size - len(ended) -> beam_size - 1 - len(ended)
  It keeps beam_size − 1 beginnings at every step, not beam_size.
- one beam too many:  beam_size - len(ended) -> beam_size + 1 - len(ended)
  It keeps beam_size + 1 beginnings at every step, not beam_size.
- logits of the first place:  log_probs(model, row, ids) -> log_probs(model, row, ids[:1])
  The logits are taken at the first place of the target, [:, 0]. Those of the next token are at the last place, [:, -1].
- each beam only its own likeliest token:
    candidates.sort ->
        if len(beams) > 1:
            candidates = [max(c for c in candidates if c[1] == parent) for parent in range(len(beams))]
        candidates.sort
  Every beam is extended by its own likeliest token only, so that the beams never compete. The beam_size best of all
  extensions of all beams are kept, (beams · V) candidates; several may come from one beam.
- the unlikeliest kept:  lambda c: -c[0] -> lambda c: c[0]
  It keeps the candidates with the smallest log p: the sort is ascending, and the wrong end of it is taken.
- tokens put on the wrong beginnings:
    beams[parent][1] -> beams[i % len(beams)][1]
    for total, parent, token in kept -> for i, (total, parent, token) in enumerate(kept)
  The new tokens are put on the beams in their old order. A token must go behind the beginning it was found with: the
  beams (ids, totals, cache) have to be reordered by their parents, row = index // V.
- row and token swapped:  for total, parent, token in kept -> for total, token, parent in kept
  Row and token are swapped when the index into the flattened (beams, V) candidates is taken apart: the beam is index //
  V, the token index % V.
- stops at the first that ends:
    beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id] ->
        beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id]
        if ended:
            break
  The search stops as soon as one hypothesis has ended. It is over when the beam is full of ended ones, or after max_len
  steps.
- the first that ended:  max(finished, key=lambda f: f[0]) -> finished[0]
  The hypothesis that ended first is returned. All of them, and those cut off at max_len, are compared by their score at
  the end.
- the worst hypothesis:  max(finished -> min(finished
  The hypothesis with the lowest score is returned. The best has the highest, nearest to 0 from below: sort in
  descending order.
- ended hypotheses thrown away:  ended += [(total, ids) for total, ids in extended if ids[-1] == eos_id] -> pass
  Hypotheses that end are dropped: only a hypothesis that is still alive at max_len can win. They must be kept aside
  with their log p and length, and compared at the end.
- ended hypotheses free their place:  beam_size - len(ended) -> beam_size
  An ended hypothesis gives its place in the beam away: always beam_size new beginnings are kept. It keeps its place, so
  only beam_size − (number ended) go on.
- ended hypotheses free their place, stops at beam_size:
    beam_size - len(ended) -> beam_size
    beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id] ->
        beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id]
        if len(ended) >= beam_size:
            break
  An ended hypothesis gives its place in the beam away, and the search stops at beam_size ended ones. It keeps its
  place, so only beam_size − (number ended) beginnings go on.
- ended hypothesis can be pushed out:
    kept = candidates[: beam_size - len(ended)] ->
        ranked = sorted([*candidates, *ended], key=lambda c: -c[0])[:beam_size]
        kept = [c for c in ranked if len(c) == 3]
        ended = [c for c in ranked if len(c) == 2]
  Ended hypotheses compete with the new candidates at every step, by log p, and can be pushed out of the beam. One that
  has ended keeps its place.
- cut off at max_len: not counted:  ended + beams -> ended or beams
  Hypotheses that are cut off at max_len are left out as soon as another has ended. They compete as they are, with their
  own log p and length.
- goes on behind the end token:
    ended += [(total, ids) for total, ids in extended if ids[-1] == eos_id] -> pass
    beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id] -> beams = extended
    if eos_id in written: written = written[: written.index(eos_id)] -> pass
  A hypothesis is extended behind its end token, which counts like any other token. At the end token it is finished: put
  it aside, and extend the others.
- goes on behind the end token, cut afterwards:
    ended += [(total, ids) for total, ids in extended if ids[-1] == eos_id] -> pass
    beams = [(total, ids) for total, ids in extended if ids[-1] != eos_id] -> beams = extended
  A hypothesis is extended behind its end token and only cut afterwards: the log p of the tokens behind it still counts.
  At the end token a hypothesis is finished.
"""
    + START_AND_END,
)


EXERCISES = [BEAM_SEARCH]
