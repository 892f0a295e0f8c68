"""Right answers that are written in other ways than the library: none may be rejected."""

import math

import numpy as np
import pytest

from transformer_np.decoding import Hypothesis
from transformer_np.homework import check
from transformer_np.training.optim import Optimizer

REWRITES = {}


def rewrite(name, *marks):
    """Registers a right answer to the exercise of this name; there may be more than one."""

    def register(function):
        REWRITES[f"{name}: {function.__name__}"] = pytest.param(name, function, marks=marks)
        return function

    return register


# --- layers ----------------------------------------------------------------------------------------------------------


@rewrite("linear_backward")
def row_by_row(dy, x, w):
    dx, dw, db = np.zeros_like(x), np.zeros_like(w), np.zeros(w.shape[1])
    for place in np.ndindex(x.shape[:-1]):
        dx[place] = w @ dy[place]
        dw += np.outer(x[place], dy[place])
        db += dy[place]
    return [dx, dw, db]


@rewrite("dropout")
def with_other_draws(x, p, rng):
    keep = np.random.default_rng(rng).binomial(1, 1 - p, x.shape).astype(bool)
    return np.where(keep, x / (1 - p), 0), keep


@rewrite("relative_position_buckets")
def pair_by_pair(T, S=None, num_buckets=32, max_distance=128, bidirectional=True):
    S = T if S is None else S
    N = num_buckets // 2 if bidirectional else num_buckets
    half, buckets = N // 2, np.zeros((T, S), int)
    for t, s in np.ndindex(T, S):
        distance = S - T + t - s
        n = abs(distance) if bidirectional else max(distance, 0)
        far = math.log(max(n, 1) / half) / math.log(max_distance / half)  # in float64
        buckets[t, s] = n if n < half else min(half + int(far * (N - half)), N - 1)
        buckets[t, s] += N if bidirectional and distance < 0 else 0
    return buckets


# --- loss and optimizers -------------------------------------------------------------------------------------------


@rewrite("negative_sampling_loss_backward")
def all_words_as_one(center, context, negatives, p_context, p_negatives, dloss=1.0):
    words = np.concatenate([context[:, None], negatives], axis=1)  # (N, K + 1, D)
    near = np.arange(words.shape[1]) == 0
    dscores = np.column_stack([p_context, p_negatives]) - near
    dscores = (dscores * dloss / len(center)).astype(np.float32)
    dwords = np.einsum("nk,nd->nkd", dscores, center)
    return np.einsum("nk,nkd->nd", dscores, words), dwords[:, 0], dwords[:, 1:]


@rewrite("Adam")
class AsInThePaper:
    """Without the library's Optimizer; the parameters are replaced, not changed."""

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.parameters, self.lr, self.betas, self.eps, self.t = list(parameters), lr, betas, eps, 0
        self.m, self.v = [0.0] * len(self.parameters), [0.0] * len(self.parameters)

    def step(self):
        self.t += 1
        (b1, b2), t = self.betas, self.t
        for i, p in enumerate(self.parameters):
            self.m[i] = b1 * self.m[i] + (1 - b1) * p.grad
            self.v[i] = b2 * self.v[i] + (1 - b2) * p.grad**2
            p.data = p.data - self.rate(p) * (self.m[i] / (1 - b1**t)) / (np.sqrt(self.v[i] / (1 - b2**t)) + self.eps)

    def rate(self, parameter):
        return self.lr


# --- decoding, text and batches --------------------------------------------------------------------------------------


@rewrite("beam_search", pytest.mark.long)
def with_one_list_of_beams(model, src, beam_size=4, max_len=64, length_penalty=0.6, return_hypotheses=False):
    model.eval()
    eos, found, hypotheses = model.config.eos_id, [], []
    for row in src:
        beams = [(0.0, [model.config.bos_id])]
        for _ in range(max_len):
            done = [beam for beam in beams if len(beam[1]) > 1 and beam[1][-1] == eos]
            candidates = []
            for total, ids in beams:
                if (total, ids) not in done:
                    logits = model(row[None], np.array([ids]))[0, -1]
                    log_p = logits - np.logaddexp.reduce(logits)
                    candidates += [(total + log_p[i], [*ids, i]) for i in range(len(log_p))]
            beams = done + sorted(candidates, key=lambda c: -c[0])[: beam_size - len(done)]
        scored = [(total / ((5 + len(ids) - 1) / 6) ** length_penalty, total, ids) for total, ids in beams]
        scored.sort(key=lambda c: -c[0])
        rows = [Hypothesis([int(i) for i in ids[1:] if i != eos], total, score) for score, total, ids in scored]
        hypotheses.append(rows)
        found.append(rows[0].ids)
    return hypotheses if return_hypotheses else found


@rewrite("learn_merges")
def with_numbers_for_letters(words, counts, num_merges, first_id, min_count=2):
    words, found = [tuple(word) for word in words], []
    while len(found) < num_merges:
        pairs = [(word[i : i + 2], n) for word, n in zip(words, counts, strict=True) for i in range(len(word) - 1)]
        total = {pair: sum(n for other, n in pairs if other == pair) for pair, _ in pairs}
        ranked = sorted(total, key=lambda pair: (-total[pair], *pair))
        if not ranked or total[ranked[0]] < min_count:
            break
        found.append(list(ranked[0]))
        words = [tuple(apply_in_order(word, {ranked[0]: first_id + len(found) - 1})) for word in words]
    return found


@rewrite("apply_merges")
def apply_in_order(ids, merges):
    ids = list(ids)
    for pair, new in sorted(merges.items(), key=lambda item: item[1]):
        i = 0
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == pair:
                ids[i : i + 2] = [new]
            i += 1
    return np.array(ids)


@rewrite("text_windows")
def row_after_row(ids, block_size, batch_size, rng):
    rows = []
    for _ in range(batch_size):
        start = int(rng.random() * (len(ids) - block_size))
        rows.append(ids[start : start + block_size + 1])
    rows = np.array(rows)
    return [rows[:, :-1], rows[:, 1:]]


@rewrite("AdamW")
class AdamWWithoutBlocks(AsInThePaper):
    def __init__(self, parameters, weight_decay=0.01, decays=None, rates=None, **options):
        super().__init__(parameters, **options)
        self.decay, self.decays, self.rates = weight_decay, decays or (lambda _: True), rates or (lambda _: 1.0)

    def _update_block(self, block):
        """The whole step is in `step`."""
        return block

    def rate(self, parameter):
        return self.lr * self.rates(parameter)

    def step(self):
        for p in filter(self.decays, self.parameters):
            p.data = p.data * (1 - self.rate(p) * self.decay)
        super().step()


@rewrite("Optimizer")
class OptimizerWithNewArrays(Optimizer):
    def state_dict(self):
        state = {"steps": np.array(self.steps)}
        for slot in self.slots:
            state[slot] = np.array(self.averages[slot])
        return state

    def load_state_dict(self, state):
        self.check_state(state)
        self.averages = {slot: np.array(state[slot]) for slot in self.slots}
        self.steps = int(state["steps"])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(("name", "answer"), REWRITES.values(), ids=REWRITES)
def test_a_rewrite_passes(name, answer, seed):
    verdict = check(name, answer, seed=seed, quiet=True, time_limit=60)  # on a busy machine too
    assert verdict.passed, verdict.message
