import argparse
import math
import sys
import webbrowser
from pathlib import Path

from ..tasks import runs
from . import Unseen, add_command, add_model, check_writable, load_pretrained_text, pretrained_folder, say_words

PAGE = "explore.html"
EXAMPLES = 40  # texts that the page proposes
BEGINNING = "The lecture begins with"  # what a pretrained model goes on with


def add_parser(subparsers):
    parser = add_command(
        subparsers, "explore", run, 'transformer-np explore "Lucas will travel in December" -o page.html'
    )
    add = parser.add_argument
    add("text", nargs="?", metavar="TEXT", help="the text that the page begins with (default: the lecture's sentence)")
    add("-o", "--out", metavar="FILE", help=f"the page: .html (default: {PAGE}, which is then opened in a browser)")
    add_model(
        parser,
        "folder of a run: translate, gpt or classify (default: the newest translator below this folder, else GPT, else "
        "a finished page that comes with the package)",
        "a pretrained BERT or GPT",
    )
    add("--target", metavar="TEXT", help="the translation that a translator begins with (default: its own)")
    add("--live", action="store_true", help=argparse.SUPPRESS)  # every page is


def run(args):
    out = PAGE if args.out is None else args.out
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"-o {out}: the name must end in .html")
    check_writable("-o", out)
    page = run_page(args) if args.pretrained is None else pretrained_page(args)
    print(page.save(out))
    if args.out is None:
        webbrowser.open(Path(out).resolve().as_uri())
    return 0


def newest_run():
    """The newest translator or, if there is none, the newest GPT. The FileNotFoundError says how to train one."""
    from ..tasks import text, translation

    try:
        return runs.newest_run(translation.KIND)
    except FileNotFoundError as error:
        try:
            return runs.newest_run(text.KIND)
        except FileNotFoundError:
            raise error from None


def run_page(args):
    """The page with the model of a training run in it."""
    from ..inspection.explorer.finished import finished_page
    from ..tasks import classify, text, translation

    try:
        folder = args.model or newest_run()
    except FileNotFoundError as error:
        if args.text is not None or args.target is not None:
            raise
        print(f"{error}; here is the finished page of a translator", file=sys.stderr)
        return finished_page()
    pages = {translation.KIND: translator_page, text.KIND: gpt_page, classify.KIND: classifier_page}
    return pages[runs.read_run(folder, *pages)["kind"]](folder, args)


def translator_page(folder, args):
    from ..data import LECTURE_SENTENCE
    from ..inspection.explorer.live import explore_live
    from ..tasks.translation import TranslationTask, Translator

    translator = Translator.load(folder)
    sentence = LECTURE_SENTENCE if args.text is None else args.text
    translator.encode(sentence)  # raises ValueError for a text that it cannot read
    tokenizers = translator.src_tokenizer, translator.tgt_tokenizer
    Unseen(translator, tokenizers[0])(sentence)
    say_words(tokenizers[1].unknown(args.target or ""))
    unseen = [source for source, _ in stored_texts(TranslationTask(), folder, "test")]
    own = {"target": args.target, "seen": translator.seen}
    return explore_live(translator.model, tokenizers, sentence, some(unseen), **own)


def gpt_page(folder, args):
    from ..inspection.explorer.live import explore_live
    from ..tasks.text import GPTTask, TextGenerator

    generator = TextGenerator.load(folder)
    lines = [line.split() for line in "".join(stored_texts(GPTTask(), folder, "validation")).splitlines()[1:]]
    examples = some([" ".join(words[:6]) for words in lines if len(words) > 6])
    sentence = args.text
    if sentence is None:
        sentence = next((each for each in examples if not generator.tokenizer.unknown(each)), None)
    if sentence is None:
        raise ValueError("pass a TEXT for the page to begin with: the training text of this model is gone")
    generator.encode(sentence)
    Unseen(generator, generator.tokenizer)(sentence)
    own = {"target": args.target, "seen": generator.seen}
    return explore_live(generator.model, generator.tokenizer, sentence, examples, **own)


def classifier_page(folder, args):
    from ..inspection.explorer.live import explore_live
    from ..tasks.classify import Classifier, ClassifyTask

    classifier = Classifier.load(folder)
    unseen = [text for text, _ in stored_texts(ClassifyTask(), folder, "test")]
    sentence = args.text if args.text is not None else next(iter(unseen), None)
    if sentence is None:
        raise ValueError("pass a TEXT for the page to begin with: the texts of this model are gone")
    classifier.encode(sentence)
    Unseen(classifier, classifier.tokenizer)(sentence)
    own = {"labels": classifier.labels, "target": args.target, "seen": classifier.seen}
    return explore_live(classifier.model, classifier.tokenizer, sentence, some(unseen), **own)


def pretrained_page(args):
    """The page with a pretrained model in it. A model that is too large is refused before it is read."""
    from ..data import LECTURE_SENTENCE, english_portuguese
    from ..inspection.explorer.live import LARGE, check_size, explore_live
    from ..models import Bert
    from ..models.layouts.weights import find_tensors

    folder, text = pretrained_folder(args.pretrained, args.text)
    found = load_pretrained_text(folder)
    tensors = find_tensors(found.path)[1]
    check_size(sum(math.prod(tensor.shape) for tensor in tensors.values()), folder)
    examples = [LECTURE_SENTENCE, *(source for source, _ in english_portuguese()[::997])]
    own = {"target": args.target}
    if getattr(found.model.config, "num_classes", None) is not None:
        own["labels"] = found.labels
    if text is None:
        text = LECTURE_SENTENCE if isinstance(found.model, Bert) else BEGINNING
    page = explore_live(found.model, found.tokenizer, text, examples, **own)
    if page.model.num_parameters() > LARGE:
        size = len(page.page) / 1e6
        print(
            f"a browser needs about {page.memory / 1e9:.1f} GB of memory for this page of {size:.0f} MB",
            file=sys.stderr,
        )
    return page


def stored_texts(task, folder, part):
    """This part of the data of a run; nothing if its file is gone."""
    _, options, _ = task.read(folder)
    try:
        return getattr(task.load(options), part)
    except (OSError, ValueError):
        return []


def some(texts):
    """At most EXAMPLES texts, evenly from all."""
    return texts[:: max(1, len(texts) // EXAMPLES)][:EXAMPLES]
