"""Skip-gram with negative sampling: the loss and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .activations import sigmoid
from .loss import _FLOORS, _kept_above

# --- negative_sampling_loss ------------------------------------------------------------------------------------------


def _vectors(rng, N, K, D):
    return rng.normal(size=(N, D)), rng.normal(size=(N, D)), rng.normal(size=(N, K, D))


def _with_scores(rng, N, K, D, size):
    """Vectors whose scores are ±size, of either sign for the context and for the negatives."""
    center = rng.choice([-1, 1], (N, D)) * rng.uniform(0.5, 1.5, (N, D))
    score, noise = size * rng.choice([-1.0, 1.0], N), size * rng.choice([-1.0, 1.0], (N, K))
    score[:2], noise[0, :2] = (-size, size), (-size, size)
    length = (center**2).sum(axis=-1)  # (N,)
    return center, (score / length)[:, None] * center, (noise / length[:, None])[..., None] * center[:, None]


def _loss_cases(rng):
    sizes = draw_sizes(rng, "N K D", least=3)
    N, K, _ = sizes.values()

    def case(label, vectors=_vectors, **changed):
        new = sizes | changed
        return Case(label, vectors(rng, *new.values()), sizes=new)

    def with_context_among(rng, *sizes):
        center, context, negatives = _vectors(rng, *sizes)
        negatives[:, 1] = context
        negatives[0] = context[0]
        return center, context, negatives

    def of_zeros(rng, *sizes):
        _, context, negatives = _vectors(rng, *sizes)
        return np.zeros_like(context), context, negatives

    return [
        case(""),
        case("scores of ±60", lambda *args: _with_scores(*args, 60.0)),
        case("scores of ±10,000", lambda *args: _with_scores(*args, 1e4)),
        case("the context among its negatives", with_context_among),
        case("all scores 0", of_zeros),
        case("as many negatives as pairs", K=N),
        case("as many negatives as dimensions", D=K),
        case("all sizes equal", K=N, D=N),
        case("one pair", N=1),
        case("one negative for each pair", K=1),
    ]


def _wrong_scores(made, center, context, negatives):
    """The scores of the contexts (N,) and of the negatives (N, K)."""
    D = center.shape[-1]
    if made("vectors brought to length 1"):
        center, context, negatives = (
            x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (center, context, negatives)
        )
    if made("only the first negative"):
        negatives = negatives[:, :1]
    if made("negatives of the first pair for all"):
        negatives = np.broadcast_to(negatives[0], negatives.shape)
    if made("negatives averaged before the product"):
        negatives = negatives.mean(axis=1, keepdims=True)
    if made("negatives summed before the product"):
        negatives = negatives.sum(axis=1, keepdims=True)
    score = (center * context).sum(axis=-1)
    partner = context if made("negatives with the context") else center
    noise = (partner[:, None] * negatives).sum(axis=-1)
    if made("center with itself"):
        score = (center**2).sum(axis=-1)
    if made("distance for the product"):
        score, noise = -((center - context) ** 2).sum(axis=-1), -((center[:, None] - negatives) ** 2).sum(axis=-1)
    if made("scores divided by √D"):
        score, noise = score / np.sqrt(D), noise / np.sqrt(D)
    if made("mean for the product"):
        score, noise = score / D, noise / D
    if made("scores cut off at ±6"):
        score, noise = np.clip(score, -6, 6), np.clip(noise, -6, 6)
    return score, noise


def _log_sigmoid(x):
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _wrong_logarithms(made, score, noise):
    """log σ(score) and log σ(−noise), or what is taken for them."""
    context_sign = -1 if made("context's score with a minus") or made("both signs turned") else 1
    noise_sign = 1 if made("negatives' score without the minus") or made("both signs turned") else -1
    signed, signed_noise = context_sign * score, noise_sign * noise
    p, p_noise = sigmoid(score), sigmoid(noise)
    if made("exponential not kept from overflowing"):
        return np.log(np.exp(signed) / (1 + np.exp(signed))), np.log(np.exp(signed_noise) / (1 + np.exp(signed_noise)))
    if made("logarithm of the rounded p"):
        return np.log(sigmoid(signed)), np.log(sigmoid(signed_noise))
    if made("1 − p for σ(−s)"):
        return _log_sigmoid(signed), np.log(1 - p_noise)
    for floor in _FLOORS:
        if made(_kept_above(floor)):
            return np.log(p + floor), np.log(1 - p_noise + floor)
    logarithms = _log_sigmoid(signed), _log_sigmoid(signed_noise)
    if made("logarithm missing"):
        logarithms = sigmoid(signed), sigmoid(signed_noise)
    if made("sigmoid missing"):
        logarithms = signed, signed_noise
    if made("squared error"):
        logarithms = -((1 - p) ** 2), -(p_noise**2)
    if made("hinge loss"):
        logarithms = -np.maximum(0, 1 - score), -np.maximum(0, 1 + noise)
    base = np.log(2) if made("base 2") else np.log(10) if made("base 10") else 1
    return logarithms[0] / base, logarithms[1] / base


def _wrong_loss(made, center, context, negatives):
    _, K, D = negatives.shape
    score, noise = _wrong_scores(made, center, context, negatives)
    log_p, log_q = _wrong_logarithms(made, score, noise)
    p_context, p_negatives = sigmoid(score), sigmoid(noise)
    if made("exponential not kept from overflowing"):
        p_context, p_negatives = np.exp(score) / (1 + np.exp(score)), np.exp(noise) / (1 + np.exp(noise))
    of_negatives = log_q.sum(axis=-1)
    if made("mean over the negatives"):
        of_negatives = log_q.mean(axis=-1)
    if made("the worst negative only"):
        of_negatives = log_q.min(axis=-1)
    if made("negatives weighted by K"):
        of_negatives = K * of_negatives
    if made("negatives subtracted"):
        of_negatives = -of_negatives
    if made("negatives left out"):
        of_negatives = 0
    if made("context left out"):
        log_p = 0
    if made("context once for each negative"):
        log_p = K * log_p
    total = -(log_p + of_negatives)  # (N,)
    if made("softmax over the K + 1 words"):
        p = F.softmax(np.concatenate([score[:, None], noise], axis=1))
        p_context, p_negatives = p[:, 0], p[:, 1:]
        total = np.logaddexp.reduce(np.concatenate([score[:, None], noise], axis=1), axis=1) - score
    loss = total.mean()
    if made("negatives not divided by N"):
        loss = -np.mean(log_p) - np.sum(of_negatives)
    if made("context not divided by N"):
        loss = -np.sum(log_p) - np.mean(of_negatives)
    if made("every center with every context"):
        loss = -_log_sigmoid(center @ context.T).mean() - np.mean(of_negatives)
    if made("not averaged"):
        loss = total
    if made("sum for mean"):
        loss = total.sum()
    for name, number in (("K", K), ("K + 1", K + 1), ("D", D)):
        if made(f"divided by {name} too"):
            loss = loss / number
    if made("minus sign missing"):
        loss = -loss
    if made("exponential of the loss"):
        loss = np.exp(loss)
    if made("1 − p_context for p_context"):
        p_context = 1 - p_context
    if made("1 − p_negatives for p_negatives"):
        p_negatives = 1 - p_negatives
    if made("scores for p"):
        p_context, p_negatives = score, noise
    if made("logarithms for p"):
        p_context, p_negatives = log_p, log_q
    if made("p − 1 for p_context"):
        p_context = p_context - 1
    if made("p_context with an axis of length 1"):
        p_context = p_context[:, None]
    if made("p_negatives summed over the negatives"):
        p_negatives = p_negatives.sum(axis=1)
    if made("p_negatives averaged over the negatives"):
        p_negatives = p_negatives.mean(axis=1)
    if made("p_negatives transposed"):
        p_negatives = p_negatives.T
    if made("p_negatives flattened"):
        p_negatives = p_negatives.reshape(-1)
    if made("p_context and p_negatives swapped"):
        p_context, p_negatives = p_negatives, p_context
    return (p_context, p_negatives, loss) if made("loss returned last") else (loss, p_context, p_negatives)


_FORMULA = "L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)]."

NEGATIVE_SAMPLING_LOSS = Exercise(
    F.negative_sampling_loss,
    (Result("loss", ""), Result("p_context", "N"), Result("p_negatives", "N K")),
    _loss_cases,
    {
        "negatives' score without the minus": (
            "The minus before the negatives' score is missing: log σ(c · n) instead of log σ(−c · n). As it is, the "
            "negatives are drawn near like the context, and all words end in one place."
        ),
        "context's score with a minus": (
            "The context's score has a minus: log σ(−c · o) instead of log σ(c · o). The minus belongs to the "
            "negatives; the context is to be drawn near."
        ),
        "both signs turned": (
            "Both signs are the wrong way round: log σ(−c · o) and log σ(c · n). The context's score is to grow, "
            "those of the negatives are to fall."
        ),
        "minus sign missing": f"The minus sign in front is missing: a logarithm of σ is negative. {_FORMULA}",
        "negatives subtracted": (
            f"The sum over the negatives is subtracted from the context's term. Both are added: {_FORMULA}"
        ),
        "negatives left out": (
            "The negatives are left out of the loss. With the context alone the best is one vector for all words, as "
            f"long as possible. {_FORMULA}"
        ),
        "context left out": f"The context is left out of the loss, only the negatives are in it. {_FORMULA}",
        "only the first negative": f"Only the first negative counts. It is the sum over all K of them: {_FORMULA}",
        "the worst negative only": (
            f"Only the negative with the highest score counts (a minimum of the logarithms). It is the sum over all K: "
            f"{_FORMULA}"
        ),
        "negatives of the first pair for all": (
            "All pairs get the negatives of the first. Each has K of its own: negatives[n], (K, D)."
        ),
        "negatives averaged before the product": (
            "The negatives of a pair are averaged, and their mean is scored once. Each of the K has a score and a "
            f"logarithm of its own. {_FORMULA}"
        ),
        "negatives summed before the product": (
            "The negatives of a pair are summed, and their sum is scored once. Each of the K has a score and a "
            f"logarithm of its own. {_FORMULA}"
        ),
        "mean over the negatives": (
            f"The negatives' terms are averaged, a factor 1/K too much. They are summed: {_FORMULA}"
        ),
        "negatives weighted by K": (
            f"The sum over the negatives is multiplied by K once more. The sum has K terms already: {_FORMULA}"
        ),
        "context once for each negative": (
            f"The context's term is in the sum over the negatives, and so counts K times. It counts once: {_FORMULA}"
        ),
        "negatives with the context": (
            "The negatives are scored with the context, o · n. They stand in for the context, so it is the center that "
            "they are scored with: c · n."
        ),
        "center with itself": "The context's score is c · c, the center with itself. It is c · o.",
        "distance for the product": (
            "The scores are negative squared distances, −|c − o|². They are dot products, c · o."
        ),
        "vectors brought to length 1": (
            "The vectors are divided by their lengths, so that the scores are cosines. They are dot products, c · o: "
            "within [−1, 1] σ could never be sure."
        ),
        "scores divided by √D": "The scores are divided by √D, as in attention. There is no scale here: c · o.",
        "mean for the product": "The scores are means over the D features, a factor 1/D too much: c · o is a sum.",
        "scores cut off at ±6": (
            "The scores are cut off at ±6 (MAX_EXP of the original program, whose table of σ ends there). They are "
            "used as they are."
        ),
        "every center with every context": (
            "Every center is scored with the contexts of all pairs, center @ context.T. A pair is one center and its "
            "own context, row by row: (center * context).sum(axis=-1)."
        ),
        "logarithm missing": f"The logarithm is missing: this is σ itself. {_FORMULA}",
        "sigmoid missing": f"The sigmoid and its logarithm are missing: these are the scores themselves. {_FORMULA}",
        "base 2": "The logarithm is to base 2, so the loss is in bits. It is the natural logarithm: nats per pair.",
        "base 10": "The logarithm is to base 10. It is the natural logarithm, np.log: nats per pair.",
        "squared error": f"This is the squared error (1 − p)² + Σ p², not the logarithm. {_FORMULA}",
        "hinge loss": f"This is a hinge loss, max(0, 1 − s). It is the logarithm of σ: {_FORMULA}",
        "softmax over the K + 1 words": (
            "A softmax over the context and its K negatives is taken, and the logarithm of the context's share. Here "
            f"each word is a decision of its own, near or not, with a sigmoid: {_FORMULA}"
        ),
        "logarithm of the rounded p": (
            "The logarithm is taken of a σ that was rounded to 0, or exp overflowed to inf: at −10,000 log σ is "
            "−10,000 and not −inf. Use log σ(s) = min(s, 0) − log(1 + exp(−|s|)), or np.logaddexp(0, −s) with a minus."
        ),
        "1 − p for σ(−s)": (
            "For the negatives it is log(1 − p): 1 − p is rounded to 0 from a score of 37 on, and log 0 is −inf. 1 − "
            "σ(s) is σ(−s), and log σ(−s) never needs so small a difference."
        ),
        "exponential not kept from overflowing": (
            "σ is exp(s) / (1 + exp(s)): exp(710) overflows, and inf/inf is NaN. exp is to be given nothing large and "
            "positive: 1 / (1 + exp(−s)) for p, min(s, 0) − log(1 + exp(−|s|)) for log p."
        ),
        **{
            _kept_above(floor): (
                f"p is kept above {floor:g} for the logarithm (clip, or p + {floor:g}), so a word held impossible "
                f"never costs more than −log({floor:g}). Use log σ(s) = min(s, 0) − log(1 + exp(−|s|)), which needs no "
                "such floor."
            )
            for floor in _FLOORS
        },
        "not averaged": "This is one loss for each pair, (N,). The loss is one number, the mean over the pairs.",
        "sum for mean": (
            "The loss is the sum over the pairs, not their mean: it is not divided by N, and grows with the batch."
        ),
        "negatives not divided by N": (
            f"The negatives' part is the sum over all pairs; only the context's is divided by N. {_FORMULA}"
        ),
        "context not divided by N": (
            f"The context's part is the sum over all pairs; only the negatives' is divided by N. {_FORMULA}"
        ),
        "divided by K too": (
            f"The loss is divided by the number of negatives K too. The mean is over the N pairs alone: {_FORMULA}"
        ),
        "divided by K + 1 too": (
            f"The loss is divided by K + 1 too, a mean over all words. The mean is over the N pairs alone: {_FORMULA}"
        ),
        "divided by D too": (
            f"The loss is divided by the number of features D too. The mean is over the N pairs alone: {_FORMULA}"
        ),
        "exponential of the loss": "This is exp(loss). The loss is the mean of the negative logarithms itself.",
        "1 − p_context for p_context": (
            "What is returned as p_context is 1 − p, or σ(−c · o). It is how sure the model is that the word stood "
            "near, σ(c · o)."
        ),
        "1 − p_negatives for p_negatives": (
            "What is returned as p_negatives is 1 − p, the σ(−c · n) of the loss. It is how sure the model is that the "
            "word stood near, σ(c · n), which should become 0."
        ),
        "p − 1 for p_context": "p − 1 is returned as p_context, the gradient's factor. It is p = σ(c · o) itself.",
        "scores for p": "The scores are returned where p belongs: p = σ(score), between 0 and 1.",
        "logarithms for p": "The logarithms are returned where p belongs: p_context is σ(c · o), p_negatives σ(c · n).",
        "p_context with an axis of length 1": (
            "p_context keeps an axis of length 1, (N, 1). It is one number for each pair, (N,)."
        ),
        "p_negatives summed over the negatives": (
            "p_negatives is summed over the negatives, (N,). The backward needs the p of each, (N, K)."
        ),
        "p_negatives averaged over the negatives": (
            "p_negatives is averaged over the negatives, (N,). The backward needs the p of each, (N, K)."
        ),
        "p_negatives transposed": "p_negatives is transposed, (K, N). A row is a pair: (N, K).",
        "p_negatives flattened": "p_negatives has all negatives in one axis. It is (N, K), a row for each pair.",
        "p_context and p_negatives swapped": (
            "p_context and p_negatives are returned in each other's place: loss, p_context, p_negatives."
        ),
        "loss returned last": "The loss is returned last. The order is loss, p_context, p_negatives.",
    },
    _wrong_loss,
    (
        "The model is shown a word that stood near and K drawn ones. What should it say to each, and how surprised is "
        "it?",
        "L = −mean over N of [log σ(c · o) + Σ_k log σ(−c · n_k)],  p_context = σ(c · o),  p_negatives = σ(c · n_k)",
        "notebook 12; einsum or (a * b).sum(axis=-1) for the scores. log σ(s) = min(s, 0) − log(1 + exp(−|s|)), with "
        "np.log1p.",
    ),
    difficulty=2,
    section="Mikolov et al. 2013",
    chapter="Word2Vec",
    place=1,
)


# --- negative_sampling_loss_backward ---------------------------------------------------------------------------------


def _loss_backward_cases(rng):
    cases = []
    for forward in _loss_cases(rng):
        _, p_context, p_negatives = F.negative_sampling_loss(*forward.arguments)
        cases.append(Case(forward.label, (*forward.arguments, p_context, p_negatives), sizes=forward.sizes))
    plain = cases[0]
    return [
        *cases,
        Case("dloss=-0.7", plain.arguments, {"dloss": -0.7}, plain.sizes),
        Case("dloss=2.5", plain.arguments, {"dloss": 2.5}, plain.sizes),
    ]


def _wrong_loss_backward(made, center, context, negatives, p_context, p_negatives, dloss=1.0):
    N, K, D = negatives.shape
    if made("p taken for the scores"):
        p_context, p_negatives = sigmoid(p_context), sigmoid(p_negatives)
    slope, slope_noise = p_context * (1 - p_context), p_negatives * (1 - p_negatives)
    of_context = {
        "1 not subtracted from p_context": p_context,
        "1 − p for the context": 1 - p_context,
        "p + 1 for the context": p_context + 1,
        "gradient of σ without the logarithm": -slope,
        "slope of σ too": (p_context - 1) * slope,
        "1/p for the context": -1 / p_context,
        "p_context squared": (p_context - 1) ** 2,
    }
    of_negatives = {
        "p − 1 for the negatives": p_negatives - 1,
        "−p for the negatives": -p_negatives,
        "1 − p for the negatives": 1 - p_negatives,
        "gradient of σ without the logarithm": slope_noise,
        "slope of σ too": p_negatives * slope_noise,
    }
    ds = next((factor for name, factor in of_context.items() if made(name)), p_context - 1)  # (N,)
    noise = next((factor for name, factor in of_negatives.items() if made(name)), p_negatives)  # (N, K)
    if made("p of the first negative for all"):
        noise = np.broadcast_to(noise[:, :1], noise.shape)
    denominators = {
        "not divided by N": 1,
        "divided by K instead of N": K,
        "divided by K too": N * K,
        "divided by K + 1 too": N * (K + 1),
        "divided by D too": N * D,
        "divided by N twice": N * N,
    }
    denominator = next((number for name, number in denominators.items() if made(name)), N)
    if made("dloss not used"):
        dloss = 1.0
    if made("divided by dloss"):
        dloss = 1 / dloss
    if made("all signs turned"):
        dloss = -dloss
    ds, noise = ds * dloss / denominator, noise * dloss / denominator
    if made("1/N for the context only"):
        noise = noise * N
    if made("1/N for the negatives only"):
        ds = ds * N
    if made("dloss for the context only"):
        noise = noise / dloss
    if made("dloss for the negatives only"):
        ds = ds / dloss
    if made("negatives averaged"):
        noise = noise / K

    beside_context = center if made("center for context in dcenter") else context
    from_context = ds[:, None] * beside_context
    from_negatives = (noise[..., None] * negatives).sum(axis=1)
    if made("negatives averaged in dcenter only"):
        from_negatives = from_negatives / K
    if made("negatives not weighted in dcenter"):
        from_negatives = negatives.sum(axis=1) * dloss / denominator
    if made("sums of p and of the negatives multiplied"):
        from_negatives = noise.sum(axis=1, keepdims=True) * negatives.sum(axis=1)
    if made("only the first negative in dcenter"):
        from_negatives = noise[:, :1] * negatives[:, 0]
    if made("only the last negative in dcenter"):
        from_negatives = noise[:, -1:] * negatives[:, -1]
    if made("context for the negatives in dcenter"):
        from_negatives = noise.sum(axis=1, keepdims=True) * context
    if made("negatives subtracted in dcenter"):
        from_negatives = -from_negatives
    dcenter = from_context + from_negatives
    if made("dcenter from the negatives only"):
        dcenter = from_negatives
    if made("dcenter from the context only"):
        dcenter = from_context
    if made("dcenter not summed over the negatives"):
        dcenter = from_context[:, None] + noise[..., None] * negatives

    dcontext = ds[:, None] * (context if made("context for center in dcontext") else center)
    if made("negatives in dcontext too"):
        dcontext = dcontext + noise.sum(axis=1, keepdims=True) * center
    beside = {
        "negatives for center in dnegatives": negatives,
        "context for center in dnegatives": context[:, None],
    }
    dnegatives = noise[..., None] * next((array for name, array in beside.items() if made(name)), center[:, None])
    if made("center not used in dnegatives"):
        dnegatives = noise[..., None] * np.ones_like(negatives)
    if made("dnegatives summed over the negatives"):
        dnegatives = dnegatives.sum(axis=1)
    if made("dnegatives summed over the pairs"):
        dnegatives = dnegatives.sum(axis=0)
    if made("dnegatives (K, N, D)"):
        dnegatives = dnegatives.swapaxes(0, 1)
    if made("gradients summed over the pairs"):
        dcenter, dcontext = dcenter.sum(axis=0), dcontext.sum(axis=0)
    orders = {
        "dcenter and dcontext swapped": (dcontext, dcenter, dnegatives),
        "dcontext and dnegatives swapped": (dcenter, dnegatives, dcontext),
        "dcenter last": (dcontext, dnegatives, dcenter),
        "in reverse order": (dnegatives, dcontext, dcenter),
    }
    return next((order for name, order in orders.items() if made(name)), (dcenter, dcontext, dnegatives))


_OF_SCORES = "ds = (p − 1) / N for the context and ds_k = p_k / N for a negative"
_OF_CENTER = "dc = ds o + Σ_k ds_k n_k."
_ORDER = "The order is dcenter, dcontext, dnegatives."

NEGATIVE_SAMPLING_LOSS_BACKWARD = Exercise(
    F.negative_sampling_loss_backward,
    (Result("dcenter", "N D"), Result("dcontext", "N D"), Result("dnegatives", "N K D")),
    _loss_backward_cases,
    {
        "1 not subtracted from p_context": (
            f"The context's p is used as it is: 1 is to be subtracted. {_OF_SCORES}. As it is, the context is pushed "
            "away like a negative."
        ),
        "1 − p for the context": (
            "The context's factor is 1 − p; the sign is wrong, it is p − 1. A step against the gradient must raise the "
            "context's score."
        ),
        "p + 1 for the context": f"1 is added to the context's p where it has to be subtracted: {_OF_SCORES}.",
        "p_context squared": f"The context's factor is squared, (p − 1)², as a loss might be. {_OF_SCORES}.",
        "p − 1 for the negatives": (
            f"1 is subtracted from the p of the negatives too, as if they had stood near. {_OF_SCORES}."
        ),
        "−p for the negatives": (
            "The negatives' factor is −p; the sign is wrong, it is p. A step against the gradient must lower the "
            "scores of the negatives."
        ),
        "1 − p for the negatives": (
            f"The negatives' factor is 1 − p, the σ(−c · n) of the loss. Its logarithm's gradient is p: {_OF_SCORES}."
        ),
        "gradient of σ without the logarithm": (
            f"The factors are p (1 − p), the slope of σ alone. The logarithm divides by p, or by 1 − p: {_OF_SCORES}."
        ),
        "slope of σ too": (
            "The factors are multiplied by p (1 − p), the slope of σ, once more. They are gradients of the scores "
            f"already, σ and logarithm together: {_OF_SCORES}."
        ),
        "all signs turned": (
            "All gradients have the wrong sign: these are steps downhill, or the minus before the mean is forgotten. "
            f"{_OF_SCORES}."
        ),
        "1/p for the context": (
            "The context's factor is −1/p, the gradient with respect to p. Wanted is that of the score: with the slope "
            "p (1 − p) of σ it is p − 1."
        ),
        "p taken for the scores": (
            "p_context and p_negatives are put through σ once more, as if they were scores. They are σ's output "
            "already."
        ),
        "p of the first negative for all": "All negatives get the p of the first. Each has its own, p_negatives[n, k].",
        "not divided by N": (
            "The gradients are not divided by N. The loss is a mean over the pairs, so each has a share of 1/N."
        ),
        "divided by K instead of N": (
            "The gradients are divided by K, the number of negatives, instead of by N. The loss is a mean over the "
            "pairs and a sum over the negatives."
        ),
        "divided by K too": (
            "The gradients are divided by K too. The loss is a mean over the N pairs and a sum over the negatives."
        ),
        "divided by K + 1 too": (
            "The gradients are divided by K + 1 too, as if the loss were a mean over all words. It is a mean over the "
            "N pairs only."
        ),
        "divided by D too": "The gradients are divided by D too. The loss is a mean over the N pairs only.",
        "divided by N twice": "The gradients are divided by N twice. The loss is one mean over the N pairs.",
        "1/N for the context only": (
            "Only the context's factor is divided by N. The mean is over all of the loss: p_k / N for a negative too."
        ),
        "1/N for the negatives only": (
            "Only the negatives' factors are divided by N. The mean is over all of the loss: (p − 1) / N for the "
            "context too."
        ),
        "negatives averaged": (
            "The negatives' factors are divided by K. The loss has their sum, not their mean: ds_k = p_k / N."
        ),
        "negatives averaged in dcenter only": (
            f"In dcenter the negatives' part is divided by K (a mean). It is their sum: {_OF_CENTER}"
        ),
        "dloss not used": ("`dloss` is not used: the gradient from above is a factor of all gradients."),
        "divided by dloss": "The gradients are divided by `dloss`; they have to be multiplied by it.",
        "dloss for the context only": "`dloss` is used for the context only. It is a factor of the negatives' too.",
        "dloss for the negatives only": "`dloss` is used for the negatives only. It is a factor of the context's too.",
        "dcenter from the context only": (
            f"dcenter lacks the negatives. The center was in all K + 1 scores, so their gradients add: {_OF_CENTER}"
        ),
        "dcenter from the negatives only": (
            f"dcenter lacks the context. The center was in all K + 1 scores, so their gradients add: {_OF_CENTER}"
        ),
        "dcenter not summed over the negatives": (
            f"dcenter is not summed over the negatives, (N, K, D). The center was in all their scores: {_OF_CENTER}"
        ),
        "negatives subtracted in dcenter": (
            f"In dcenter the negatives' part is subtracted. The sign is in the factors already: {_OF_CENTER}"
        ),
        "negatives not weighted in dcenter": (
            f"In dcenter the negatives are summed without their p. Each counts with its own: {_OF_CENTER}"
        ),
        "sums of p and of the negatives multiplied": (
            f"In dcenter the p and the negatives are summed first, each on its own, and then multiplied. It is the sum "
            f"of the products: {_OF_CENTER}"
        ),
        "only the first negative in dcenter": f"In dcenter only the first negative counts. It is all K: {_OF_CENTER}",
        "only the last negative in dcenter": (
            "In dcenter only the last negative counts: in the loop it replaces (=) the others instead of being added "
            f"(+=). {_OF_CENTER}"
        ),
        "context for the negatives in dcenter": (
            f"In dcenter the context stands in the negatives' part. What stood beside the center was n_k: {_OF_CENTER}"
        ),
        "center for context in dcenter": (
            f"In dcenter the center itself stands in the context's part. What stood beside it was o: {_OF_CENTER}"
        ),
        "context for center in dcontext": (
            "dcontext is made with the context itself. What stood beside it in the score was the center: do = ds c."
        ),
        "negatives in dcontext too": (
            "The negatives' factors are in dcontext too. The context was in its own score only: do = ds c."
        ),
        "negatives for center in dnegatives": (
            "dnegatives is made with the negatives themselves. What stood beside them in the scores was the center: "
            "dn_k = ds_k c."
        ),
        "context for center in dnegatives": (
            "dnegatives is made with the context. What stood beside the negatives in the scores was the center: dn_k = "
            "ds_k c."
        ),
        "center not used in dnegatives": (
            "dnegatives holds the factors p_k / N alone. They are to be multiplied by the center: dn_k = ds_k c."
        ),
        "dnegatives summed over the negatives": (
            "dnegatives is summed over the negatives, (N, D). Each has its own vector, (N, K, D)."
        ),
        "dnegatives summed over the pairs": (
            "dnegatives is summed over the pairs, (K, D). Each pair has negatives of its own, (N, K, D): which rows of "
            "the table they are, the embedding's backward knows."
        ),
        "dnegatives (K, N, D)": "dnegatives is (K, N, D): pairs and negatives have changed places. It is (N, K, D).",
        "gradients summed over the pairs": (
            "dcenter and dcontext are summed over the pairs, (D,). Each pair has vectors of its own, (N, D): which "
            "rows of the table they are, the embedding's backward knows."
        ),
        "dcenter and dcontext swapped": f"dcenter and dcontext are returned in each other's place. {_ORDER}",
        "dcontext and dnegatives swapped": f"dcontext and dnegatives are returned in each other's place. {_ORDER}",
        "dcenter last": f"dcenter is returned last. {_ORDER}",
        "in reverse order": f"The gradients are returned in reverse order. {_ORDER}",
    },
    _wrong_loss_backward,
    (
        "What did the model say of each word, what should it have said, and in how many scores was each vector?",
        "ds = dloss · (p − 1) / N, ds_k = dloss · p_k / N; dc = ds o + Σ_k ds_k n_k, do = ds c, dn_k = ds_k c",
        "notebook 12; it is p − q as in cross_entropy_backward, notebook 06, section 4. [:, None] and [..., None] for "
        "the axes.",
    ),
    difficulty=2,
    section="Mikolov et al. 2013",
    chapter="Word2Vec",
    place=2,
)

EXERCISES = [NEGATIVE_SAMPLING_LOSS, NEGATIVE_SAMPLING_LOSS_BACKWARD]
