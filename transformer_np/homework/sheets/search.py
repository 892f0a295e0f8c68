"""Greedy decoding and beam search."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from ... import decoding
from ..exercise import Case, extended
from ..rewriting import Mistakes
from .scripted import MARGIN, as_array, asked, in_training, log_probs, next_logits, scripted_model, sources  # noqa: F401 - next_logits for the mistakes
from .sheet import Sheet

SHEET = Sheet(__file__)

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
    model, src, *numbers = plain.arguments
    few, sizes = (model, src[:3], *numbers), {**plain.sizes, "B": 3}
    trained = in_training(model), *few[1:]
    return [
        plain,
        _beam_case(rng, "length_penalty=0", False, 5, 3, 0, (("", "ended hypothesis can be pushed out"),)),
        _beam_case(rng, "other special ids plus beam_size=4", True, 4, 4, 2.5, ()),
        Case("use_cache=False", few, {"use_cache": False}, sizes),
        extended(Case("a model in training mode", trained, {}, sizes)),
        extended(Case("return_hypotheses=True", few, {"return_hypotheses": True}, sizes)),
    ]


def drive_beam(answer, model, src, beam_size, max_len, length_penalty, **options):
    """The output; each Hypothesis as a triple, because only numbers and lists come out of a submission's process."""
    found = answer(model, src, beam_size, max_len, length_penalty, **asked(answer, options))
    if "return_hypotheses" not in options:
        return found
    return [[(h.ids, h.log_prob, h.score) if hasattr(h, "ids") else h for h in of_row] for of_row in found]


def ids_and_hypotheses(case, output):
    """The ids as one array, and log p and score of all hypotheses, (B, beam_size, 2); 0 where a row has fewer, or where
    they are not asked for."""
    if "return_hypotheses" not in case.options:
        return *as_array(case, output), np.zeros(len(output))
    numbers = [[(float(log_p), float(score)) for _, log_p, score in of_row] for of_row in output]
    filled = np.zeros((len(numbers), max(case.arguments[2], *map(len, numbers)), 2))
    for row, of_row in zip(filled, numbers, strict=True):
        row[: len(of_row)] = of_row
    return *as_array(case, [of_row[0][0] for of_row in output]), filled


def _beam_case(rng, label, other_ids, max_len, beam_size, length_penalty, to_show):
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
            if not open_pairs and len(chosen) >= 4:
                sizes = {"B": len(chosen), "S": len(row), "V": model.config.tgt_vocab_size}
                return Case(label, (model, np.array(chosen), beam_size, max_len, length_penalty), sizes=sizes)


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


def beam_search(model, src, beam_size=4, max_len=64, length_penalty=0.6, use_cache=True, return_hypotheses=False):
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
WITH_MARGINS = Mistakes(beam_search, SHEET["with margins"])


BEAM_SEARCH = SHEET.exercise(
    decoding.beam_search, beam_search, beam_cases, {"ids": "B T", "hypotheses": "..."},
    drive=drive_beam, view=ids_and_hypotheses,
)  # fmt: skip


# --- greedy decoding --------------------------------------------------------------------------------------------------


def greedy_cases(rng):
    cases, with_margins = [], WITH_MARGINS.variant(["margins"])
    for label, other_ids, max_len in (("", False, 6), ("other special ids", True, 5)):
        while True:
            model = scripted_model(rng, other_ids)
            chosen = {}  # by length: none, two that end early, one with the end token in the last step, one cut off
            for row in sources(rng, model, 40):
                (ids,), margin = (search(model, row[None], 1, max_len, 0) for search in (beam_search, with_margins))
                short = [n for n in chosen if 0 < n < max_len - 1]
                if min(margin) >= MARGIN and (len(ids) in (0, max_len - 1, max_len) or len(short) < 2):
                    chosen.setdefault(len(ids), (ids, row))
            if len(chosen) == 5:
                break
        chosen = [list(chosen.values())[i] for i in rng.permutation(5)]
        while len(chosen[0][0]) in (0, max_len - 1, max_len):  # the first row is not the first to end, nor the last
            chosen = chosen[1:] + chosen[:1]
        src = np.array([row for _, row in chosen])
        sizes = {"B": len(src), "S": src.shape[1], "V": model.config.tgt_vocab_size}
        cases.append(Case(label, (model, src, max_len), sizes=sizes))
    plain = cases[0]
    model, *others = plain.arguments
    return [
        *cases,
        replace(plain, label="use_cache=False", options={"use_cache": False}),
        replace(plain, label="a model in training mode", arguments=(in_training(model), *others), extended=True),
        replace(plain, label="return_log_probs=True", options={"return_log_probs": True}, extended=True),
    ]


def drive_greedy(answer, model, src, max_len, **options):
    """Greedy decoding twice: what is drawn at random is not the same twice, and then comes out as −2."""
    if options:
        return answer(model, src, max_len, **asked(answer, options))
    first, second = answer(model, src, max_len), answer(model, src, max_len)
    try:
        same = [list(map(int, row)) for row in first] == [list(map(int, row)) for row in second]
    except TypeError:
        return first
    return first if same else [[-2]] * len(src)


def ids_and_log_p(case, output):
    """The ids as one array, and log p of each output; 0 where it is not asked for."""
    if "return_log_probs" not in case.options:
        return *as_array(case, output), np.zeros(len(output))
    if not isinstance(output, tuple | list) or len(output) != 2:
        raise ValueError("no pair")
    outputs, totals = output
    return *as_array(case, outputs), np.asarray(totals)


def log_p_of(model, row, output, max_len):
    """log p of an output and of the end token after it, unless it was cut off before."""
    start, whole = model.config.bos_id, output + [model.config.eos_id] * (len(output) < max_len)
    total = 0.0
    for t, token in enumerate(whole):
        ids = [start, *whole[:t]]
        total += log_probs(model, row, ids)[token]
    return total


def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
    bos_id, eos_id = model.config.bos_id, model.config.eos_id
    outputs = []
    for row in src:
        ids = [bos_id]
        for _ in range(max_len):
            following = np.array(log_probs(model, row, ids))
            ids.append(int(following.argmax()))
        written = ids[1:]
        if eos_id in written:
            written = written[: written.index(eos_id)]
        outputs.append(written)
    if return_log_probs:
        totals = [log_p_of(model, source, output, max_len) for source, output in zip(src, outputs, strict=True)]
        return (outputs, np.array(totals))
    return outputs


EXERCISES = [
    SHEET.exercise(
        decoding.greedy_decode, greedy_decode, greedy_cases, {"ids": "B T", "log p of each output": "B"},
        drive=drive_greedy, view=ids_and_log_p,
    ),
    BEAM_SEARCH,
]  # fmt: skip
