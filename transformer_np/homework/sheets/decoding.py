"""From a model to tokens: greedy decoding, beam search, and the distribution a token is drawn from."""

from itertools import combinations

import numpy as np

from ...decoding import beam_search, greedy_decode, sampling_distribution
from ...functional import softmax
from ...models import Transformer, TransformerConfig
from ..exercise import Case, Exercise, Result, draw_sizes

MARGIN = 2e-3  # between what is chosen and what is not, in nats: no rounding decides

# --- a model to decode with ------------------------------------------------------------------------------------------


class ScriptedTransformer(Transformer):
    """Looks like a Transformer from outside and answers at once: the logits of the next token are drawn anew for every
    source and every beginning of the target. Padding and the start token never are likely.

    It is never changed, so that a copy of it is the model itself.
    """

    STATES = 997

    def __init__(self, rng, vocab_size, pad_id, bos_id, eos_id):
        super().__init__(
            TransformerConfig(
                vocab_size, vocab_size, d_model=2, num_heads=1, num_encoder_layers=1, num_decoder_layers=1, d_ff=2,
                dropout=0.0, dtype="float64", pad_id=pad_id, bos_id=bos_id, eos_id=eos_id,
            )
        )  # fmt: skip
        self.eval()
        self.script = 1.3 * rng.normal(size=(self.STATES, vocab_size))
        self.script += rng.normal(size=(self.STATES, 1))  # logits are no log-probabilities
        self.script[:, [pad_id, bos_id]] -= 12
        self.end = np.array([-2.0, 0.5])  # an end token comes sooner or later, but seldom at once
        self.known = {}  # log p of the next token by source and beginning, for `_log_probs`

    def __deepcopy__(self, memo):
        return self

    def encode(self, src):
        src = np.asarray(src)
        seen = src != self.config.pad_id  # (B, S)
        state = np.zeros(len(src), int)
        for ids, counts in zip(src.T, seen.T, strict=True):
            state = np.where(counts, (31 * state + 7 * ids + 5) % self.STATES, state)
        return np.where(seen, state[:, None], 0)[..., None] * np.array([1.0, 0.5])  # (B, S, 2)

    def decode(self, tgt_in, memory, src, cache=None):
        new = np.asarray(tgt_in)
        ids = new if cache is None or cache.ids is None else np.concatenate([cache.ids, new], axis=1)
        if len(memory) != len(ids) or np.shape(src) != memory.shape[:2]:
            raise ValueError(f"sizes differ: tgt_in {ids.shape}, memory {memory.shape}, src {np.shape(src)}")
        states = self.states(memory, ids)
        if cache is not None:
            cache.extend(new)
        logits = self.script[states]  # (B, T, V)
        logits[..., self.config.eos_id] += self.end[np.minimum(np.arange(ids.shape[1]), len(self.end) - 1)]
        return logits[:, -new.shape[1] :]

    def states(self, memory, ids):
        """What stands for the source and the target so far, at every place of the target: rows of the script."""
        state = memory[..., 0].max(axis=1).astype(int)  # (B,)
        states = np.empty(ids.shape, int)
        for t in range(ids.shape[1]):
            states[:, t] = state = (37 * state + 11 * ids[:, t] + 3) % self.STATES
        return states

    def write(self, src, ids, probabilities):
        """Say what comes after the beginning `ids`, for one source sentence: {token: probability}."""
        state = self.states(self.encode(src[None]), np.array([ids]))[0, -1]
        others = self.config.tgt_vocab_size - len(probabilities)
        logits = np.full(self.config.tgt_vocab_size, np.log((1 - sum(probabilities.values())) / others))
        for token, probability in probabilities.items():
            logits[token] = np.log(probability)
        logits[self.config.eos_id] -= self.end[min(len(ids), len(self.end)) - 1]
        self.script[state] = logits
        self.known.clear()


def _model(rng, other_ids=False):
    vocab_size = int(rng.integers(8, 11))
    special = (0, 1, 2) if not other_ids else (int(i) for i in rng.permutation(np.arange(3, vocab_size))[:3])
    return ScriptedTransformer(rng, vocab_size, *special)


def _sources(rng, model, rows):
    """Source sentences of different lengths, end token and padding behind them."""
    c = model.config
    words = [i for i in range(c.src_vocab_size) if i not in (c.pad_id, c.bos_id, c.eos_id)]
    src = np.full((rows, 6), c.pad_id)
    for i, row in enumerate(src):
        length = 5 if i == 0 else int(rng.integers(2, 6))
        row[:length] = rng.choice(words, size=length)
        row[length] = c.eos_id
    return src


