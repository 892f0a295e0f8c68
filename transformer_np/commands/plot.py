"""`plot PICTURE`: draws a picture into a file, or opens it."""

import sys
import tempfile
import webbrowser
from pathlib import Path

from . import add_command, check_picture
from .pictures import PICTURES, attention, models, parts, positions, predictions  # noqa: F401 (each adds its own)


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "plot", help="draw a picture", description="Draw a picture.", epilog="example: transformer-np plot pe -o pe.png"
    )
    pictures = parser.add_subparsers(metavar="PICTURE", required=True)
    for name, summary, example, flags, draw in PICTURES:
        sub = add_command(pictures, name, run, f"transformer-np plot {name} {example} -o {name}.png", summary)
        sub.set_defaults(draw=draw, name=name)
        sub.add_argument("-o", "--out", metavar="FILE", help="the picture: .png, .svg or .pdf (default: it is opened)")
        sub.add_argument("--slide", metavar="TITLE", help="a slide of 16:9 with this title in large type")
        for add in flags:
            add(sub)


def run(args):
    if args.out is not None:
        check_picture("-o", args.out)
    figure = args.draw(args)
    out = args.out or Path(tempfile.mkdtemp(prefix="transformer-np-"), f"{args.name}.png")
    if args.slide is None:
        figure.savefig(out)
    else:
        figure.save_slide(out, args.slide)
    print(out)
    if args.out is None and not webbrowser.open(Path(out).as_uri()):
        print("no program to show the picture was found: open the file, or name another with -o", file=sys.stderr)
    return 0
