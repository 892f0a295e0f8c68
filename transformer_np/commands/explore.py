import math
import sys
import webbrowser
from pathlib import Path

import numpy as np

from ..tasks import runs
from . import add_command, add_model, check_writable, load_pretrained_text, pretrained_folder, read_pretrained

PAGE = "explore.html"


def add_parser(subparsers):
    parser = add_command(
        subparsers, "explore", run, 'transformer-np explore "Lucas will travel in December" --live -o page.html'
    )
    add = parser.add_argument
    add("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's; then the page is --live)")
    add("-o", "--out", metavar="FILE", help=f"the page: .html (default: {PAGE}, which is then opened in a browser)")
    add_model(
        parser,
        "folder of a run: translate, gpt or classify (default: the newest translator below this folder, else GPT, else "
        "a finished page that comes with the package)",
        "a pretrained BERT or GPT",
    )
    add("--target", metavar="TEXT", help="the translation to teach a translator (default: its own)")
    add(
        "--live",
        action="store_true",
        help="put the model itself into the page: type another text, switch off a head, change a score",
    )


def run(args):
    from ..data import LECTURE_SENTENCE

    out = PAGE if args.out is None else args.out
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"-o {out}: the name must end in .html")
    check_writable("-o", out)
    if args.live or (args.text is None and args.target is None and args.pretrained is None):
        explorer = live_explorer(args)
    elif args.pretrained is not None:
        explorer = pretrained_explorer(args)
    else:
        sentence = LECTURE_SENTENCE if args.text is None else args.text
        explorer = run_explorer(args.model or newest_run(), sentence, args.target)
    print(explorer.save(out))
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


def run_explorer(folder, sentence, target=None):
    """The page of a model from a training run."""
    from ..tasks import classify, text, translation

    explorers = {translation.KIND: explore_translator, text.KIND: explore_gpt, classify.KIND: explore_classifier}
    return explorers[runs.read_run(folder, *explorers)["kind"]](folder, sentence, target)


def explore_translator(folder, sentence, target=None):
    from ..data.tokenizers import UNK
    from ..inspection.explorer import explore, own_translation
    from ..tasks.translation import Translator

    translator = Translator.load(folder)
    src = translator.encode(sentence)[0]
    _say_unknown(translator.src_tokenizer, sentence)
    source = translator.src_tokenizer.pieces(sentence)  # as typed, not in lower case
    if target is None:
        ids = own_translation(translator.model, src, [UNK])
    else:
        _say_unknown(translator.tgt_tokenizer, target)
        ids = np.array(translator.tgt_tokenizer.encode(target), dtype=np.int64)
        if not len(ids):
            raise ValueError("--target is empty: leave it out to use the model's own translation")
    return explore(translator.model, src, ids, labels=(source, translator.tgt_tokenizer.token))


def explore_gpt(folder, sentence, target=None):
    from ..inspection.explorer import explore
    from ..tasks.text import TextGenerator

    _no_target(target)
    generator = TextGenerator.load(folder)
    ids = generator.encode(sentence)
    return explore(generator.model, ids, labels=[generator.tokenizer.decode([i]) for i in ids])


def explore_classifier(folder, sentence, target=None):
    from ..inspection.explorer import explore
    from ..tasks.classify import Classifier

    _no_target(target)
    classifier = Classifier.load(folder)
    _say_unknown(classifier.tokenizer, sentence)
    return explore(classifier.model, classifier.encode(sentence), labels=classifier.tokenizer.token)


def pretrained_explorer(args):
    """The page of a pretrained model, whose words are the tokens of its tokenizer."""
    from ..inspection.explorer import explore

    _no_target(args.target)
    model, ids, tokens = read_pretrained(args)
    return explore(model, ids, labels=tokens)


def live_explorer(args):
    """The page with the model of a training run in it."""
    from ..data import LECTURE_SENTENCE
    from ..inspection.explorer.finished import finished_page
    from ..inspection.explorer.live import explore_live
    from ..tasks import text, translation

    if args.target is not None:
        raise ValueError("--live lets you choose the translation in the page: leave --target out")
    if args.pretrained is not None:
        return live_pretrained(args)
    try:
        folder = args.model or newest_run()
    except FileNotFoundError as error:
        if args.text is not None:
            raise
        print(f"{error}; here is the finished page of a translator", file=sys.stderr)
        return finished_page()
    sentence = args.text
    if runs.read_run(folder, translation.KIND, text.KIND)["kind"] == text.KIND:
        generator = text.TextGenerator.load(folder)
        examples = beginnings(folder)
        sentence = sentence or next((each for each in examples if not generator.tokenizer.unknown(each)), None)
        if sentence is None:
            raise ValueError("pass a TEXT for the page to begin with: the training text of this model is gone")
        generator.encode(sentence)  # raises ValueError for a text that it cannot read
        return explore_live(generator.model, generator.tokenizer, sentence, examples)
    translator = translation.Translator.load(folder)
    sentence = LECTURE_SENTENCE if sentence is None else sentence
    translator.encode(sentence)
    _say_unknown(translator.src_tokenizer, sentence)
    tokenizers = translator.src_tokenizer, translator.tgt_tokenizer
    return explore_live(translator.model, tokenizers, sentence, sentences(folder))


def live_pretrained(args):
    """The page with a pretrained model in it. A model that is too large is refused before it is read."""
    from ..data import LECTURE_SENTENCE, english_portuguese
    from ..inspection.explorer.live import check_size, explore_live
    from ..models import Bert
    from ..models.layouts.weights import find_tensors

    folder, args.text = pretrained_folder(args.pretrained, args.text)
    tensors = find_tensors(folder)[1]
    check_size(sum(math.prod(tensor.shape) for tensor in tensors.values()), folder)
    model, tokenizer = load_pretrained_text(folder)
    texts = [LECTURE_SENTENCE, *(source for source, _ in english_portuguese()[::997])]
    sentence = args.text or (BEGINNING if not isinstance(model, Bert) else LECTURE_SENTENCE)
    return explore_live(model, tokenizer, sentence, texts)


BEGINNING = "The lecture begins with"  # what a pretrained model goes on with


EXAMPLES = 40  # texts that the page proposes


def sentences(folder):
    """Sentences that the translator of this run has not seen, evenly from the test; none if its file is gone."""
    from ..tasks.translation import TranslationTask

    task = TranslationTask()
    _, options, _ = task.read(folder)
    try:
        unseen = [source for source, _ in task.load(options).test]
    except (OSError, ValueError):
        return []
    return unseen[:: max(1, len(unseen) // EXAMPLES)][:EXAMPLES]


def beginnings(folder):
    """The first words of lines of the GPT's validation text; none if its file is gone."""
    from ..tasks.text import GPTTask

    task = GPTTask()
    _, options, _ = task.read(folder)
    try:
        text = task.load(options).validation
    except (OSError, ValueError):
        return []
    lines = [" ".join(line.split()[:6]) for line in text.splitlines()[1:] if len(line.split()) > 6]
    return lines[:: max(1, len(lines) // EXAMPLES)][:EXAMPLES]


def _no_target(target):
    if target is not None:
        raise ValueError("--target is for a translator: leave it out for this model, which has no target text")


def _say_unknown(tokenizer, text):
    unknown = tokenizer.unknown(text)
    if unknown:
        print(f"the model does not know: {', '.join(unknown)}", file=sys.stderr)
