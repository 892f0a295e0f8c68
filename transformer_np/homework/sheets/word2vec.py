"""Skip-gram with negative sampling: the loss and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from .activations import sigmoid
from .loss import FLOORS

# --- negative_sampling_loss -------------------------------------------------------------------------------------------


def vectors_of_words(rng, N, K, D):
    return rng.normal(size=(N, D)), rng.normal(size=(N, D)), rng.normal(size=(N, K, D))


def with_scores(rng, N, K, D, size):
    """Vectors whose scores are ±size, of either sign for the context and for the negatives."""
    center = rng.choice([-1, 1], (N, D)) * rng.uniform(0.5, 1.5, (N, D))
    score, noise = size * rng.choice([-1.0, 1.0], N), size * rng.choice([-1.0, 1.0], (N, K))
    score[:2], noise[0, :2] = (-size, size), (-size, size)
    length = (center**2).sum(axis=-1)  # (N,)
    return center, (score / length)[:, None] * center, (noise / length[:, None])[..., None] * center[:, None]


def negative_sampling_loss_cases(rng):
    sizes = draw_sizes(rng, "N K D", least=3)
    N, K, _ = sizes.values()

    def case(label, vectors=vectors_of_words, **changed):
        new = sizes | changed
        return Case(label, vectors(rng, *new.values()), sizes=new)

    def with_context_among(rng, *sizes):
        center, context, negatives = vectors_of_words(rng, *sizes)
        negatives[:, 1] = context
        negatives[0] = context[0]
        return center, context, negatives

    def of_zeros(rng, *sizes):
        _, context, negatives = vectors_of_words(rng, *sizes)
        return np.zeros_like(context), context, negatives

    return [
        case(""),
        extended(case("scores of ±60", lambda *args: with_scores(*args, 60.0))),
        extended(case("scores of ±10,000", lambda *args: with_scores(*args, 1e4))),
        case("the context among its negatives", with_context_among),
        case("all scores 0", of_zeros),
        case("as many negatives as pairs", K=N),
        case("as many negatives as dimensions", D=K),
        case("all sizes equal", K=N, D=N),
        case("one pair", N=1),
        case("one negative for each pair", K=1),
    ]


def log_sigmoid(x):
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def negative_sampling_loss(center, context, negatives):
    score = (center * context).sum(axis=-1)  # (N,)
    noise = (center[:, None] * negatives).sum(axis=-1)  # (N, K)
    log_p, log_q = log_sigmoid(score), log_sigmoid(-noise)
    of_negatives = log_q.sum(axis=-1)
    loss = -np.mean(log_p + of_negatives)
    p_context, p_negatives = sigmoid(score), sigmoid(noise)
    return loss, p_context, p_negatives


FLOOR_MISTAKE = """
- p kept above {floor:g}:
    log_sigmoid(score), log_sigmoid(-noise) ->
        np.log(sigmoid(score) + {floor!r}), np.log(1 - sigmoid(noise) + {floor!r})
  p is kept above {floor:g} for the logarithm (clip, or p + {floor:g}), so an impossible word never costs more than
  −log({floor:g}). Use log σ(s) = min(s, 0) − log(1 + exp(−|s|)), which needs no such floor.
"""

NEGATIVE_SAMPLING_LOSS = Exercise(
    F.negative_sampling_loss,
    results=(Result("loss", ""), Result("p_context", "N"), Result("p_negatives", "N K")),
    cases=negative_sampling_loss_cases,
    answer=negative_sampling_loss,
    hints=(
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
    mistakes="""
- negatives' score without the minus:  log_sigmoid(-noise) -> log_sigmoid(noise)
  The minus before the negatives' score is missing: log σ(c · n) instead of log σ(−c · n). As it is, the negatives are
  drawn near like the context, and all words end in one place.
- context's score with a minus:  log_sigmoid(score) -> log_sigmoid(-score)
  The context's score has a minus: log σ(−c · o) instead of log σ(c · o). The minus belongs to the negatives; the
  context must be drawn near.
