"""A class and its homework: who is right, and which mistakes are made."""

import numpy as np

from ..support.checks import as_list, check_has
from .picture import Picture, styled
from .sizes import LABEL, LINE
from .style import RATE, RAW, VALIDATION, light_grid, round_ticks

STATES = {"right": RATE, "right for the lecture": RAW, "wrong": VALIDATION, "not started": "#e5e5e5"}
LONGEST_MISTAKE = 44  # characters


@styled
def class_results(results, title=None):
    """The exercises of a class: how many students are right, and the most frequent mistake of each exercise.

    results: one per exercise, with .exercise, its name; .states, {"right": students, "right for the lecture": …,
        "wrong": …, "not started": …}; .mistakes, {name of a mistake: students}, the most frequent first

    How to read it: a row is an exercise, in the order of the course, and its length is the class. A long orange part
    with one mistake behind it is a topic for the next lesson; a long grey part means that the exercise was not reached.

    Raises ValueError without results, or for a state that is none of these.
    """
    results = as_list("results", results, "the results of exercises")
    if not results:
        raise ValueError("results must have at least one exercise, got none")
    for i, result in enumerate(results):
        check_has(f"results[{i}]", result, "exercise", "states", "mistakes")
        if unknown := set(result.states) - set(STATES):
            raise ValueError(f"the states of {result.exercise} must be {', '.join(STATES)}, got {sorted(unknown)}")
    rows = np.arange(len(results))
    figure = Picture(figsize=(8, 3 * LABEL + 2 * LINE + 1.6 * LINE * (len(results) + 1)), layout="constrained")
    axes = figure.add_subplot(xlabel="students")
    ends = np.zeros(len(results))
    for state, color in STATES.items():
        counts = np.array([result.states.get(state, 0) for result in results])
        axes.barh(rows, counts, left=ends, height=0.72, color=color, label=state)
        ends += counts
    axes.set_yticks(rows, [result.exercise for result in results])
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.set_xlim(0, max(1, ends.max()))
    axes.xaxis.set_major_locator(round_ticks(6, integer=True))
    right = axes.secondary_yaxis("right")
    right.set_yticks(rows, [_most_frequent(result.mistakes) for result in results])
    right.tick_params(length=0)
    right.spines[:].set_visible(False)
    light_grid(axes)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, borderaxespad=0.2)
    if title:
        figure.suptitle(title)
    return figure


def _most_frequent(mistakes):
    """ "only the diagonal (7)", or "" without a mistake."""
    if not mistakes:
        return ""
    name, students = next(iter(mistakes.items()))
    name = name if len(name) <= LONGEST_MISTAKE else name[: LONGEST_MISTAKE - 1] + "…"
    return f"{name} ({students})"
