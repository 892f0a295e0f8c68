"""Greedy decoding."""

import numpy as np

from ... import decoding
from ..exercise import Case, Exercise, Result, extended
from .scripted import MARGIN, as_array, log_probs, scripted_model, sources


def _greedy_row(model, src, max_len):
    """One row decoded greedily, and the smallest margin on the way."""
    ids, margin = [model.config.bos_id], np.inf
    while len(ids) <= max_len:
        following = log_probs(model, src, ids)
        best, second = sorted(following)[:-3:-1]
        margin = min(margin, best - second)
        ids.append(following.index(best))
        if ids[-1] == model.config.eos_id:
            return ids[1:-1], margin
    return ids[1:], margin


def greedy_cases(rng):
    cases = []
    for label, other_ids, max_len in (("", False, 6), ("other ids for padding, start and end", True, 5)):
        while True:
            model = scripted_model(rng, other_ids)
            chosen, cut, short, none = [], 0, 0, 0
            for row in sources(rng, model, 40):
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
    asked = {"return_log_probs": True}
    return [*cases, extended(Case("return_log_probs=True", cases[0].arguments, asked, cases[0].sizes))]


def drive_greedy(answer, model, src, max_len, return_log_probs=False):
    """Greedy decoding twice: what is drawn at random is not the same twice, and then comes out as −2."""
    if return_log_probs:
        return answer(model, src, max_len, return_log_probs=True)
    first, second = answer(model, src, max_len), answer(model, src, max_len)
    try:
        same = [list(map(int, row)) for row in first] == [list(map(int, row)) for row in second]
    except TypeError:
        return first
    return first if same else [[-2]] * len(src)


def ids_and_log_p(case, output):
    """The ids as one array, and log p of each output; 0 where it is not asked for."""
    if not case.options:
        return *as_array(case, output), np.zeros(len(output))
    if not isinstance(output, tuple | list) or len(output) != 2:
        raise ValueError("no pair")
    outputs, totals = output
    return *as_array(case, outputs), np.asarray(totals)


def log_p_of(model, source, output, max_len):
    """log p of an output and of the end token after it, unless it was cut off before."""
    start, whole = model.config.bos_id, output + [model.config.eos_id] * (len(output) < max_len)
    return sum(log_probs(model, source, [start, *whole[:t]])[token] for t, token in enumerate(whole))


def greedy_decode(model, src, max_len=64, return_log_probs=False):
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


START_AND_END = """
- start token kept:  outputs.append(written) -> outputs.append([bos_id, *written])
  The start token is still in the output: start and end tokens are left off.
- end token kept:  written.index(eos_id) -> written.index(eos_id) + 1
  The end token is still in the output: start and end tokens are left off.
- one token too many:  range(max_len) -> range(max_len + 1)
  It writes max_len + 1 tokens: an off-by-one. max_len counts the tokens it writes, without the start token.
- max_len ignored:  range(max_len) -> range(max_len + 10)
  max_len is not used: a row without an end token goes on far beyond max_len tokens.
- one token too few:  range(max_len) -> range(max_len - 1)
  It writes at most max_len − 1 tokens: an off-by-one. max_len counts the tokens it writes; the start token is not one
  of them.
- start and end id written as numbers:
    bos_id, eos_id = model.config.bos_id, model.config.eos_id -> bos_id, eos_id = 1, 2
  The ids of start and end token are fixed as 1 and 2. They are what model.config.bos_id and model.config.eos_id say.
- starts from the end token:  [bos_id] -> [eos_id]
  The target begins with the end token. It begins with model.config.bos_id, the start token.
- starts from padding:  [bos_id] -> [model.config.pad_id]
  The target begins with padding (pad_id). It begins with model.config.bos_id, the start token.
- source as the beginning of the target:
    [bos_id] -> list(map(int, row))
    ids[1:] -> ids[len(row) :]
  The decoder is given the source as the beginning of its target. The source goes into the encoder; the target begins
  with the start token alone.
- only the last token fed:  log_probs(model, row, ids) -> log_probs(model, row, ids[-1:])
  The decoder is given the last token alone, without those before it and without a cache: it forgets what it has
  written, and its position. It must be given the whole target so far.
- all rows from the first source:  log_probs(model, row, ids) -> log_probs(model, src[0], ids)
  Every row is decoded from the first source sentence: the memory of row 0 is used for all.
"""

