"""The numbers printed in the lecture's documents, copied unchanged, with their number of decimals.

Nothing here is computed: `steps` computes, `examples` compares.
"""

from dataclasses import dataclass

import numpy as np

NOTES = "lecture notes"
SLIDES = "lecture slides"
PAPER_NOTES = "paper notes"
ARCHITECTURE_SLIDES = "architecture slides"
ILLUSTRATED_SLIDES = "illustrated slides"

DOCUMENTS = {
    NOTES: "L. N. Ferreira, INF721 Deep Learning, L17: Transformers, Universidade Federal de Viçosa, 2024/2",
    SLIDES: "the slides “Transformers”, which end with the table of complexities and with GPT and BERT",
    PAPER_NOTES: "“Transformer: Notes on Attention is all you need”",
    ARCHITECTURE_SLIDES: "the slides “Transformers – Architecture”, with the sentence “Hi how are you”",
    ILLUSTRATED_SLIDES: "the slides “Transformer”, after Jay Alammar's Illustrated Transformer",
}


@dataclass(frozen=True, eq=False)
class Printed:
    """Numbers as a document prints them.

    where: the document and the place in it
    digits: the number of printed decimals; None for a sentence that claims exact values
    values: array of float64, read-only
    """

    where: str
    digits: int | None
    values: np.ndarray

    def __post_init__(self):
        values = np.array(self.values, dtype=np.float64)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)


# --- lecture notes §4: self-attention -------------------------------------------------------------------------------

FIVE_WORDS = ("Lucas", "will", "travel", "in", "December")

FIVE_EMBEDDINGS = Printed(
    f"{NOTES} §4, step 1",
    1,
    [[1.0, 0.2, 0.1, 0.3], [0.2, 1.0, 0.3, 0.1], [0.3, 0.2, 1.0, 0.4], [0.1, 0.3, 0.2, 1.0], [0.4, 0.1, 0.3, 1.0]],
)
FIVE_PROJECTIONS = Printed(  # W^Q, W^K, W^V
    f"{NOTES} §4, step 2",
    1,
    [
        [[0.8, -0.1, 0.2, 0.1], [0.1, 0.9, -0.1, 0.2], [0.2, 0.1, 0.8, -0.1], [-0.1, 0.2, 0.1, 0.9]],
        [[0.9, 0.1, -0.1, 0.2], [-0.1, 0.8, 0.2, 0.1], [0.2, -0.1, 0.9, 0.1], [0.1, 0.2, 0.1, 0.8]],
        [[0.7, 0.2, 0.1, 0.1], [0.2, 0.8, 0.1, 0.0], [0.1, 0.1, 0.9, 0.0], [0.0, 0.0, 0.1, 0.8]],
    ],
)
FIVE_QKV = Printed(  # Q, K, V
    f"{NOTES} §4, step 2",
    2,
    [
        [
            [0.81, 0.15, 0.29, 0.4], [0.31, 0.93, 0.19, 0.28], [0.42, 0.33, 0.88, 0.33], [0.05, 0.48, 0.25, 0.95],
            [0.29, 0.28, 0.41, 0.93],
        ],
        [
            [0.93, 0.31, 0.06, 0.47], [0.15, 0.81, 0.46, 0.25], [0.49, 0.17, 0.95, 0.5], [0.2, 0.43, 0.33, 0.87],
            [0.51, 0.29, 0.35, 0.92],
        ],
        [
            [0.75, 0.37, 0.24, 0.34], [0.37, 0.87, 0.4, 0.1], [0.35, 0.32, 0.99, 0.35], [0.15, 0.28, 0.32, 0.81],
            [0.33, 0.19, 0.42, 0.84],
        ],
    ],
)  # fmt: skip
FIVE_SCORES = Printed(
    f"{NOTES} §4, step 3",
    5,
    [
        [0.5026, 0.2382, 0.44895, 0.3351, 0.46305], [0.3598, 0.4786, 0.31525, 0.3841, 0.37595],
        [0.3504, 0.4088, 0.63145, 0.4017, 0.46075], [0.3284, 0.3744, 0.4093, 0.5627, 0.5631],
        [0.4091, 0.3457, 0.5221, 0.5614, 0.6141],
    ],
)  # fmt: skip
FIVE_WEIGHTS = Printed(
    f"{NOTES} §4, step 4",
    4,
    [
        [0.2211, 0.1697, 0.2096, 0.1870, 0.2125], [0.1952, 0.2198, 0.1867, 0.2000, 0.1984],
        [0.1801, 0.1909, 0.2385, 0.1895, 0.2011], [0.1767, 0.1850, 0.1916, 0.2233, 0.2234],
        [0.1835, 0.1722, 0.2054, 0.2137, 0.2252],
    ],
)  # fmt: skip
FIVE_OUTPUT = Printed(
    f"{NOTES} §4, step 5",
    4,
    [
        [0.4001, 0.3893, 0.4775, 0.4955], [0.3885, 0.4168, 0.4668, 0.4822], [0.3839, 0.4002, 0.5007, 0.4861],
        [0.3752, 0.3926, 0.4713, 0.5141], [0.3795, 0.3860, 0.4792, 0.5137],
    ],
)  # fmt: skip

