"""The pictures of `plot PICTURE`: a picture's flags stand above the function that draws it.

To add a picture, add one such function to the file with its subject.
"""

import argparse
from functools import partial

from .. import add_model

PICTURES = []  # (name, summary, example, flags, draw)
MOST = 2000  # rows, columns, layers or words of a picture: with more, one is less than a pixel


def picture(name, summary, example, *flags):
    """Make `plot NAME` of the function below, which takes the parsed arguments and `plots` and returns a figure.

    flags: functions that add an argument to the parser they are given
    """

    def register(draw):
        PICTURES.append((name, summary, example, flags, draw))
        return draw

    return register


def flag(*names, **settings):
    return lambda parser: parser.add_argument(*names, **settings)


def number(name, text, default=None, shown=None):
    """A flag that takes a whole number. shown: the default in words, where it is not a number."""
    text = f"{text} (default: {shown or default})"
    return flag(name, type=_at_most, default=default, metavar="N", help=text)


def _at_most(text):
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
    if number > MOST:
        raise argparse.ArgumentTypeError(f"must be at most {MOST:,}: no picture can show more; got {text}")
    return number


def model(of_run, pretrained, **options):
    return partial(add_model, of_run=of_run, pretrained=pretrained, **options)


def pick(name, stack, number):
    """The layer, head or product of this number, counted from 1."""
    if not 1 <= number <= len(stack):
        raise ValueError(f"--{name} must lie in 1 … {len(stack)}, got {number}")
    return stack[number - 1]
