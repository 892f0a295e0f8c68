"""One thing that may be wrong with an answer, from its generation to the sentence that a student reads."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """name: of the mistake, or None; text: for the student

    Its program is a right answer with the listed mistake or the ignored argument of this name. It is believed of a
    wrong result where running it gives the student's numbers. A description of the wrong numbers has no program.
    """

    name: str | None
    text: str


def listed(trials):
    """The Hypotheses of an exercise: its listed mistakes, and that it ignores an argument."""
    texts = dict(trials.exercise.mistakes) | {name: ignored.text for name, ignored in trials.ignored.items()}
    return [Hypothesis(name, text) for name, text in texts.items()]
