"""Greedy decoding."""

import numpy as np

from ...decoding import greedy_decode
from ..exercise import Case, Exercise, Result
from .scripted import MARGIN, _as_array, _log_probs, _model, _sources


def _greedy_row(model, src, max_len):
    """One row decoded greedily, and the smallest margin on the way."""
    ids, margin = [model.config.bos_id], np.inf
    while len(ids) <= max_len:
        log_probs = _log_probs(model, src, ids)
        best, second = sorted(log_probs)[:-3:-1]
        margin = min(margin, best - second)
        ids.append(log_probs.index(best))
        if ids[-1] == model.config.eos_id:
            return ids[1:-1], margin
    return ids[1:], margin


def _greedy_cases(rng):
    cases = []
    for label, other_ids, max_len in (("", False, 6), ("other ids for padding, start and end", True, 5)):
        while True:
            model = _model(rng, other_ids)
            chosen, cut, short, none = [], 0, 0, 0
            for row in _sources(rng, model, 40):
                ids, margin = _greedy_row(model, row, max_len)
                kinds = len(ids) == max_len, 0 < len(ids) < max_len - 1, not ids
                if margin < MARGIN or len(ids) == max_len - 1:
                    continue
                if (kinds[0] and cut == 2) or (kinds[1] and short == 2) or (kinds[2] and none == 1):
                    continue
                cut, short, none = cut + kinds[0], short + kinds[1], none + kinds[2]
                chosen.append((ids, row))
            lengths = {len(ids) for ids, _ in chosen}
            if (cut, short, none) == (2, 2, 1) and len(lengths) == 4:
                break
        chosen = [chosen[i] for i in rng.permutation(5)]
        while len(chosen[0][0]) in (0, max_len):  # the first row is neither the first to end nor the last
            chosen = chosen[1:] + chosen[:1]
        src = np.array([row for _, row in chosen])
        sizes = {"B": len(src), "S": src.shape[1], "V": model.config.tgt_vocab_size}
        cases.append(Case(label, (model, src, max_len), sizes=sizes))
    return cases


def _drive_greedy(answer, model, src, max_len):
    """Greedy decoding twice: what is drawn at random is not the same twice, and then comes out as −2."""
    first, second = answer(model, src, max_len), answer(model, src, max_len)
    try:
        same = [list(map(int, row)) for row in first] == [list(map(int, row)) for row in second]
    except TypeError:
        return first
    return first if same else [[-2]] * len(src)


def _wrong_greedy(made, model, src, max_len):
    c = model.config
    bos_id, eos_id = (1, 2) if made("start and end id written as numbers") else (c.bos_id, c.eos_id)
    start = bos_id
    if made("starts from the end token"):
        start = eos_id
    if made("starts from padding"):
        start = c.pad_id
    if made("starts from id 0"):
        start = 0
    if made("one token too many"):
        max_len += 1
    if made("one token too few"):
        max_len -= 1
    if made("max_len ignored"):
        max_len += 10
    rng = np.random.default_rng()
    rows = []
    for row in src:
        given = row if not made("all rows from the first source") else src[0]
        ids = [] if made("source as the beginning of the target") else [start]
        ids = ids or list(map(int, row))
        written = []
        for _ in range(max_len):
            fed = ids[-1:] if made("only the last token fed") else ids
            if made("start token fed only once") and len(ids) > 1:
                fed = ids[1:]
            log_probs = np.array(_log_probs(model, given, fed))
            if made("drawn at random"):
                token = int(rng.choice(len(log_probs), p=np.exp(log_probs)))
            elif made("least likely token"):
                token = int(log_probs.argmin())
            elif made("second likeliest token"):
                token = int(log_probs.argsort()[-2])
            elif made("end token never chosen first") and not written:
                token = int(np.where(np.arange(len(log_probs)) == eos_id, -np.inf, log_probs).argmax())
            elif made("end token never chosen"):
                token = int(np.where(np.arange(len(log_probs)) == eos_id, -np.inf, log_probs).argmax())
            else:
                token = int(log_probs.argmax())
            written.append(token)
            if not made("always what follows the start token"):
                ids.append(token)
            if made("end token fed on as padding") and token == eos_id:
                ids[-1] = c.pad_id
        rows.append(written)
    ends = [row.index(eos_id) if eos_id in row else len(row) for row in rows]
    if made("goes on behind the end token"):
        outputs = rows
    elif made("end token taken out, what follows kept"):
        outputs = [[i for i in row if i != eos_id] for row in rows]
    elif made("all stop with the first row that ends"):
        outputs = [row[: min(ends)] for row in rows]
    elif made("all stop in the step in which the first row ends"):
        outputs = [row[: min(end, min(ends) + 1)] for row, end in zip(rows, ends, strict=True)]
    elif made("all stop with row 0"):
        outputs = [[i for i in row[: ends[0]]] for row in rows]
    else:
        kept = 1 if made("end token kept") else 0
        outputs = [row[: end + kept] for row, end in zip(rows, ends, strict=True)]
        if made("first token left off"):
            outputs = [row[1:] for row in outputs]
        if made("last token of all left off"):
            outputs = [row[:-1] for row in outputs]
        longest = max(map(len, outputs))
        if made("filled up with the end token"):
            outputs = [row + [eos_id] * (longest - len(row)) for row in outputs]
        if made("filled up with padding"):
            outputs = [row + [c.pad_id] * (longest - len(row)) for row in outputs]
    return [[start, *row] for row in outputs] if made("start token kept") else outputs


