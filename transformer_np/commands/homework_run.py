from ..support.counts import counted
from . import check_picture, say
from .homework_check import checks_of, course_of, message, state


def run_training(args):
    from ..homework.checking import TOO_LONG
    from ..homework.path import own_exercises
    from ..homework.submission import library_instead
    from ..homework.training_run import TrainingCrash, train_both

    if args.what is None:
        raise ValueError(f"say what to run: transformer-np homework run {args.file} train")
    check_picture("-o", args.out)
    with course_of(args, args.file) as course:
        if not course.points.keys() - own_exercises().keys():
            raise ValueError(f"{args.file}: no exercise of the course is a function that this training run uses")
    checks = checks_of(args, args.file)
    if checks is None:
        return 1
    submission = checks.submission
    standings = [checks.of(name) for name in submission.answers]
    if all(standing.not_started for standing in standings):
        raise ValueError(f"{args.file}: no answer is started, so there is nothing to train with")
    endless = next((standing for standing in standings if standing.verdict.misconception == TOO_LONG), None)
    if endless:
        say(f"{message(endless)}\nThe training run was not started: it would not end either.")
        return 1
    for standing in standings:
        if standing.failed:
            print(f"{standing.exercise.name} is not right ({state(standing)[1]}), but it is used.")
    print(f"Trains a translator with one block per stack for {counted(args.steps, 'step')}, twice from the same seed:")
    print("with the library's functions, then with yours. Losses are in nats per token.")
    in_both = ["dropout"] if any(one.passed and one.exercise.name == "dropout" for one in standings) else []
    if in_both:
        print("Both use your dropout: it is right, but may draw different random numbers from the library's.")
    print()
    print(f"{'step':>6}  {'library':>10}  {'yours':>10}  difference", flush=True)

    def report(step, library, yours):
        print(f"{step:>6}  {library:>10.6f}  {yours:>10.6f}  {yours - library:+.1e}", flush=True)

    every = -(-args.steps // 20)
    missing = [standing.exercise.name for standing in standings if standing.not_started]
    answers = {one.exercise.name: one.definitions[0].value for one in standings if one.definitions}  # that count
    try:
        with library_instead(submission, missing):
            curves = train_both(answers, args.steps, every, report=report, in_both=in_both, limit=checks.limit)
    except TrainingCrash as crash:
        say(crash)
        if wrong := [standing.exercise.name for standing in standings if standing.failed]:
            say(f"Not right yet: {', '.join(wrong)}.")
        return 1
    print()
    apart = "are equal up to rounding" if curves.part_at is None else f"differ from step {curves.part_at} on"
    print(f"The losses {apart}.")
    if args.out:
        from .. import plots

        plots.loss_curves(curves.losses).savefig(args.out)
        print(args.out)
    return 0
