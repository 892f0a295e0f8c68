"""Train with PyTorch, as a separate script: the same task as `transformer-np train gpt` or `translate`.

    python -P torch_train.py gpt --text FILE --steps N --out DIR [--nanogpt]
    python -P torch_train.py translate --pairs FILE --steps N --out DIR [--chars]

It reads the data, learns their characters or words, trains, validates, measures what ours measures, and saves. Shapes,
optimizers, schedules and validation are those of our commands; the texts of a batch are random ones. PyTorch has its
defaults: eager, all cores, fused attention; GELU is exact, as in nanoGPT. The script imports nothing from this package,
so that its startup time is PyTorch's own.
"""

import argparse
import math
import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

BLOCK, BATCH, LAYERS, HEADS, D = 64, 12, 4, 4, 128
LR, MIN_LR, WARMUP, BETAS, WEIGHT_DECAY, CLIP = 2e-3, 1e-4, 100, (0.9, 0.99), 0.1, 1.0
STD = 0.02 * math.sqrt(768 / D)
NANOGPT_LR, NANOGPT_STD = 1e-3, 0.02
VALIDATION_ROWS, VALIDATION_SHARE, SAVE_SECONDS = 16, 0.04, 60.0
TRANSLATOR = {"d": 64, "heads": 4, "layers": 2, "d_ff": 256, "dropout": 0.1, "longest": 128}
TRANSLATE = {"batch": 64, "lr": 3.6e-3, "warmup": 300, "smoothing": 0.1}
PAD, BOS, EOS, UNK = 0, 1, 2, 3


