"""The races: contestants that do the same work."""

from dataclasses import dataclass, replace

from ..support.counts import counted
from . import TRAINING
from .contestants import Entry

LENGTHS = (512, 1024, 2048, 4096)  # tokens of the attention
QUICK_LENGTHS = 2  # the shortest of them
MOST_PLAIN = 2048  # tokens; for more, attention that holds all weights needs 10 GB
CONTEXT = 64  # of the GPT
TOKENS = 30  # of the pretrained model
SIDES = ("ours", "work"), ("torch", "torch_work")
LEAST_STEPS = 4  # in a turn, because in the first one workers still allocate memory pages


@dataclass(frozen=True)
class Race:
    """Entries that do the same work; `check` compares their numbers with those of the first.

    group: the title of the table to which the race adds a column; unit: the unit of work, such as "step"; units: how
        many of them run(1) does
    ratios: pairs of names of entries, whose times are divided
    least: the minimal runs in a turn
    """

    name: str
    group: str
    unit: str
    entries: tuple
    ratios: tuple
    units: int = 1
    least: int = 1

    def of(self, wanted):
        """The race of the entries for which wanted(entry) is true, and the ratios between them."""
        entries = tuple(filter(wanted, self.entries))
        names = {entry.name for entry in entries}
        return replace(self, entries=entries, ratios=tuple(pair for pair in self.ratios if names.issuperset(pair)))


def races(what, workers, against_torch=False, threads=1, quick=False):
    """The races of a benchmark, in the order of `WHAT`.

    what: names in `WHAT`, of which those of whole commands are no races
    workers: our training also runs with this many processes; threads: PyTorch and our tiled attention also run with
        this many threads
    quick: only short sequences
    """
    found = [_training(name, workers, threads) for name in TRAINING if name in what]
    if "generate" in what:
        found += [_generation("within", 1, threads), _generation("beyond", CONTEXT, threads)]
    if "pretrained" in what:
        found.append(_pretrained(threads))
    if "attention" in what:
        found += [_attention(n, threads) for n in (LENGTHS[:QUICK_LENGTHS] if quick else LENGTHS)]
    return [
        race.of(lambda entry: entry.threads <= threads and (against_torch or entry.module != "torch_work"))
        for race in found
    ]


def _torch(work, how, threads):
    """PyTorch with one thread, and with several."""
    return [Entry(f"torch, {counted(n, 'thread')}", "torch_work", work, how, n) for n in dict.fromkeys((1, threads))]


def _training(name, workers, threads):
    ours, many, how = "ours, 1 core", f"ours, {workers} workers", {"configuration": name}
    entries = [Entry(ours, "work", "Training", how)]
    if workers > 1:
        entries.append(Entry(many, "work", "Training", {**how, "workers": workers}))
    entries += _torch("Training", how, threads)
    several = entries[-1].name
    ratios = (ours, many), (ours, "torch, 1 thread"), (many if workers > 1 else ours, several)
    return Race(name, "training steps", "step", tuple(entries), tuple(dict.fromkeys(ratios)), least=LEAST_STEPS)


def _generation(where, prompt, threads):
    how = {"prompt": prompt, "length": CONTEXT - 1}
    cached, uncached = "ours, cache", "ours, no cache"
    ours = [Entry(name, "work", "Generation", {**how, "use_cache": name == cached}) for name in (cached, uncached)]
    torch = _torch("Generation", how, threads)
    ratios = (cached, uncached), *((cached, entry.name) for entry in torch), (uncached, torch[0].name)
    group = f"generation, {CONTEXT - 1} tokens within or beyond a context of {CONTEXT}, batch 1"
    return Race(where, group, "token", (*ours, *torch), ratios, units=CONTEXT - 1)


def _pretrained(threads):
    pairs = [
        [
            Entry(f"{side}, {counted(n, 'thread')}", module, "Pretrained", {"length": TOKENS}, n)
            for side, module in SIDES
        ]
        for n in dict.fromkeys((1, threads))
    ]
    ours, torch = zip(*pairs, strict=True)
    ratios = tuple((one.name, other.name) for one, other in pairs)
    group = f"generation with the cache on both sides, {TOKENS} tokens after a short prompt"
    return Race("SmolLM2-135M", group, "token", (*ours, *torch), ratios, units=TOKENS)


def _attention(n, threads):
    def pair(ours, torch, threads=1):
        several = f", {counted(threads, 'thread')}" if threads > 1 else ""
        for side, module, kind in (("ours", "work", ours), ("torch", "torch_work", torch)):
            yield Entry(f"{side}, {kind}{several}", module, "Attention", {"kind": kind, "n": n}, threads)

    pairs = [pair("tiled", "fused"), *([pair("tiled", "fused", threads)] if threads > 1 else [])]
    if n <= MOST_PLAIN:
        pairs.append(pair("plain", "plain"))
    ours, torch = zip(*pairs, strict=True)
    ratios = ("ours, tiled", "ours, plain"), *((one.name, other.name) for one, other in zip(ours, torch, strict=True))
    group = "attention over n tokens, forward and backward, batch 4, 8 heads of 64"
    return Race(f"{n}", group, "pass", (*ours, *torch), ratios)
