from . import add_command
def add_parser(subparsers):
    parser = add_command(subparsers, "lecture", run, "x", "transformer-np lecture")
def run(args): return 0
