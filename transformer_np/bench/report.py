"""The results of the benchmark as text tables and as JSON."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from math import isfinite

import numpy as np

from ..support.processes import cores
from .measure import TOLERANCE
from .profile import REST
from .races import FLOOR, GOAL

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


def head(machine, against_torch):
    """The lines above the tables."""
    lines = [
        f"{machine['processor'] or 'unknown processor'}, {machine['cores']} cores, {machine['system']}"
        + (f", load {machine['load']:.1f} before the start" if machine["load"] is not None else ""),
        f"Python {machine['python']}, NumPy {machine['numpy']} with {machine['blas']}"
        + (f", PyTorch {machine['torch']}" if against_torch else ""),
        "float32, dropout 0, sequences of equal length (no padding); median of the turns, quartiles in parentheses;",
        "peak: peak memory, including the libraries; imports: the memory after loading the libraries.",
        f"{FLOOR}: only the matrix products of one step and the parameter update.",
    ]
    if against_torch:
        lines.append(
            "PyTorch eager: its defaults, with the same parameters, batches and optimizer, also with dropout 0."
        )
    return "\n".join(lines)


# --- races ------------------------------------------------------------------------------------------------------------


def table(outcome):
    """A race as text: one row per contestant, then the ratios."""
    race = outcome.race
    rows = [("", f"ms / {race.unit}", "(quartiles)", "per second", "peak MB", "imports", "difference")]
    for result in outcome.results:
        low, high = result.quartiles
        rows.append(
            (
                result.name,
                _significant(1e3 * result.median),
                f"({_significant(1e3 * low)} - {_significant(1e3 * high)})",
                _significant(1 / result.median),
                megabytes(result.peak),
                megabytes(result.imports),
                _difference(result),
            )
        )
    lines = [race.title, *aligned(rows)]
    for name, other in race.ratios:
        lines.append(
            ratio_line(name, other, *outcome.ratio(name, other)) + (f", goal {GOAL}" if other == FLOOR else "")
        )
    return "\n".join(lines)


def ratio_line(name, other, ratio, spread):
    return f"  {name} / {other}: {ratio:.2f} ({spread[0]:.2f} - {spread[1]:.2f})"


def unequal(outcomes):
    """A sentence for every contestant that did not do the same work."""
    return [
        f"{outcome.race.name}: {result.name} differs from {outcome.results[0].name} by {result.difference:.1e} "
        f"in {result.where}, more than {TOLERANCE:.0e}"
        for outcome in outcomes
        for result in outcome.results
        if not result.equal
    ]


def _difference(result):
    if result.difference is None:
        return ""
    return f"{result.difference:.0e}" + ("" if result.equal else " TOO MUCH")


def megabytes(number):
    return "?" if number is None else f"{number / MEGABYTE:,.0f}"


def _significant(number):
    """A number with three significant digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def aligned(rows):
    """Rows of words as lines, the first column aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            ["  " + first.ljust(widths[0]), *(word.rjust(width) for word, width in zip(rest, widths[1:], strict=True))]
        ).rstrip()
        for first, *rest in rows
    ]


# --- profiles ---------------------------------------------------------------------------------------------------------


def profile_table(name, profile, by):
    """The time of a step by "kind", the largest first, with the time of each kind's matrix products alone, or by
    "layer", in order of first use."""
    parts, kinds = profile[f"{by}s"], by == "kind"
    if kinds:
        parts = sorted(parts, key=lambda part: (part.name == REST, -part.total))
    whole = sum(part.total for part in parts)
    rows = [("", "forward", "backward", "ms / step", "share", "products", "ratio")]
    for part in parts:
        backward = f"{part.backward:.3f}" if part.backward else ""
        floor = ("", "") if part.floor is None else (f"{part.floor:.3f}", f"{part.total / part.floor:.2f}")
        share = f"{100 * part.total / whole:.1f} %"
        rows.append((part.name, f"{part.forward:.3f}", backward, f"{part.total:.3f}", share, *floor))
    rows.append(("sum", "", "", f"{whole:.3f}", "", "", ""))
    cost = f"  without stopwatches a step takes {profile['step']:.3f} ms"
    title = f"step of {name} by {by}, one core, exclusive times in ms"
    return "\n".join([title, *aligned(rows if kinds else [row[:5] for row in rows]), cost])


# --- JSON -------------------------------------------------------------------------------------------------------------


def races_as_json(outcomes):
    """The measurements of races as dictionaries and lists, times in seconds."""
    return [
        {
            **{name: getattr(outcome.race, name) for name in ("name", "title", "unit")},
            "contestants": [
                {
                    "name": result.name,
                    "threads": entry.threads,
                    "bursts": [{"units": units, "seconds": seconds} for units, seconds in result.bursts],
                    "median": result.median,
                    "quartiles": result.quartiles,
                    "equal": result.equal,
                    "difference": result.difference if result.equal or isfinite(result.difference) else None,
                    "imports_bytes": result.imports,
                    "peak_bytes": result.peak,
                }
                for entry, result in zip(outcome.race.entries, outcome.results, strict=True)
            ],
            "ratios": [
                {"of": name, "to": other, "ratio": ratio, "quartiles": spread}
                for name, other in outcome.race.ratios
                for ratio, spread in [outcome.ratio(name, other)]
            ],
        }
        for outcome in outcomes
    ]
