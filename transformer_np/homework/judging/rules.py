"""The rules that an answer breaks although its numbers may be right: its inputs, dtype, memory, exceptions, chance."""

from inspect import signature

from .attempt import RULES
from .words import cases_of

CHANGED = "changes its input"
OTHER_DTYPE = "another dtype"
SHARED = "copy or view"
NOT_REFUSED = "does not raise the exception"


def broken_rules(failed):
    """{name: text} of the rules that these Findings break."""
    broken = {}
    if names := dict.fromkeys(name for finding in failed for name in finding.tried.changed):
        broken[CHANGED] = (
            f"It changes {' and '.join(names)}, but the caller still needs the old values. `x -= …`, `x *= …`, "
            "`x[…] = …` and the methods of a list write into the input, and `y = x` makes no copy of it. Make a new "
            "array or list; of lists in a list, list(…) makes only the outer one new."
        )
    if other := next((finding.other_dtype for finding in failed if finding.other_dtype), ""):
        broken[OTHER_DTYPE] = (
            f"{other} The caller relies on it: a smaller dtype loses digits, a larger one makes what follows slower."
        )
    has_rng = bool(failed) and "rng" in signature(failed[0].exercise.reference).parameters
    for name, text in RULES.items():
        if any(name in finding.tried.broken for finding in failed):
            broken[name] = text if has_rng else text.replace(" Draw from `rng` alone.", "")
    shared = next((finding.memory for finding in failed if finding.memory), "")
    if shared and CHANGED not in broken:
        broken[SHARED] = shared
    refused = {}
    for finding in failed:
        if finding.not_refused:
            refused.setdefault(finding.not_refused, {})[finding.case.label] = None
    if refused:
        broken[NOT_REFUSED] = " ".join(f"With {cases_of(list(labels))}: {text}" for text, labels in refused.items())
    return broken
