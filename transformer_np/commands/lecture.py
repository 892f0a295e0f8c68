import sys
import time
from pathlib import Path

from . import add_command, add_quiet

LEAST_EXACT_MATCH = 0.95  # share of unseen sentences from which the translator counts as trained


def add_parser(subparsers):
    parser = add_command(subparsers, "lecture", run, "--figures pictures")
    add = parser.add_argument
    add("--no-train", action="store_true", help="only the worked numbers and the exercises: no training, no pictures")
    add("--statements", metavar="FILE", help="also check the statements of a document of yours, a TOML file")
    add("--out", metavar="DIR", help="folder for the translator (default: runs/lecture)")
    add("--figures", metavar="DIR", help="folder for the pictures (default: the folder figures in --out)")
    add_quiet(parser)


def run(args):
    from .. import lecture

    if args.no_train and (args.out or args.figures):
        raise ValueError("--no-train writes no files: leave out --out and --figures")
    started = time.perf_counter()
    examples, answers = lecture.worked_examples(), lecture.exercises()
    print(_heading("The worked examples"), lecture.format_examples(examples), sep="\n")
    print(_heading("The exercises"), lecture.format_exercises(answers), sep="\n", flush=True)
    lines = [lecture.summary(examples)]
    passed = all(example.ok for example in examples)
    said = lecture.read_statements()
    if args.statements:
        sys.path.insert(0, str(Path(args.statements).resolve().parent))  # for its checks
        said += lecture.read_statements(args.statements)
    wrong = [statement for statement in said if not statement.holds()]
    print(_heading("The statements"), lecture.format_statements(said), sep="\n", flush=True)
    lines.append(f"{len(said)} statements: {f'{len(wrong)} NOT as stated' if wrong else 'all as stated'}")
    passed &= not wrong
    if not args.no_train:
        out = Path(args.out or "runs/lecture")
        trained, more = _train_and_draw(out, Path(args.figures or out / "figures"), not args.quiet)
        passed &= trained
        lines += more
    but = "" if passed else "; SOMETHING IS WRONG, see above"
    print(_heading("Summary"), *lines, f"{time.perf_counter() - started:.0f} s in all{but}", sep="\n")
    return 0 if passed else 1


def _train_and_draw(out, figures, progress):
    """The slow part. Returns whether the translator learned its language, and the lines of the summary."""
    from .. import lecture, plots
    from ..data import LECTURE_SENTENCE, LECTURE_TRANSLATION
    from ..masks import causal_mask
    from ..tasks.translation import TranslationOptions, TranslationTask, Translator, format_steps

    figures.mkdir(parents=True, exist_ok=True)
    drawn = []

    def draw(name, figure):
        drawn.append(figures / f"{name}.png")
        figure.savefig(drawn[-1])

    # pictures that need no training come first, so that an unwritable folder fails before the training
    example = lecture.five_words()
    draw("positional_encoding", plots.positional_encoding(length=50, d_model=64))
    draw("causal_mask", plots.mask(causal_mask(len(example.words)), example.words, example.words))
    draw("lecture_attention", plots.attention(example.weights[0], example.words, example.words, own_range=True))

    print(_heading("A translator, trained from scratch"), flush=True)
    trained = TranslationTask().train(
        TranslationOptions(), out, overwrite=True, progress=progress, report=lambda line: print(line, flush=True),
        workers="auto",
    )  # fmt: skip
    if trained.trainer.interrupted:
        raise KeyboardInterrupt
    (exact_match,) = trained.measured.values()
    translator = Translator.of(trained)
    print(f"{trained.trainer.step} steps in {trained.trainer.history.seconds:.0f} s")
    print(f"validation loss {trained.validation_loss:.4f} nats per token")
    print(f"exact match on unseen sentences {exact_match:.1%}")

    print(_heading("The lecture's sentence, which it has never seen"))
    print("\n".join(format_steps(LECTURE_SENTENCE, translator)))
    translation = translator.translate(LECTURE_SENTENCE)
    print(f"{LECTURE_SENTENCE}  ->  {translation}")
    print("\nMore sentences it has not seen")
    for source, _ in trained.data.test[:: len(trained.data.test) // 6][:6]:
        print(f"{source}  ->  {translator.translate(source)}")
    sys.stdout.flush()

    draw("training_curve", plots.training_curve(trained.trainer.history))
    for kind in ("encoder", "decoder", "cross"):
        weights, queries, keys = plots.translator_attention(translator, LECTURE_SENTENCE, kind)
        draw(f"{kind}_attention", plots.attention(weights, queries, keys))
    layer, head = best_aligned(weights)
    title = f"layer {layer + 1}, head {head + 1}"
    draw("cross_attention_head", plots.attention(weights[layer, head], queries, keys, title))

    right = translation == LECTURE_TRANSLATION
    learned = f"{exact_match:.1%} of unseen sentences exactly right, including the lecture's"
    lines = [f"translator: {learned}: {'yes' if right else 'NO'}; saved in {out}"]
    lines.append(f"pictures: {', '.join(path.name for path in drawn)} in {figures}")
    return right and exact_match >= LEAST_EXACT_MATCH, lines


def best_aligned(weights):
    """The layer and the head, from 0, where word t looks most at source word t: in the lecture's sentence these words
    translate each other. weights: (L, H, T, S)"""
    aligned = weights.trace(axis1=2, axis2=3)  # (L, H)
    return divmod(int(aligned.argmax()), weights.shape[1])


def _heading(text):
    return f"\n{text}\n{'─' * len(text)}"
