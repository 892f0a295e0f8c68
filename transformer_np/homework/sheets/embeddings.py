"""The embedding, the positional encoding, and rotary positions, with their backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)

_LINEAR = {"rope_type": "linear", "factor": 4.0}
_UNKNOWN = {"rope_type": "turned", "factor": 4.0}
_LLAMA3 = {  # keeps some of the frequencies, and divides the others
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 125,
}  # fmt: skip


def embedding_cases(rng):
    sizes = draw_sizes(rng, "B T V D", least=4)
    B, T, V, _ = sizes.values()
    ids = rng.integers(V, size=(B, T))
    ids[0, :2] = ids[1, 0] = 0  # twice in one sentence and again in the next at the same place
    ids[-1, -1] = V - 1
    case = Calls(rng, F.embedding, sizes, ids=ids)
    return [
        case(""),
        case("ids that never occur", ids=np.clip(ids, 2, V - 2)),  # 0, 1 and V − 1
        case("as many dimensions as embeddings", {"D": V}),
        case("as many ids as embeddings", {"V": B * T}),
        case("ids of shape (T,)", without="B", ids=ids[0]),
        case("ids of three axes", ids=rng.integers(V, size=(2, B, T))),
    ]


def embedding(ids, table):
    y = table[ids]
    return y


def embedding_backward(dy, ids, num_embeddings):
    V, D = num_embeddings, dy.shape[-1]
    dtable = np.zeros((V, D))
    np.add.at(dtable, ids, dy)
    return dtable


# --- the positional encoding ------------------------------------------------------------------------------------------


def sinusoidal_encoding_cases(rng):
    length, half = map(int, rng.permutation(np.arange(4, 10))[:2])
    even, odd = 2 * half, 2 * half + 1
    length = 2 * length + 3  # odd: never d_model where that is even

    def case(label, length, d_model, **options):
        return Case(label, (length, d_model), options, {"length": length, "d_model": d_model})

    return [
        case("", length, even),
        extended(case("an odd d_model", length + 1, odd)),
        extended(case("dtype=float64", length, even, dtype=np.float64)),
        extended(case("dtype=float32", length, even, dtype=np.float32)),
        case("more dimensions than positions", 3, even),
        case("d_model = 4", 5, 4),
    ]


def sinusoidal_encoding(length, d_model, dtype=np.float32):
    position = np.arange(length)[:, None]  # (length, 1)
    dimension = np.arange(d_model)
    i = dimension // 2  # counts pairs of dimensions
    divisor = 10000.0 ** (2 * i / d_model)
    angle = position / divisor  # (length, d_model)
    encoding = np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle))
    return encoding.astype(dtype)


# --- rotary positions -------------------------------------------------------------------------------------------------


def frequencies_cases(rng):
    K = 2 * int(rng.integers(3, 8))
    theta = float(rng.choice([500.0, 2000.0, 500_000.0]))
    return [
        Case("", (K,), sizes={"K": K}),
        Case(f"theta={theta:g}", (K,), {"theta": theta}, {"K": K}),
        Case("K = 2", (2,), sizes={"K": 2}),
        extended(Case("linear scaling", (K,), {"scaling": _LINEAR}, {"K": K})),
        # 20, 2, 0.2 and 0.02 turns: the second is between the two factors
        extended(Case("the scaling of Llama 3", (8,), {"scaling": _LLAMA3}, {"K": 8})),
        Case("an odd K", (K + 1,), extended=True, raises="ValueError"),
        Case("theta=0", (K,), {"theta": 0.0}, extended=True, raises="ValueError"),
        Case("theta=-1", (K,), {"theta": -1.0}, extended=True, raises="ValueError"),
        Case("an unknown scaling", (K,), {"scaling": _UNKNOWN}, extended=True, raises="ValueError"),
    ]


def rotary_frequencies(K, theta=10000.0, scaling=None):
    if K % 2 or theta <= 0:
        raise ValueError("K must be even and theta positive")
    frequencies = theta ** (-np.arange(0, K, 2) / K)
    if scaling is None:
        return frequencies
    stretched = frequencies / scaling["factor"]
    if scaling["rope_type"] == "linear":
        return stretched
    if scaling["rope_type"] != "llama3":
        raise ValueError("the scaling is not supported")
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return kept * frequencies + (1 - kept) * stretched


def rotary_cases(rng):
    sizes = draw_sizes(rng, "B H T P", least=3)
    sizes["K"] = 2 * sizes.pop("P")
    places = np.arange(sizes["T"])
    case = Calls(rng, F.rotary, sizes, leading="B H", positions=places)
    return [
        case(""),
        case("positions from 7 on", positions=places + 7),
        case("positions in any order", positions=rng.permutation(5 * len(places))[places]),
        case("theta=500", theta=500.0),
        case("x of shape (T, K)", without="B H"),
        extended(case("adjacent=True", adjacent=True)),
        extended(case("one position for all rows", positions=np.array(5))),
        extended(case("linear scaling", scaling=_LINEAR)),
        extended(case("the scaling of Llama 3", scaling=_LLAMA3)),
    ]


def rotary(x, positions, theta=10000.0, scaling=None, adjacent=False):
    K = x.shape[-1]
    angles = np.asarray(positions)[..., None] * rotary_frequencies(K, theta, scaling)
    cos, sin = np.cos(angles), np.sin(angles)
    if adjacent:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., : K // 2], x[..., K // 2 :]
    turned = first * cos - second * sin, first * sin + second * cos
    if adjacent:
        return np.stack(turned, axis=-1).reshape(x.shape)
    return np.concatenate(turned, axis=-1)


def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
    return rotary(dy, -np.asarray(positions), theta, scaling, adjacent)


EXERCISES = [
    *SHEET.both(
        F.embedding, embedding, embedding_backward, embedding_cases, {"dtable": "V D"},
        letters={"num_embeddings": "V"},
    ),
    SHEET.exercise(
        F.sinusoidal_encoding, sinusoidal_encoding, sinusoidal_encoding_cases, {"encoding": "length d_model"},
    ),
    SHEET.exercise(F.rotary_frequencies, rotary_frequencies, frequencies_cases, {"frequencies": "pair"}),
    *SHEET.both(F.rotary, rotary, rotary_backward, rotary_cases),
]  # fmt: skip
