"""Files that are written whole or not at all."""

import os
from pathlib import Path


def write_atomically(path, write):
    """Have `write(temporary path)` make the file, flush it to the disk, then rename it: a process that is killed leaves
    the old file or the new one, never half of one."""
    path = Path(path)
    temporary = path.with_name(path.name + ".new")
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
