"""The work of PyTorch's contestants: the same as in `work`, eager and with PyTorch's defaults."""

import os
from collections import Counter
from statistics import median

import torch
from torch.nn import functional as F

from ..pretrained import PretrainedFolder
from ..training import AdamW
from .configurations import CONFIGURATIONS
from .profile import OPTIMIZER, REST, WARM_UP
from .torch_models import torch_model
from .torch_train import decayed
from .work import PRETRAINED, PROMPT, Work, attention_inputs, context_of, losses_by_step, named_samples

KINDS = {  # the names of PyTorch's operations begin with these
    "attention": ("_scaled_dot_product", "bmm", "baddbmm"),
    "linear": ("mm", "addmm"),
    "softmax": ("_softmax", "_masked_softmax"),
    "layer norm": ("native_layer_norm",),
    "activation": ("gelu", "relu", "threshold", "tanh", "clamp_min"),
    "embedding": ("embedding", "index_select"),
    "loss": ("_log_softmax", "nll_loss"),
}

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def torch_optimizer(ours, model):
    """The PyTorch optimizer equivalent to ours."""
    how = {"lr": ours.lr, "betas": ours.betas, "eps": ours.eps}
    if isinstance(ours, AdamW):
        return decayed(model, ours.weight_decay, **how)
    return torch.optim.Adam(model.parameters(), **how)


def _masked_words(model, batch, mems):
    places = batch["targets"] >= 0
    return model(batch["ids"], places), batch["targets"][places], None


def _segments(model, batch, mems):
    logits, mems = model(batch["ids"], None if batch["first"] else mems)
    return logits, batch["targets"], mems


OBJECTIVES = {  # (model, batch, mems of the step before)  ->  logits, targets, mems
    "TeacherForcing": lambda model, batch, mems: (model(batch["src"], batch["tgt_in"]), batch["tgt_out"], None),
    "NextToken": lambda model, batch, mems: (model(batch["ids"]), batch["targets"], None),
    "MaskedLanguageModel": _masked_words,
    "SegmentRecurrence": _segments,
}


class Training(Work):
    """Training steps: forward, backward, clip, update, and the loss as a number."""

    def __init__(self, configuration):
        configuration = CONFIGURATIONS[configuration]
        self.checked = configuration.checked
        ours = configuration.model()
        self.model = torch_model(ours).train()
        self.optimizer = torch_optimizer(configuration.optimizer(ours.parameters()), self.model)
        self.objective = OBJECTIVES[configuration.objective.__name__]
        self.ignored = getattr(ours.config, "pad_id", -1)
        self.clip_norm = configuration.clip_norm
        self.batches = [
            {name: torch.as_tensor(values) for name, values in vars(batch).items()} for batch in configuration.batches()
        ]
        self.losses, self.mems = [], None

    def check(self):
        self.run(self.checked)
        return losses_by_step(self.losses)

    def once(self, number):
        batch = self.batches[len(self.losses) % len(self.batches)]
        self.optimizer.zero_grad()
        logits, targets, self.mems = self.objective(self.model, batch, self.mems)
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=self.ignored)
        loss.backward()
        with torch.profiler.record_function(OPTIMIZER):
            if self.clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
            self.optimizer.step()
        self.losses.append(loss.item())


def kind_of(event):
    """The kind of an event of PyTorch's profiler, as in `profile`."""
    name = event.name.removeprefix("aten::")
    while event is not None:
        if event.name == OPTIMIZER:
            return OPTIMIZER
        event = event.cpu_parent
    return next((kind for kind, beginnings in KINDS.items() if name.startswith(beginnings)), REST)


class Profile(Training):
    """A work that profiles training, by kind of operation. Its `run` returns the profile instead of seconds."""

    def run(self, steps):
        """{"step": median milliseconds of a step without the profiler, "kinds": {kind: milliseconds per step}}"""
        run = super().run
        run(WARM_UP)
        step = 1e3 * median(run(1) for _ in range(steps))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as watched:
            run(steps)
        kinds = Counter()
        for event in watched.events():
            kinds[kind_of(event)] += event.self_cpu_time_total / 1e3 / steps
        kinds[REST] = max(0.0, step - sum(kinds.values()) + kinds[REST])
        return {"step": step, "kinds": dict(kinds)}


class Generation(Work):
    """As `work.Generation`, without a cache."""

    def __init__(self, prompt, length):
        ours = CONFIGURATIONS["gpt"].model()
        self.model = torch_model(ours).eval()
        self.ids, self.prompt, self.length = torch.as_tensor(context_of(ours)), prompt, length

    def check(self):
        with torch.no_grad():
            return {"logits": self.model(self.ids)[0, -1].numpy()}

    def once(self, number):
        torch.manual_seed(number)
        self.model.generate(self.ids[:, : self.prompt], self.length)


class Pretrained(Work):
    """As `work.Pretrained`, with the transformers library."""

    def __init__(self, length):
        from transformers import AutoModelForCausalLM

        folder = PretrainedFolder(PRETRAINED)
        self.model = AutoModelForCausalLM.from_pretrained(folder.path, dtype=torch.float32).eval()
        self.ids = torch.tensor([folder.tokenizer.encode(PROMPT)])
        self.how = {"min_new_tokens": length, "max_new_tokens": length, "do_sample": False, "pad_token_id": 0}

    @torch.no_grad()
    def check(self):
        return {"logits": self.model(self.ids).logits[0, -1].numpy()}

    @torch.no_grad()
    def once(self, number):
        self.model.generate(self.ids, attention_mask=torch.ones_like(self.ids), **self.how)


class Attention(Work):
    """Forward and backward of attention. kind: "fused", or "plain": two matrix products and a softmax."""

    def __init__(self, kind, n):
        *inputs, self.dout = map(torch.from_numpy, attention_inputs(n))
        self.inputs = [x.requires_grad_() for x in inputs]
        self._forward = {"fused": F.scaled_dot_product_attention, "plain": self._plain}[kind]

    def _plain(self, q, k, v):
        return F.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1) @ v

    def once(self, number):
        for x in self.inputs:
            x.grad = None
        out = self._forward(*self.inputs)
        out.backward(self.dout)
        return out

    def check(self):
        out = self.once(0).detach()
        return named_samples([x.numpy() for x in (out, *(x.grad for x in self.inputs))])
