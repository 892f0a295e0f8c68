"""`plot loss`, `steps`, `sampling` and `words`: how models learn, what they write, and the vectors of words."""

from pathlib import Path

from .. import Unseen, add_vectors, given_vectors
from . import flag, number, picture


@picture(
    "loss", "the loss and the learning rate of a training run", "runs/gpt-1",
    flag("folder", nargs="?", metavar="RUN", help="folder of the run (default: the newest below this folder)"),
)  # fmt: skip
def draw_loss(args, plots):
    from ...tasks import TASKS, runs
    from ...training import History

    folder = Path(args.folder or runs.newest_run(*TASKS))
    return plots.training_curve(History.load(folder / runs.CHECKPOINT))


@picture(
    "steps", "the likeliest words at each time step of a trained translator", '--candidates 3 "Ana is tired"',
    flag("text", nargs="?", metavar="TEXT", help="the sentence (default: the lecture's)"),
    flag("--model", metavar="DIR", help="folder of the run (default: the newest translator)"),
    number("--candidates", "words shown at each step", 5),
)  # fmt: skip
def draw_steps(args, plots):
    from ...data import LECTURE_SENTENCE
    from ...support.checks import check_at_least
    from ...tasks import load_trained

    check_at_least("--candidates", args.candidates, 1)
    translator, text = load_trained(args.model, "translate"), LECTURE_SENTENCE if args.text is None else args.text
    Unseen(translator)(text)
    return plots.decoding_steps(translator.steps(text, args.candidates))


@picture(
    "sampling", "how temperature, top-k and top-p change the next-token probabilities of a trained GPT",
    '--model runs/gpt-1 "The "', flag("text", metavar="TEXT", help="the beginning of a text"),
    flag("--model", metavar="DIR", help="folder of the run (default: the newest GPT below this folder)"),
)  # fmt: skip
def draw_sampling(args, plots):
    from ...tasks import load_trained

    generator = load_trained(args.model, "gpt")
    inputs = generator.inputs(args.text)
    Unseen(generator)(args.text)
    with generator.model.evaluating():
        logits = generator.model(*inputs)[0, -1]  # (V,)
    return plots.sampling(logits, [generator.writer.token(i) for i in range(len(logits))])


@picture(
    "words", "a map of words by their vectors", "list integer exception --near 8",
    flag("word", nargs="*", metavar="WORD", help="words to show (default: the most frequent)"),
    number("--near", "also show the N nearest neighbours of each WORD", 0),
    number("--count", "how many words to show when no WORD is given", 60), add_vectors,
)  # fmt: skip
def draw_words(args, plots):
    from ...support.checks import check_at_least

    check_at_least("--near", args.near, 0)
    check_at_least("--count", args.count, 3)
    if args.near and not args.word:
        raise ValueError("--near shows the neighbours of a WORD: give at least one")
    vectors = given_vectors(args)
    if not args.word:
        return plots.word_map(vectors.words[: args.count], vectors.vectors[: args.count])
    group_of = {vectors.row(word): word for word in args.word}  # the requested words come first
    for word in args.word if args.near else ():
        for other, _ in vectors.neighbours(word, args.near):
            group_of.setdefault(vectors.row(other), word)
    rows = list(group_of)
    groups = list(group_of.values()) if args.near else None
    return plots.word_map([vectors.words[row] for row in rows], vectors.vectors[rows], groups)
