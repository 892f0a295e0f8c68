"""Runs a race: the contestants take turns, so that other load on the machine affects all of them."""

import math
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from . import memory
from .contestants import Contestant, Entry

TOLERANCE = 1e-4  # relative, for numbers that must be the same for all
ROUNDS, BURST = 7, 0.3  # rounds, and the minimal seconds of work in a turn
QUICK_ROUNDS, QUICK_BURST = 3, 0.1
PROFILED, QUICK_PROFILED = 15, 5  # steps of a profile
OTHER = 1e9  # the difference of numbers that cannot be compared
PAUSE = 0.1  # seconds between turns: long enough for threads that busy-wait for the next task to go to sleep


@dataclass
class Result:
    """The measurements of one contestant.

    bursts: (units of work, seconds) of each turn
    difference, where: the largest difference from the first contestant's numbers, and its name; None without numbers
    imports, peak: bytes of memory after loading its libraries, and at most during the work; None if unknown
    """

    name: str
    bursts: list = field(default_factory=list)
    difference: float | None = None
    where: str | None = None
    imports: int | None = None
    peak: int | None = None

    @property
    def times(self):
        """Seconds per unit, one per burst."""
        return [seconds / units for units, seconds in self.bursts]

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def equal(self):
        """Whether its numbers agree with the first contestant's; True if there are none."""
        return self.difference is None or self.difference <= TOLERANCE


@dataclass
class Outcome:
    """A race and the results of its entries, in order."""

    race: object
    results: list

    def result(self, name):
        """The Result of that entry, None if it did not run."""
        return next((result for result in self.results if result.name == name), None)

    def ratio(self, name, other):
        """The ratio of the medians, and the quartiles of the ratios per round."""
        one, two = self.result(name), self.result(other)
        return one.median / two.median, quartiles([a / b for a, b in zip(one.times, two.times, strict=True)])


def quartiles(values):
    """The lower and the upper quartile."""
    return tuple(np.quantile(values, (0.25, 0.75)).tolist())


def run_race(race, rounds=ROUNDS, burst=BURST, note=lambda text: None):
    """Check that all contestants do the same work, time them in turn, then measure their memory  ->  Outcome

    rounds: turns per contestant; burst: minimal seconds of a turn; note: called with a line about the progress
    Raises ChildProcessError if a contestant fails.
    """
    results = [Result(entry.name) for entry in race.entries]
    with ExitStack() as stack:
        note(f"{race.name}: starting {len(race.entries)} contestants")
        contestants = [stack.enter_context(Contestant(entry)) for entry in race.entries]
        reference = None
        for contestant, result in zip(contestants, results, strict=True):
            result.imports = contestant.build()
        for contestant, result in zip(contestants, results, strict=True):
            note(f"{race.name}: checking {result.name}")
            numbers = contestant.check()
            if reference is None:
                reference = numbers
            elif numbers is not None:
                result.difference, result.where = largest_difference(numbers, reference)
        runs = [max(race.least, _runs_of_a_burst(contestant, burst)) for contestant in contestants]
        note(f"{race.name}: timing, {rounds} rounds")
        for number in range(rounds):
            for i in in_turn(len(contestants), number):
                time.sleep(PAUSE)
                results[i].bursts.append((runs[i] * race.units, contestants[i].run(runs[i])))
        note(f"{race.name}: memory")
        for contestant, result, many in zip(contestants, results, runs, strict=True):
            with memory.watching(contestant.pid) as peak:
                contestant.run(many)
            result.peak = peak() or contestant.most_memory()
            note(f"{race.name}: {result.name}, {1e3 * result.median:.3g} ms / {race.unit}")
    return Outcome(race, results)


def in_turn(number, turn):
    """The order of a round: alternately forwards and backwards, so that no contestant always follows the same one."""
    return range(number)[:: 1 if turn % 2 == 0 else -1]


def largest_difference(numbers, reference):
    """The largest max |a − b| / max |b| over the arrays of two dictionaries, and the name of that array. An array that
    is missing in one, has another shape or is not finite differs by OTHER."""
    largest, where = 0.0, None
    for name in reference | numbers:
        a, b = (np.asarray(side.get(name, np.nan), float) for side in (numbers, reference))
        if a.shape != b.shape:
            return OTHER, name
        difference = np.abs(a - b).max() / np.abs(b).max()
        if not math.isfinite(difference):
            return OTHER, name
        if where is None or difference > largest:
            largest, where = float(difference), name
    return largest, where


def _runs_of_a_burst(contestant, burst):
    """How many runs take `burst` seconds, estimated by doubling the runs until they take a good part of it."""
    runs = 1
    while (seconds := contestant.run(runs)) < burst / 4:
        runs *= 2
    return max(1, math.ceil(runs * burst / seconds))


def profile(configuration, against_torch=False, quick=False, note=lambda text: None):
    """Profile a training step in its own process; see `profile.Profile.run`. quick: fewer steps

    against_torch: under "torch" that of PyTorch, see `torch_work.Profile.run`
    """
    found = {}
    for module in ("profile", "torch_work")[: 1 + against_torch]:
        note(f"{configuration}: profile")
        entry = Entry(f"profile of {configuration}", module, "Profile", {"configuration": configuration})
        with Contestant(entry) as contestant:
            contestant.build()
            found[module] = contestant.run(QUICK_PROFILED if quick else PROFILED)
    return {**found["profile"], **({"torch": found["torch_work"]} if against_torch else {})}