@dataclass
class Work:
    """What `train` needs of a task: loss() is that of the next batch, validate(sample) a mean over validation data,
    measure() a share of the test data."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    rate: Any  # of a step
    loss: Any
    validate: Any
    measure: Any = None


def decayed(model, weight_decay, **options):
    """AdamW with weight decay for the matrices alone."""
    groups = [[p for p in model.parameters() if (p.dim() >= 2) == matrix] for matrix in (True, False)]
    decays = zip(groups, (weight_decay, 0.0), strict=True)
    return torch.optim.AdamW([{"params": params, "weight_decay": decay} for params, decay in decays], **options)


def cosine(step, steps, lr, lowest=0.0, warmup=WARMUP):
    warmup = min(warmup, steps // 2)
    if step <= warmup:
        return lr * step / warmup
    return lowest + 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) * (lr - lowest)


# --- GPT --------------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(d, bias=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        B, T, D = x.shape
        heads = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(D, dim=2))
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)  # (B, H, T, K)
        x = x + self.out(attended.transpose(1, 2).reshape(B, T, D))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, d=D, heads=HEADS, layers=LAYERS, block=BLOCK, std=STD):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab_size, d), nn.Embedding(block, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(d, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("out.weight", "linear2.weight"))
                nn.init.normal_(parameter, std=std / math.sqrt(2 * layers) if residual else std)

    def forward(self, ids):
        """ids (B, T)  ->  logits (B, T, V)"""
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.token.weight)  # tied

    def loss(self, ids, targets):
        return F.cross_entropy(self(ids).flatten(0, 1), targets.flatten())


def encoded(path):
    """The ids of the first 90 % of the characters and of the rest, and the number of different characters."""
    text = Path(path).read_text(encoding="utf-8-sig")
    number = {character: i for i, character in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[character] for character in text])
    end = int(0.9 * len(ids))
    return ids[:end], ids[end:], len(number)


def windows(ids):
    """The validation text in batches of consecutive windows: [(ids, targets)]."""
    full = (len(ids) - 1) // BLOCK
    sides = [part[: full * BLOCK].view(full, BLOCK).split(VALIDATION_ROWS) for part in (ids[:-1], ids[1:])]
    batches = list(zip(*sides, strict=True))
    if (len(ids) - 1) % BLOCK:
        batches.append((ids[None, full * BLOCK : -1], ids[None, full * BLOCK + 1 :]))
    return batches


def gpt(path, steps, every, nanogpt=False):
    """nanogpt: with the rate and the start of nanoGPT"""
    lr, std = (NANOGPT_LR, NANOGPT_STD) if nanogpt else (LR, STD)
    text, validation, vocab_size = encoded(path)
    held_out = windows(validation)
    most = 3 * VALIDATION_SHARE * every * BATCH * BLOCK  # tokens, as in `transformer-np train`
    few = held_out[:: math.ceil(len(validation) / most)]
    model = GPT(vocab_size, std=std)

    def loss():
        starts = torch.randint(len(text) - BLOCK, (BATCH, 1))
        tokens = text[starts + torch.arange(BLOCK + 1)]
        return model.loss(tokens[:, :-1], tokens[:, 1:])

    def validate(sample):
        batches = few if sample else held_out
        total = sum(model.loss(ids, targets).item() * targets.numel() for ids, targets in batches)
        return total / sum(targets.numel() for _, targets in batches)

    optimizer = decayed(model, WEIGHT_DECAY, lr=lr, betas=BETAS)
    return Work(model, optimizer, lambda step: cosine(step, steps, lr, MIN_LR), loss, validate)


# --- texts of words ---------------------------------------------------------------------------------------------------


def rows_of(path):
    """The two columns of a file: eight tenths to learn from, a tenth for validation, a tenth for the test."""
    rows = [line.split("\t") for line in Path(path).read_text(encoding="utf-8").splitlines()]
    random.Random(0).shuffle(rows)
    tenth = len(rows) // 10
    return rows[2 * tenth :], rows[:tenth], rows[tenth : 2 * tenth]


def words(text):
    return re.findall(r"\w+(?:[-']\w+)*|[^\w\s]", text)


def vocabulary(texts, units=words, least=2):
    """{word: id} of the words that occur so often."""
    counts = Counter(word for text in texts for word in units(text))
    return {word: i for i, word in enumerate((w for w, n in counts.most_common() if n >= least), start=UNK + 1)}


def padded(texts):
    return nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in texts], batch_first=True, padding_value=PAD)


def shuffled(rows, size):
    """Batches of random rows without end, every row once an epoch."""
    while True:
        order = torch.randperm(len(rows)).tolist()
        for start in range(0, len(order), size):
            yield [rows[i] for i in order[start : start + size]]


def mean_loss(rows, loss, size=128):
    """The mean of a loss over all rows, as many at a time as in ours."""
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return sum(loss(part).item() * len(part) for part in parts) / len(rows)


# --- translation ------------------------------------------------------------------------------------------------------


class Translator(nn.Module):
    """The model of 2017 in the small size of `train translate`."""

    def __init__(self, source_size, target_size, d, heads, layers, d_ff, dropout, longest):
        super().__init__()
        self.d = d
        self.source, self.target = (nn.Embedding(size, d, padding_idx=PAD) for size in (source_size, target_size))
        for embedding in (self.source, self.target):
            nn.init.normal_(embedding.weight, std=d**-0.5)
        self.transformer = nn.Transformer(d, heads, layers, layers, d_ff, dropout, batch_first=True)
        self.transformer.encoder.enable_nested_tensor = False
        self.output, self.dropout = nn.Linear(d, target_size), nn.Dropout(dropout)
        angles = torch.arange(longest)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1))

    def enter(self, embedding, ids):
        return self.dropout(embedding(ids) * self.d**0.5 + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        """source (B, S), target (B, T) from <bos> on  ->  logits (B, T, V)"""
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        hidden = self.transformer(
            self.enter(self.source, source), self.enter(self.target, target), tgt_mask=future,
            src_key_padding_mask=source == PAD, tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )  # fmt: skip
        return self.output(hidden)

    def greedy(self, source):
        """The translations of a batch, all ended at its longest."""
        ids = torch.full((len(source), 1), BOS)
        while ids.shape[1] < 2 * source.shape[1] + 10 and not (ids == EOS).any(dim=1).all():
            ids = torch.cat((ids, self(source, ids)[:, -1:].argmax(dim=-1)), dim=1)
        return ids


def translate(path, steps, every, chars=False):
    """chars: letter by letter"""
    parts, units = rows_of(path), list if chars else words
    numbers = [vocabulary((row[side] for row in parts[0]), units, 1 if chars else 2) for side in (0, 1)]
    train, validation, test = ([_numbered(row, numbers, units) for row in part] for part in parts)
    model = Translator(*(len(number) + 4 for number in numbers), **TRANSLATOR)
    batches = shuffled(train, TRANSLATE["batch"])

    def loss(rows, smoothing=0.0):
        source, target = padded([row[0] for row in rows]), padded([[BOS, *row[1], EOS] for row in rows])
        logits, wanted = model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()
        return F.cross_entropy(logits, wanted, ignore_index=PAD, label_smoothing=smoothing)

    def exact():
        right = 0
        for start in range(0, min(500, len(test)), 128):
            rows = test[start : min(500, start + 128)]
            for (_, wanted), ids in zip(rows, model.greedy(padded([row[0] for row in rows])).tolist(), strict=True):
                right += ids[1 : [*ids, EOS].index(EOS)] == wanted
        return right / min(500, len(test))

    return Work(
        model, torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9),
        lambda step: TRANSLATE["lr"] * min(step / TRANSLATE["warmup"], (TRANSLATE["warmup"] / step) ** 0.5),
        lambda: loss(next(batches), smoothing=TRANSLATE["smoothing"]), lambda sample: mean_loss(validation, loss),
        exact,
    )  # fmt: skip


def _numbered(row, numbers, units):
    return [[number.get(word, UNK) for word in units(text)] for text, number in zip(row, numbers, strict=True)]


# --- training ---------------------------------------------------------------------------------------------------------


def train(work, steps, every, out):
    """Train, and print the validation loss and what the task measures; the checkpoint goes to the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)

    @torch.no_grad()
    def validated(sample=False):
        work.model.eval()
        found = work.validate(sample)
        work.model.train()
        return found

    def save(step):
        state = {"model": work.model.state_dict(), "optimizer": work.optimizer.state_dict(), "step": step}
        torch.save(state, out / "checkpoint.pt")

    begun = saved = time.perf_counter()
    for step in range(1, steps + 1):
        for group in work.optimizer.param_groups:
            group["lr"] = work.rate(step)
        loss = work.loss()
        work.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(work.model.parameters(), CLIP)
        work.optimizer.step()
        if step % every == 0 and step < steps:
            print(f"step {step}: validation loss {validated(sample=True):.4f}", flush=True)
        if time.perf_counter() - saved >= SAVE_SECONDS:
            save(step)
            saved = time.perf_counter()
    lost = validated()
    save(steps)
    if work.measure is not None:
        work.model.eval()
        with torch.no_grad():
            print(f"test data right {work.measure():.1%}")
    print(f"wall time {time.perf_counter() - begun:.1f} s")
    print(f"validation loss {lost:.4f}")


TASKS = {"gpt": gpt, "translate": translate}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--text", "--pairs", dest="data", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chars", "--nanogpt", dest="variant", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    every = max(100, args.steps // 10)
    work = TASKS[args.task](args.data, args.steps, every, args.variant)
    train(work, args.steps, every, args.out)


if __name__ == "__main__":
    main()
