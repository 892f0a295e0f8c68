"""Fine-tuning with few parameters: a model whose matrices stay as they are, with LoRA beside some of them."""

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_rng, check_all_at_least, check_at_least, check_kind, check_number
from ..support.counts import counted
from .attention import MultiHeadAttention
from .grouped_attention import GroupedQueryAttention
from .initial import normal

ALPHA = 16.0  # the scale of the change is ALPHA / rank, so that another rank needs no other learning rate


class LoRA(Module):
    """A learned change of a linear map, as the product of two thin matrices (Hu et al. 2021, §4.1).

        y = s · (x A) B,    s = α / R

    x (..., d_in)  ->  y (..., d_out), to be added to x W. A starts normal with standard deviation 1/√d_in, B at 0: the
    model starts as it was. `change` is the matrix s · A B.
    """

    taps = ("x",)

    def __init__(self, d_in, d_out, rank=8, alpha=ALPHA, rng=None, dtype: DTypeLike = np.float32):
        check_all_at_least(1, d_in=d_in, d_out=d_out, rank=rank)
        check_number("alpha", alpha, "(0, ∞)")
        if rank > min(d_in, d_out):
            raise ValueError(f"rank is {rank}, more than a matrix of shape ({d_in}, {d_out}) has")
        self.scale = alpha / rank
        self.a = Parameter(normal(rng, (d_in, rank), d_in**-0.5, dtype))
        self.b = Parameter(np.zeros((rank, d_out), dtype))

    @property
    def change(self):
        return (self.scale * self.a.data @ self.b.data).astype(self.a.dtype, copy=False)  # (d_in, d_out)

    def change_backward(self, dchange):
        self.a.grad += self.scale * dchange @ self.b.data.T
        self.b.grad += self.scale * self.a.data.T @ dchange

    def forward(self, x):
        x = self.keep(x=x)
        y, low = F.lora(x, self.a.data, self.b.data, self.scale)
        self.keep(low=low)
        return y

    def backward(self, dy):
        dx, da, db = F.lora_backward(dy, *self.kept("x", "low"), self.a.data, self.b.data, self.scale)
        self.a.grad += da
        self.b.grad += db
        return self.gradient(x=dx)


class _Adapted:
    """The steps of an attention that LoRA changes, in front of its class. The matrices are frozen: the backward pass
    does not compute their gradients, a third of its work."""

    def _project(self, name, x):
        return super()._project(name, x) + getattr(self, f"lora_{name}")(x)

    def _project_backward(self, name, dy, x):
        return F.linear(dy, getattr(self, f"w_{name}").data.T) + getattr(self, f"lora_{name}").backward(dy)

    def _w_o(self):
        return super()._w_o() + self.lora_o.change

    def _w_o_backward(self, dw):
        self.lora_o.change_backward(dw)


class AdaptedAttention(_Adapted, MultiHeadAttention):
    """A frozen MultiHeadAttention with LoRA; see `add_lora`."""


class AdaptedGroupedAttention(_Adapted, GroupedQueryAttention):
    """A frozen GroupedQueryAttention with LoRA; see `add_lora`."""


ADAPTED = {MultiHeadAttention: AdaptedAttention, GroupedQueryAttention: AdaptedGroupedAttention}


def add_lora(model, rank, rng=None, first=0):
    """Freeze a model in place and put LoRA beside the four matrices of the attentions in its blocks, from block `first`
    on. Only the LoRAs learn  ->  the model

    Raises ValueError for a model without such attentions, such as a T5, and for one that has LoRA already.
    """
    rng = as_rng(rng)
    check_at_least("rank", rank, 1)
    check_at_least("first", first, 0)
    blocks = getattr(model, "blocks", [])
    if blocks and first >= len(blocks):
        raise ValueError(f"LoRA from block {first} on has no place: the model has {counted(len(blocks), 'block')}")
    attentions = [block.attention for block in blocks[first:]]
    if not attentions or not all(type(attention) in ADAPTED for attention in attentions):
        kinds = {type(attention).__name__ for attention in attentions} or {type(model).__name__}
        raise ValueError(f"LoRA needs blocks with attentions it knows, got {', '.join(sorted(kinds))}")
    matrices = [{f"lora_{name}": getattr(attention, f"w_{name}") for name in "qkvo"} for attention in attentions]
    loras = [{name: LoRA(*w.shape, rank, rng=rng, dtype=w.dtype) for name, w in own.items()} for own in matrices]
    model.freeze()
    for attention, own in zip(attentions, loras, strict=True):
        vars(attention).update(own)
        attention.__class__ = ADAPTED[type(attention)]
    return model


def merge_lora(model):
    """Add each LoRA of a model to its matrix and remove it: W + s · A B, an ordinary model of the same outputs and
    speed  ->  the model, whose parameters all learn again"""
    check_kind("model", model, Module)
    for _, module in model.named_modules():
        if isinstance(module, _Adapted):
            for name in "qkvo":
                w = getattr(module, f"w_{name}")
                w.data = w.data + getattr(module, f"lora_{name}").change
                delattr(module, f"lora_{name}")
            module.__class__ = type(module).__mro__[2]
    return model.unfreeze()
