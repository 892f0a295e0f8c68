"""The exercises of the homework: how many are right."""

import numpy as np

from ..support.checks import check_kind
from .picture import Picture, styled
from .style import SEEN, TRAINING, VALIDATION, round_ticks


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
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
