"""A model to decode with."""

from contextlib import nullcontext
from copy import copy

import numpy as np

from ...models import Transformer, TransformerConfig
from .blocks import takes

MARGIN = 2e-3  # between what is chosen and what is not, in nats: no rounding decides


class ScriptedTransformer(Transformer):
    """Looks like a Transformer from outside and answers at once: the logits of the next token are drawn for every
    source and every beginning of the target. Padding and the start token never are likely.

    It is never changed, so that a copy of it is the model itself. In training mode the tokens have each other's logits:
    as with dropout the numbers are wrong, but not at random.
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
        self.known = {}  # log p of the next token by source and beginning, for `log_probs`

    def __deepcopy__(self, memo):
        return self

    def named_modules(self, prefix=""):
        yield prefix, self  # its layers never run, so that they have no mode to set

    def encode(self, src):
        src = np.asarray(src)
        states = np.empty(len(src), int)
        for i, row in enumerate(src.tolist()):  # few and short: faster than arrays over the batch
            state = int(self.training)
            for token in row:
                if token != self.config.pad_id:
                    state = (31 * state + 7 * token + 5) % self.STATES
            states[i] = state
        return np.where(src != self.config.pad_id, states[:, None], 0)[..., None] * np.array([1.0, 0.5])  # (B, S, 2)

    def decode(self, tgt_in, memory, src, cache=None):
        new = np.asarray(tgt_in)
        ids = new if cache is None or cache.ids is None else np.concatenate([cache.ids, new], axis=1)
        if len(memory) != len(ids) or np.shape(src) != memory.shape[:2]:
            raise ValueError(f"sizes differ: tgt_in {ids.shape}, memory {memory.shape}, src {np.shape(src)}")
        states = self.states(memory, ids)
        if cache is not None:
            cache.extend(new)
        logits = self.script[states]  # (B, T, V)
        if self.training:
            logits = np.roll(logits, 1, axis=-1)
        logits[..., self.config.eos_id] += self.end[np.minimum(np.arange(ids.shape[1]), len(self.end) - 1)]
        return logits[:, -new.shape[1] :]

    def states(self, memory, ids):
        """What stands for the source and the target so far, at every place of the target: rows of the script."""
        sources, states = memory[..., 0].max(axis=1).astype(int), np.empty(ids.shape, int)
        for i, (state, row) in enumerate(zip(sources.tolist(), ids.tolist(), strict=True)):
            for t, token in enumerate(row):
                states[i, t] = state = (37 * state + 11 * token + 3) % self.STATES
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


def scripted_model(rng, other_ids=False):
    vocab_size = int(rng.integers(8, 11))
    special = (0, 1, 2) if not other_ids else (int(i) for i in rng.permutation(np.arange(3, vocab_size))[:3])
    return ScriptedTransformer(rng, vocab_size, *special)


def sources(rng, model, rows):
    """Source sentences of different lengths, end token and padding behind them."""
    c = model.config
    words = [i for i in range(c.src_vocab_size) if i not in (c.pad_id, c.bos_id, c.eos_id)]
    src = np.full((rows, 6), c.pad_id)
    for i, row in enumerate(src):
        length = 5 if i == 0 else int(rng.integers(2, 6))
        row[:length] = rng.choice(words, size=length)
        row[length] = c.eos_id
    return src


def in_training(model):
    """The model in training mode."""
    model = copy(model)
    model.training = True
    return model


def next_logits(model, src, ids, evaluating=True):
    """The logits of the token after the beginning `ids`, for one source sentence."""
    with model.evaluating() if evaluating is True else nullcontext():
        memory = model.encode(src[None])
    with model.evaluating() if evaluating else nullcontext():
        return model.decode(np.array([ids]), memory, src[None])[0, -1]


def log_probs(model, src, ids, evaluating=True):
    """log p of the token after the beginning `ids`, for one source sentence: a list.

    evaluating: whether in evaluation mode; "decoder": only the decoder is
    """
    key = src.tobytes(), tuple(ids), evaluating if model.training else True
    if key not in model.known:
        logits = next_logits(model, src, ids, evaluating)
        shifted = logits - logits.max()
        model.known[key] = (shifted - np.log(np.exp(shifted).sum())).tolist()
    return model.known[key]


def as_array(case, output):
    """Lists of ids as one array, filled up with −1, with two columns more than a right answer can have."""
    width = case.arguments[2 if len(case.arguments) == 3 else 3] + 2
    rows = [[int(i) for i in row][:width] for row in output]
    return (np.array([row + [-1] * (width - len(row)) for row in rows]),)


def asked(answer, options):
    """These options; without use_cache if the answer does without it, because the results do not depend on it."""
    return {name: value for name, value in options.items() if name != "use_cache" or takes(answer, name)}