def _log_probs(model, src, ids, position=-1, raw=False):
    """log p of the token after the beginning `ids`, for one source sentence: a list. Or the logits."""
    key = (src.tobytes(), tuple(ids), position, raw)
    if key not in model.known:
        logits = model(src[None], np.array([ids]))[0, position]
        shifted = logits - logits.max()
        model.known[key] = (logits if raw else shifted - np.log(np.exp(shifted).sum())).tolist()
    return model.known[key]


def _as_array(case, output):
    """Lists of ids as one array, filled up with −1, with two columns more than a right answer can have."""
    width = case.arguments[2 if len(case.arguments) == 3 else 3] + 2
    rows = [[int(i) for i in row][:width] for row in output]
    return (np.array([row + [-1] * (width - len(row)) for row in rows]),)


# --- greedy decoding -------------------------------------------------------------------------------------------------


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
    drive=_drive_greedy,
    view=_as_array,
)


# --- beam search -----------------------------------------------------------------------------------------------------


def _never(name):
    return False


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
    view=_as_array,
)


# --- the distribution a token is drawn from --------------------------------------------------------------------------


def _top_p(rng, probabilities):
    """A limit that no row's cumulative sum comes near to, and that cuts every row somewhere in the middle."""
    sums = np.cumsum(-np.sort(-probabilities, axis=-1), axis=-1)
    choices = [p for p in rng.uniform(0.6, 0.85, size=200) if np.abs(sums - p).min() > 3e-3]
    return float(round(choices[0], 4)) if choices else None


def _sampling_cases(rng):
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
        Case("logits of shape (2, B, V)", (several,), {"top_k": top_k}, sizes),
        Case("one row, logits of shape (V,)", (logits[0],), {"temperature": temperature, "top_k": top_k}, sizes),
    ]  # fmt: skip


def _view_distribution(case, output):
    """The probabilities, and which of them are not 0: a token that is cut off can never be drawn."""
    probabilities = np.asarray(output)
    return probabilities, probabilities > 0


