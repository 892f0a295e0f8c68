from ..support.processes import thread_variables
from . import add_command, check_picture


def add_parser(subparsers):
    parser = add_command(
        subparsers,
        "complexity",
        run,
        "measure the growth of time and memory of the layers, and compare it with the lecture's table",
        "transformer-np complexity -o complexity.png --gradients gradients.png",
    )
    parser.add_argument(
        "--quick", action="store_true", help="use fewer and smaller sizes: takes a few seconds, gives rough exponents"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="draw the curves: .png, .svg or .pdf")
    parser.add_argument("--gradients", metavar="FILE", help="draw the gradient over the distance: .png, .svg or .pdf")


def run(args):
    for option, name in (("-o", args.out), ("--gradients", args.gradients)):
        if name is not None:
            check_picture(option, name)
    from ..bench import complexity

    curves = _with_one_thread(complexity.measure, args.quick)
    print("One forward and backward of the layer's core, without the projections of attention, in float32")
    print("on one thread; memory is the most held at once, without the inputs.\n")
    print(complexity.table(curves))
    print()
    print(complexity.counts())
    print("\nGradient of the last output with respect to an input k positions before it, before any training:")
    gradients = complexity.gradients()
    for name, norms in gradients.items():
        far = len(norms) - 1
        print(
            f"  {name:<15} k = 1: {norms[1]:.1e}   k = {far // 2}: {norms[far // 2]:.1e}   k = {far}: {norms[far]:.1e}"
            f"   times {complexity.factor_per_step(norms):.3f} each step"
        )
    if args.out or args.gradients:
        from .. import plots

        if args.out:
            plots.complexity_curves(curves).savefig(args.out)
            print(args.out)
        if args.gradients:
            plots.gradient_distance(gradients).savefig(args.gradients)
            print(args.gradients)
    return 0


def _with_one_thread(function, *arguments):
    """Run the function in a process whose matrix products use one thread: from some size on, a second thread would join
    and bend the curves."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    with thread_variables(1):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
