"""The command line: `transformer-np COMMAND …`, one file for each command in `commands`."""

import argparse
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import cache

# Before NumPy is loaded. The models here are small: splitting one small matrix product among threads gains nothing, and
# the threads wait for each other while another program runs. `train --workers` uses the other cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import __version__
from .commands import (
    bench,
    classify,
    complexity,
    embed,
    explain,
    explore,
    generate,
    gradcheck,
    homework,
    lecture,
    neighbours,
    plot,
    start,
    t5,
    train,
    translate,
)
from .support.progress import showing_progress
from .training import TrainingError
from .training.mpi import last_words

COMMANDS = (
    lecture,
    start,
    train,
    translate,
    generate,
    classify,
    t5,
    embed,
    neighbours,
    plot,
    explore,
    homework,
    gradcheck,
    complexity,
    explain,
    bench,
)

DONE, CHECK_FAILED, BAD_USE, BUG, INTERRUPTED = 0, 1, 2, 3, 130


class Parser(argparse.ArgumentParser):
    """A parser that suggests the command or value that was probably meant."""

    def _check_value(self, action, value):
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = get_close_matches(str(value), map(str, action.choices), 1)
            if near:
                error.message += f"; did you mean {near[0]}?"
            raise


@cache
def build_parser():
    parser = Parser(
        prog="transformer-np",
        description="The Transformer in plain NumPy: the lecture's worked examples, training, translation, pictures.",
        epilog="example: transformer-np lecture",
    )
    parser.add_argument("--version", action="version", version=f"transformer-np {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv=None):
    """Run a command and return its exit code: 0 success, 1 a check failed, 2 wrong usage, 3 a bug, 130 interrupted.

    Results go to stdout; progress and errors to stderr. An error is one line, never a traceback, except under
    `python -X dev`.
    """
    _prepare_streams()
    try:
        argv = sys.argv[1:] if argv is None else argv
        _check_not_empty(argv)
        parser = build_parser()
        if not argv:
            parser.print_help()
            return DONE
        args = parser.parse_args(argv)
        with showing_progress(not getattr(args, "quiet", False)):
            code = args.run(args) or DONE
        _flush()
        return code
    except TrainingError as error:
        return _fail(error, CHECK_FAILED)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
        return DONE
    except MemoryError as error:
        return _fail(f"out of memory{f': {error}' if str(error) else ': choose smaller sizes'}", BAD_USE)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        return _fail(error, BAD_USE)
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "interrupted", INTERRUPTED)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        return _fail(f"a bug, please report it: {type(error).__name__}: {error} (python -X dev shows where)", BUG)
    finally:
        try:
            _flush()
        except (OSError, ValueError):  # drop output that cannot be written, or Python would try again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_not_empty(argv):
    """Raise ValueError for an empty option, such as --model "$UNSET", which must not count as a missing option."""
    for place, option in enumerate(argv):
        if option.startswith("-") and (argv[place + 1 : place + 2] == [""] or option.endswith("=")):
            raise ValueError(f"{option.rstrip('=')} is empty: give it a value or leave it out")


def _prepare_streams():
    """Replace a closed stream by an empty one. Let a console that lacks "→" show "?" for it instead of failing, and
    write a byte of a file name that is not UTF-8 as its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
        elif mode == "w" and hasattr(stream, "reconfigure"):
            utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="backslashreplace" if utf8 else "replace")


def _flush():
    print(end="", flush=True)


def _fail(error, code):
    with last_words(code):
        with suppress(OSError):  # nobody reads it
            print("transformer-np: error:", _short(error), file=sys.stderr)
    return code


def _short(error, most=2000):
    """The message in at most three lines, without control characters."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    lines = [*lines[:2], " ".join(lines[2:])]
    text = "\n".join("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines if line)
    return text if len(text) <= most else text[:most] + " …"
