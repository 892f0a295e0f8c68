"""Parameters that nothing in an answer reads: what else is wrong shows in the calls that leave them as they are."""

import ast
from copy import copy
from inspect import signature

from .compare import close
from .family import Family
from .finding import findings
from .syntax import in_order
from .words import cases_of, with_cases


def function_of(answer):
    """The syntax tree of an answer, or None."""
    return next(iter(Family(answer).trees.values()), None)


def function_in(source, name):
    """The syntax tree of the only function of this name in the source of a file, or None."""
    try:
        nodes = [n for n in ast.parse(source).body if getattr(n, "name", "") == name]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return nodes[0] if len(nodes) == 1 else None


def without_unread(trials, attempts, function):
    """The trials and the Findings of an answer's attempts, without the cases that are wrong because they set a
    parameter that nothing in the answer, of which this is the syntax tree, reads; all of them if no other case is
    wrong."""
    if order := in_order(function, signature(trials.exercise.reference).parameters):
        trials = copy(trials)
        trials.order = order
    found = findings(trials, attempts)
    wrong = {n for n, finding in enumerate(found) if not finding.right}
    if not wrong:
        return trials, found
    numbers = {name: _shown_by(trials, name, found) for name in _unread(trials, function)}
    left_out = {n for of_name in numbers.values() for n in of_name}
    other = {n for n in wrong - left_out if found[n].wrong != []}  # not a rule alone
    is_core = any(not trials.cases[n].extended for n in left_out) and all(trials.cases[n].extended for n in other)
    if not left_out or not other or is_core:
        return trials, found
    kept = [n for n in range(len(found)) if n not in left_out]
    unread = {trials.ignored[name].argument: {n: found[n] for n in some} for name, some in numbers.items() if some}
    part = trials.only(kept, unread)
    return part, findings(part, [attempts[n] for n in kept])


def labels_of_unread(trials, named):
    """{parameter that nothing reads: the labels of the cases that show it}, without those whose cases the named
    mistakes explain too.

    named: the names of known mistakes
    """
    labels = {}
    for argument, found in trials.unread.items():
        if not named or not all(_explain(trials, named, number, finding) for number, finding in found.items()):
            labels[argument] = list(dict.fromkeys(finding.case.label for finding in found.values()))
    return labels


def about_unread(labels):
    said = ((f"Nothing in the code reads `{name}`.", cases_of([*filter(None, some)])) for name, some in labels.items())
    return [with_cases(text, cases) for text, cases in said]


def _explain(trials, named, number, finding):
    """Whether mistakes give the results of a case that was left out."""
    variant, _ = trials.whole.variant_on(named, number)
    return None not in (variant, finding.results) and all(map(close, variant, finding.results))


def _unread(trials, function):
    """The names of the mistakes that are parameters with a default which nothing in a function reads."""
    if not isinstance(function, ast.FunctionDef):
        return []
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
    if read & {"locals", "vars", "eval", "exec"}:
        return []
    return [name for name, one in trials.ignored.items() if one.has_default and one.argument not in read]


def _shown_by(trials, name, found):
    """The numbers of the cases in which a right answer without a parameter has wrong results; none if the answer has
    one of these right: what the parameter says may follow from others too."""
    numbers = []
    for n, finding in enumerate(found):
        if finding.case.raises or not trials.ignored[name].is_set_in(finding.case):
            continue
        variant, _ = trials.variant_on((name,), n)
        results = range(len(finding.expected))
        changed = {i for i in results if variant is None or not close(variant[i], finding.expected[i])}
        if finding.wrong is not None and changed - {*finding.wrong}:
            return []
        numbers += [n] if changed else []
    return numbers
