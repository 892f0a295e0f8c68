"""`plot PICTURE`: draws a picture into a file, or opens it."""

import sys
import tempfile
import webbrowser
from pathlib import Path

from . import COMMANDS, add_command, check_picture
from .pictures import PICTURES, attention, models, parts, positions  # noqa: F401 (each adds its own)

LESS = ("product", "layers", "layer", "head", "length", "d_model", "candidates", "count", "near", "longest", "steps")


def add_parser(subparsers):
    example = "example: transformer-np plot pe -o pe.png"
    parser = subparsers.add_parser("plot", help=COMMANDS["plot"], description="Draw a picture.", epilog=example)
    pictures = parser.add_subparsers(metavar="PICTURE", required=True)
    for name, summary, example, flags, draw in PICTURES:
        sub = add_command(pictures, name, run, f"{example} -o {name}.png", summary)
        sub.set_defaults(draw=draw, name=name)
        sub.add_argument("-o", "--out", metavar="FILE", help="the picture: .png, .svg or .pdf (default: it is opened)")
        help_text = "a slide of 16:9 with this title in large type; of several products one slide each"
        sub.add_argument("--slide", metavar="TITLE", help=help_text)
        for add in flags:
            add(sub)


def run(args):
    check_picture("-o", args.out)
    from .. import plots

    drawn = args.draw(args, plots)
    out = Path(args.out or Path(tempfile.mkdtemp(prefix="transformer-np-"), f"{args.name}.png"))
    figures = drawn if isinstance(drawn, list) else [drawn]
    files = [out.with_stem(f"{out.stem}-{i}") for i in range(1, len(figures) + 1)] if len(figures) > 1 else [out]
    for figure, file in zip(figures, files, strict=True):
        if args.slide is None:
            figure.savefig(file)
        else:
            save_slide(figure, file, args)
        print(file)
    if args.out is None and not webbrowser.open(files[0].as_uri()):
        print("no program to show the picture was found: open the file, or name another with -o", file=sys.stderr)


def save_slide(figure, file, args):
    """Save the figure as a slide. The ValueError for words that are too small names the flags that show less."""
    try:
        figure.save_slide(file, args.slide)
    except ValueError as error:
        flags = [f"--{name.replace('_', '-')}" for name in LESS if hasattr(args, name)]
        raise ValueError(f"{error}{f', such as with {_or(flags)}' if flags else ''}") from None


def _or(words):
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