_START_AND_END = {
    "start token kept": "The start token is still in the output: start and end tokens are left off.",
    "end token kept": "The end token is still in the output: start and end tokens are left off.",
    "one token too many": (
        "It writes max_len + 1 tokens: an off-by-one. max_len counts the tokens it writes, without the start token."
    ),
    "max_len ignored": "max_len is not used: a row without an end token goes on far beyond max_len tokens.",
    "one token too few": (
        "It writes at most max_len − 1 tokens: an off-by-one. max_len counts the tokens it writes; the start token is "
        "not one of them."
    ),
    "start and end id written as numbers": (
        "The ids of start and end token are fixed as 1 and 2. They are what model.config.bos_id and "
        "model.config.eos_id say."
    ),
    "starts from the end token": (
        "The target begins with the end token. It begins with model.config.bos_id, the start token."
    ),
    "starts from padding": (
        "The target begins with padding (pad_id). It begins with model.config.bos_id, the start token."
    ),
    "source as the beginning of the target": (
        "The decoder is given the source as the beginning of its target. The source goes into the encoder; the target "
        "begins with the start token alone."
    ),
    "only the last token fed": (
        "The decoder is given the last token alone, without those before it and without a cache: it forgets what it "
        "has written, and its position. It must be given the whole target so far."
    ),
    "all rows from the first source": (
        "Every row is decoded from the first source sentence: the memory of row 0 is used for all."
    ),
}

GREEDY_DECODE = Exercise(
    greedy_decode,
    (Result("ids", "B T"),),
    _greedy_cases,
    {
        "drawn at random": (
            "Two calls with the same source give two outputs: a token is drawn at random (sampled). Greedy takes the "
            "likeliest token, the argmax."
        ),
        "least likely token": "It takes the least likely token, argmin. Greedy takes the likeliest: argmax.",
        "second likeliest token": (
            "It takes the second likeliest token at every step. Greedy takes the likeliest, the argmax: the last one "
            "of argsort."
        ),
        "end token never chosen first": (
            "The end token is never chosen at the first step: every output has one token at least. Where the end token "
            "is the likeliest at once, the output is empty."
        ),
        "end token never chosen": (
            "The end token is never chosen, and every row goes on to max_len. A row is to end where the end token is "
            "the likeliest."
        ),
        "always what follows the start token": (
            "Every step gives what follows the start token. Either the logits are taken at the first place of the "
            "target, [:, 0], and not at the last, [:, -1]; or the chosen token is not appended to the target, and the "
            "decoder is fed the same beginning at every step."
        ),
        "start token fed only once": (
            "The start token is missing from the second step on. The decoder's target is the start token and then all "
            "tokens written so far."
        ),
        "goes on behind the end token": (
            "A row does not end at its end token: what is written after it is in the output. Cut each row at its own "
            "first end token."
        ),
        "end token taken out, what follows kept": (
            "End tokens are taken out but the row goes on behind them. What comes after the first end token is no part "
            "of the output."
        ),
        "all stop with the first row that ends": (
            "All rows stop as soon as any row has ended. The others must go on until each has ended (all, not any), or "
            "to max_len."
        ),
        "all stop in the step in which the first row ends": (
            "Decoding stops after the step in which any row has ended. The others must go on until each has ended "
            "(all, not any), or to max_len."
        ),
        "all stop with row 0": (
            "All rows stop where the first row (row 0) ends: only its end token is looked at. Each row ends at its own."
        ),
        "filled up with the end token": (
            "Rows that ended earlier are filled up with end tokens to one length. Each row is a list of its own "
            "length, end token left off."
        ),
        "filled up with padding": (
            "Rows that ended earlier are filled up with padding to one length. Each row is a list of its own length."
        ),
        "first token left off": (
            "The first token of every output is left off. Only the start token is: the first token that was chosen "
            "belongs to the output."
        ),
        "last token of all left off": (
            "The last token is cut off from every output, [:-1]. Only an end token is to be left off: a row that was "
            "cut off at max_len has none."
        ),
        "starts from id 0": "The target begins with id 0. It begins with model.config.bos_id, the start token.",
        **_START_AND_END,
    },
    _wrong_greedy,
    (
        "Which place of the decoder's output says what comes next, and when is a row finished?",
        "y₀ = start token, yₜ₊₁ = argmax p(· | y₀ … yₜ, source), up to the end token or max_len tokens",
        'notebook 07, "Decoding, one time step after another"; model.encode(src) once, then '
        "model.decode(tgt_in, memory, src)[:, -1].",
    ),
    difficulty=2,
    section="§9",
    chapter="Training and decoding",
    place=7,
    drive=_drive_greedy,
    view=_as_array,
)


EXERCISES = [GREEDY_DECODE]
