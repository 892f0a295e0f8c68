"""The results of the benchmark as Markdown tables, which are read in a terminal and on a page alike."""

import os
import platform
import re
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from ..support.files import write_text
from ..support.processes import cores
from .measure import TOLERANCE
from .profile import REST, Part

MEGABYTE = 1e6


# --- the machine ------------------------------------------------------------------------------------------------------


def machine():
    """The machine and the versions that the numbers depend on, {name: text or number}; None if unknown."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": _processor(),
        "cores": cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "torch": _version("torch"),
    }


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or None


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def head(command, machine, against_torch):
    """The lines above the tables: how they were made, and on which machine."""
    load = "" if machine["load"] is None else f", load {machine['load']:.1f} before the start"
    torch = f", PyTorch {machine['torch']} with its defaults" if against_torch else ""
    return (
        f"`{command}`\\\n"
        f"{machine['processor'] or 'unknown processor'}, {machine['cores']} cores, {machine['system']}, "
        f"{machine['date']}{load}\\\n"
        f"float32, Python {machine['python']}, NumPy {machine['numpy']} with {machine['blas']}{torch}"
    )


def put_into(path, command, machine, text):
    """Put the text into a Markdown file: in place of what the same command wrote on a processor of the same name, or
    after what it wrote on another one, or at the end."""
    begin, end = f"<!-- {command}, {machine['processor']} -->", "<!-- end of the measurement -->"
    before = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
    block = f"{begin}\n{text}\n{end}"
    written = list(re.finditer(rf"(<!-- {re.escape(command)}, .*? -->).*?{end}", before, re.DOTALL))
    same = [one.span() for one in written if one[1] == begin]
    if same:
        (start, stop), *_ = same
        new = before[:start] + block + before[stop:]
    elif written:
        last = written[-1].end()
        new = f"{before[:last]}\n\n{block}{before[last:]}"
    else:
        new = f"{before}\n{block}\n".lstrip()
    write_text(path, new)


# --- tables -----------------------------------------------------------------------------------------------------------


def table(rows):
    """Rows of words as a Markdown table, the first row its head."""
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust, *[str.rjust] * (len(widths) - 1)]
    head, *rest = ([side(word, n) for side, word, n in zip(sides, row, widths, strict=True)] for row in rows)
    rule = ["-" * widths[0], *("-" * (n - 1) + ":" for n in widths[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rest))


def race_tables(outcomes):
    """The races of one group as text: the times of the contestants and their ratios, then their memory."""
    race, names = outcomes[0].race, list(dict.fromkeys(result.name for o in outcomes for result in o.results))
    columns = [outcome.race.name for outcome in outcomes]
    ratios = dict.fromkeys(pair for outcome in outcomes for pair in outcome.race.ratios)
    shares = [
        [f"{a} / {b}", *(spread(*o.ratio(a, b)) if (a, b) in o.race.ratios else "" for o in outcomes)]
        for a, b in ratios
    ]

    def rows(text):
        found = {name: [outcome.result(name) for outcome in outcomes] for name in names}
        return [[name, *("" if one is None else text(one) for one in of)] for name, of in found.items()]

    times = rows(lambda result: _significant(1e3 * result.median))
    memory = rows(lambda result: f"{megabytes(result.peak)} ({megabytes(result.imports)})")
    title = f"{race.group}, medians; ratios with their quartiles:"
    first = table([[f"ms / {race.unit}", *columns], *times, *shares])
    return "\n\n".join((title, first, table([["peak MB (libraries)", *columns], *memory])))


def spread(ratio, quartiles):
    return f"{ratio:.2f} ({quartiles[0]:.2f}–{quartiles[1]:.2f})"


def unequal(outcomes):
    """A sentence for every contestant that did not do the same work."""
    return [
        f"{outcome.race.name}: {result.name} differs from {outcome.results[0].name} by {result.difference:.1e} "
        f"in {result.where}, more than {TOLERANCE:.0e}"
        for outcome in outcomes
        for result in outcome.results
        if not result.equal
    ]


def megabytes(number):
    return "?" if number is None else f"{number / MEGABYTE:,.0f}"


def _significant(number):
    """A number with three significant digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def profile_tables(name, profile):
    """The time of a step by kind, the largest first, with the time of each kind's matrix products alone and, if it was
    measured, in PyTorch; then by layer, in order of first use, all blocks together."""
    kinds = sorted(profile["kinds"], key=lambda part: (part.name == REST, -part.total))
    torch = profile.get("torch")
    heads = ["ms / step", "forward", "backward", "both", "share"]
    rows = [[*heads, "products", "ratio", *(["PyTorch", "ours / PyTorch"] if torch else [])]]
    for part, cells in _parts(kinds):
        cells += ["", ""] if part.floor is None else [f"{part.floor:.3f}", f"{part.total / part.floor:.2f}"]
        if torch:
            other = torch["kinds"].get(part.name)
            cells += ["", ""] if not other else [f"{other:.3f}", f"{part.total / other:.2f}"]
        rows.append(cells)
    whole = f"step of {name}, one core: {profile['step']:.3f} ms without stopwatches"
    if torch:
        whole += f"; PyTorch, one thread: {torch['step']:.3f} ms without its profiler"
    layers = {}
    for part in profile["layers"]:
        name = re.sub(r"\b\d+\b", "*", part.name)  # blocks.3.norm -> blocks.*.norm
        before = layers.get(name, Part(name, 0.0, 0.0))
        layers[name] = Part(name, before.forward + part.forward, before.backward + part.backward)
    by_layer = table([heads, *(cells for _, cells in _parts(layers.values()))])
    return "\n\n".join((f"{whole}:", table(rows), by_layer))


def _parts(parts):
    """Each part with its cells, and their sum."""
    whole = sum(part.total for part in parts)
    for part in parts:
        backward, share = f"{part.backward:.3f}" if part.backward else "", f"{100 * part.total / whole:.1f} %"
        yield part, [part.name, f"{part.forward:.3f}", backward, f"{part.total:.3f}", share]
