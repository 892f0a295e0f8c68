"""The races: contestants that do the same work."""

from dataclasses import dataclass

from . import TRAINING, WHAT
from .contestants import Entry

LENGTHS = (512, 1024, 2048, 4096)  # tokens of the attention
QUICK_LENGTHS = 2  # the shortest of them
MOST_PLAIN = 2048  # tokens; beyond this, attention that holds all weights needs gigabytes
CONTEXT = 64  # of the GPT
FLOOR = "gemm floor"  # the matrix products of a step and the update of the parameters
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
    """The races of a benchmark, in the order of `WHAT`; `train` and `tasks` are no races of contestants.

    what: names in `WHAT`; workers: our training also runs with this many processes; threads: PyTorch and our tiled
    attention also run with this many threads
    quick: only short sequences; plain: include attention that holds all weights even if it needs gigabytes
    """

    def race(name, title, unit, entries, ratios, **how):
        """The race of those entries that are asked for, and the ratios between them."""
        running = tuple(entry for entry in entries if entry and (against_torch or entry.module != "torch_work"))
        names = {entry.name for entry in running}
        return Race(name, title, unit, running, tuple(pair for pair in ratios if names.issuperset(pair)), **how)

    def torch(work, how):
        yield Entry("torch, 1 thread", "torch_work", work, how)
        if threads > 1:
            yield Entry(several, "torch_work", work, how, threads)

    def training(name):
        ours, many, how = "ours, 1 core", f"ours, {workers} workers", {"configuration": name}
        entries = [
            Entry(ours, "work", "Training", how),
            workers > 1 and Entry(many, "work", "Training", {**how, "workers": workers}),
            Entry(FLOOR, "work", "Floor", how),
            *torch("Training", how),
        ]
        others = (FLOOR, many, "torch, 1 thread")
        ratios = [*((ours, other) for other in others), (many if workers > 1 else ours, several)]
        return race(name, f"training step, {name}: {TRAINING[name]}", "step", entries, ratios, least=LEAST_STEPS)

    def generation(where, prompt):
        how = {"prompt": prompt, "length": CONTEXT - 1}
        cached, uncached = "ours, cache", "ours, no cache"
        entries = [
            Entry(cached, "work", "Generation", {**how, "use_cache": True}),
            Entry(uncached, "work", "Generation", {**how, "use_cache": False}),
            *torch("Generation", how),
        ]
        ratios = [(cached, uncached), (cached, "torch, 1 thread"), (uncached, "torch, 1 thread"), (cached, several)]
        title = f"generation {where} the context: {CONTEXT - 1} tokens after a prompt of {prompt}, context {CONTEXT}"
        return race(f"generate {where}", f"{title}, batch 1", "token", entries, ratios, units=CONTEXT - 1)

    def attention(n):
        def entry(side, kind, threads=1):
            name = f"{side}, {kind}" + (f", {threads} threads" if threads > 1 else "")
            return Entry(
                name, {"ours": "work", "torch": "torch_work"}[side], "Attention", {"kind": kind, "n": n}, threads
            )

        naive = plain or n <= MOST_PLAIN
        pairs = [(entry("ours", "tiled"), entry("torch", "fused"))]
        if threads > 1:
            pairs.append((entry("ours", "tiled", threads), entry("torch", "fused", threads)))
        if naive:
            pairs.append((entry("ours", "plain"), entry("torch", "plain")))
        entries = [entry for side in zip(*pairs, strict=True) for entry in side]
        ratios = [("ours, tiled", "ours, plain"), *((one.name, other.name) for one, other in pairs)]
        title = f"attention over {n} tokens, forward and backward: batch 4, 8 heads of 64"
        return race(f"attention {n}", f"{title}, one thread unless stated otherwise", "pass", entries, ratios)

    several = f"torch, {threads} threads"
    found = [training(name) for name in WHAT if name in what and name in TRAINING]
    if "generate" in what:
        found += [generation("within", 1), generation("beyond", CONTEXT)]
    if "attention" in what:
        found += [attention(n) for n in (LENGTHS[:QUICK_LENGTHS] if quick else LENGTHS)]
    return found
