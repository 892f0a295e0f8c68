"""The command line: `transformer-np COMMAND …`, one file for each command in `commands`."""

import argparse
import os
import re
import sys
import warnings
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module

# Before NumPy is loaded. The models here are small: splitting one small matrix product among threads gains nothing, and
# the threads wait for each other while another program runs. `train --workers` uses the other cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import __version__
from .commands import COMMANDS, meant, not_utf8
from .support.progress import showing_progress
from .support.transliteration import NAME as TRANSLITERATE

DONE, CHECK_FAILED, BAD_USE, BUG, INTERRUPTED = 0, 1, 2, 3, 130


class Parser(argparse.ArgumentParser):
    """A parser that suggests the command, flag or value that was probably meant."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        # so that `--lr -1e-3` is a value, and its error says what a value must be; argparse knows -1 and -.5 alone
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|-(inf|nan)", re.IGNORECASE)

    def _check_value(self, action, value):
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += meant(str(value), map(str, action.choices))
            raise

    def _get_values(self, action, arg_strings):
        """As in argparse, which from Python 3.13 on reads `--steps=--` so too: earlier versions drop this value."""
        if arg_strings == ["--"] and action.option_strings and action.nargs in (None, "+"):
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return [value] if action.nargs else value
        return super()._get_values(action, arg_strings)

    def _match_arguments_partial(self, actions, pattern):
        """As in argparse from Python 3.12.7 on: an argument that may be missing can follow a flag, as in `check
        homework.py --watch softmax`."""
        counts = super()._match_arguments_partial(actions, pattern)
        while counts and counts[-1] == 0 and pattern[sum(counts) :].startswith("O"):
            counts.pop()
        return counts

    def parse_known_args(self, args=None, namespace=None):
        """As in argparse, but what is left over is an error here, where the flags are known."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            flags = [flag for action in self._actions for flag in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(rest)}{meant(rest[0].partition('=')[0], flags)}")
        return found, rest

    def error(self, message):
        """As in argparse; if a kind or a picture is missing, the message lists them."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and message.endswith(f"required: {action.metavar}"):
                message += f", one of {', '.join(action.choices)}"
        super().error(message)


@cache
def build_parser(only=None, kind=None):
    """The parser of all commands. With `only`, just this command has its arguments, and the others have their names:
    to read a command's arguments takes as long as to load its part of the package. kind: the same for a kind of train
    """
    about = "The Transformer in plain NumPy: the lecture's worked examples, training, translation, pictures."
    parser = Parser(prog="transformer-np", description=about, epilog="example: transformer-np lecture")
    parser.add_argument("--version", action="version", version=f"transformer-np {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if only in (None, name):
            own = (kind,) if only == name == "train" else ()
            import_module(f".commands.{name}", __package__).add_parser(subparsers, *own)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


def main(argv=None):
    """Run a command and return its exit code: 0 success, 1 a check failed, 2 wrong usage, 3 a bug, 130 interrupted.

    Results go to stdout; progress and errors to stderr. An error is one line, never a traceback, except under
    `python -X dev`.
    """
    _prepare_streams()
    args = None
    try:
        argv = sys.argv[1:] if argv is None else argv
        _check_not_empty(argv)
        parser = build_parser(*[*argv, "", ""][:2])
        if not argv:
            parser.print_help()
            return DONE
        args = parser.parse_args(argv)
        with showing_progress(not getattr(args, "quiet", False)), _plain_warnings():
            code = args.run(args) or DONE
        _flush()
        return code
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
        return DONE
    except MemoryError as error:
        return _fail(f"out of memory{f': {error}' if str(error) else ': choose smaller sizes'}", BAD_USE)
    except (OSError, ModuleNotFoundError) as error:
        return _fail(error, BAD_USE)
    except ValueError as error:
        wrong = isinstance(error, UnicodeEncodeError) and not_utf8(argv)
        return _fail(wrong or with_flags(str(error), args), BAD_USE)
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "interrupted", INTERRUPTED)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # met `__set_name__`, which Python wraps before 3.12
            return _fail("interrupted", INTERRUPTED)
        if wrong := not_utf8(argv):
            return _fail(wrong, BAD_USE)
        from .training import TrainingError

        if isinstance(error, TrainingError):
            return _fail(error, CHECK_FAILED)
        if sys.flags.dev_mode:
            raise
        return _fail(f"a bug, please report it: {type(error).__name__}: {error} (python -X dev shows where)", BUG)
    finally:
        try:
            _flush()
        except (OSError, ValueError):  # drop output that cannot be written, or Python would try again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# arguments of the library whose flags have another name
ALSO = {
    "num_heads": "heads", "num_kv_heads": "kv_heads", "num_layers": "layers", "num_encoder_layers": "layers",
    "beam_size": "beam", "rank": "lora", "save_seconds": "save_every",
}  # fmt: skip


def with_flags(message, args):
    """The message of an error with the flags of the command in the place of the arguments that they set: "--d-model
    must be at least 1" instead of "d_model must be …". A name that is also a word of English, such as "text", is
    replaced only where the message says something about an argument. A message about a line of a file keeps the names
    that the file has."""
    if not hasattr(args, "parser") or re.match(r".*, line \d+: ", message):
        return message
    flags = {action.dest: action.option_strings[-1] for action in args.parser._actions if action.option_strings}
    flags |= {name: flags[flag] for name, flag in ALSO.items() if flag in flags}
    both = ("|".join(name for name in flags if ("_" in name) == joined) for joined in (True, False))
    technical, words = (names or "(?!)" for names in both)
    about = rf"\b(?<!model's )({technical})\b"  # what a trained model has is no flag of this command
    about += rf"|(?:^|(?<=but )|(?<=: )|(?<=only ))({words})(?= (?:must|may|needs?|is|are)\b)"
    about += rf"|(?<=needs )({words})(?=:)|(?<!the )\b({words})(?= = | \S+, not )"
    return re.sub(about, lambda match: flags[match[0]], message)


def _check_not_empty(argv):
    """Raise ValueError for an empty option, such as --model "$UNSET", which must not count as a missing option."""
    for place, option in enumerate(argv):
        if option.startswith("-") and (argv[place + 1 : place + 2] == [""] or option.endswith("=")):
            raise ValueError(f"{option.rstrip('=')} is empty: give it a value or leave it out")


def _prepare_streams():
    """Replace a closed stream by an empty one. Let a console that lacks "→" show "->" for it instead of failing, and
    write a byte of a file name that is not UTF-8 as its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
        elif mode == "w" and hasattr(stream, "reconfigure"):
            utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="backslashreplace" if utf8 else TRANSLITERATE)


@contextmanager
def _plain_warnings():
    """A warning is one line, without the place in the package that gave it."""
    before, warnings.formatwarning = warnings.formatwarning, lambda message, *_, **__: f"transformer-np: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _flush():
    print(end="", flush=True)


def _fail(error, code):
    mpi = sys.modules.get(f"{__package__}.training.mpi")  # not loaded: no other process waits for this one
    with mpi.last_words(code) if mpi else nullcontext():
        with suppress(OSError):  # nobody reads it
            print("transformer-np: error:", _short(error), file=sys.stderr)
    return code


def _short(error, most=2000):
    """The message in at most three lines, or one and those of a traceback, without control characters."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if not all(line.startswith("  ") for line in lines[1:]):
        lines = [*lines[:2], " ".join(lines[2:])]
    text = "\n".join("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines if line)
    return text if len(text) <= most else text[:most] + " …"
