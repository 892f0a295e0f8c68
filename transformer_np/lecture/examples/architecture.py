"""Worked examples of the lecture notes, §6 to §9: positions, feed-forward, blocks and the mask."""

import numpy as np

from ... import functional as F
from ...masks import additive, causal_mask
from .. import printed, steps
from ..comparison import ERRATUM, FITTED, REPRODUCED, TRUNCATED, is_cut_off, is_rounded, verdict
from ..worked import EXACT, equal, example

# --- lecture notes §6: positional encoding --------------------------------------------------------------------------


@example(9, "positional encoding, 5 × 4", "FIVE_POSITIONS", TRUNCATED)
def positions():
    """PE for five positions, d_model = 4."""
    source = printed.FIVE_POSITIONS
    computed = steps.five_positions().encoding
    rounded = is_rounded(source.values, computed, source.digits)
    cut = is_cut_off(source.values, computed, source.digits)
    only_cut, only_rounded = int((cut & ~rounded).sum()), int((rounded & ~cut).sum())
    return (
        computed,
        f"{int(rounded.sum())} of the {rounded.size} numbers are rounded, {only_cut} follow only by cutting off: "
        f"cos(1/100) = {computed[1, 3]:.5f} is printed as {source.values[1, 3]:.3f}, but rounds to 1.000. The table "
        f"mixes both: {only_rounded} numbers follow only by rounding, such as cos(3) = {computed[3, 1]:.5f}, printed "
        f"as {source.values[3, 1]:.3f}.",
    )


@example(10, "cos(t/1), called “PE(t, i=1)”", "POSITIONS_NAMED_1", ERRATUM)
def two_meanings_of_i():
    """The entries called PE(t, i=1)."""
    table = steps.five_positions().encoding
    source = printed.POSITIONS_NAMED_1
    return (
        table[:, 2 * 1 + 1],
        f"In the formula PE(pos, 2i+1) the i counts pairs, so i = 1 is cos(t/100), {table[1, 3]:.5f} at t = 1. In the "
        f"list i = 0 … 3 counts dimensions: dimension 1 is the cosine of pair 0, {table[1, 1]:.3f} at t = 1. The "
        "numbers are in the right places, but i has two meanings.",
        (("the numbers are those of dimension 1", verdict(source.values, table[:, 1], source.digits) == REPRODUCED),),
    )


@example(11, "spread of the sums of squares", "SPREAD_OF_SQUARES", REPRODUCED)
def sum_of_squares():
    """Σ PE(pos, ·)² is the same at every position."""
    sums = {d_model: (F.sinusoidal_encoding(200, d_model, np.float64) ** 2).sum(axis=-1) for d_model in (4, 512)}
    return (
        [max(np.ptp(total) for total in sums.values())],
        f"sin² + cos² = 1 for each pair, so the sum is d_model/2 at every position: {sums[4].mean():.1f} for d_model = "
        "4. Largest − smallest of 200 positions, for d_model = 4 and 512.",
        tuple((f"the sum is d_model/2 for d_model = {d}", equal(sums[d], np.full(200, d / 2))) for d in sums),
    )


@example(12, "how near PE comes to its start", "DISTANCE_AT_REPEAT", ERRATUM)
def no_repetition():
    """ "Pattern repeats for very long sequences"."""
    position, distance = steps.nearest_return(4, 100_000)
    return (
        [distance],
        f"The encoding comes near its start but never returns: for d_model = 4 the nearest of 100,000 positions is "
        f"{position:,}, at distance {distance:.4f}. sin(pos) and cos(pos) alone cannot repeat at a whole number, since "
        "2π is irrational.",
        (("no other position has the encoding of position 0", distance > 1e-6),),
    )


# --- lecture notes §7: feed-forward ---------------------------------------------------------------------------------


