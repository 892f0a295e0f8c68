"""The homework: a student's progress, and a class, who is right and which mistakes are made."""

import numpy as np

from ..support.checks import as_list, check_has, check_kind
from .picture import Picture, styled
from .sizes import LABEL, LINE
from .style import RATE, RAW, SEEN, TRAINING, VALIDATION, legend_above, light_grid, round_ticks

STATES = {"right": RATE, "right for the lecture": RAW, "wrong": VALIDATION, "not started": "#e5e5e5"}
LONGEST_MISTAKE = 44  # characters


@styled
def progress(chapters):
    """How many exercises of each chapter are right, as bars.

    chapters: {title: (right, begun, all)}, the numbers of exercises that are right, tried but not yet right, and in the
        chapter

    How to read it: the blue part of a bar is right, the orange part was tried but is not right yet, and the pale part
    is not started.
    """
    check_kind("chapters", chapters, dict)
    if not chapters:
        raise ValueError("chapters must have at least one chapter, got an empty dict")
    for title, numbers in chapters.items():
        if np.shape(numbers) != (3,) or min(numbers) < 0 or numbers[0] + numbers[1] > numbers[2]:
            raise ValueError(f"chapters[{title!r}] must be (right, begun, all), right + begun <= all, got {numbers}")
    right, begun, total = (list(numbers) for numbers in zip(*chapters.values(), strict=True))
    rows = range(len(chapters))
    figure = Picture(figsize=(8, 1.2 + 0.26 * len(chapters)), layout="constrained")
    axes = figure.add_subplot(xlabel="exercises")
    axes.barh(rows, total, color=SEEN, height=0.7)
    axes.barh(rows, right, color=TRAINING, height=0.7, label="right")
    axes.barh(rows, begun, left=right, color=VALIDATION, height=0.7, label="tried, not right yet")
    for row in rows:
        place = (total[row], row), (4, 0)
        axes.annotate(f"{right[row]} of {total[row]}", *place, textcoords="offset points", va="center")
    axes.set_yticks(rows, list(chapters))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.xaxis.set_major_locator(round_ticks(9, integer=True))
    axes.set_title(f"{sum(right)} of {sum(total)} exercises right", loc="left")
    legend_above(axes, 2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


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