GREEDY_DECODE = Exercise(
    decoding.greedy_decode,
    results=(Result("ids", "B T"), Result("log p of each output", "B")),
    cases=greedy_cases,
    answer=greedy_decode,
    hints=(
        "Which place of the decoder's output says what comes next, and when is a row finished?",
        "y₀ = start token, yₜ₊₁ = argmax p(· | y₀ … yₜ, source), up to the end token or max_len tokens",
        'notebook 07, "Decoding, one time step after another"; model.encode(src) once, then '
        "model.decode(tgt_in, memory, src)[:, -1].",
    ),
    difficulty=2,
    section="§9",
    chapter="Training and decoding",
    place=7,
    drive=drive_greedy,
    view=ids_and_log_p,
    mistakes="""
- return_log_probs ignored:  return (outputs, np.array(totals)) -> pass
  `return_log_probs` is not used: the outputs are returned alone. With it they come as a pair, with log p of each
  output.
- log p without the end token:  [model.config.eos_id] * (len(output) < max_len) -> []
  log p of the end token is missing in the sum. The output ends with it, so its probability is a factor like all
  others.
- probability for log p:  np.array(totals) -> np.exp(totals)
  It returns the probabilities of the outputs. It is log p in nats, the sum of the log p of all tokens.
- drawn at random:  following.argmax() -> np.random.default_rng().choice(len(following), p=np.exp(following))
  Two calls with the same source give two outputs: a token is drawn at random (sampled). Greedy takes the likeliest
  token, the argmax.
- least likely token:  following.argmax() -> following.argmin()
  It takes the least likely token, argmin. Greedy takes the likeliest: argmax.
- second likeliest token:  following.argmax() -> following.argsort()[-2]
  It takes the second likeliest token at every step. Greedy takes the likeliest, the argmax: the last one of argsort.
- end token never chosen first:
    ids.append ->
        if len(ids) == 1:
            following[eos_id] = -np.inf
        ids.append
  The end token is never chosen at the first step: every output has one token at least. Where the end token is the
  likeliest at once, the output is empty.
- end token never chosen:  ids.append -> following[eos_id] = -np.inf; ids.append
  The end token is never chosen, and every row goes on to max_len. A row is to end where the end token is the likeliest.
- always what follows the start token:  log_probs(model, row, ids) -> log_probs(model, row, ids[:1])
  Every step gives what follows the start token. Either the logits are taken at the first place of the target, [:, 0],
  and not at the last, [:, -1]; or the chosen token is not appended to the target, and the decoder is fed the same
  beginning at every step.
- start token fed only once:  log_probs(model, row, ids) -> log_probs(model, row, ids[1:] or ids)
  The start token is missing from the second step on. The decoder's target is the start token and then all tokens
  written so far.
- goes on behind the end token:  if eos_id in written: written = written[: written.index(eos_id)] -> pass
  A row does not end at its end token: the tokens after it are in the output. Cut each row at its own first end token.
- end token taken out, what follows kept:
    if eos_id in written: written = written[: written.index(eos_id)] -> written = [i for i in written if i != eos_id]
  End tokens are taken out but the row goes on behind them. What comes after the first end token is no part of the
  output.
- all stop with the first row that ends:
    return outputs -> shortest = min(map(len, outputs)); return [written[:shortest] for written in outputs]
  All rows stop as soon as any row has ended. The others must go on until each has ended (all, not any), or to max_len.
- all stop in the step in which the first row ends:
    return outputs -> shortest = min(map(len, outputs)); return [written[: shortest + 1] for written in outputs]
  Decoding stops after the step in which any row has ended. The others must go on until each has ended (all, not any),
  or to max_len.
- all stop with row 0:
    if eos_id in written: written = written[: written.index(eos_id)] ->
        if not outputs:
            end = [*written, eos_id].index(eos_id)
        written = written[:end]
  All rows stop where the first row (row 0) ends: only its end token is looked at. Each row ends at its own.
- filled up with the end token:
    return outputs ->
        longest = max(map(len, outputs))
        return [written + [eos_id] * (longest - len(written)) for written in outputs]
  Rows that ended earlier are filled up with end tokens to one length. Each row is a list of its own length, end token
  left off.
- filled up with padding:
    return outputs ->
        longest = max(map(len, outputs))
        return [written + [model.config.pad_id] * (longest - len(written)) for written in outputs]
  Rows that ended earlier are filled up with padding to one length. Each row is a list of its own length.
- first token left off:  outputs.append(written) -> outputs.append(written[1:])
  The first token of every output is left off. Only the start token is: the first token that was chosen belongs to the
  output.
- last token of all left off:  outputs.append(written) -> outputs.append(written[:-1])
  The last token is cut off from every output, [:-1]. Only an end token must be left off: a row that was cut off at
  max_len has none.
- starts from id 0:  [bos_id] -> [0]
  The target begins with id 0. It begins with model.config.bos_id, the start token.
"""
    + START_AND_END,
)


EXERCISES = [GREEDY_DECODE]
