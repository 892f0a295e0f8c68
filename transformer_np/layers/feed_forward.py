from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_rng, check_all_at_least, check_choice, check_flag
from .initial import glorot_uniform
from .places import Hidden


class FeedForward(Module):
    """Two linear maps with a ReLU between them, the same for every position (Vaswani et al. 2017, §3.3).

        FFN(x) = max(0, x W₁ + b₁) W₂ + b₂

    x (B, T, D)  ->  (B, T, D), through F = d_ff hidden features

    activation: "relu", or one of the variants, which are subclasses: "gelu" (exact) as in BERT, "gelu_tanh" as in
        GPT-2, "silu" (layers.activated); with bias=False "gated_gelu" as in T5 v1.1 and "gated_silu" as in Llama
        (layers.gated)
    """

    taps = ("x",)
    places = (("hidden", Hidden),)
    may_have_bias = True
    variants: ClassVar[dict[str, type]] = {}  # {activation: the subclass that computes it, the ReLU without biases}

    def __new__(cls, d_model, d_ff, activation="relu", bias=True, rng=None, dtype: DTypeLike = np.float32):
        if cls is FeedForward and isinstance(activation, str) and (activation != "relu" or not bias):
            cls = cls.variants.get(activation, cls)
            if bias and not cls.may_have_bias:
                raise ValueError("a gated feed-forward network has no biases: pass bias=False")
        return super().__new__(cls)

    def __getnewargs__(self):  # of a copy
        return self.w1.shape

    def __init_subclass__(cls, activations=(), **options):
        super().__init_subclass__(**options)
        FeedForward.variants.update(dict.fromkeys(activations, cls))

    def __init__(self, d_model, d_ff, activation="relu", bias=True, rng=None, dtype: DTypeLike = np.float32):
        check_all_at_least(1, d_model=d_model, d_ff=d_ff)
        check_flag("bias", bias)
        check_choice("activation", activation, tuple({"relu": None} | self.variants))
        self.activation, rng = activation, as_rng(rng)
        self.w1 = Parameter(glorot_uniform(rng, d_model, d_ff, dtype))
        self.b1 = Parameter(np.zeros(d_ff, dtype)) if bias else None
        self.w2 = Parameter(glorot_uniform(rng, d_ff, d_model, dtype))
        self.b2 = Parameter(np.zeros(d_model, dtype)) if bias else None

    def forward(self, x):
        x = self.keep(x=x)
        y, hidden = self._network(x)  # (B, T, D), (B, T, F)
        self.keep(hidden=hidden)
        return y

    def backward(self, dy):
        x, hidden = self.kept("x", "hidden")
        dx, dw1, db1, dw2, db2 = self._network_backward(dy, x, hidden)
        self.w1.grad += dw1
        self.w2.grad += dw2
        if self.b1 is not None:
            self.b1.grad += db1
            self.b2.grad += db2
        return self.gradient(x=dx)

    # --- the two steps that a variant changes --------------------------------------------------------------------

    def _network(self, x):
        return F.feed_forward(x, self.w1.data, self.b1.data, self.w2.data, self.b2.data)

    def _network_backward(self, dy, x, hidden):
        return F.feed_forward_backward(dy, x, hidden, self.w1.data, self.w2.data)
