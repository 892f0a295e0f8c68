"""A run is a folder: `run.json` says what is trained on what, `checkpoint.safetensors` holds everything learned."""

import json
from pathlib import Path

from ..support.files import write_atomically

DESCRIPTION, CHECKPOINT = "run.json", "checkpoint.safetensors"


def create_run(folder, description):
    """Make the folder and write the description, before any training: a folder that cannot be written fails here.

    Raises FileExistsError if there is a run in it already, another OSError if it cannot be made or written.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, expected the folder of a run")
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"{folder} holds a run already: go on with --resume, or choose another folder with --out")
    replace_run(folder, description)


def replace_run(folder, description):
    """Like create_run, but a run that is there already is discarded."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CHECKPOINT).unlink(missing_ok=True)  # first: it does not belong to the new description
    write_description(folder, description)


def write_description(folder, description):
    """Write the description of a run into its folder, atomically."""
    text = json.dumps(description, ensure_ascii=False, indent=1)
    write_atomically(Path(folder) / DESCRIPTION, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def read_run(folder, *kinds):
    """The description of a run; FileNotFoundError if there is none, ValueError if it is damaged or of no such kind."""
    path = Path(folder) / DESCRIPTION
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not the folder of a run: there is no {DESCRIPTION} in it")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    found = description.get("kind") if isinstance(description, dict) else None
    if found not in kinds:
        raise ValueError(f"{folder} holds a run of the kind {found!r}, not {' or '.join(map(repr, kinds))}")
    return description


def newest_run(*kinds, below="."):
    """The folder of the run of these kinds whose checkpoint is newest, in this folder or up to two below it.

    Raises FileNotFoundError that says how to train one.
    """
    found = []
    for pattern in (CHECKPOINT, f"*/{CHECKPOINT}", f"*/*/{CHECKPOINT}"):
        for checkpoint in Path(below).glob(pattern):
            try:
                read_run(checkpoint.parent, *kinds)
            except (OSError, ValueError):
                continue
            found.append(checkpoint)
    if not found:
        raise FileNotFoundError(
            f"no trained model found here: train one with `transformer-np train {kinds[0]}`, or name one with --model"
        )
    return max(found, key=lambda checkpoint: checkpoint.stat().st_mtime).parent


def free_folder(kind, below="runs"):
    """The first of runs/translate-1, runs/translate-2, … that does not exist."""
    number = 1
    while (Path(below) / f"{kind}-{number}").exists():
        number += 1
    return Path(below) / f"{kind}-{number}"