def _wrong_sampling(made, logits, temperature=1.0, top_k=None, top_p=None):
    axis = 0 if made("over the wrong axis") else -1

    def normal(x, temperature):
        x = x / temperature if not made("multiplied by the temperature") else x * temperature
        if not made("largest logit not subtracted"):
            x = x - x.max(axis=axis, keepdims=True)
        return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)

    if temperature == 0:
        if made("temperature 0 is not the likeliest token"):
            return np.full(logits.shape, np.nan)
        if made("temperature 0 taken for none"):
            temperature = 1.0
        elif made("temperature 0 is even"):
            return np.full(logits.shape, 1 / logits.shape[-1])
        else:
            temperature, top_k, top_p = 1.0, 1, None
    if made("temperature ignored"):
        temperature = 1.0
    if made("square root of the temperature"):
        temperature = temperature**0.5
    later = temperature
    if made("temperature after the cut"):
        temperature = 1.0
    if made("temperature after the softmax"):
        probabilities = normal(normal(logits, 1.0), temperature)
    else:
        probabilities = normal(logits, temperature)
    ranks = np.argsort(np.argsort(-probabilities, axis=-1, kind="stable"), axis=-1, kind="stable")  # 0: the likeliest
    kept = np.ones(probabilities.shape, bool)
    if top_p is not None and made("top_k dropped where there is top_p"):
        top_k = None
    if top_k is not None and not made("top_k ignored"):
        count = top_k + made("one token more than top_k") - made("one token less than top_k")
        if made("top_k as a threshold over all rows"):
            kept = probabilities >= np.sort(probabilities, axis=None)[::-1][count - 1]
        elif made("the unlikeliest kept"):
            kept = ranks >= probabilities.shape[-1] - count
        elif made("top_k smallest cut off"):
            kept = ranks < probabilities.shape[-1] - count
        else:
            kept = ranks < count
    if top_p is not None and not made("top_p ignored"):
        before_cut = made("top_p before top_k") or made("top_p of the probabilities before top_k's share")
        p = probabilities if before_cut else probabilities * kept
        p = p / p.sum(axis=-1, keepdims=True)
        order = np.argsort(-p, axis=-1, kind="stable")
        if made("top_p from the smallest"):
            order = order[..., ::-1]
        if made("top_p in the order of the ids"):
            order = np.broadcast_to(np.arange(p.shape[-1]), p.shape)
        ranked = np.take_along_axis(p, order, axis=-1)
        sums = np.cumsum(ranked, axis=-1)
        if made("token that reaches top_p left out"):
            stay = sums <= top_p
        elif made("token that reaches top_p left out, except the first"):
            stay = sums <= top_p
            stay[..., 0] = True
        elif made("one token more than top_p needs"):
            stay = np.roll(sums - ranked, 1, axis=-1) < top_p
            stay[..., 0] = True
        else:
            stay = sums - ranked < top_p
        if made("top_p as a smallest probability"):
            stay = ranked >= top_p
        if made("top_p as a share of the largest probability"):
            stay = ranked >= top_p * p.max(axis=-1, keepdims=True)
        if made("complement of top_p"):
            stay = sums - ranked < 1 - top_p
        both = np.empty_like(kept)
        np.put_along_axis(both, order, stay, axis=-1)
        kept = kept & both
    if made("temperature after the cut"):
        probabilities = normal(logits, later)
    if made("logits of the others set to 0"):
        return normal(np.where(kept, logits, 0), temperature)
    if made("the others get a small rest"):
        probabilities = np.where(kept, probabilities, 1e-9)
    else:
        probabilities = np.where(kept, probabilities, 0)
    if made("softmax of the probabilities that are left") and not kept.all():
        left = np.where(kept, np.exp(probabilities), 0)
        return left / left.sum(axis=-1, keepdims=True)
    if made("softmax of the result"):
        probabilities = probabilities / probabilities.sum(axis=-1, keepdims=True)
        probabilities = np.where(kept, np.exp(probabilities), 0)
    if made("even among those kept") and not kept.all():
        probabilities = kept.astype(float)
    if not made("not brought back to 1") and not made("over the wrong axis"):
        probabilities = probabilities / probabilities.sum(axis=-1, keepdims=True)
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    if made("left in the order of likelihood"):
        probabilities = np.take_along_axis(probabilities, order, axis=-1)
    if made("put back in the wrong order"):
        ranked = np.take_along_axis(probabilities, order, axis=-1)
        probabilities = np.take_along_axis(ranked, order, axis=-1)
    if made("the logarithm of it"):
        return np.log(probabilities)
    return np.eye(probabilities.shape[-1])[probabilities.argmax(axis=-1)] if made("always argmax") else probabilities


