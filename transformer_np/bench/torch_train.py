"""Train a GPT on a text with PyTorch, as a separate script: the same task as `transformer-np train gpt`.

    python -P torch_train.py --text FILE --steps N --out DIR

It reads the text, learns its characters, trains, validates and saves. Shape, optimizer, schedule and validation are
those of `train gpt`; the initial weights are GPT-2's. PyTorch has its defaults: eager, all cores, fused attention; GELU
is exact, as in nanoGPT. The script imports nothing from this package, so that its startup time is PyTorch's own.
"""

import argparse
import math
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

BLOCK, BATCH, LAYERS, HEADS, D = 64, 12, 4, 4, 128
LR, MIN_LR, WARMUP, BETAS, WEIGHT_DECAY, CLIP = 2e-3, 1e-4, 100, (0.9, 0.99), 0.1, 1.0
STD = 0.02 * math.sqrt(768 / D)
VALIDATION_ROWS, VALIDATION_SHARE, SAVE_SECONDS = 16, 0.04, 60.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(D, bias=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.linear1, self.linear2 = nn.Linear(D, 4 * D, bias=False), nn.Linear(4 * D, D, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        heads = (part.view(B, T, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(D, dim=2))
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)  # (B, H, T, K)
        x = x + self.out(attended.transpose(1, 2).reshape(B, T, D))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab_size, D), nn.Embedding(BLOCK, D)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(D, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("out.weight", "linear2.weight"))
                nn.init.normal_(parameter, std=STD / math.sqrt(2 * LAYERS) if residual else STD)

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


@torch.no_grad()
def validate(model, batches):
    total = sum(model.loss(ids, targets).item() * targets.numel() for ids, targets in batches)
    return total / sum(targets.numel() for _, targets in batches)


def learning_rate(step, steps):
    warmup = min(WARMUP, steps // 2)
    if step <= warmup:
        return LR * step / warmup
    share = (step - warmup) / max(1, steps - warmup)
    return MIN_LR + 0.5 * (1 + math.cos(math.pi * share)) * (LR - MIN_LR)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.manual_seed(0)
    train, validation, vocab_size = encoded(args.text)
    held_out = windows(validation)
    every = max(100, args.steps // 10)
    most = 3 * VALIDATION_SHARE * every * BATCH * BLOCK  # tokens, as in `transformer-np train`
    sample = held_out[:: math.ceil(len(validation) / most)]

    model = GPT(vocab_size)
    groups = [[p for p in model.parameters() if (p.dim() >= 2) == matrix] for matrix in (True, False)]
    optimizer = torch.optim.AdamW(
        [{"params": params, "weight_decay": decay} for params, decay in zip(groups, (WEIGHT_DECAY, 0.0), strict=True)],
        lr=LR,
        betas=BETAS,
    )
    args.out.mkdir(parents=True, exist_ok=True)

    def save(step):
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, args.out / "checkpoint.pt")

    begun = saved = time.perf_counter()
    for step in range(1, args.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps)
        starts = torch.randint(len(train) - BLOCK, (BATCH, 1))
        tokens = train[starts + torch.arange(BLOCK + 1)]
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        if step % every == 0 and step < args.steps:
            print(f"step {step}: validation loss {validate(model, sample):.4f} on a sample", flush=True)
        if time.perf_counter() - saved >= SAVE_SECONDS:
            save(step)
            saved = time.perf_counter()
    lost = validate(model, held_out)
    save(args.steps)
    print(f"wall time {time.perf_counter() - begun:.1f} s")
    print(f"validation loss {lost:.4f}")


if __name__ == "__main__":
    main()
