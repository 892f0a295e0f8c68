"""The results of the benchmark as text tables and as JSON."""

import os
import platform
from dataclasses import asdict
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
                _megabytes(result.peak),
                _megabytes(result.imports),
                _difference(result),
            )
        )
    lines = [race.title, *aligned(rows)]
    for name, other in race.ratios:
        ratio, (low, high) = outcome.ratio(name, other)
        goal = f", goal {GOAL}" if other == FLOOR else ""
        lines.append(f"  {name} / {other}: {ratio:.2f} ({low:.2f} - {high:.2f}){goal}")
    return "\n".join(lines)


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


def _megabytes(number):
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


def kinds_table(name, profile):
    """The time of a step by kind, with the time of each kind's matrix products alone."""
    parts = sorted(profile["kinds"], key=lambda part: (part.name == REST, -part.total))
    whole = sum(part.total for part in parts)
    rows = [("", "forward", "backward", "ms / step", "share", "products", "ratio")]
    for part in parts:
        floor = ("", "") if part.floor is None else (f"{part.floor:.3f}", f"{part.total / part.floor:.2f}")
        rows.append((part.name, *_times(part, whole), *floor))
    rows.append(("sum", "", "", f"{whole:.3f}", "", "", ""))
    return "\n".join(
        [f"step of {name} by kind, one core, exclusive times in ms", *aligned(rows), _cost(profile, "kinds")]
    )


def layers_table(name, profile):
    """The time of a step by layer, in order of first use."""
    parts = profile["layers"]
    whole = sum(part.total for part in parts)
    rows = [("", "forward", "backward", "ms / step", "share")]
    rows += [(part.name, *_times(part, whole)) for part in parts]
    rows.append(("sum", "", "", f"{whole:.3f}", ""))
    lines = [f"step of {name} by layer, one core, exclusive times in ms", *aligned(rows), _cost(profile, "layers")]
    return "\n".join(lines)


def _times(part, whole):
    return (
        f"{part.forward:.3f}",
        f"{part.backward:.3f}" if part.backward else "",
        f"{part.total:.3f}",
        f"{100 * part.total / whole:.1f} %",
    )


def _cost(profile, table):
    calls, each = profile["calls"][table], profile["microseconds"]
    return (
        f"  without stopwatches a step takes {profile['step']:.3f} ms; {calls} timed calls of {each:.1f} µs each "
        f"add about {calls * each / 1e3:.3f} ms"
    )


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(machine, options, outcomes, profiles):
    """All measurements as dictionaries and lists. Times are in seconds, except in profiles, where they are in ms."""
    return {
        "machine": machine,
        "options": options,
        "races": [_race_as_json(outcome) for outcome in outcomes],
        "profiles": {
            name: {
                **profile,
                "kinds": [asdict(part) for part in profile["kinds"]],
                "layers": [asdict(part) for part in profile["layers"]],
            }
            for name, profile in profiles.items()
        },
    }


def _race_as_json(outcome):
    race = outcome.race
    return {
        "name": race.name,
        "title": race.title,
        "unit": race.unit,
        "contestants": [
            {
                "name": result.name,
                "threads": entry.threads,
                "bursts": [{"units": units, "seconds": seconds} for units, seconds in result.bursts],
                "median": result.median,
                "quartiles": list(result.quartiles),
                "equal": result.equal,
                "difference": result.difference if result.equal or isfinite(result.difference) else None,
                "imports_bytes": result.imports,
                "peak_bytes": result.peak,
            }
            for entry, result in zip(race.entries, outcome.results, strict=True)
        ],
        "ratios": [
            {"of": name, "to": other, "ratio": ratio, "quartiles": list(spread)}
            for name, other in race.ratios
            for ratio, spread in [outcome.ratio(name, other)]
        ],
    }