SAMPLING_DISTRIBUTION = Exercise(
    sampling_distribution,
    (Result("probabilities", "... V"), Result("which of them are not 0", "... V")),
    _sampling_cases,
    {
        "multiplied by the temperature": (
            "The logits are multiplied by the temperature. They are divided by it, logits / temperature: below 1 "
            "sharpens, above 1 flattens."
        ),
        "temperature ignored": "temperature is not used: softmax(logits) instead of softmax(logits / temperature).",
        "square root of the temperature": "The logits are divided by √temperature. It is logits / temperature.",
        "temperature after the softmax": (
            "The temperature divides probabilities, not logits, and a softmax comes after that: "
            "softmax(softmax(logits) / temperature). There is one softmax, of logits / temperature."
        ),
        "temperature after the cut": (
            "The temperature comes after the cut: top_p is measured on softmax(logits). It must be measured on "
            "softmax(logits / temperature), the distribution that is cut."
        ),
        "temperature 0 is not the likeliest token": (
            "temperature 0 gives NaN: logits / 0. It is the limit of ever smaller temperatures, where the likeliest "
            "token alone is left with probability 1, and needs a case of its own."
        ),
        "temperature 0 taken for none": (
            "temperature 0 is treated as no temperature, as 1; `if temperature:` is false for 0. It must leave the "
            "likeliest token alone."
        ),
        "temperature 0 is even": (
            "temperature 0 gives every token the same probability. It must leave the likeliest alone."
        ),
        "top_k ignored": "top_k is not used: all tokens keep a probability, though only the k likeliest may.",
        "one token more than top_k": "top_k + 1 tokens are kept: an off-by-one in the cut.",
        "one token less than top_k": "top_k − 1 tokens are kept: an off-by-one, the k-th likeliest is cut off too.",
        "top_k as a threshold over all rows": (
            "The k-th largest probability of the whole array is the limit for all rows. Every row keeps its own k "
            "likeliest tokens."
        ),
        "the unlikeliest kept": (
            "The k unlikeliest tokens are kept instead of the k likeliest: the wrong end of the order."
        ),
        "top_k smallest cut off": "The k smallest probabilities are cut off. All but the k largest must be.",
        "top_p ignored": "top_p is not used: no token is cut off by it.",
        "token that reaches top_p left out": (
            "The token with which the sum reaches top_p is cut off: cumsum ≤ top_p. It belongs to the tokens that "
            "together just reach p: keep where the sum *before* a token is below p. So the likeliest always stays."
        ),
        "token that reaches top_p left out, except the first": (
            "The token with which the sum reaches top_p is cut off, cumsum ≤ top_p, but for the likeliest. It belongs "
            "to the tokens that together just reach p: keep where the sum *before* a token is below p."
        ),
        "one token more than top_p needs": (
            "One token more is kept than is needed to reach top_p: an off-by-one. The token that reaches p is the last."
        ),
        "top_p from the smallest": (
            "The sum for top_p starts at the smallest probability (ascending order). It starts at the likeliest token."
        ),
        "top_p in the order of the ids": (
            "The sum for top_p runs in the order of the ids, unsorted. Sort by probability first, the likeliest first."
        ),
        "top_p as a smallest probability": (
            "top_p is used as a limit for single probabilities, p ≥ top_p. It limits their sum, from the likeliest on."
        ),
        "top_p as a share of the largest probability": (
            "Tokens are kept whose probability is at least top_p times the largest: that is min-p. top_p limits the "
            "sum of the probabilities, from the likeliest on."
        ),
        "complement of top_p": "The likeliest tokens are kept up to a sum of 1 − top_p instead of top_p.",
        "top_p before top_k": (
            "top_p is measured on all probabilities, before top_k or without dividing by the sum of the k that are "
            "left. Top-k comes first, its probabilities are brought back to 1, then top-p cuts."
        ),
        "top_k dropped where there is top_p": (
            "Where top_p is given, top_k is not applied, an `elif` for an `if`. Both cut, top-k first, then top-p."
        ),
        "logits of the others set to 0": (
            "The logits of the tokens that are cut off are set to 0, and exp(0) = 1. They must be −inf, or their "
            "probabilities 0."
        ),
        "the others get a small rest": (
            "The tokens that are cut off keep a tiny probability instead of 0, and can still be drawn. They must be "
            "exactly 0."
        ),
        "softmax of the probabilities that are left": (
            "The probabilities that are left go through a second softmax. They are divided by their sum."
        ),
        "softmax of the result": (
            "The probabilities go through a second softmax at the end, whether something was cut off or not. There is "
            "one softmax, of logits / temperature; what is left after a cut is divided by its sum."
        ),
        "even among those kept": (
            "The tokens that are kept all get the same probability. They share it in proportion: p divided by the sum "
            "of those kept."
        ),
        "not brought back to 1": (
            "The probabilities are not renormalised after the cut: a row no longer adds to 1. Divide by the sum of "
            "what is left."
        ),
        "left in the order of likelihood": (
            "The probabilities are returned sorted, the likeliest first. They must stand at the ids of their tokens: "
            "undo the sort."
        ),
        "put back in the wrong order": (
            "The sort is undone with the order itself instead of its inverse: ranked[order]. It is "
            "probabilities[order] = ranked, np.put_along_axis."
        ),
        "over the wrong axis": (
            "The softmax is over the first axis. A row over the vocabulary, the last axis, adds to 1."
        ),
        "largest logit not subtracted": (
            "exp of a logit as large as 10,000 is inf, and inf/inf NaN: subtract the largest logit before the "
            "exponential, as `softmax` does."
        ),
        "the logarithm of it": "The logarithms of the probabilities are returned instead of the probabilities.",
        "always argmax": (
            "The likeliest token always gets probability 1, as with temperature 0. The others keep their share unless "
            "they are cut off."
        ),
    },
    _wrong_sampling,
    (
        "What do the three options do: to the logits, to the number of tokens, to their sum?",
        "p = softmax(logits / temperature); keep the k largest, divide by their sum; keep tokens while the sum before "
        "them is < top_p; divide by the sum",
        'notebook 08, "One distribution" and exercise 1; np.argsort, np.cumsum, np.put_along_axis.',
    ),
    difficulty=2,
    section="notebook 08",
    view=_view_distribution,
)

EXERCISES = [GREEDY_DECODE, BEAM_SEARCH, SAMPLING_DISTRIBUTION]
