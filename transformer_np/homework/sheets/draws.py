"""How inputs are drawn, and random outputs gathered, that several sheets need."""

from inspect import signature

import numpy as np

from ..exercise import NOTHING, Case, draw_sizes


def only(sizes, letters):
    """The sizes of these letters alone: those that the arrays of a case have."""
    return {letter: sizes[letter] for letter in letters.split()}


class Calls:
    """Makes the cases of a function, each with random arrays of its own in the shapes that the function declares
    (`support.shapes`).

    sizes: {letter: its size, or another letter that it has the size of}
    leading: the axes that "..." stands for; without: those of them that are left out
    usual: arguments by name, which every case has; a function is called with the random array
    """

    def __init__(self, rng, function, sizes, leading="B H T", without="", **usual):
        self.rng, self.function, self.sizes = rng, function, sizes
        self.leading, self.without, self.usual = leading, without, usual

    def __call__(self, label, sizes=NOTHING, without=None, **given):
        """A Case that differs from the plain one in some sizes, in the axes that are left out or in the arguments that
        are given; None for one that is not passed."""
        sizes, known = {**self.sizes, **sizes}, self.usual | given
        left_out = (self.without if without is None else without).split()
        for name, axes in self.function.shapes.items():
            letters = " ".join(axes).replace("...", self.leading).split()
            shape = [sizes[letter] for letter in letters if letter not in left_out]
            array = self.rng.normal(size=[sizes.get(size, size) for size in shape])
            value = known.setdefault(name, array)
            known[name] = value(array) if callable(value) else value
        arguments, options = [], {}
        for name, parameter in signature(self.function).parameters.items():
            if parameter.default is parameter.empty or (name in self.function.shapes and known[name] is not None):
                arguments.append(known[name])
            elif known.get(name) is not None:
                options[name] = known[name]
        named = {letter: size for letter, size in sizes.items() if letter not in left_out and size not in sizes}
        return Case(label, tuple(arguments), options, named)

    def of_other_ranks(self):
        """The same with a matrix, with four axes and with a single row."""
        axes = next(iter(self.function.shapes.values()))
        *leading, last = " ".join(axes).replace("...", self.leading).split()
        yield self(f"x of shape (T, {last})", without="B H")
        yield self("x of four axes", without="")
        yield self(f"x of shape ({last},)", without=" ".join(leading))


def pairs(outputs):
    """[[first, second], …] of outputs that are pairs, as new arrays: the next call may write into its arguments. The
    first output that is no pair is returned as it is."""
    found = []
    for output in outputs:
        if not isinstance(output, tuple | list) or len(output) != 2 or any(part is None for part in output):
            return output
        found.append([np.array(part) for part in output])
    return found


def sizes_without_squares(rng, letters):
    """Sizes without a square for K: 1/√4 would pass for a mean over two."""
    while True:
        sizes = draw_sizes(rng, letters)
        if sizes.get("K") not in (4, 9):
            return sizes


def far_apart(rng, q, k, signs=(-1, 1)):
    """{"q": …, "k": …} of the same shapes, whose scores are some ±10,000 and so far apart in each row that rounding, in
    float32 too, does not decide between them; the largest is another one in each row."""
    across = rng.choice(signs, size=(*q.shape[:-1], 1)) * rng.uniform(0.5, 1.5, size=(*q.shape[:-1], 1))
    ranks = rng.permutation(np.arange(k.shape[-2])) - (k.shape[-2] // 2 if len(signs) > 1 else -1)
    return {"q": across * (100 + rng.random(q.shape)), "k": ranks[:, None] * (100 + rng.random(k.shape))}
