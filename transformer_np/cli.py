"""The command line: `transformer-np COMMAND …`, one file for each command in `commands`."""

import argparse
import os
import sys
from difflib import get_close_matches

# Before NumPy is loaded. The models here are small: splitting one small matrix product among threads gains nothing, and
# the threads wait for each other while another program runs. `train --workers` uses the other cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import __version__
from .commands import (
    bench,
    classify,
    complexity,
    embed,
    explore,
    generate,
    gradcheck,
    homework,
    lecture,
    neighbours,
    plot,
    t5,
    train,
    translate,
)
from .training import TrainingError
from .training.mpi import last_words

COMMANDS = (
    lecture,
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
    bench,
)

DONE, CHECK_FAILED, BAD_USE, INTERRUPTED = 0, 1, 2, 130


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
    """Run a command and return its exit code: 0 done, 1 a check failed, 2 bad use, 130 interrupted.

    Results go to stdout; progress and errors to stderr.
    """
    for stream in (sys.stdout, sys.stderr):  # a console without "→" shows "?" for it, rather than nothing at all
        if hasattr(stream, "reconfigure") and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="replace")
    parser = build_parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help()
        return DONE
    args = parser.parse_args(argv)
    try:
        code = args.run(args) or DONE
        _flush()
        return code
    except TrainingError as error:
        return _fail(error, CHECK_FAILED)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
        return DONE
    except (OSError, ValueError, MemoryError, ModuleNotFoundError) as error:
        return _fail(error, BAD_USE)
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "interrupted", INTERRUPTED)
    finally:
        try:
            _flush()
        except OSError:  # drop output that cannot be written, or Python would try again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush():
    print(end="", flush=True)  # does nothing if stdout is closed


def _fail(error, code):
    with last_words(code):
        print(f"transformer-np: error: {error}", file=sys.stderr)
    return code
