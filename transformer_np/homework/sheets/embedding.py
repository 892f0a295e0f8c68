"""The embedding with its backward, and the positional encoding."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def _draw_ids(rng, B, T, V):
    """Ids (B, T) with 0 twice in one sentence and again in the next at the same place, and with V − 1, the last one."""
    ids = rng.integers(V, size=(B, T))
    ids[0, :2] = ids[1, 0] = 0
    ids[-1, -1] = V - 1
    return ids


def _embedding_cases(rng):
    sizes = draw_sizes(rng, "B T V D", least=4)
    B, T, V, D = sizes.values()
    table = rng.normal(size=(V, D))
    ids = _draw_ids(rng, B, T, V)
    square = rng.normal(size=(V, V))
    return [
        Case("", (ids, table), sizes=sizes),
        Case("the last id not in use", (np.minimum(ids, V - 2), table), sizes=sizes),
        Case("as many dimensions as embeddings", (ids, square), sizes=sizes | {"D": V}),
        Case("ids of shape (T,)", (ids[0], table), sizes=sizes),
        Case("ids of three axes", (rng.integers(V, size=(2, B, T)), table), sizes=sizes),
    ]


def _wrong_embedding(made, ids, table):
    V, D = table.shape
    if made("ids counted from 1"):
        ids = ids - 1
    if made("the next row"):
        ids = ids + 1
    if made("counted from the end"):
        ids = -1 - ids
    if made("the position taken for the id"):
        ids = np.broadcast_to(np.arange(ids.shape[-1]), ids.shape)
    if made("only the first sentence"):
        ids = ids[0]
    if made("one row for each distinct id"):
        ids = np.unique(ids)
    if made("ids flattened"):
        ids = ids.reshape(-1)
    if made("the one-hot rows themselves"):
        return np.eye(V)[ids]
    if made("columns for rows"):
        y = table.T[ids]
    elif made("columns of the table, features first"):
        y = table[:, ids]
    else:
        y = np.stack([table[i] for i in ids.flat]).reshape(*ids.shape, D)
    if made("id 0 set to zero"):
        y = np.where((ids == 0)[..., None], 0, y)
    if made("multiplied by √d_model"):
        y = y * np.sqrt(D)
    if made("divided by √d_model"):
        y = y / np.sqrt(D)
    if made("rows brought to length 1"):
        y = y / np.linalg.norm(y, axis=-1, keepdims=True)
    if made("positional encoding added"):
        y = y + F.sinusoidal_encoding(*y.shape[-2:], np.float64)
    if made("summed over the words"):
        return y.sum(axis=-2)
    if made("averaged over the words"):
        return y.mean(axis=-2)
    return y.swapaxes(-1, -2) if made("features before words") else y


EMBEDDING = Exercise(
    F.embedding,
    (Result("y", "... D"),),
    _embedding_cases,
    {
        "ids counted from 1": (
            "It looks up row id − 1. Ids count from 0, as rows do: id 0 is row 0; with − 1 it gets the last row of the "
            "table."
        ),
        "the next row": "It looks up row id + 1. Ids count from 0, as rows do; the last id has no row behind it.",
        "counted from the end": (
            "It counts the rows from the end of the table, row V − 1 − id, as if the table were upside down. Id 0 is "
            "row 0."
        ),
        "the position taken for the id": (
            "It looks up the position of a word in its sentence, 0, 1, 2, …, instead of its id: every sentence gets "
            "the same rows."
        ),
        "only the first sentence": "Only ids[0] is looked up, the first sentence; the other rows of ids are not used.",
        "one row for each distinct id": (
            "It looks up each distinct id once (np.unique), sorted. Every place of ids gets its row, also where an id "
            "stands again."
        ),
        "ids flattened": (
            "The ids are flattened, and the result has all words of all sentences in one axis. y has the axes of ids "
            "and one more for the D features: the last step, back to ids.shape, is missing."
        ),
        "the one-hot rows themselves": (
            "It returns the one-hot rows of the ids, V numbers each. They still have to be multiplied by the table, "
            "one_hot @ table, which picks one row of D numbers each."
        ),
        "columns for rows": (
            "It picks columns of the table where rows are meant (the table is transposed). A word is a row: table[id], "
            "D numbers."
        ),
        "columns of the table, features first": (
            "`table[:, ids]` picks columns of the table where rows are meant, and puts their V numbers in front. The "
            "ids index the first axis of the table, the rows."
        ),
        "id 0 set to zero": (
            "The rows of id 0 are set to zero, as if it were padding. An embedding knows no padding id: id 0 has a row "
            "like any other; hiding padding is the mask's task."
        ),
        "multiplied by √d_model": (
            "The rows are multiplied by √d_model. The paper does that where it adds the positional encoding (§3.4); "
            "this function only looks up."
        ),
        "divided by √d_model": (
            "The rows are divided by √d_model. The lookup scales nothing: y holds the rows as they are."
        ),
        "rows brought to length 1": (
            "Each row is divided by its length (its norm). The lookup changes no number: y holds the rows as they are."
        ),
        "positional encoding added": (
            "The positional encoding is added. This function only looks up; adding positions is a step of its own."
        ),
        "summed over the words": (
            "The rows of a sentence are summed, a bag of words: the axis of the words is gone. Every word keeps its "
            "own row."
        ),
        "averaged over the words": (
            "The rows of a sentence are averaged (mean over the words): the axis of the words is gone. Every word "
            "keeps its own row."
        ),
        "features before words": (
            "The last two axes are exchanged (transposed): a word is a row, so the D features are the last axis, (B, "
            "T, D)."
        ),
    },
    _wrong_embedding,
    (
        "The one-hot row of an id, times the table: what does it pick, and can you get that without multiplying zeros?",
        "y[b, t] = table[ids[b, t]], for ids of any shape",
        "notebook 01, section 1; NumPy indexes an array with an array of whole numbers.",
    ),
    difficulty=1,
    section="§4 step 1",
)


def _embedding_backward_cases(rng):
    sizes = draw_sizes(rng, "B T V D", least=4)
    B, T, V, D = sizes.values()
    ids = _draw_ids(rng, B, T, V)
    dy = rng.normal(size=(B, T, D))
    some = np.where(ids == 1, 2, np.minimum(ids, V - 2))  # without 1 and V − 1
    deep = rng.integers(V, size=(2, B, T))
    return [
        Case("", (dy, ids, V), sizes=sizes),
        Case("ids that never occur", (dy, some, V + 1), sizes=sizes | {"V": V + 1}),
        Case("as many ids as embeddings", (dy, ids, B * T), sizes=sizes | {"V": B * T}),
        Case("ids of shape (T,)", (dy[0], ids[0], V), sizes=sizes),
        Case("ids of three axes", (rng.normal(size=(2, B, T, D)), deep, V), sizes=sizes),
    ]


def _wrong_embedding_backward(made, dy, ids, num_embeddings):
    V, D = num_embeddings, dy.shape[-1]
    if made("dy handed on"):
        return dy.copy()
    shift = {-1: made("ids counted from 1"), 1: made("the next row")}
    ids = ids + sum(step for step, wrong in shift.items() if wrong)
    if made("rows only up to the largest id"):
        V = int(ids.max()) + 1
    flat, rows = ids.reshape(-1), dy.reshape(-1, D)
    one_hot = np.eye(V)[flat]  # (N, V)
    count = np.maximum(one_hot.sum(axis=0), 1)[:, None]  # (V, 1)
    dtable = np.zeros((V, D))
    if made("occurrences counted, dy not used"):
        dtable += one_hot.sum(axis=0)[:, None]
    elif made("one-hot matrix not transposed"):
        dtable = one_hot @ rows
    elif made("repeated ids not added"):
        dtable[flat] += rows
    elif made("only the first occurrence counts"):
        dtable[flat[::-1]] = rows[::-1]
    elif made("repeated ids of a sentence not added"):
        for sentence, gradient in zip(ids, dy, strict=True):
            dtable[sentence] += gradient
    elif made("repeated ids at the same place not added"):
        for t in range(ids.shape[-1]):
            dtable[ids[..., t]] += dy[..., t, :]
    elif made("the first word left out"):
        np.add.at(dtable, ids[..., 1:], dy[..., 1:, :])
    elif made("the last word left out"):
        np.add.at(dtable, ids[..., :-1], dy[..., :-1, :])
    elif made("only the first sentence") and ids.ndim > 1:
        np.add.at(dtable, ids[0], dy[0])
    elif made("ids in another order"):
        np.add.at(dtable, ids.T.reshape(-1), rows)
    elif made("only the last sentence"):
        np.add.at(dtable, ids[-1], dy[-1])
    elif made("the largest gradient for the sum"):
        dtable = np.where(one_hot[:, :, None] > 0, rows[:, None], -np.inf).max(axis=0)
        dtable[np.isinf(dtable)] = 0
    else:
        dtable = one_hot.T @ rows
    if made("averaged over the occurrences"):
        dtable = dtable / count
    if made("multiplied by the number of occurrences"):
        dtable = dtable * count
    if made("divided by the batch size"):
        dtable = dtable / ids.shape[0]
    if made("divided by the length"):
        dtable = dtable / ids.shape[-1]
    if made("divided by the number of ids"):
        dtable = dtable / ids.size
    if made("divided by the size of the vocabulary"):
        dtable = dtable / V
    if made("multiplied by √d_model"):
        dtable = dtable * np.sqrt(D)
    if made("no gradient for id 0"):
        dtable[0] = 0
    if made("only the rows that occur"):
        dtable = dtable[np.unique(flat)]
    if made("summed over the features"):
        return dtable.sum(axis=-1)
    return dtable.T if made("the table transposed") else dtable


EMBEDDING_BACKWARD = Exercise(
    F.embedding_backward,
    (Result("dtable", "V D"),),
    _embedding_backward_cases,
    {
        "repeated ids not added": (
            "An id that stands at several places counts once: only its last occurrence is left. `dtable[ids] += dy` "
            "reads all rows, adds, and writes all back, so of equal ids the last one wins; the same holds for "
            "`dtable[ids] = dy`. The gradients of all occurrences have to be added up."
        ),
        "only the first occurrence counts": (
            "An id that stands at several places counts once, with its first occurrence. The gradients of all "
            "occurrences have to be added up."
        ),
        "repeated ids of a sentence not added": (
            "It goes sentence by sentence with `dtable[ids[b]] += dy[b]`: an id that stands twice in one sentence "
            "counts once there, since `+=` with repeated indices keeps the last one only."
        ),
        "repeated ids at the same place not added": (
            "It goes place by place with `dtable[ids[:, t]] += dy[:, t]`: an id that two sentences have at the same "
            "place counts once, since `+=` with repeated indices keeps the last one only."
        ),
        "the first word left out": (
            "The first word of each sentence is left out, a slice [1:] or a loop from 1. Every place counts."
        ),
        "the last word left out": (
            "The last word of each sentence is left out, a slice [:-1] or a loop that ends early. Every place counts."
        ),
        "only the first sentence": (
            "Only the first sentence is counted, ids[0] and dy[0]. The gradients of all sentences have to be added up."
        ),
        "ids in another order": (
            "ids and dy are flattened in different orders (ids.T, or order='F'), so that the gradients go to the rows "
            "of other ids. Flatten both alike: ids.reshape(-1) and dy.reshape(-1, D)."
        ),
        "only the last sentence": (
            "Only the last sentence of the batch is counted: in the loop over sentences the gradient is replaced (=) "
            "instead of added to (+=)."
        ),
        "the largest gradient for the sum": (
            "Of the occurrences of an id the largest gradient is taken (a maximum) instead of their sum."
        ),
        "averaged over the occurrences": (
            "The gradients of an id are averaged over its occurrences. It is a sum, without division by the count: a "
            "row that was used three times moved the loss three times."
        ),
        "multiplied by the number of occurrences": (
            "The sum over the occurrences of an id is multiplied by their number once more: each occurrence counts "
            "once."
        ),
        "occurrences counted, dy not used": (
            "It counts how often each id occurs and does not use dy. Each occurrence adds its own row of dy, not a 1."
        ),
        "divided by the batch size": (
            "The gradient is divided by the batch size, 1/B too much. Any mean over the batch is the loss's doing and "
            "is in dy already; here it is a plain sum."
        ),
        "divided by the length": (
            "The gradient is divided by the length of a sentence, 1/T too much. Any mean is the loss's doing and is in "
            "dy already; here it is a plain sum."
        ),
        "divided by the number of ids": (
            "The gradient is divided by the number of all ids, 1/(B·T) too much: a mean for a sum. Any mean is the "
            "loss's doing and is in dy already."
        ),
        "divided by the size of the vocabulary": (
            "The gradient is divided by the number of embeddings, 1/V too much. It is a plain sum over the places "
            "where an id stood."
        ),
        "multiplied by √d_model": (
            "The gradient is multiplied by √d_model. The forward is a lookup without that factor, so its backward has "
            "none."
        ),
        "no gradient for id 0": (
            "Row 0 gets no gradient, as if id 0 were padding. An embedding knows no padding id: row 0 is a row like "
            "any other."
        ),
        "ids counted from 1": (
            "The gradient goes to row id − 1 (off by one). Ids count from 0, as rows do: id 0 looked up row 0."
        ),
        "the next row": "The gradient goes to row id + 1 (off by one). Ids count from 0, as rows do.",
        "rows only up to the largest id": (
            "dtable has as many rows as the largest id asks for, ids.max() + 1. It has num_embeddings rows, the shape "
            "of the table; ids that do not occur get a row of zeros."
        ),
        "only the rows that occur": (
            "dtable has rows only for the ids that occur. It has the shape of the table, num_embeddings rows, with "
            "zeros where an id does not occur."
        ),
        "the table transposed": "dtable is transposed, (D, V). A gradient has the shape of its array: (V, D).",
        "one-hot matrix not transposed": (
            "The one-hot matrix (N, V) stands before dy without its transpose. The forward is one_hot @ table, so the "
            "gradient of the table is one_hotᵀ @ dy."
        ),
        "summed over the features": (
            "dy is summed over its last axis, the features: one number for each embedding. The sum runs over the "
            "places where an id stood; each of the D features has its own."
        ),
        "dy handed on": (
            "dy is returned as it came, a gradient for every place. dtable is the gradient of the table: each row of "
            "dy has to go to the row of its id, (num_embeddings, D)."
        ),
    },
    _wrong_embedding_backward,
    (
        "A word stands at three places. By how many ways did its row of the table reach the loss?",
        "dtable[v] = Σ dy[b, t] over all places (b, t) with ids[b, t] = v",
        "notebook 06, section 7; np.add.at, or the one-hot matrix, or a loop. Try it with a repeated id.",
    ),
    difficulty=2,
    section="behind §4 step 1",
)


def _sinusoidal_encoding_cases(rng):
    length, half = map(int, rng.permutation(np.arange(4, 10))[:2])
    even, odd = 2 * half, 2 * half + 1
    length = 2 * length + 3  # odd: never d_model where that is even

    def case(label, length, d_model, **options):
        return Case(label, (length, d_model), options, {"length": length, "d_model": d_model})

    return [
        case("", length, even),
        case("an odd d_model", length + 1, odd),
        case("dtype=float64", length, even, dtype=np.float64),
        case("more dimensions than positions", 3, 2 * even),
        case("d_model = 4", 5, 4),
    ]


_BASES = {"base 1000 for 10000": 1e3, "base 100000 for 10000": 1e5}


def _wrong_sinusoidal_encoding(made, length, d_model, dtype=np.float32):
    D = d_model
    if D % 2 and made("fails for an odd d_model"):
        raise ValueError("could not broadcast")
    position = np.arange(length, dtype=float)[:, None]  # (length, 1)
    if made("positions from 1"):
        position = position + 1
    if made("positions divided by the length"):
        position = position / length
    columns = D
    if D % 2 and made("one column more for an odd d_model"):
        columns += 1
    if D % 2 and made("one column less for an odd d_model"):
        columns -= 1
    dimension = np.arange(columns)
    odd = dimension % 2 == 1
    i = dimension // 2
    if made("i from 1"):
        i = i + 1
    numerator = 2 * i
    if made("i for 2i"):
        numerator = i
    if made("4i for 2i"):
        numerator = 4 * i
    if made("i counts dimensions, not pairs"):
        numerator = 2 * dimension
    if made("2i + 1 for 2i"):
        numerator = 2 * i + 1
    if made("cosine with 2i + 1"):
        numerator = np.where(odd, numerator + 1, numerator)
    if made("cosine of the next pair"):
        numerator = np.where(odd, numerator + 2, numerator)
    denominator = D + 1 if made("d_model + 1 in the exponent") else D
    if made("d_model − 2 in the exponent"):
        denominator = D - 2
    if made("d_model − 1 in the exponent"):
        denominator = D - 1
    if D % 2 and made("an odd d_model rounded up in the exponent"):
        denominator = D + 1
    base = next((value for name, value in _BASES.items() if made(name)), 1e4)
    exponent = numerator / denominator
    if made("multiplied by the power"):
        angle = position * base**exponent
    elif made("product for power"):
        with np.errstate(all="ignore"):
            angle = position / (base * exponent)
    elif made("10000^(2i) / d_model"):
        angle = position / (base**numerator / denominator)
    elif made("pos / 10000^(2i) / d_model"):
        angle = position / base**numerator / denominator
    elif made("10000² · i / d_model"):
        angle = position / base**2 * i / denominator
    elif made("(pos / 10000)^(2i / d_model)"):
        angle = (position / base) ** exponent
    elif made("logarithm to the base 10"):
        angle = position * np.exp(-exponent * np.log10(base))
    elif made("all dimensions at the same speed"):
        angle = position + 0 * exponent
    elif made("pos / 10000 without exponent"):
        angle = position / base + 0 * exponent
    else:
        angle = position / base**exponent  # (length, D)
    if made("angles in degrees"):
        angle = angle * np.pi / 180
    if made("angles times 2π"):
        angle = 2 * np.pi * angle
    with np.errstate(all="ignore"):
        sine, cosine = np.sin(angle), np.cos(angle)
    if made("sine and cosine exchanged"):
        sine, cosine = cosine, sine
    if made("sines only"):
        cosine = sine
    if made("cosines only"):
        sine = cosine
    if made("even positions for even dimensions"):
        encoding = np.where(np.arange(length)[:, None] % 2 == 0, sine, cosine)
    elif made("all sines, then all cosines"):
        encoding = np.concatenate([sine[:, ~odd], cosine[:, odd]], axis=1)
    else:
        encoding = np.where(odd, cosine, sine)
    if D % 2 and made("last column of an odd d_model left at 0"):
        encoding[:, -1] = 0
    if made("an axis for the batch in front"):
        encoding = encoding[None]
    encoding = encoding.astype(dtype)
    return encoding.swapaxes(-1, -2) if made("transposed") else encoding


SINUSOIDAL_ENCODING = Exercise(
    F.sinusoidal_encoding,
    (Result("encoding", "length d_model"),),
    _sinusoidal_encoding_cases,
    {
        "i for 2i": (
            "The exponent is i/d_model where it is to be 2i/d_model, i = 0, 1, 2, … counting pairs of dimensions: a "
            "factor 2 is missing (or the base is 100, which comes to the same). The later pairs turn too fast."
        ),
        "4i for 2i": (
            "The exponent is 4i/d_model where it is to be 2i/d_model: the factor 2 is in it twice. `np.arange(0, "
            "d_model, 2)` is 2i already."
        ),
        "i counts dimensions, not pairs": (
            "i runs over the dimensions 0 … d_model − 1, exponent 2·dimension/d_model. In the formula i counts pairs: "
            "the dimensions 2i and 2i + 1 share the exponent 2i/d_model, which is 2·(dimension // 2)/d_model."
        ),
        "i from 1": (
            "i counts pairs from 1, exponent 2(i + 1)/d_model. The first pair has i = 0 and the divisor 10000⁰ = 1."
        ),
        "2i + 1 for 2i": (
            "The exponent is (2i + 1)/d_model for sine and cosine. It is 2i/d_model, i = 0, 1, 2, …, for both: the "
            "first pair turns by 1 a position."
        ),
        "cosine with 2i + 1": (
            "The cosine has the exponent (2i + 1)/d_model, its own dimension. Sine and cosine of a pair have the same "
            "angle, exponent 2i/d_model; else a step of k positions is no rotation."
        ),
        "cosine of the next pair": (
            "The cosine has the exponent 2(i + 1)/d_model, that of the next pair. Sine and cosine of a pair have the "
            "same angle, exponent 2i/d_model."
        ),
        "d_model − 2 in the exponent": (
            "The exponent is 2i/(d_model − 2), which is i/(d_model/2 − 1) as in the tensor2tensor code. The paper has "
            "2i/d_model."
        ),
        "d_model + 1 in the exponent": (
            "The exponent is divided by d_model + 1 where it is to be d_model: 2i/d_model."
        ),
        "d_model − 1 in the exponent": "The exponent is 2i/(d_model − 1). The paper has 2i/d_model.",
        "an odd d_model rounded up in the exponent": (
            "With an odd d_model the exponent is 2i/(d_model + 1), as if there were one dimension more. It is "
            "2i/d_model; only the last cosine falls off."
        ),
        "base 1000 for 10000": "The base is 1000 where the paper has 10000: a zero is missing.",
        "base 100000 for 10000": "The base is 100000 where the paper has 10000: a zero too many.",
        "multiplied by the power": (
            "pos is multiplied by 10000^(2i/d_model) where it has to be divided by it (a sign in the exponent, if you "
            "write exp(… log 10000)): later pairs must turn more slowly, not faster."
        ),
        "product for power": (
            "The divisor is 10000 · 2i/d_model, a product, where it is a power, 10000^(2i/d_model). For i = 0 that "
            "divides by 0 and gives NaN."
        ),
        "10000^(2i) / d_model": (
            "The divisor is 10000^(2i) / d_model: brackets around the exponent are missing, 10000 ** (2 * i / d_model)."
        ),
        "pos / 10000^(2i) / d_model": (
            "The angle is pos / 10000^(2i) / d_model: brackets around the exponent are missing, 10000 ** (2 * i / "
            "d_model)."
        ),
        "(pos / 10000)^(2i / d_model)": (
            "The angle is (pos / 10000)^(2i/d_model): a bracket is in the wrong place. Only 10000 is raised to the "
            "power: pos / 10000^(2i/d_model)."
        ),
        "10000² · i / d_model": (
            "`pos / 10000 ** 2 * i / d_model` is (pos / 10000²) · i / d_model, since ** binds first. Brackets around "
            "the exponent are missing, 10000 ** (2 * i / d_model)."
        ),
        "logarithm to the base 10": (
            "exp(−2i/d_model · log10(10000)) is taken, the logarithm to the base 10. exp needs the natural one, "
            "np.log: exp(−2i/d_model · ln 10000) = 10000^(−2i/d_model)."
        ),
        "all dimensions at the same speed": (
            "The angle is pos in all dimensions: the divisor 10000^(2i/d_model) is missing, or its exponent is always "
            "0 (`//` rounds 2i/d_model down to 0). Each pair has its own frequency."
        ),
        "pos / 10000 without exponent": (
            "The angle is pos / 10000 in all dimensions: the exponent 2i/d_model is missing. Each pair has its own "
            "frequency."
        ),
        "positions from 1": "Positions count from 1. The first is pos = 0, its row is 0, 1, 0, 1, …",
        "positions divided by the length": (
            "Positions are divided by the length and lie between 0 and 1. They are whole numbers, 0, 1, 2, …: the "
            "encoding of a position must not hang on the length of the sentence."
        ),
        "angles in degrees": (
            "The angles are turned from degrees to radians (a factor π/180). pos / 10000^(2i/d_model) is in radians "
            "already, as np.sin wants it."
        ),
        "angles times 2π": (
            "The angles have a factor 2π too much, as if pos were counted in turns. The angle is pos / "
            "10000^(2i/d_model), in radians."
        ),
        "sine and cosine exchanged": (
            "Sine and cosine are exchanged: the even dimensions 2i have the sine, the odd dimensions 2i + 1 the cosine."
        ),
        "sines only": "There are sines in all dimensions: the odd dimensions 2i + 1 have the cosine.",
        "cosines only": "There are cosines in all dimensions: the even dimensions 2i have the sine.",
        "all sines, then all cosines": (
            "All sines stand in the first half and all cosines in the second, concatenated, as in some code "
            "(tensor2tensor). In the paper they alternate: dimension 2i has the sine, 2i + 1 the cosine."
        ),
        "even positions for even dimensions": (
            "Even positions have sines and odd positions cosines: rows and columns are mixed up. The even dimensions "
            "(columns) have the sine, the odd ones the cosine, at every position."
        ),
        "last column of an odd d_model left at 0": (
            "With an odd d_model the last column stays 0. It is a sine: there is one more sine than there are cosines."
        ),
        "one column less for an odd d_model": (
            "With an odd d_model there is one column too few, the last sine: there is one more sine than there are "
            "cosines."
        ),
        "one column more for an odd d_model": (
            "With an odd d_model there is one column too many: the last pair has the sine only, its cosine is cut off."
        ),
        "fails for an odd d_model": (
            "It fails for an odd d_model: the odd dimensions are one fewer than the even ones, so there is one cosine "
            "fewer than there are sines, d_model // 2 of them."
        ),
        "an axis for the batch in front": (
            "There is an axis of length 1 for the batch in front. The result is (length, d_model); adding it to (B, T, "
            "D) broadcasts as it is."
        ),
        "transposed": "It is transposed, (d_model, length). A row is a position: (length, d_model).",
    },
    _wrong_sinusoidal_encoding,
    (
        "How many different speeds are there for d_model = 4, and which two dimensions share one?",
        "PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))",
        "notebook 01, section 3; np.arange(0, d_model, 2) and the slices [:, 0::2] and [:, 1::2]. An odd d_model ends "
        "in a sine.",
    ),
    difficulty=2,
    section="§6",
)

EXERCISES = [EMBEDDING, EMBEDDING_BACKWARD, SINUSOIDAL_ENCODING]