@example(13, "FFN: C W_1 + b_1, ReLU, output", "FEED_FORWARD_OUTPUT", FITTED)
def feed_forward():
    """C W_1 + b_1, its ReLU, and the output."""
    example = steps.feed_forward_example()
    parts = (printed.FEED_FORWARD_BEFORE, printed.FEED_FORWARD_HIDDEN, printed.FEED_FORWARD_OUTPUT)
    values = np.concatenate([part.values for part in parts], axis=1)  # (T, F + F + D)
    computed = np.concatenate([example.before, example.hidden, example.output], axis=1)
    w2 = example.layer.w2
    return (
        computed,
        "The ReLU follows. W_1 and W_2 are not printed, but pinv(C) and pinv(ReLU) give matrices that map each printed "
        f"matrix exactly to the next, with b = 0. The output is called “C W_2”, but C {example.x.shape} and W_2 "
        f"{w2.shape} cannot be multiplied; it should be max(0, C W_1 + b_1) W_2.",
        (
            ("exact, not only to the printed digits", equal(values, computed)),
            ("the printed ReLU is that of the printed numbers", equal(F.relu(parts[0].values), parts[1].values)),
            ("C does not have the width that W_2 needs", example.x.shape[1] != w2.shape[0]),
        ),
        {"printed": values},
    )


@example(14, "nonlinearity in V and in X", "NONLINEARITY", ERRATUM)
def linearity():
    """The sentence "self-attention is purely linear"."""
    five = steps.five_words()
    in_values = _nonlinearity(
        lambda v: F.scaled_dot_product_attention(five.q[0], five.k[0], v)[0], five.v[0], five.v[0, ::-1]
    )
    in_input = _nonlinearity(lambda x: five.layer(x[None])[0], five.x, five.x[::-1])
    return (
        [in_values, in_input],
        f"Linear in V if the weights are fixed: {in_values:.0e}. Not linear in the input X, because the weights come "
        f"from X through a softmax: {in_input:.3f}, for X_e of §4 and the same rows in reverse order.",
        (("linear in V", bool(in_values <= EXACT)), ("not linear in X", bool(in_input > 0.01))),
    )


def _nonlinearity(f, a, b):
    """The largest |f(a + b) − f(a) − f(b)|, 0 for a linear f."""
    return float(np.abs(f(a + b) - f(a) - f(b)).max())


# --- lecture notes §8 and §9: blocks and mask -----------------------------------------------------------------------


@example(15, "positional encodings in a block", "ENCODINGS_IN_BLOCK", ERRATUM)
def encodings_in_blocks():
    """Line 2 of the block algorithms."""
    *blocks, whole = steps.encodings()
    return (
        blocks,
        "Both algorithms add PE at the top of the block, so a stack of 6 would add it 6 times. In the paper (fig. 1, "
        f"§3.5) and the paper notes it is added once, below the first block: 0 in a block, {whole} in a whole "
        "Transformer, one for the source and one for the target.",
        (("a Transformer of 6 + 6 blocks has two", whole == 2),),
    )


@example(16, "mask M for n = 5", "MASK", REPRODUCED)
def causal():
    """M, 0 where i ≥ j, −∞ elsewhere, added to the scores."""
    weights, row = steps.masked_weights(), steps.hidden_row()
    size = len(row["finite"])
    return (
        additive(causal_mask(5), np.float64),
        "Setting hidden scores to −1e8 (lecture slides) gives the same weights as adding −∞, unless a whole row is "
        f"hidden: then exp(x)/Σ exp(x) with −∞ is 0/0, NaN; −1e8 gives every key {row['finite'][0]:.1f}; a Boolean "
        f"mask of this package gives {row['package'][0]:.0f}.",
        (
            ("−∞ added, −1e8 set and a Boolean mask: the same weights",
             all(equal(weights["package"], weights[other]) for other in ("added", "finite"))),
            ("no weight on the future", not np.triu(weights["package"], 1).any()),
            ("a row hidden whole: NaN by the textbook", bool(np.isnan(row["textbook"]).all())),
            ("a row hidden whole: uniform with −1e8", equal(row["finite"], np.full(size, 1 / size))),
            ("a row hidden whole: 0 in this package", not row["package"].any()),
        ),
    )  # fmt: skip