# --- lecture notes §5: three heads ----------------------------------------------------------------------------------

THREE_WORDS = FIVE_WORDS[:3]

THREE_EMBEDDINGS = Printed(
    f"{NOTES} §5, step 1",
    1,
    [
        [1.0, 0.2, 0.3, 0.1, 0.4, 0.2, 0.3, 0.1, 0.5],
        [0.2, 1.0, 0.1, 0.3, 0.2, 0.4, 0.1, 0.5, 0.2],
        [0.3, 0.2, 1.0, 0.4, 0.1, 0.3, 0.2, 0.3, 0.4],
    ],
)
THREE_QKV = Printed(  # Q, K, V; each for head 1, 2, 3
    f"{NOTES} §5, step 3",
    1,
    [
        [
            [[0.8, 0.2, 0.1], [0.3, 0.7, 0.2], [0.1, 0.3, 0.8]],
            [[0.6, 0.3, 0.2], [0.2, 0.6, 0.3], [0.3, 0.2, 0.6]],
            [[0.4, 0.4, 0.3], [0.3, 0.5, 0.3], [0.4, 0.3, 0.4]],
        ],
        [
            [[0.7, 0.3, 0.2], [0.2, 0.8, 0.1], [0.3, 0.2, 0.7]],
            [[0.5, 0.4, 0.2], [0.3, 0.5, 0.3], [0.2, 0.3, 0.6]],
            [[0.5, 0.3, 0.3], [0.4, 0.4, 0.3], [0.3, 0.3, 0.5]],
        ],
        [
            [[0.9, 0.2, 0.1], [0.1, 0.8, 0.2], [0.2, 0.1, 0.9]],
            [[0.7, 0.3, 0.2], [0.2, 0.7, 0.3], [0.3, 0.2, 0.7]],
            [[0.6, 0.3, 0.2], [0.3, 0.6, 0.2], [0.2, 0.3, 0.6]],
        ],
    ],
)
THREE_WEIGHTS = Printed(  # A_1, A_2, A_3
    f"{NOTES} §5, step 4",
    1,
    [
        [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]],
        [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]],
        [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]],
    ],
)
THREE_SHAPES = Printed(  # of C_i, C_concat, W^O, C_final
    f"{NOTES} §5, steps 5–7", 0, [[3, 3], [3, 9], [9, 9], [3, 9]]
)

# --- lecture notes §6: positional encoding --------------------------------------------------------------------------

FIVE_POSITIONS = Printed(
    f"{NOTES} §6, steps 2, 3",
    3,
    [
        [0.000, 1.000, 0.000, 1.000], [0.841, 0.540, 0.010, 0.999], [0.909, -0.416, 0.020, 0.999],
        [0.141, -0.990, 0.030, 0.999], [-0.757, -0.654, 0.040, 0.999],
    ],
)  # fmt: skip
# step 2 calls these numbers PE(t, i=1), t = 0 … 4
POSITIONS_NAMED_1 = Printed(f"{NOTES} §6, step 2", 3, [1.000, 0.540, -0.416, -0.990, -0.654])
# "Sum of squares for each position is constant": largest − smallest sum is 0
SPREAD_OF_SQUARES = Printed(f"{NOTES} §6, properties", None, [0.0])
# "Pattern repeats for very long sequences": some later position is at distance 0 from position 0
DISTANCE_AT_REPEAT = Printed(f"{NOTES} §6, properties", None, [0.0])

# --- lecture notes §7: feed-forward ---------------------------------------------------------------------------------

FEED_FORWARD_INPUT = Printed(f"{NOTES} §7", 1, [[0.5, 0.3, -0.2, 0.1], [0.2, 0.4, 0.3, -0.1], [-0.1, 0.2, 0.5, 0.3]])
FEED_FORWARD_BEFORE = Printed(
    f"{NOTES} §7",
    1,
    [
        [0.7, -0.3, 0.4, 0.2, -0.5, 0.1, 0.3, -0.2],
        [-0.2, 0.5, 0.3, -0.1, 0.4, 0.2, -0.3, 0.1],
        [0.3, 0.2, -0.4, 0.5, 0.1, -0.2, 0.4, 0.3],
    ],
)
FEED_FORWARD_HIDDEN = Printed(
    f"{NOTES} §7",
    1,
    [
        [0.7, 0.0, 0.4, 0.2, 0.0, 0.1, 0.3, 0.0],
        [0.0, 0.5, 0.3, 0.0, 0.4, 0.2, 0.0, 0.1],
        [0.3, 0.2, 0.0, 0.5, 0.1, 0.0, 0.4, 0.3],
    ],
)
FEED_FORWARD_OUTPUT = Printed(f"{NOTES} §7", 1, [[0.6, 0.2, -0.1, 0.3], [0.1, 0.5, 0.4, -0.2], [0.2, 0.3, 0.6, 0.1]])
# "self-attention […] is purely linear": f(a + b) − f(a) − f(b) is 0, for the values and for the input
NONLINEARITY = Printed(f"{NOTES} §7", None, [0.0, 0.0])

