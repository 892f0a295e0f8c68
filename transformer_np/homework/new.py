"""The file with which a teacher begins an exercise."""

import keyword
import shlex
from pathlib import Path

from .path import all_exercises

_TEMPLATE = '''\
"""The exercise `{name}`, and the mistakes that people make in it.

    transformer-np homework verify {folder}                 report the problems of this file
    transformer-np homework start work --exercises {folder}   write a student's file
"""

import numpy as np

from transformer_np.homework.exercise import Case, Exercise, Result, draw_sizes

# 1. The function. Students get its signature and its docstring, and see its code once their own is right.


def {name}(x, axis=-1):
    """Scale x so that the largest absolute value along an axis is 1.

    y = x / max |x|,  x (…)

    ->  y, of the shape of x
    """
    return x / np.abs(x).max(axis, keepdims=True)


# 2. The calls that an answer has to get right, the plain one first. All numbers and sizes come from rng, so that no
#    answer can know them. The label of a case continues a sentence: "it fails with axis=0".


def {name}_cases(rng):
    sizes = draw_sizes(rng, "B T D", least=3)  # {{"B": 4, "T": 3, "D": 6}}: all different
    x = rng.normal(size=(sizes["B"], sizes["T"], sizes["D"]))
    return [
        Case("", (x,), sizes=sizes),
        Case("axis=0", (x,), {{"axis": 0}}, sizes),
        Case("negative numbers only", (-np.abs(x),), sizes=sizes),
    ]


# 3. A right answer, as a student would write it. The mistakes below rewrite pieces of it.


def plain(x, axis=-1):
    largest = np.max(np.abs(x), axis=axis, keepdims=True)
    return x / largest


# 4. A mistake is a name, a piece of `plain` -> what a student writes instead, and below it the text that the student
#    reads. `every` before the piece rewrites every place, `2nd` the second. Several rewrites have lines of their own.

EXERCISES = [
    Exercise(
        reference={name},
        results=(Result("y", "B T D"),),
        cases={name}_cases,
        answer=plain,
        hints=(
            "Which number do you divide by, and how many of them are there?",
            "y = x / max |x|",
            "np.abs, np.max with axis and keepdims.",
        ),
        difficulty=1,
        section="Week 1",
        chapter="Exercises of our own",
        place=1,
        mistakes="""
- without the absolute value:  np.abs(x) -> x
  The largest value is taken, not the largest absolute value: −3 counts as smaller than 2. Take np.abs(x) first.
- along the last axis only:  axis=axis -> axis=-1
  `axis` is ignored: the maximum is always taken along the last axis. Pass it on to np.max.
- one maximum for all:  np.max(np.abs(x), axis=axis, keepdims=True) -> np.max(np.abs(x))
  There is one maximum for the whole array. Each row along the axis has its own: np.max needs axis and keepdims.
- divided by the sum:  np.max(np.abs -> np.sum(np.abs
  x is divided by the sum of the absolute values, so they add up to 1. The largest of them must be 1.
""",
    )
]
'''


def write_new(name, folder):
    """Write a file with an exercise that works; returns its path. ValueError if the name or the file cannot be used."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ValueError(f"{name!r} cannot be the name of a function; for example rms_norm")
    if name in ("plain", "np", "Case", "Exercise", "Result", "draw_sizes"):
        raise ValueError(f"{name} is used in the file for something else; take another name")
    if name in all_exercises():
        raise ValueError(f"{name} is an exercise of the library; take another name")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(_TEMPLATE.format(name=name, folder=shlex.quote(folder.as_posix())))
    except FileExistsError:
        raise ValueError(f"{path} already exists and was not overwritten") from None
    return path
