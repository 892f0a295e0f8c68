"""Distributions over tokens: softmax at different scales of the scores, decoding steps, sampling settings."""

import math

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from .. import functional as F
from ..decoding import log_softmax, sampling_distribution
from ..support.checks import as_list, check_at_least, short
from .arguments import as_numbers, as_words, steady, visible
from .fonts import text_width
from .picture import Picture, styled
from .sizes import EDGE, LABEL, PAD, PAGE, TEXT
from .style import HATCH, HEAD_COLOURS, SEEN, TRAINING, VALIDATION, light_grid

# Eight scores of mean 0 and variance 1, typical of queries and keys of variance 1 after the division by √d_k.
SCORES = (0.2, -0.9, 1.7, -0.3, -1.5, 0.9, -0.6, 0.5)
TAKEN = "#f5c48a"  # black text is readable on it, and its hue differs from SEEN
SETTINGS = ({}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 5}, {"top_p": 0.9})
BAR = to_rgba(TRAINING, 0.55)


# --- the scale of the scores ------------------------------------------------------------------------------------------


@styled
def softmax_saturation(scores=None, d_k=64):
    """The softmax and its gradient over the scale of the scores: the reason for the division by √d_k.

    scores: (S,) scores of one query after the division, of variance about 1; None for eight made-up ones
    d_k: features of a head. Without the division the scores are √d_k times as large, since the variance of a sum of
        d_k products of independent numbers of variance 1 is d_k.

        left:   y = softmax(s · scores) for a scale s from 0.2 to 64 or more, one line per key
        right:  ‖∂y/∂x‖ = ‖diag(y) − y yᵀ‖ (Frobenius), x the input of the softmax

    How to read it: at the left edge all keys have about the same weight, at the right edge one key has all of it. The
    dashed lines mark scale 1, with the division, and scale √d_k, without it. Between them the gradient (right panel,
    logarithmic axis) vanishes: a head that starts saturated hardly learns to attend elsewhere.

    Raises ValueError for fewer than two scores, equal scores, or a d_k below 1.
    """
    scores = as_numbers("scores", SCORES if scores is None else scores).astype(float)
    if scores.ndim != 1 or len(scores) < 2:
        raise ValueError(f"scores must have the axis (S,) with at least two numbers, got shape {scores.shape}")
    if np.ptp(scores) == 0:
        raise ValueError(f"scores must not all be equal, got only {scores[0]:.4g}")
    check_at_least("d_k", d_k, 1)
    undivided = d_k**0.5
    scales = np.geomspace(0.2, max(64.0, 2 * undivided), 400)
    weights = F.softmax(scales[:, None] * scores)  # (scales, S)
    gradients = _jacobian_norm(weights)

    figure = Picture(figsize=(8, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    order = np.argsort(-scores, kind="stable")
    for rank, s in enumerate(order):
        colour = HEAD_COLOURS[rank] if rank < 6 else HATCH
        label = f"score {scores[s]:.2g}".replace("-", "−") if rank < 6 else "the others" if rank == 6 else "_"
        left.plot(scales, weights[:, s], color=colour, linewidth=1.6 if rank < 6 else 0.8, label=label)
    left.set(ylabel="weight", ylim=(-0.02, 1.02))
    left.legend(loc="center right", framealpha=1, edgecolor="none", borderaxespad=0.1, labelspacing=0.25)
    right.plot(scales, gradients, color=TRAINING, linewidth=1.8)
    right.set(ylabel="norm of the gradient", yscale="log")
    marks = np.array([1.0, undivided])
    marked = _jacobian_norm(F.softmax(marks[:, None] * scores))
    right.plot(marks, marked, "o", color=VALIDATION, markersize=5)
    right.set_ylim(max(min(marked[1] / 30, 1e-3), 1e-290), 3 * gradients.max())
    for axes in (left, right):
        axes.set(xscale="log", xlabel="scale of the scores", xlim=(scales[0], scales[-1]))
        ticks = [2.0**p for p in range(-2, int(math.log2(scales[-1])) + 1, 2)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        light_grid(axes)
        for scale, name, side in ((1.0, "÷ √d_k", "right"), (undivided, "not divided", "left")):
            axes.axvline(scale, color=HATCH, linewidth=1, linestyle="--")
            shift = 0 if d_k >= 16 else -3 if side == "right" else 3  # if close together, they lean outwards
            look = {"textcoords": "offset points", "va": "bottom", "ha": side if shift else "center"}
            axes.annotate(name, (scale, 1), (shift, 3), axes.get_xaxis_transform(), **look)
    return figure


def _jacobian_norm(weights):
    """The Frobenius norm of diag(y) − y yᵀ for each row y of (…, S).

    Entries are y (1 − y) on the diagonal and −yᵢ yⱼ elsewhere. 1 − y is the sum of the other weights, which avoids
    cancellation near saturation."""
    off_diagonal = 1 - np.eye(weights.shape[-1])
    others, beside = weights @ off_diagonal, weights**2 @ off_diagonal  # 1 − y, and its squares
    return np.sqrt((weights**2 * (others**2 + beside)).sum(-1))


# --- decoding steps ---------------------------------------------------------------------------------------------------


def likeliest(logits, words=None, count=5):
    """The likeliest tokens of each step, for `decoding_steps`.

    logits: (T, V), one row per time step; log-probabilities work too
    words: the V words; by default the ids 0, 1, …

    ->  for each step a list of `count` pairs (word, log p in nats), the likeliest first

    Raises ValueError for another shape, a number of words other than V, or a count below 1.
    """
    logits = as_numbers("logits", logits, "(T, V)")
    check_at_least("count", count, 1)
    words = [str(word) for word in (range(logits.shape[1]) if words is None else words)]
    _vocabulary(words, logits.shape[1])
    log_probs = log_softmax(logits.astype(float))
    best = np.argsort(-steady(log_probs), axis=-1, kind="stable")[:, :count]  # (T, count)
    return [[(words[i], float(row[i])) for i in ids] for row, ids in zip(log_probs, best, strict=True)]


@styled
def decoding_steps(steps, chosen=None, title=None):
    """The likeliest tokens at each time step, and the chosen one.

    steps: for each time step its candidates, pairs (token, log p in nats), as returned by `Translator.steps` and
        `likeliest`
    chosen: the token chosen at each step; by default the likeliest

    How to read it: a panel is a time step, from left to right and then from top to bottom. The bar behind a word shows
    its probability; a bar across the whole panel would be 100 %. The token in the stronger colour was chosen, and the
    next step reads it. The rest up to 100 % belongs to words that are not shown.

    Raises ValueError for no steps, a step without candidates, a log p that is positive or NaN, or a number of chosen
    tokens that differs from the number of steps.
    """
    steps = [_candidates(f"steps[{t}]", step) for t, step in enumerate(as_list("steps", steps, "steps"))]
    if not steps or not all(steps):
        raise ValueError("steps must have a non-empty list of pairs (token, log p) for each time step")
    if chosen is None:
        chosen = [max(step, key=lambda pair: pair[1])[0] for step in steps]
    elif isinstance(chosen, str) or len(chosen) != len(steps):
        raise ValueError(f"chosen must be {len(steps)} tokens, one for each step; got {chosen!r}")
    chosen = [str(token) for token in chosen]
    most = max(map(len, steps))

    longest = max(text_width(visible(token), weight="bold") for step in steps for token, _ in step)
    column = max(1.0, longest + text_width("< 0.1 %", weight="bold") + 3.5 * PAD)
    figure, panels, _ = _in_rows(title, len(steps), EDGE, column, most * 0.22, LABEL, gap=0.16)
    for t, (step, axes) in enumerate(zip(steps, panels, strict=True)):
        axes.set(xlim=(0, 1), ylim=(most, 0), yticks=[])
        axes.set_title(f"step {t + 1}", pad=4)
        for rank, (token, log_p) in enumerate(step):
            taken = token == chosen[t]
            p = math.exp(log_p)
            axes.add_patch(Rectangle((0, rank + 0.08), p, 0.84, facecolor=TAKEN if taken else SEEN))
            look = {"va": "center", "size": TEXT, "parse_math": False, "weight": "bold" if taken else "normal"}
            axes.text(PAD / column, rank + 0.5, visible(token), ha="left", **look)
            shown = f"{100 * p:.0f} %" if p >= 0.0995 else f"{100 * p:.1f} %" if p >= 0.0005 else "< 0.1 %"
            axes.text(1 - PAD / column, rank + 0.5, shown, ha="right", **look)
    return figure


def _in_rows(title, count, left, column, height, above, gap):
    """A figure, its panels in evenly filled rows, and how many there are in a row. In inches: left: room beside the
    first column; column, height: of a panel; above: room for its title; gap: between two panels"""
    across = min(count, max(1, int((PAGE[0] - left - EDGE + gap) / (column + gap))))
    down = math.ceil(count / across)
    across = math.ceil(count / down)
    tall = 2 * EDGE + down * (height + above + gap) - gap
    figure = Picture.titled(title, left + across * (column + gap) - gap + EDGE, tall)
    panels = []
    for i in range(count):
        row, place = divmod(i, across)
        y = tall - EDGE - row * (height + above + gap) - above - height
        panels.append(figure.panel(left + place * (column + gap), y, column, height, xticks=[]))
        panels[-1].spines[["top", "right", "bottom"]].set_visible(False)
    return figure, panels, across


def _candidates(name, step):
    """The pairs (token, log p) of a time step."""
    pairs = as_list(name, step, "pairs (token, log p)")
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[1], int | float | np.number):
            raise TypeError(f"{name} must be pairs (token, log p), got {short(pair)}")
        if not pair[1] <= 1e-6:  # also for NaN
            raise ValueError(f"{name} must hold log-probabilities, 0 or below, got {pair[1]:.4g}")
    return [(str(token), min(float(log_p), 0.0)) for token, log_p in pairs]


# --- sampling ---------------------------------------------------------------------------------------------------------


@styled
def sampling(logits, words=None, settings=None, most=12, title=None):
    """One distribution over the next token with several sampling settings.

    logits: (V,), the model's scores of the next token
    words: the V words; by default the ids 0, 1, …
    settings: a list of dicts with any of temperature, top_k, top_p, as in `decoding.sampling_distribution`.
        None: no setting, temperature 0.5, temperature 2, top_k 5, top_p 0.9
    most: show this many of the likeliest words; the row below them is the rest of the vocabulary, all together

    How to read it: each panel has the same words, the likeliest on top. The bar is the probability of drawing the word,
    the outline its probability without any setting. A temperature below 1 makes likely words likelier, one above 1
    evens the distribution out; top-k and top-p cut off unlikely words (no bar, "0") and give their share to the others.

    Raises ValueError for another shape, a number of words other than V, or settings out of range.
    """
    logits = as_numbers("logits", logits, "(V,)").astype(float)
    words = _vocabulary(words, len(logits))
    check_at_least("most", most, 1)
    settings = list(SETTINGS if settings is None else settings)
    if not settings:
        raise ValueError("settings must have at least one dict")
    for setting in settings:
        if not isinstance(setting, dict) or not setting.keys() <= {"temperature", "top_k", "top_p"}:
            raise ValueError(f"settings must be dicts with temperature, top_k, top_p; got {setting!r}")
    order = np.argsort(-steady(logits), kind="stable")[:most]
    rest = np.setdiff1d(np.arange(len(words)), order)
    names = [words[i] for i in order] + ([f"{len(rest)} others"] if len(rest) else [])

    def shares(p):
        return np.append(p[order], p[rest].sum()) if len(rest) else p[order]

    plain = shares(F.softmax(logits))
    drawn = [shares(sampling_distribution(logits, **setting)) for setting in settings]
    longest = max(p.max() for p in (plain, *drawn))

    left = EDGE + max(map(text_width, names)) + PAD
    titles = [[f"{k.replace('_', '-')} {v:g}" for k, v in setting.items() if v is not None] for setting in settings]
    titles = [lines or ["as it is"] for lines in titles]
    column = max(1.15, max(text_width(part) for lines in titles for part in lines))
    above = LABEL * max(map(len, titles))
    figure, panels, across = _in_rows(title, len(settings), left, column, 0.21 * len(names), above, gap=0.2)
    reach = longest * column / (column - text_width("100 %") - PAD)  # room for the number after the longest bar
    at = np.arange(len(names))
    for i, (probabilities, lines, axes) in enumerate(zip(drawn, titles, panels, strict=True)):
        axes.set(xlim=(0, reach), ylim=(len(names) - 0.5, -0.5))
        axes.barh(at, probabilities, height=0.74, color=BAR, label="drawn with")
        axes.barh(at, plain, height=0.74, facecolor="none", edgecolor=HATCH, linewidth=0.6, label="as it is")
        for r, p in enumerate(probabilities):
            shown = "0" if p == 0 else "< 1 %" if p < 0.005 else f"{100 * p:.0f} %"
            axes.text(max(p, plain[r]) + reach * PAD / column / 2, r, shown, va="center", size=TEXT - 1)
        axes.set_yticks(at, [""] * len(names) if i % across else names)
        axes.tick_params(length=0, pad=3)
        for label in axes.get_yticklabels():
            label.set_parse_math(False)
        axes.set_title("\n".join(lines), pad=4)
    return figure


def _vocabulary(words, V):
    return as_words("words", range(V) if words is None else words, V, "token of the vocabulary")
