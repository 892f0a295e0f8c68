"""Greedy decoding."""

from dataclasses import replace

import numpy as np

from ... import decoding
from ..exercise import Case
from .beam import WITH_MARGINS, beam_search
from .scripted import MARGIN, as_array, asked, in_training, log_probs, next_logits, scripted_model, sources  # noqa: F401 - next_logits for the mistakes
from .sheet import Sheet

SHEET = Sheet(__file__)


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
]  # fmt: skip
