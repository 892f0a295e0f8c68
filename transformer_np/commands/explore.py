import sys
from pathlib import Path

import numpy as np

from ..tasks import runs
from . import COMMANDS, add_command, add_model, check_writable, read_pretrained


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "explore",
        run,
        COMMANDS["explore"],
        'transformer-np explore "Lucas will travel in December" --live -o page.html',
    )
    add = parser.add_argument
    add("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)")
    add("-o", "--out", required=True, metavar="FILE", help="the page: .html")
    add_model(
        parser,
        "folder of a run: translate, gpt or classify (default: the newest translator below this folder, else GPT)",
        "a pretrained BERT or GPT",
    )
    add("--target", metavar="TEXT", help="the translation to teach a translator (default: its own)")
    add(
        "--live",
        action="store_true",
        help="put a translator or GPT itself into the page: type another text, switch off a head, change a score",
    )


def run(args):
    from ..data import LECTURE_SENTENCE

    if Path(args.out).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"-o {args.out}: the name must end in .html")
    check_writable("-o", args.out)
    if args.live:
        explorer = live_explorer(args)
    elif args.pretrained is not None:
        explorer = pretrained_explorer(args)
    else:
        sentence = LECTURE_SENTENCE if args.text is None else args.text
        explorer = run_explorer(args.model or newest_run(), sentence, args.target)
    print(explorer.save(args.out))
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
    from ..inspection.explorer.live import explore_live
    from ..tasks import text, translation

    if args.pretrained is not None:
        raise ValueError("--live is for the model of a training run: leave --pretrained out")
    if args.target is not None:
        raise ValueError("--live lets you choose the translation in the page: leave --target out")
    folder = args.model or newest_run()
    sentence = LECTURE_SENTENCE if args.text is None else args.text
    if runs.read_run(folder, translation.KIND, text.KIND)["kind"] == text.KIND:
        generator = text.TextGenerator.load(folder)
        generator.encode(sentence)  # raises ValueError for a text that it cannot read
        return explore_live(generator.model, generator.tokenizer, sentence)
    translator = translation.Translator.load(folder)
    translator.encode(sentence)
    _say_unknown(translator.src_tokenizer, sentence)
    return explore_live(translator.model, (translator.src_tokenizer, translator.tgt_tokenizer), sentence)


def _no_target(target):
    if target is not None:
        raise ValueError("--target is for a translator: leave it out for this model, which has no target text")


def _say_unknown(tokenizer, text):
    unknown = tokenizer.unknown(text)
    if unknown:
        print(f"the model does not know: {', '.join(unknown)}", file=sys.stderr)
