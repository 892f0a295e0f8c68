import math
import webbrowser
from contextlib import suppress
from pathlib import Path

from ..tasks import load_trained, runs
from . import Unseen, add_command, add_model, check_writable, load_pretrained_text, pretrained_folder, say, say_words

PAGE = "explore.html"
EXAMPLES = 40  # texts that the page proposes
BEGINNING = "The lecture begins with"  # what a pretrained model goes on with
KINDS = "translate", "gpt", "classify"  # of runs that have a page; the first two are looked for


def add_parser(subparsers):
    parser = add_command(subparsers, "explore", run, '"Lucas will travel in December" -o page.html')
    add = parser.add_argument
    add("text", nargs="?", metavar="TEXT", help="what the page begins with (default: a text that the model knows)")
    add("-o", "--out", metavar="FILE", help=f"the page: .html (default: {PAGE}, which is then opened in a browser)")
    default = "the newest translator below this folder, else GPT, else, without TEXT, a page of the package"
    add_model(parser, f"folder of a run: translate, gpt or classify (default: {default})", "a pretrained BERT or GPT")
    add("--target", metavar="TEXT", help="the translation that a translator begins with (default: its own)")


def run(args):
    out = PAGE if args.out is None else args.out
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"-o {out}: the name must end in .html")
    check_writable("-o", out)
    page = run_page(args) if args.pretrained is None else pretrained_page(args)
    print(page.save(out))
    if args.out is None:
        webbrowser.open(Path(out).resolve().as_uri())


def newest_run():
    """The newest translator or, if there is none, the newest GPT. The FileNotFoundError says how to train one."""
    for kind in KINDS[:2]:
        with suppress(FileNotFoundError):
            return runs.newest_run(kind)
    return runs.newest_run(KINDS[0])


def run_page(args):
    """The page with the model of a training run in it."""
    from ..data import LECTURE_SENTENCE
    from ..inspection.explorer.finished import finished_page
    from ..inspection.explorer.live import explore_live

    try:
        folder = args.model or newest_run()
    except FileNotFoundError as error:
        if args.text is not None or args.target is not None:
            raise
        say(f"{error}; here is the finished page of a translator")
        return finished_page()
    trained = load_trained(folder, *KINDS)
    task, examples = trained.task(), unseen_texts(trained.task(), folder)
    examples = examples[:: max(1, len(examples) // EXAMPLES)][:EXAMPLES]  # evenly from all
    reader, text = trained.reader, args.text
    if text is None:
        texts = [LECTURE_SENTENCE, *examples] if task.kind == "translate" else examples
        text = next((each for each in texts if not reader.unknown(each)), next(iter(texts), None))
    if text is None:
        raise ValueError("pass a TEXT for the page to begin with: the run's file is gone, or has no line of two words")
    trained.encode(text)  # raises ValueError for a text that it cannot read
    Unseen(trained)(text)
    tokenizers = reader
    if task.kind == "translate":
        tokenizers = reader, trained.writer
        say_words(trained.writer.unknown(args.target or ""))
    own = {"target": args.target, "seen": trained.seen, "labels": trained.labels}
    return explore_live(trained.model, tokenizers, text, examples, **own)


def pretrained_page(args):
    """The page with a pretrained model in it. A model that is too large is refused before it is read."""
    from ..data import LECTURE_SENTENCE, english_portuguese
    from ..inspection.explorer.live import LARGE, check_size, explore_live
    from ..models import Bert
    from ..models.layouts.folder import located, read_settings
    from ..models.layouts.weights import find_tensors

    folder, text = pretrained_folder(args.pretrained, args.text)
    path = located(folder)
    read_settings(path)  # its errors say what is wrong with the folder
    _, tensors = find_tensors(path)
    check_size(sum(math.prod(tensor.shape) for tensor in tensors.values()), folder)
    found = load_pretrained_text(folder)
    examples = [LECTURE_SENTENCE, *(source for source, _ in english_portuguese()[::997])]
    own = {"target": args.target}
    if getattr(found.model.config, "num_classes", None) is not None:
        own["labels"] = found.labels
    if text is None:
        text = LECTURE_SENTENCE if isinstance(found.model, Bert) else BEGINNING
    page = explore_live(found.model, found.tokenizer, text, examples, **own)
    if page.model.num_parameters() > LARGE:
        size = f"{page.memory / 1e9:.1f} GB of memory for this page of {len(page.page) / 1e6:.0f} MB"
        say(f"a browser needs about {size}")
    return page


def unseen_texts(task, folder):
    """Texts that the model of a run was not trained on: beginnings of lines for a GPT; none if its file is gone."""
    _, options, _ = task.read(folder)
    try:
        split = task.load(options)
        if task.kind != "gpt":
            return [text for text, _ in split.test]
        text = "".join(split.validation)  # it begins within a line, perhaps within a word
        lines = [line.split() for line in text.splitlines()[1:] or text.split(maxsplit=1)[1:]]
    except (OSError, ValueError):
        return []
    beginnings = [words[:-1][:6] for words in lines]
    longest = max(map(len, beginnings), default=0)
    return [" ".join(words) for words in beginnings if 0 < len(words) == longest]