# --- lecture notes §8 and §9: blocks and mask -----------------------------------------------------------------------

# line 2 of either algorithm: positional encodings added in an encoder block, in a decoder block
ENCODINGS_IN_BLOCK = Printed(f"{NOTES} §8, algorithms", 0, [1, 1])
# the algorithms' lines: masked self-attention, cross-attention, FFN, LayerNorm (encoder block, decoder block)
PARTS_OF_BLOCK = Printed(f"{NOTES} §8, exercise 4", 0, [[0, 1], [0, 1], [1, 1], [2, 3]])
# M_ij = 0 if i ≥ j, −∞ otherwise, for n = 5
MASK = Printed(f"{NOTES} §9", None, [[0 if i >= j else -np.inf for j in range(5)] for i in range(5)])
# "set True entries to −1e8"
FINITE_MASK = Printed(f"{SLIDES}, attention", None, -1e8)

# --- lecture notes: the options of the exercises --------------------------------------------------------------------

EXERCISE_1_QK = Printed(f"{NOTES}, exercise 1", 0, [[[1, 0], [0, 1]], [[1, 1], [1, 0]]])
EXERCISE_1 = Printed(
    f"{NOTES}, exercise 1",
    2,
    [[[0.71, 0.71], [0.71, 0]], [[1.41, 0.71], [0.71, 0]], [[0.71, 1.41], [0, 0.71]], [[1.41, 1.41], [0.71, 0.71]]],
)
EXERCISE_2 = Printed(f"{NOTES}, exercise 2", 3, [0.841, 0.909, 0.756, 0.540])
_INF = np.inf
EXERCISE_3 = Printed(
    f"{NOTES}, exercise 3",
    None,
    [
        [[0, -_INF, -_INF], [0, 0, -_INF], [0, 0, 0]], [[0, 0, 0], [-_INF, 0, 0], [-_INF, -_INF, 0]],
        [[-_INF, 0, 0], [0, -_INF, 0], [0, 0, -_INF]], [[0, -_INF, -_INF], [-_INF, 0, -_INF], [-_INF, -_INF, 0]],
    ],
)  # fmt: skip
EXERCISE_4 = ("masked self-attention", "cross-attention", "feed-forward network", "layer normalisation")
EXERCISE_5 = Printed(  # powers of n and h in the options O(n), O(n²), O(h n²), O(h² n²)
    f"{NOTES}, exercise 5", None, [[1, 0], [2, 0], [2, 1], [2, 2]]
)
SCORES_OF_A_LAYER = Printed(f"{NOTES} §10, exercise 5", 0, [512, 8])  # n, h: "a 512×512 matrix for each head"

# --- paper notes ----------------------------------------------------------------------------------------------------

LAYERS_AND_HEADS = Printed(
    f"{PAPER_NOTES}, dimensions", 0, [6, 6]
)  # "N = 6 identical layers", "h=6 of these attentions"
HEADS_ELSEWHERE = Printed(f"{PAPER_NOTES}, multi-head", 0, 8)  # "Google team used h=8"
MODEL_AND_HEAD_SIZE = Printed(f"{PAPER_NOTES}, attention block", 0, [512, 64])  # d_model, d_k

# --- architecture slides --------------------------------------------------------------------------------------------

FOUR_WORDS = ("Hi", "how", "are", "you")
FOUR_SCORES = Printed(
    f"{ARCHITECTURE_SLIDES} §3", 0, [[96, 25, 8, 10], [25, 87, 29, 65], [8, 29, 89, 52], [10, 65, 52, 90]]
)
FOUR_WEIGHTS = Printed(
    f"{ARCHITECTURE_SLIDES} §3",
    1,
    [[0.7, 0.1, 0.1, 0.1], [0.2, 0.5, 0.1, 0.2], [0.1, 0.2, 0.6, 0.1], [0.1, 0.2, 0.4, 0.3]],
)

# --- illustrated slides ---------------------------------------------------------------------------------------------

TWO_WORDS = ("Thinking", "Machines")
TWO_WORDS_D_K = 64  # "Divide by 8 (√d_k)"
TWO_SCORES = Printed(  # q_1·k_1 and q_1·k_2; divided by 8; after softmax
    f"{ILLUSTRATED_SLIDES}", 2, [[112, 96], [14, 12], [0.88, 0.12]]
)