- both signs turned:
    log_sigmoid(-noise) -> log_sigmoid(noise)
    log_sigmoid(score) -> log_sigmoid(-score)
  Both signs are the wrong way round: log σ(−c · o) and log σ(c · n). The context's score is to grow, those of the
  negatives are to fall.
- minus sign missing:  -np.mean -> np.mean
  The minus sign in front is missing: a logarithm of σ is negative. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- negatives subtracted:  log_p + of_negatives -> log_p - of_negatives
  The sum over the negatives is subtracted from the context's term. Both are added: L = −mean of [log σ(c · o) + Σ_k log
  σ(−c · n_k)].
- negatives left out:  log_p + of_negatives -> log_p
  The negatives are left out of the loss. With the context alone the best is one vector for all words, as long as
  possible. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- context left out:  log_p + of_negatives -> of_negatives
  The context is left out of the loss, only the negatives are in it. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- only the first negative:  * negatives -> * negatives[:, :1]
  Only the first negative counts. It is the sum over all K of them: L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- the worst negative only:  log_q.sum -> log_q.min
  Only the negative with the highest score counts (a minimum of the logarithms). It is the sum over all K: L = −mean of
  [log σ(c · o) + Σ_k log σ(−c · n_k)].
- negatives of the first pair for all:  * negatives -> * negatives[0]
  All pairs get the negatives of the first. Each has K of its own: negatives[n], (K, D).
- negatives averaged before the product:  * negatives -> * negatives.mean(axis=1, keepdims=True)
  The negatives of a pair are averaged, and their mean is scored once. Each of the K has a score and a logarithm of its
  own. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- negatives summed before the product:  * negatives -> * negatives.sum(axis=1, keepdims=True)
  The negatives of a pair are summed, and their sum is scored once. Each of the K has a score and a logarithm of its
  own. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- mean over the negatives:  log_q.sum -> log_q.mean
  The negatives' terms are averaged, a factor 1/K too much. They are summed: L = −mean of [log σ(c · o) + Σ_k log σ(−c ·
  n_k)].
- negatives weighted by K:  log_q.sum -> negatives.shape[1] * log_q.sum
  The sum over the negatives is multiplied by K once more. The sum has K terms already: L = −mean of [log σ(c · o) + Σ_k
  log σ(−c · n_k)].
- context once for each negative:  log_p + of_negatives -> negatives.shape[1] * log_p + of_negatives
  The context's term is in the sum over the negatives, and so counts K times. It counts once: L = −mean of [log σ(c · o)
  + Σ_k log σ(−c · n_k)].
- negatives with the context:  center[:, None] -> context[:, None]
  The negatives are scored with the context, o · n. They stand in for the context, so it is the center that they are
  scored with: c · n.
- center with itself:  center * context -> center * center
  The context's score is c · c, the center with itself. It is c · o.
- distance for the product:
    (center * context).sum -> -((center - context) ** 2).sum
    (center[:, None] * negatives).sum -> -((center[:, None] - negatives) ** 2).sum
  The scores are negative squared distances, −|c − o|². They are dot products, c · o.
