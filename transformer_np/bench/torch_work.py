"""The work of PyTorch's contestants: the same as in `work`, eager and with PyTorch's defaults."""

import os
import time

import torch
from torch.nn import functional as F

from ..training import AdamW
from .configurations import CONFIGURATIONS
from .torch_models import torch_model
from .work import CHECKED_STEPS, attention_inputs, context_of, named_samples

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def torch_optimizer(ours, model):
    """The PyTorch optimizer equivalent to ours."""
    how = {"lr": ours.lr, "betas": ours.betas, "eps": ours.eps}
    if not isinstance(ours, AdamW):
        return torch.optim.Adam(model.parameters(), **how)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": ours.weight_decay},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, **how)


# --- from a batch to the logits and targets of each objective ---------------------------------------------------------


class TeacherForcing:
    def __init__(self, model):
        self.model, self.ignore_index = model, model.config.pad_id

    def __call__(self, batch):
        return self.model(batch["src"], batch["tgt_in"]), batch["tgt_out"]


class NextToken:
    ignore_index = -1

    def __init__(self, model):
        self.model = model

    def __call__(self, batch):
        return self.model(batch["ids"]), batch["targets"]


class MaskedLanguageModel(NextToken):
    def __call__(self, batch):
        places = batch["targets"] >= 0
        return self.model(batch["ids"], places), batch["targets"][places]


class SegmentRecurrence(NextToken):
    mems = None

    def __call__(self, batch):
        logits, self.mems = self.model(batch["ids"], None if batch["first"] else self.mems)
        return logits, batch["targets"]


OBJECTIVES = {kind.__name__: kind for kind in (TeacherForcing, NextToken, MaskedLanguageModel, SegmentRecurrence)}


# --- contestants ------------------------------------------------------------------------------------------------------


class Training:
    """Training steps: forward, backward, clip, update, and the loss as a number."""

    def __init__(self, configuration):
        configuration = CONFIGURATIONS[configuration]
        ours = configuration.model()
        self.model = torch_model(ours).train()
        self.optimizer = torch_optimizer(configuration.optimizer(ours.parameters()), self.model)
        self.objective = OBJECTIVES[configuration.objective.__name__](self.model)
        self.clip_norm = configuration.clip_norm
        self.batches = [
            {name: torch.as_tensor(values) for name, values in vars(batch).items()} for batch in configuration.batches()
        ]
        self.losses = []

    def check(self):
        self.run(CHECKED_STEPS)
        return {f"loss of step {number}": loss for number, loss in enumerate(self.losses, start=1)}

    def run(self, steps):
        started = time.perf_counter()
        for _ in range(steps):
            batch = self.batches[len(self.losses) % len(self.batches)]
            self.optimizer.zero_grad()
            logits, targets = self.objective(batch)
            loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=self.objective.ignore_index)
            loss.backward()
            if self.clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
            self.optimizer.step()
            self.losses.append(loss.item())
        return time.perf_counter() - started


class Generation:
    """As `work.Generation`, without a cache."""

    def __init__(self, prompt, length):
        ours = CONFIGURATIONS["gpt"].model()
        self.model = torch_model(ours).eval()
        self.ids, self.prompt, self.length = torch.as_tensor(context_of(ours)), prompt, length

    def check(self):
        with torch.no_grad():
            return {"logits": self.model(self.ids)[0, -1].numpy()}

    def run(self, texts):
        started = time.perf_counter()
        for seed in range(texts):
            torch.manual_seed(seed)
            self.model.generate(self.ids[:, : self.prompt], self.length)
        return time.perf_counter() - started


class Attention:
    """Forward and backward of attention. kind: "fused", or "plain": two matrix products and a softmax."""

    def __init__(self, kind, n):
        *inputs, self.dout = map(torch.from_numpy, attention_inputs(n))
        self.inputs = [x.requires_grad_() for x in inputs]
        self._forward = {"fused": F.scaled_dot_product_attention, "plain": self._plain}[kind]

    def _plain(self, q, k, v):
        return F.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1) @ v

    def _once(self):
        for x in self.inputs:
            x.grad = None
        out = self._forward(*self.inputs)
        out.backward(self.dout)
        return out

    def check(self):
        out = self._once().detach()
        return named_samples([x.numpy() for x in (out, *(x.grad for x in self.inputs))])

    def run(self, times):
        started = time.perf_counter()
        for _ in range(times):
            self._once()
        return time.perf_counter() - started
