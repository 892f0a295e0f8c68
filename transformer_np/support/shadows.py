"""Files that hide a module from Python, such as a student's random.py. Imports nothing that they could hide."""

import sys
from contextlib import contextmanager
from pathlib import Path

PACKAGES = ("matplotlib", "numpy", "pytest", "safetensors", "tqdm", "transformer_np")
HARMLESS = ("test", "this")  # of Python, but nobody imports them


def shadows(folder):
    """A sentence on each file of a folder that has the name of a module of Python's or of a package used here."""
    found = sorted([*Path(folder).glob("*.py"), *(init.parent for init in Path(folder).glob("*/__init__.py"))])
    for path in found:
        own = path.stem in sys.stdlib_module_names and path.stem not in HARMLESS
        if own or path.stem in PACKAGES:
            hidden = f"Python's own module {path.stem}" if own else f"the package {path.stem}"
            yield f"Your file {path.name} hides {hidden}: rename it."


@contextmanager
def without_folder(folder):
    """Inside the block, no module is imported from a folder by its name alone."""
    before, here = list(sys.path), Path(folder).resolve()
    sys.path[:] = [entry for entry in before if Path(entry).resolve() != here]
    try:
        yield
    finally:
        sys.path[:] = before
