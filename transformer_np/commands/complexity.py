import sys
from dataclasses import asdict

from ..support.platform import check_processes
from ..support.processes import thread_variables
from ..support.progress import showing_progress
from . import add_command, add_json, add_quiet, check_picture, print_json


def add_parser(subparsers):
    parser = add_command(subparsers, "complexity", run, "-o complexity.png --gradients gradients.png")
    help_text = "use fewer and smaller sizes: takes a few seconds, gives rough exponents"
    parser.add_argument("--quick", action="store_true", help=help_text)
    parser.add_argument("-o", "--out", metavar="FILE", help="draw the curves: .png, .svg or .pdf")
    parser.add_argument("--gradients", metavar="FILE", help="draw the gradient over the distance: .png, .svg or .pdf")
    add_quiet(parser)
    add_json(parser, "all measurements, counts and gradients")


def run(args):
    check_picture("-o", args.out)
    check_picture("--gradients", args.gradients)
    if args.out is not None and args.out == args.gradients:
        raise ValueError(f"-o and --gradients are both {args.out}: one picture would replace the other")
    from ..bench import complexity

    curves, gradients = _with_one_thread(_measure, args.quick, args.quiet), complexity.gradients()
    if args.json:
        print_json(_as_json(curves, gradients))
    else:
        _print(curves, gradients)
    if args.out or args.gradients:
        from .. import plots

        if args.out:
            plots.complexity_curves(curves).savefig(args.out)
        if args.gradients:
            plots.gradient_distance(gradients).savefig(args.gradients)
        print(*filter(None, (args.out, args.gradients)), sep="\n", file=sys.stderr if args.json else sys.stdout)


def _print(curves, gradients):
    from ..bench import complexity

    print("One forward and backward of the layer's core, without the projections of attention, in float32")
    print("on one thread; memory is the peak memory, without the inputs.\n")
    print(complexity.table(curves))
    print()
    print(complexity.counts())
    print("\nGradient of the last output with respect to an input k positions before it, before any training:")
    for name, norms in gradients.items():
        far = len(norms) - 1
        at = "   ".join(f"k = {k}: {norms[k]:.1e}" for k in (1, far // 2, far))
        print(f"  {name:<15} {at}   times {complexity.factor_per_step(norms):.3f} each step")


def _as_json(curves, gradients):
    from ..bench import complexity

    counted = complexity.counted()
    return {
        "curves": [{**asdict(curve), "exponent": curve.exponent, "agrees": curve.agrees} for curve in curves],
        "lengths": complexity.LENGTHS,
        "sequential_operations": {name: operations for name, (operations, _) in counted.items()},
        "path_lengths": {name: paths for name, (_, paths) in counted.items()},
        "gradients": {name: list(map(float, norms)) for name, norms in gradients.items()},
    }


def _measure(quick, quiet):
    """Measure in another process, which has not read the command line."""
    from ..bench import complexity

    with showing_progress(not quiet):
        return complexity.measure(quick)


def _with_one_thread(function, *arguments):
    """Run the function in a process whose matrix products use one thread: from some size on, a second thread would join
    and bend the curves."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    check_processes("these measurements need")
    with thread_variables(1):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
