"""One file a command: `add_parser` says what it takes, `run` does it and returns the exit code."""

import argparse
import os
import sys
from pathlib import Path


def add_command(subparsers, name, run, summary, example):
    """A sub-command with its help text, an example at the end of it."""
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def positive_number(text, what="a whole number from 1"):
    """The type of an argument N."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}")


def number_of_workers(text):
    """The type of an argument N|auto."""
    return text if text == "auto" else positive_number(text, "a number of processes or auto")


def check_writable(option, name):
    """Before a long measurement, not after it: ValueError if the file could not be written."""
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{option} {name}: this is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {name}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option} {name}: no permission to write it")


def given_texts(texts):
    """The texts of the command line, or without any the lines of standard input, as they come.

    Those are UTF-8 whatever the terminal's own encoding is; a blank line is printed as one and not handed out, so that
    input and output go side by side. Raises ValueError with the line for a byte that is not UTF-8.
    """
    if texts:
        yield from texts
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8").removeprefix("\ufeff").strip()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise ValueError(f"standard input, line {number}: the byte 0x{byte:02x} is not UTF-8") from None
        if text:
            yield text
        else:
            print(flush=True)


def pretrained_folder_and_text(args):
    """The folder that --pretrained names, or that of the MiniLM, and the text, None where none is given."""
    from ..pretrained import minilm_folder

    folder, text = args.pretrained, args.text
    # --pretrained "a sentence", without a folder; os.path.exists takes one that is too long for a name
    if folder and text is None and not os.path.exists(folder):
        folder, text = "", folder
    if args.model:
        raise ValueError("--pretrained and --model name two models: leave out one")
    return folder or minilm_folder(), text
