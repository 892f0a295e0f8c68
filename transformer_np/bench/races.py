"""The races: contestants that do the same work."""

from dataclasses import dataclass

from . import TRAINING, WHAT
from .contestants import Entry

LENGTHS = (512, 1024, 2048, 4096)  # tokens of the attention
QUICK_LENGTHS = 2  # the shortest of them
MOST_PLAIN = 2048  # tokens; beyond this, attention that holds all weights needs gigabytes
CONTEXT = 64  # of the GPT
FLOOR = "gemm floor"  # the matrix products of a step and the update of the parameters
MODULES = {"ours": "work", "torch": "torch_work"}
GOAL = 1.6  # times the floor
LEAST_STEPS = 4  # in a turn, because in the first one workers still allocate memory pages


@dataclass(frozen=True)
class Race:
    """Entries that do the same work; `check` compares their numbers with those of the first.

    unit: the unit of work, such as "step"; units: how many of them run(1) does
    ratios: pairs of names of entries, whose times are divided
    least: the minimal runs in a turn
    """

    name: str
    title: str
    unit: str
    entries: tuple
    ratios: tuple
    units: int = 1
    least: int = 1


def races(what, workers, against_torch=False, threads=1, quick=False, plain=False):
    """The races of a benchmark, in the order of `WHAT`.

    what: names in `WHAT`; workers: our training also runs with this many processes; threads: PyTorch and our tiled
    attention also run with this many threads
    quick: only short sequences; plain: include attention that holds all weights even if it needs gigabytes
    """
    found = []
    for name in WHAT:
        if name not in what:
            continue
        if name in TRAINING:
            found.append(_training(name, workers, against_torch, threads))
        elif name in ("train", "tasks"):
            continue  # not a race of contestants: see `whole` and `tasks`
        elif name == "generate":
            found += [_generation(*how, against_torch, threads) for how in (("within", 1), ("beyond", CONTEXT))]
        else:
            lengths = LENGTHS[:QUICK_LENGTHS] if quick else LENGTHS
            found += [_attention(n, against_torch, threads, plain or n <= MOST_PLAIN) for n in lengths]
    return found


def _training(name, workers, against_torch, threads):
    how = {"configuration": name}
    entries, ratios = [Entry("ours, 1 core", "work", "Training", how)], [("ours, 1 core", FLOOR)]
    many = f"ours, {workers} workers"
    if workers > 1:
        entries.append(Entry(many, "work", "Training", {**how, "workers": workers}))
        ratios.append(("ours, 1 core", many))
    entries.append(Entry(FLOOR, "work", "Floor", how))
    if against_torch:
        entries.append(Entry("torch, 1 thread", "torch_work", "Training", how))
        ratios.append(("ours, 1 core", "torch, 1 thread"))
        if threads > 1:
            entries.append(Entry(f"torch, {threads} threads", "torch_work", "Training", how, threads))
            ratios.append((many if workers > 1 else "ours, 1 core", f"torch, {threads} threads"))
    title = f"training step, {name}: {TRAINING[name]}"
    return Race(name, title, "step", tuple(entries), tuple(ratios), least=LEAST_STEPS)


def _generation(where, prompt, against_torch, threads):
    how = {"prompt": prompt, "length": CONTEXT - 1}
    entries = [
        Entry("ours, cache", "work", "Generation", {**how, "use_cache": True}),
        Entry("ours, no cache", "work", "Generation", {**how, "use_cache": False}),
    ]
    ratios = [("ours, cache", "ours, no cache")]
    if against_torch:
        entries.append(Entry("torch, 1 thread", "torch_work", "Generation", how))
        ratios += [(entry.name, "torch, 1 thread") for entry in entries[:2]]
        if threads > 1:
            entries.append(Entry(f"torch, {threads} threads", "torch_work", "Generation", how, threads))
            ratios.append(("ours, cache", f"torch, {threads} threads"))
    title = (
        f"generation {where} the context: {how['length']} tokens after a prompt of {prompt}, context {CONTEXT}, batch 1"
    )
    return Race(f"generate {where}", title, "token", tuple(entries), tuple(ratios), units=how["length"])


def _attention(n, against_torch, threads, plain):
    def entry(side, kind, threads=1):
        name = f"{side}, {kind}" + (f", {threads} threads" if threads > 1 else "")
        entries.append(Entry(name, MODULES[side], "Attention", {"kind": kind, "n": n}, threads))
        return name

    entries, ratios = [], []
    tiled = entry("ours", "tiled")
    several = entry("ours", "tiled", threads) if threads > 1 else None
    naive = entry("ours", "plain") if plain else None
    if plain:
        ratios.append((tiled, naive))
    if against_torch:
        ratios.append((tiled, entry("torch", "fused")))
        if several:
            ratios.append((several, entry("torch", "fused", threads)))
        if plain:
            ratios.append((naive, entry("torch", "plain")))
    title = (
        f"attention over {n} tokens, forward and backward: batch 4, 8 heads of 64, one thread unless stated otherwise"
    )
    return Race(f"attention {n}", title, "pass", tuple(entries), tuple(ratios))
