"""Progress of work that may take more than two seconds: a bar on a terminal, and nothing elsewhere."""

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar

SECONDS = 2  # a bar appears only after this time
MANY = 20_000  # fewer steps of fast work take less time

_wanted = ContextVar("_wanted", default=True)


@contextmanager
def showing_progress(wanted):
    """Inside the block, `progress` shows bars only if they are wanted."""
    before = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(before)


def note(text):
    """A line about the progress on standard error, on a terminal or not."""
    if _wanted.get():
        print(text, file=sys.stderr, flush=True)


def progress(things, what, total=None, least=None):
    """The things, one after the other, with a bar on standard error while they last.

    what: the text before the bar; total: the number of things, if they have no len
    least: fewer things (default: MANY) are passed on as they are, which costs no time
    """
    total = len(things) if total is None else total
    if total < (MANY if least is None else least) or not _wanted.get() or sys.stderr is None or not sys.stderr.isatty():
        return things
    from tqdm import tqdm

    return tqdm(things, what, total, leave=False, delay=SECONDS, dynamic_ncols=True, file=sys.stderr)


@contextmanager
def training_bar(steps, done, wanted):
    """A bar for a training run. Yields show(text): a step is done, and the text stands behind the bar. Without a bar it
    does nothing. (tqdm's own silent bar takes locks, which a dying worker could leave locked.)"""
    if not wanted:
        yield _Shown(None)
        return
    from tqdm import tqdm

    # few lines in a log file, unless tqdm's own variable says otherwise
    interval = 0.2 if sys.stderr.isatty() else float(os.environ.get("TQDM_MININTERVAL", 5))
    with tqdm(total=steps, initial=done, desc="training", unit="step", mininterval=interval, dynamic_ncols=True) as bar:
        yield _Shown(bar)


class _Shown:
    def __init__(self, bar):
        self.bar, self.text = bar, ""

    def __call__(self, text):
        self.text = text
        if self.bar is not None:
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update()

    @contextmanager
    def while_(self, what):
        """Inside the block, the bar also says what is being done."""
        if self.bar is not None:
            self.bar.set_postfix_str(f"{self.text}, {what}", refresh=sys.stderr.isatty())
        yield
        if self.bar is not None:
            self.bar.set_postfix_str(self.text, refresh=False)
