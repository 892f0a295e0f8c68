from . import add_command, meant


def add_parser(subparsers):
    parser = add_command(subparsers, "gradcheck", run, "--verbose layer_norm Transformer")
    parser.add_argument("name", nargs="*", metavar="NAME", help="functions or modules to check (default: all of them)")
    parser.add_argument("--verbose", action="store_true", help="print a line for every input and parameter")


def run(args):
    from ..inspection.gradcheck import standard_checks

    checks = standard_checks()
    unknown = [name for name in args.name if name not in checks]
    if unknown:
        known = f"the checks are {', '.join(checks)}{meant(unknown[0], checks)}"
        raise ValueError(f"there is no check named {unknown[0]!r}; {known}")
    names = args.name or list(checks)
    width = max(map(len, names))
    wrong = 0
    print(f"{'':<{width}}  checked  worst relative error, and where")
    for name in names:
        report = checks[name]()
        wrong += not report.passed
        worst, place = report.worst, ", ".join(map(str, report.worst.index))
        verdict = "" if report.passed else "  WRONG"
        print(f"{name:<{width}}  {len(report.entries):>7}  {worst.error:.1e} in {worst.name} at ({place}){verdict}")
        if args.verbose:
            print("\n".join(str(report).splitlines()[1:]))
    print(f"{len(names)} checked in float64, {wrong or 'none'} wrong (tolerance {report.tolerance:g})")
    return 1 if wrong else 0
