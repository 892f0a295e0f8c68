"""One file a command: `add_parser` says what it takes, `run` does it and returns the exit code."""

import argparse


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
