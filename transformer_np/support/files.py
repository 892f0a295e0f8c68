"""Atomic file writes."""

import os
from pathlib import Path


def write_atomically(path, write):
    """Call `write(temporary path)`, flush the file to disk, then rename it to `path`.

    A killed process leaves the old file or the new one, never a partial one.
    """
    path = Path(path)
    temporary = path.with_name(path.name + ".new")
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