- vectors brought to length 1:
    score = (center ->
        center = center / np.linalg.norm(center, axis=-1, keepdims=True)
        context = context / np.linalg.norm(context, axis=-1, keepdims=True)
        negatives = negatives / np.linalg.norm(negatives, axis=-1, keepdims=True)
        score = (center
  The vectors are divided by their lengths, so that the scores are cosines. They are dot products, c · o: within [−1, 1]
  σ could never be sure.
- scores divided by √D:
    (center * context).sum(axis=-1) -> (center * context).sum(axis=-1) / np.sqrt(center.shape[1])
    (center[:, None] * negatives).sum(axis=-1) -> (center[:, None] * negatives).sum(axis=-1) / np.sqrt(center.shape[1])
  The scores are divided by √D, as in attention. There is no scale here: c · o.
- mean for the product:
    (center * context).sum -> (center * context).mean
    (center[:, None] * negatives).sum -> (center[:, None] * negatives).mean
  The scores are means over the D features, a factor 1/D too much: c · o is a sum.
- scores cut off at ±6:  log_p, log_q = -> score, noise = np.clip(score, -6, 6), np.clip(noise, -6, 6); log_p, log_q =
  The scores are cut off at ±6 (MAX_EXP of the original program, whose table of σ ends there). They are used as they
  are.
- every center with every context:
    np.mean(log_p + of_negatives) -> np.mean(log_sigmoid(center @ context.T)) - np.mean(of_negatives)
  Every center is scored with the contexts of all pairs, center @ context.T. A pair is one center and its own context,
  row by row: (center * context).sum(axis=-1).
- logarithm missing:  log_sigmoid(score), log_sigmoid(-noise) -> sigmoid(score), sigmoid(-noise)
  The logarithm is missing: this is σ itself. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- sigmoid missing:  log_sigmoid(score), log_sigmoid(-noise) -> score, -noise
  The sigmoid and its logarithm are missing: these are the scores themselves. L = −mean of [log σ(c · o) + Σ_k log σ(−c
  · n_k)].
- base 2:  log_p + of_negatives -> (log_p + of_negatives) / np.log(2)
  The logarithm is to base 2, so the loss is in bits. It is the natural logarithm: nats per pair.
- base 10:  log_p + of_negatives -> (log_p + of_negatives) / np.log(10)
  The logarithm is to base 10. It is the natural logarithm, np.log: nats per pair.
- squared error:  log_sigmoid(score), log_sigmoid(-noise) -> -((1 - sigmoid(score)) ** 2), -(sigmoid(noise) ** 2)
  This is the squared error (1 − p)² + Σ p², not the logarithm. L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- hinge loss:  log_sigmoid(score), log_sigmoid(-noise) -> -np.maximum(0, 1 - score), -np.maximum(0, 1 + noise)
  This is a hinge loss, max(0, 1 − s). It is the logarithm of σ: L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- softmax over the K + 1 words:
    loss = -np.mean(log_p + of_negatives) ->
        words = np.concatenate([score[:, None], noise], axis=1)
        loss = np.mean(np.logaddexp.reduce(words, axis=1) - score)
    sigmoid(score), sigmoid(noise) -> F.softmax(words)[:, 0], F.softmax(words)[:, 1:]
  A softmax over the context and its K negatives is taken, and the logarithm of the context's share. Here each word is a
  decision of its own, near or not, with a sigmoid: L = −mean of [log σ(c · o) + Σ_k log σ(−c · n_k)].
- logarithm of the rounded p:
    log_sigmoid(score), log_sigmoid(-noise) -> np.log(sigmoid(score)), np.log(sigmoid(-noise))
  The logarithm is taken of a σ that was rounded to 0, or exp overflowed to inf: at −10,000 log σ is −10,000 and not
  −inf. Use log σ(s) = min(s, 0) − log(1 + exp(−|s|)), or np.logaddexp(0, −s) with a minus.
- 1 − p for σ(−s):  log_sigmoid(-noise) -> np.log(1 - sigmoid(noise))
  For the negatives it is log(1 − p): 1 − p is rounded to 0 from a score of 37 on, and log 0 is −inf. 1 − σ(s) is σ(−s),
  and log σ(−s) never needs so small a difference.
- exponential not kept from overflowing:
    log_sigmoid(score), log_sigmoid(-noise) -> np.log(sigmoid(score)), np.log(sigmoid(-noise))
    in sigmoid: 1 / (1 + np.exp(-x)) -> np.exp(x) / (1 + np.exp(x))
  σ is exp(s) / (1 + exp(s)): exp(710) overflows, and inf/inf is NaN. Do not pass large positive numbers to exp: 1 / (1
  + exp(−s)) for p, min(s, 0) − log(1 + exp(−|s|)) for log p.
"""
    + "".join(FLOOR_MISTAKE.format(floor=floor) for floor in FLOORS)
    + """
- not averaged:  -np.mean(log_p + of_negatives) -> -(log_p + of_negatives)
  This is one loss for each pair, (N,). The loss is one number, the mean over the pairs.
- sum for mean:  -np.mean(log_p -> -np.sum(log_p
  The loss is the sum over the pairs, not their mean: it is not divided by N, and grows with the batch.
- negatives not divided by N:  np.mean(log_p + of_negatives) -> np.mean(log_p) - np.sum(of_negatives)
  The negatives' part is the sum over all pairs; only the context's is divided by N. L = −mean of [log σ(c · o) + Σ_k
  log σ(−c · n_k)].
- context not divided by N:  np.mean(log_p + of_negatives) -> np.sum(log_p) - np.mean(of_negatives)
  The context's part is the sum over all pairs; only the negatives' is divided by N. L = −mean of [log σ(c · o) + Σ_k
  log σ(−c · n_k)].
- divided by K too:  -np.mean(log_p + of_negatives) -> -np.mean(log_p + of_negatives) / negatives.shape[1]
  The loss is divided by the number of negatives K too. The mean is over the N pairs alone: L = −mean of [log σ(c · o) +
  Σ_k log σ(−c · n_k)].
- divided by K + 1 too:  -np.mean(log_p + of_negatives) -> -np.mean(log_p + of_negatives) / (negatives.shape[1] + 1)
  The loss is divided by K + 1 too, a mean over all words. The mean is over the N pairs alone: L = −mean of [log σ(c ·
  o) + Σ_k log σ(−c · n_k)].
- divided by D too:  -np.mean(log_p + of_negatives) -> -np.mean(log_p + of_negatives) / center.shape[1]
  The loss is divided by the number of features D too. The mean is over the N pairs alone: L = −mean of [log σ(c · o) +
  Σ_k log σ(−c · n_k)].
- exponential of the loss:  -np.mean(log_p + of_negatives) -> np.exp(-np.mean(log_p + of_negatives))
  This is exp(loss). The loss is the mean of the negative logarithms itself.
- 1 − p_context for p_context:  sigmoid(score) -> 1 - sigmoid(score)
  The returned p_context is 1 − p, or σ(−c · o). It is how sure the model is that the word stood near, σ(c · o).
- 1 − p_negatives for p_negatives:  sigmoid(noise) -> 1 - sigmoid(noise)
  The returned p_negatives is 1 − p, the σ(−c · n) of the loss. It is how sure the model is that the word stood near,
  σ(c · n), which should become 0.
- p − 1 for p_context:  sigmoid(score) -> sigmoid(score) - 1
  p − 1 is returned as p_context, the gradient's factor. It is p = σ(c · o) itself.
- scores for p:  sigmoid(score), sigmoid(noise) -> score, noise
  The scores are returned where p belongs: p = σ(score), between 0 and 1.
- logarithms for p:  sigmoid(score), sigmoid(noise) -> log_p, log_q
  The logarithms are returned where p belongs: p_context is σ(c · o), p_negatives σ(c · n).
- p_context with an axis of length 1:  sigmoid(score) -> sigmoid(score)[:, None]
  p_context keeps an axis of length 1, (N, 1). It is one number for each pair, (N,).
- p_negatives summed over the negatives:  sigmoid(noise) -> sigmoid(noise).sum(axis=1)
  p_negatives is summed over the negatives, (N,). The backward needs the p of each, (N, K).
- p_negatives averaged over the negatives:  sigmoid(noise) -> sigmoid(noise).mean(axis=1)
  p_negatives is averaged over the negatives, (N,). The backward needs the p of each, (N, K).
- p_negatives transposed:  sigmoid(noise) -> sigmoid(noise).T
  p_negatives is transposed, (K, N). A row is a pair: (N, K).
- p_negatives flattened:  sigmoid(noise) -> sigmoid(noise).reshape(-1)
  p_negatives has all negatives in one axis. It is (N, K), a row for each pair.
- p_context and p_negatives swapped:  loss, p_context, p_negatives -> loss, p_negatives, p_context
  p_context and p_negatives are returned in each other's place: loss, p_context, p_negatives.
- loss returned last:  loss, p_context, p_negatives -> p_context, p_negatives, loss
  The loss is returned last. The order is loss, p_context, p_negatives.
""",
)


# --- negative_sampling_loss_backward ----------------------------------------------------------------------------------


def negative_sampling_loss_backward_cases(rng):
    cases = []
    for forward in negative_sampling_loss_cases(rng):
        _, p_context, p_negatives = F.negative_sampling_loss(*forward.arguments)
        cases.append(Case(forward.label, (*forward.arguments, p_context, p_negatives), sizes=forward.sizes))
    plain = cases[0]
    return [
        *cases,
        Case("dloss=-0.7", plain.arguments, {"dloss": -0.7}, plain.sizes),
        Case("dloss=2.5", plain.arguments, {"dloss": 2.5}, plain.sizes),
    ]


def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    N = len(center)
    scale = dloss / N
    ds = scale * (p_context - 1)  # (N,)
    dnoise = scale * p_negatives  # (N, K)
    from_context = ds[:, None] * context
    from_negatives = (dnoise[..., None] * negatives).sum(axis=1)
    dcenter = from_context + from_negatives
    dcontext = ds[:, None] * center
    dnegatives = dnoise[..., None] * center[:, None]
    return dcenter, dcontext, dnegatives


NEGATIVE_SAMPLING_LOSS_BACKWARD = Exercise(
    F.negative_sampling_loss_backward,
    results=(Result("dcenter", "N D"), Result("dcontext", "N D"), Result("dnegatives", "N K D")),
    cases=negative_sampling_loss_backward_cases,
    answer=negative_sampling_loss_backward,
    hints=(
        "What did the model say about each word, what should it have said, and which scores used each vector?",
        "ds = dloss · (p − 1) / N, ds_k = dloss · p_k / N; dc = ds o + Σ_k ds_k n_k, do = ds c, dn_k = ds_k c",
        "notebook 12; it is p − q as in cross_entropy_backward, notebook 06, section 4. [:, None] and [..., None] for "
        "the axes.",
    ),
    difficulty=2,
    section="Mikolov et al. 2013",
    chapter="Word2Vec",
    place=2,
    mistakes="""
- 1 not subtracted from p_context:  p_context - 1 -> p_context
  The context's p is used as it is: 1 must be subtracted. ds = (p − 1) / N for the context and ds_k = p_k / N for a
  negative. As it is, the context is pushed away like a negative.
- 1 − p for the context:  p_context - 1 -> 1 - p_context
  The context's factor is 1 − p; the sign is wrong, it is p − 1. A step against the gradient must raise the context's
  score.
- p + 1 for the context:  p_context - 1 -> p_context + 1
  1 is added to the context's p. Subtract it: ds = (p − 1) / N for the context and ds_k = p_k / N for a negative.
- p_context squared:  (p_context - 1) -> (p_context - 1) ** 2
  The context's factor is squared, (p − 1)², as a loss might be. ds = (p − 1) / N for the context and ds_k = p_k / N for
  a negative.
- p − 1 for the negatives:  scale * p_negatives -> scale * (p_negatives - 1)
  1 is subtracted from the p of the negatives too, as if they had stood near. ds = (p − 1) / N for the context and ds_k
  = p_k / N for a negative.
- −p for the negatives:  scale * p_negatives -> -scale * p_negatives
  The negatives' factor is −p; the sign is wrong, it is p. A step against the gradient must lower the scores of the
  negatives.
- 1 − p for the negatives:  scale * p_negatives -> scale * (1 - p_negatives)
  The negatives' factor is 1 − p, the σ(−c · n) of the loss. Its logarithm's gradient is p: ds = (p − 1) / N for the
  context and ds_k = p_k / N for a negative.
- gradient of σ without the logarithm:
    p_context - 1 -> -p_context * (1 - p_context)
    scale * p_negatives -> scale * p_negatives * (1 - p_negatives)
  The factors are p (1 − p), the slope of σ alone. The logarithm divides by p, or by 1 − p: ds = (p − 1) / N for the
  context and ds_k = p_k / N for a negative.
- slope of σ too:
    (p_context - 1) -> (p_context - 1) * p_context * (1 - p_context)
    scale * p_negatives -> scale * p_negatives * p_negatives * (1 - p_negatives)
  The factors are multiplied by p (1 − p), the slope of σ, once more. They are gradients of the scores already, σ and
  logarithm together: ds = (p − 1) / N for the context and ds_k = p_k / N for a negative.
- all signs turned:  dloss / N -> -dloss / N
  All gradients have the wrong sign: these are steps downhill, or the minus before the mean is forgotten. ds = (p − 1) /
  N for the context and ds_k = p_k / N for a negative.
- 1/p for the context:  p_context - 1 -> -1 / p_context
  The context's factor is −1/p, the gradient with respect to p. The gradient with respect to the score is wanted: with
  the slope p (1 − p) of σ it is p − 1.
- p taken for the scores:  scale = -> p_context, p_negatives = sigmoid(p_context), sigmoid(p_negatives); scale =
  p_context and p_negatives are put through σ once more, as if they were scores. They are σ's output already.
- p of the first negative for all:  scale * p_negatives -> scale * p_negatives[:, :1].repeat(negatives.shape[1], axis=1)
  All negatives get the p of the first. Each has its own, p_negatives[n, k].
- not divided by N:  dloss / N -> dloss
  The gradients are not divided by N. The loss is a mean over the pairs, so each has a share of 1/N.
- divided by K instead of N:  dloss / N -> dloss / negatives.shape[1]
  The gradients are divided by K, the number of negatives, instead of by N. The loss is a mean over the pairs and a sum
  over the negatives.
- divided by K too:  dloss / N -> dloss / p_negatives.size
  The gradients are divided by K too. The loss is a mean over the N pairs and a sum over the negatives.
- divided by K + 1 too:  dloss / N -> dloss / (N * (negatives.shape[1] + 1))
  The gradients are divided by K + 1 too, as if the loss were a mean over all words. It is a mean over the N pairs only.
- divided by D too:  dloss / N -> dloss / center.size
  The gradients are divided by D too. The loss is a mean over the N pairs only.
- divided by N twice:  dloss / N -> dloss / N**2
  The gradients are divided by N twice. The loss is one mean over the N pairs.
- 1/N for the context only:  scale * p_negatives -> dloss * p_negatives
  Only the context's factor is divided by N. The mean is over all of the loss: p_k / N for a negative too.
- 1/N for the negatives only:  scale * (p_context -> dloss * (p_context
  Only the negatives' factors are divided by N. The mean is over all of the loss: (p − 1) / N for the context too.
- negatives averaged:  scale * p_negatives -> scale * p_negatives / negatives.shape[1]
  The negatives' factors are divided by K. The loss has their sum, not their mean: ds_k = p_k / N.
- negatives averaged in dcenter only:  (dnoise[..., None] * negatives).sum -> (dnoise[..., None] * negatives).mean
  In dcenter the negatives' part is divided by K (a mean). It is their sum: dc = ds o + Σ_k ds_k n_k.
- dloss not used:  dloss / N -> 1 / N
  `dloss` is not used: the gradient from above is a factor of all gradients.
- divided by dloss:  dloss / N -> 1 / (dloss * N)
  The gradients are divided by `dloss`; they have to be multiplied by it.
- dloss for the context only:  scale * p_negatives -> p_negatives / N
  `dloss` is used for the context only. It is a factor of the negatives' too.
- dloss for the negatives only:  scale * (p_context - 1) -> (p_context - 1) / N
  `dloss` is used for the negatives only. It is a factor of the context's too.
- dcenter from the context only:  from_context + from_negatives -> from_context
  dcenter lacks the negatives. The center was in all K + 1 scores, so their gradients add: dc = ds o + Σ_k ds_k n_k.
- dcenter from the negatives only:  from_context + from_negatives -> from_negatives
  dcenter lacks the context. The center was in all K + 1 scores, so their gradients add: dc = ds o + Σ_k ds_k n_k.
- dcenter not summed over the negatives:
    from_context + from_negatives -> from_context[:, None] + dnoise[..., None] * negatives
  dcenter is not summed over the negatives, (N, K, D). The center was in all their scores: dc = ds o + Σ_k ds_k n_k.
- negatives subtracted in dcenter:  from_context + from_negatives -> from_context - from_negatives
  In dcenter the negatives' part is subtracted. The sign is in the factors already: dc = ds o + Σ_k ds_k n_k.
- negatives not weighted in dcenter:  (dnoise[..., None] * negatives).sum(axis=1) -> scale * negatives.sum(axis=1)
  In dcenter the negatives are summed without their p. Each counts with its own: dc = ds o + Σ_k ds_k n_k.
- sums of p and of the negatives multiplied:
    (dnoise[..., None] * negatives).sum(axis=1) -> dnoise.sum(axis=1, keepdims=True) * negatives.sum(axis=1)
  In dcenter the p and the negatives are summed first, each on its own, and then multiplied. It is the sum of the
  products: dc = ds o + Σ_k ds_k n_k.
- only the first negative in dcenter:
    (dnoise[..., None] * negatives).sum(axis=1) -> dnoise[:, :1] * negatives[:, 0]
  In dcenter only the first negative counts. It is all K: dc = ds o + Σ_k ds_k n_k.
- only the last negative in dcenter:
    (dnoise[..., None] * negatives).sum(axis=1) -> dnoise[:, -1:] * negatives[:, -1]
  In dcenter only the last negative counts: in the loop it replaces (=) the others instead of being added (+=). dc = ds
  o + Σ_k ds_k n_k.
- context for the negatives in dcenter:  * negatives -> * context[:, None]
  In dcenter the context stands in the negatives' part. Its factor in the scores is n_k: dc = ds o + Σ_k ds_k n_k.
- center for context in dcenter:  * context -> * center
  In dcenter the center itself stands in the context's part. Its factor in the score is o: dc = ds o + Σ_k ds_k n_k.
- context for center in dcontext:  dcontext = ds[:, None] * center -> dcontext = ds[:, None] * context
  dcontext is made with the context itself. Its factor in the score is the center: do = ds c.
- negatives in dcontext too:
    dcontext = ds[:, None] * center -> dcontext = (ds[:, None] + dnoise.sum(axis=1, keepdims=True)) * center
  The negatives' factors are in dcontext too. The context was in its own score only: do = ds c.
- negatives for center in dnegatives:  center[:, None] -> negatives
  dnegatives is made with the negatives themselves. Their factor in the scores is the center: dn_k = ds_k c.
- context for center in dnegatives:  center[:, None] -> context[:, None]
  dnegatives is made with the context. The factor of the negatives in the scores is the center: dn_k = ds_k c.
- center not used in dnegatives:  center[:, None] -> np.ones_like(negatives)
  dnegatives holds the factors p_k / N alone. They must be multiplied by the center: dn_k = ds_k c.
- dnegatives summed over the negatives:  dcontext, dnegatives -> dcontext, dnegatives.sum(axis=1)
  dnegatives is summed over the negatives, (N, D). Each has its own vector, (N, K, D).
- dnegatives summed over the pairs:  dcontext, dnegatives -> dcontext, dnegatives.sum(axis=0)
  dnegatives is summed over the pairs, (K, D). Each pair has negatives of its own, (N, K, D): embedding_backward adds
  them to the rows of the table.
- dnegatives (K, N, D):  dcontext, dnegatives -> dcontext, dnegatives.swapaxes(0, 1)
  dnegatives is (K, N, D): pairs and negatives are swapped. It is (N, K, D).
- gradients summed over the pairs:  dcenter, dcontext -> dcenter.sum(axis=0), dcontext.sum(axis=0)
  dcenter and dcontext are summed over the pairs, (D,). Each pair has vectors of its own, (N, D): embedding_backward
  adds them to the rows of the table.
- dcenter and dcontext swapped:  dcenter, dcontext -> dcontext, dcenter
  dcenter and dcontext are returned in each other's place. The order is dcenter, dcontext, dnegatives.
- dcontext and dnegatives swapped:  dcontext, dnegatives -> dnegatives, dcontext
  dcontext and dnegatives are returned in each other's place. The order is dcenter, dcontext, dnegatives.
- dcenter last:  dcenter, dcontext, dnegatives -> dcontext, dnegatives, dcenter
  dcenter is returned last. The order is dcenter, dcontext, dnegatives.
- in reverse order:  dcenter, dcontext, dnegatives -> dnegatives, dcontext, dcenter
  The gradients are returned in reverse order. The order is dcenter, dcontext, dnegatives.
""",
)

EXERCISES = [NEGATIVE_SAMPLING_LOSS, NEGATIVE_SAMPLING_LOSS_BACKWARD]
