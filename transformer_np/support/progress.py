"""Progress of work that may take more than two seconds: a bar on a terminal, and nothing elsewhere."""

import sys
from contextlib import contextmanager

SECONDS = 2  # a bar appears only after this time
MANY = 20_000  # fewer steps of fast work take less time

_wanted = True


@contextmanager
def showing_progress(wanted):
    """Inside the block, `progress` shows bars only if they are wanted."""
    global _wanted
    before, _wanted = _wanted, wanted
    try:
        yield
    finally:
        _wanted = before


def note(text):
    """A line about the progress on standard error, on a terminal or not."""
    if _wanted:
        print(text, file=sys.stderr, flush=True)


def progress(things, what, total=None, least=None):
    """The things, one after the other, with a bar on standard error while they last.

    what: the text before the bar; total: the number of things, if they have no len
    least: fewer things (default: MANY) are passed on as they are, which costs no time
    """
    total = len(things) if total is None else total
    if total < (MANY if least is None else least) or not _wanted or sys.stderr is None or not sys.stderr.isatty():
        return things
    from tqdm import tqdm

    return tqdm(things, what, total, leave=False, delay=SECONDS, dynamic_ncols=True, file=sys.stderr)
