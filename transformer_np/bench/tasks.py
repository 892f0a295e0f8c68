"""Tasks with one right answer each, as a user would bring them: `train translate --pairs FILE --tokens char`, and
beside it nn.Transformer with the same start, batches, schedule and number of steps."""

import string
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data import written_dates
from ..data.tokenizers import BOS, EOS
from ..tasks.translation import TranslationOptions, TranslationTask

PAIRS = 5000  # different sources of a task; nine tenths of them to learn from
LETTERS = np.array(list(string.ascii_lowercase))
SHIFT = dict(zip(string.ascii_lowercase, string.ascii_lowercase[3:] + "abc", strict=True))

ON_WORDS = {  # of 3 to 10 random letters
    "sort": lambda word: "".join(sorted(word)),
    "reverse": lambda word: word[::-1],
    "copy": lambda word: word,
    "Caesar": lambda word: "".join(map(SHIFT.get, word)),
}
TASKS = (*ON_WORDS, "dates", "addition")


def pairs(task, seed=0):
    """[(source, target)] of a task, one of TASKS: PAIRS different sources in random order."""
    rng = np.random.default_rng(seed)
    if task == "dates":
        dates = written_dates()
        return [dates[i] for i in rng.permutation(len(dates))[:PAIRS]]
    found = {}
    while len(found) < PAIRS:
        if task == "addition":
            a, b = rng.integers(0, 1000, size=2)
            found[f"{a}+{b}"] = str(a + b)
        else:
            word = "".join(rng.choice(LETTERS, rng.integers(3, 11)))
            found[word] = ON_WORDS[task](word)
    return list(found.items())


@dataclass(frozen=True)
class Score:
    """The shares of unseen sources that are answered exactly, with `train translate` and with PyTorch, or None."""

    task: str
    seed: int
    ours: float
    torch: float | None


def score(task, seed=0, against_torch=False, **options):
    """Train on a task  ->  its Score. Against PyTorch both sides have Adam.

    options: those of `train translate` that are not the defaults
    """
    options = {"optimizer": "adamw"} | options if against_torch else options
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs(task, seed)), encoding="utf-8")
        options = TranslationOptions(pairs=path, tokens="char", seed=seed, **options)
        run = TranslationTask().train(options, Path(folder) / "run", progress=False)
        (ours,) = run.measured.values()
        return Score(task, seed, ours, _torch_score(run) if against_torch else None)


def _torch_score(run):
    """The share that nn.Transformer answers exactly after the same steps from the same start."""
    import torch
    from torch.nn import functional as F

    from .torch_models import torch_model

    options, tokenizers = run.options, run.tokenizers
    setup = TranslationTask().setup(options, run.data, tokenizers)
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    model = torch_model(setup.model).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = options.dropout
    ours = setup.optimizer
    optimizer = torch.optim.Adam(model.parameters(), betas=ours.betas, eps=ours.eps)
    for step in range(options.steps):
        batch = {name: torch.as_tensor(ids) for name, ids in vars(setup.batches.batch(step)).items()}
        logits = model(batch["src"], batch["tgt_in"])
        optimizer.zero_grad()
        smoothing = {"ignore_index": setup.model.config.pad_id, "label_smoothing": options.label_smoothing}
        F.cross_entropy(logits.flatten(0, -2), batch["tgt_out"].flatten(), **smoothing).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), setup.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = setup.schedule(step + 1)
        optimizer.step()
    right = 0
    source, target = tokenizers.values()
    model.eval()
    with torch.no_grad():
        for text, expected in run.data.test:
            src, ids = torch.tensor([source.encode(text)]), [BOS]
            while len(ids) < 2 * src.shape[1] + 10 and ids[-1] != EOS:
                ids.append(int(model(src, torch.tensor([ids]))[0, -1].argmax()))
            right += target.decode(ids[1:-1]) == expected
    return right / len(run.data.test)


HEAD = f"{'unseen answered exactly':<24}ours, then nn.Transformer with the same recipe; one pair per seed"


def row(scores):
    """A line of the table below HEAD: the scores of one task, one column per seed."""
    both = (f"{found.ours:7.1%}" + ("" if found.torch is None else f" {found.torch:7.1%}") for found in scores)
    return f"{scores[0].task:<24}" + "   ".join(both)
