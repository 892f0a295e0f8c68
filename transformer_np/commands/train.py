import shlex
import sys
from dataclasses import fields

from ..tasks import runs
from . import add_command


def add_parser(subparsers):
    parser = subparsers.add_parser("train", help="train a model", description="Train a model.", epilog=_EXAMPLE)
    kinds = parser.add_subparsers(metavar="KIND", required=True)
    _add_translate(kinds)


_EXAMPLE = "example: transformer-np train translate --pairs por.txt --out runs/tatoeba"


def _add_translate(kinds):
    from ..tasks.translation import TranslationOptions

    parser = add_command(
        kinds,
        "translate",
        run_translate,
        "train an encoder-decoder to translate",
        "transformer-np train translate --pairs por.txt --steps 4000 --out runs/tatoeba",
    )
    default = {field.name: field.default for field in fields(TranslationOptions)}
    add = parser.add_argument
    add("--out", metavar="DIR", help="folder for the run (default: runs/translate-1, or the next number that is free)")
    add("--resume", action="store_true", help="go on with the run in --out and its options (--steps may be larger)")
    add("--pairs", metavar="FILE", help="tab-separated sentence pairs (default: built-in, English-Portuguese)")
    add("--tokens", choices=("word", "char"), help=f"what a token is (default: {default['tokens']})")
    for name, kind, text in (
        ("steps", int, "training steps in all"),
        ("batch-size", int, "sentence pairs in a step"),
        ("layers", int, "encoder blocks, and as many decoder blocks"),
        ("heads", int, "attention heads"),
        ("d-model", int, "features of a token"),
        ("d-ff", int, "features inside the feed-forward network"),
        ("dropout", float, "share of features dropped in training"),
        ("max-len", int, "longest sentence in tokens; longer pairs are left out"),
        ("label-smoothing", float, "share of the target spread over all tokens"),
        ("lr", float, "highest learning rate (default: the paper's schedule, 1/sqrt(d_model * warmup))"),
        ("warmup", int, "steps until the learning rate is highest"),
        ("seed", int, "of parameters, split, batches and dropout"),
    ):
        value = default[name.replace("-", "_")]
        shown = "" if value is None else f" (default: {value})"
        add(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=text + shown)


def run_translate(args):
    from ..tasks.translation import KIND, TranslationOptions, train_translator

    if args.resume and not args.out:
        raise ValueError("--resume needs the folder of the run: --out DIR")
    asked = {f.name: getattr(args, f.name) for f in fields(TranslationOptions) if getattr(args, f.name) is not None}
    folder = args.out or runs.free_folder(KIND)
    options = asked if args.resume else TranslationOptions(**asked)
    run = train_translator(options, folder, resume=args.resume, report=lambda line: print(line, file=sys.stderr))
    return report_training(run, folder)


def report_training(run, folder):
    """The last lines of a training, or how to go on with one that was interrupted; returns the exit code."""
    trainer = run.trainer
    if trainer.interrupted:
        print(f"interrupted after step {trainer.step}; everything is saved. Go on with", file=sys.stderr)
        print(f"  transformer-np train translate --out {shlex.quote(str(folder))} --resume", file=sys.stderr)
        return 130
    print(f"steps {trainer.step}")
    print(f"wall time {trainer.history.seconds:.1f} s")
    print(f"validation loss {run.validation_loss:.4f}")
    if run.exact_match is not None:
        print(f"exact match on unseen sentences {run.exact_match:.1%}")
    print(f"saved in {folder}")
    return 0
